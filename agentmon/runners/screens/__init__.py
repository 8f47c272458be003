"""What an agent's own screen says: signals that it gives itself first, then rules over its title and its lines.

Rules are data (``*.screen.toml``); a person's own files stand on top of them. Nothing here asks tmux.
"""
