"""``agentmon tmux-status`` in the list of commands: its help."""

from typing import Annotated

import typer

from agentmon.cli.tmux_status import print_tmux_status


def tmux_status(
    is_plain: Annotated[bool, typer.Option("--plain", help="Leave the colours out.")] = False,
) -> None:
    """Print the numbers of the board for the tmux status bar.

    Running, queued, what needs you, the day's cost. It takes some 30 ms, and never fails: what cannot be read is a
    question mark.

    For the bar of your own tmux write into ~/.tmux.conf:
    set -g status-interval 5
    set -g status-right '#(agentmon tmux-status) %H:%M'

    Examples:
      agentmon tmux-status
      agentmon tmux-status --plain
    """
    raise typer.Exit(print_tmux_status(["--plain"] if is_plain else []))
