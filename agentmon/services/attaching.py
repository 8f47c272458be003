"""Attaching: how a person gets into the terminal of a running execution."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.runners.attach import plan_attach
from agentmon.runners.tmux import Tmux, find_tmux

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.executions import Execution
    from agentmon.paths import Paths
    from agentmon.runners.attach import AttachPlan
    from agentmon.runners.tmux.server import SessionInfo

_COMES_WITHIN_S: Final = 5.0
_LOOK_EVERY_S: Final = 0.1


class AttachService:
    """Finds the session of an execution and the way into it."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    async def plan(self, execution: Execution, *, environ: Mapping[str, str], read_only: bool = False) -> AttachPlan:
        """Return what to run to show the terminal of an execution.

        Raises:
            ConflictError: The execution has no terminal: it waits, has not begun, is over, or its session is gone.
            UsageError: There is no terminal here, or one that cannot show a session.
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        from agentmon.worker.preparation import session_name  # noqa: PLC0415 - seldom needed

        is_starting = execution.status is ExecutionStatus.RUNNING and execution.tmux_session_name is None
        if not is_starting and (not execution.status.is_live or execution.tmux_session_name is None):
            raise ConflictError(
                f"this run has no terminal: {execution.live_state.with_cause(exit_code=execution.exit_code)}",
                hint="`agentmon log` and the log tab show what it printed",
            )
        session = await self._find(
            execution.tmux_session_name or session_name(execution), environ=environ, is_awaited=is_starting
        )
        if session is None and is_starting:
            raise ConflictError(
                "this run has not begun yet", hint="`agentmon worker --status` shows whether its worker is at work"
            )
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

    async def _find(self, name: str, *, environ: Mapping[str, str], is_awaited: bool) -> SessionInfo | None:
        """Return a session; one that is awaited, since its run was only just claimed, gets time to come."""
        tmux = Tmux(self._paths.tmux_socket, environ=environ)
        try:
            for _ in range(int(_COMES_WITHIN_S / _LOOK_EVERY_S) if is_awaited else 0):
                if (session := (await tmux.list_sessions()).sessions.get(name)) is not None:
                    return session
                await asyncio.sleep(_LOOK_EVERY_S)
            return (await tmux.list_sessions()).sessions.get(name)
        finally:
            tmux.close()
