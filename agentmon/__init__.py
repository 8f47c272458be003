"""agentmon runs coding agents from a task board inside tmux and keeps an exact record of each."""

__version__ = "0.7.0"
