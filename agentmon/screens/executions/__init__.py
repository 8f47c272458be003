"""The table of executions."""
