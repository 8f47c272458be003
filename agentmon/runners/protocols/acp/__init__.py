"""The Agent Client Protocol, version 1 (Gemini CLI 0.61.0, opencode 1.18.33)."""
