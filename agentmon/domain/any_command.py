"""The agent that is always there, by name."""

from __future__ import annotations

from typing import Final

ANY_COMMAND_SLUG: Final = "command"
"""The agent that is always there and runs whatever command it is given."""

ANY_COMMAND_KEY: Final = "run"
"""The one capability of that agent; its argument ``argv`` is the command as a list of words."""
