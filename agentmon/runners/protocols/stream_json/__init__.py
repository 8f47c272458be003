"""Claude Code's stream-json, with its control protocol (2.1.332)."""
