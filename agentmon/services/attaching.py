"""Attaching: how a person gets into the terminal of a running execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.errors import ConflictError
from agentmon.runners.attach import plan_attach
from agentmon.runners.tmux import Tmux, find_tmux

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import Execution
    from agentmon.paths import Paths
    from agentmon.runners.attach import AttachPlan


class AttachService:
    """Finds the session of an execution and the way into it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def plan(self, execution: Execution, *, environ: Mapping[str, str], read_only: bool = False) -> AttachPlan:
        """Return what to run to show the terminal of an execution.

        Raises:
            ConflictError: The execution has no terminal: it waits, is over, or its session is gone.
            UsageError: There is no terminal here, or one that cannot show a session.
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        if not execution.status.is_live or execution.tmux_session_name is None:
            raise ConflictError(
                f"this run is {execution.status.value}, so it has no terminal",
                hint="`agentmon log` and the log tab show what it printed",
            )
        tmux = Tmux(self._paths.tmux_socket, environ=environ)
        try:
            listing = await tmux.list_sessions()
        finally:
            tmux.close()
        session = listing.sessions.get(execution.tmux_session_name)
        if session is None:
            raise ConflictError(
                "the terminal of this run is gone; the run itself goes on and is recorded",
                hint="follow its log instead: enter on the card, or `agentmon log -f`",
            )
        return plan_attach(
            socket_path=self._paths.tmux_socket,
            session_name=session.session_id,
            environ=environ,
            tmux_binary=find_tmux(environ),
            read_only=read_only,
        )
