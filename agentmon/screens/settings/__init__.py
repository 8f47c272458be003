"""Settings, themes and keys that a person chooses."""
