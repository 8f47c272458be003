"""How agents are run: the host in the pane, the journal it writes, tmux, adapters and presets."""
