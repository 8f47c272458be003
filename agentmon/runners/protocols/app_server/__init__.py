"""Codex's app-server (0.171.0)."""
