"""Use cases: what people and programs can ask of agentmon, the same for the screens and the command line."""
