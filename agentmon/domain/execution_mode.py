"""How the host speaks to a program."""

from __future__ import annotations

from enum import StrEnum


class ExecutionMode(StrEnum):
    """The protocol in which the host speaks to the program."""

    TEMPLATE = "template"
    STREAM_JSON = "stream-json"
    APP_SERVER = "app-server"
    ACP = "acp"
    TMUX = "tmux"
    """The agent's own screen in the pane."""

    @property
    def is_protocol(self) -> bool:
        """Whether the agent is spoken to in a protocol, over pipes."""
        return self in {ExecutionMode.STREAM_JSON, ExecutionMode.APP_SERVER, ExecutionMode.ACP}

    @property
    def is_conversation(self) -> bool:
        """Whether there is an agent that is given a prompt."""
        return self is not ExecutionMode.TEMPLATE
