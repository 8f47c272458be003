"""Attaching: how a person gets into the terminal of a running execution."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.runners.ancestry import executions_around, look_around
from agentmon.runners.attach import BACK_KEY, plan_attach
from agentmon.runners.tmux import Tmux, find_tmux

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
            ConflictError: The execution has no terminal: it waits, has not begun, is over, or its session is gone. Or
                it would show itself, since this process is in it, or in one that it shows.
            UsageError: There is no terminal here, or one that cannot show a session.
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        from agentmon.worker.preparation import session_name  # noqa: PLC0415 - seldom needed

        around = (await asyncio.to_thread(look_around, environ, ())).executions
        if execution.id in around:
            raise ConflictError(
                "you are inside this run: attaching would show it within itself",
                hint=f"{BACK_KEY} leaves it; attach from another terminal",
            )

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
        if around and await self._shows_any(execution.id, around, environ=environ):
            raise ConflictError(
                "this run shows the run that you are in: each would show the other within itself",
                hint=f"{BACK_KEY} in this run leaves the other one first",
            )
        return plan_attach(
            socket_path=self._paths.tmux_socket,
            session_name=session.session_id,
            environ=environ,
            tmux_binary=find_tmux(environ),
            read_only=read_only,
        )

    async def _shows_any(self, execution_id: str, wanted: Sequence[str], *, environ: Mapping[str, str]) -> bool:
        """Return whether one of the executions is attached to in this one, or in one that is attached to there."""
        from agentmon.worker.preparation import execution_of_session  # noqa: PLC0415 - seldom needed

        tmux = Tmux(self._paths.tmux_socket, environ=environ)
        try:
            sessions = (await tmux.list_sessions()).sessions
            clients = await tmux.list_clients()
        finally:
            tmux.close()
        names = {session.session_id: name for name, session in sessions.items()}
        shown: dict[str, set[str]] = {}
        for pid, session_id in clients:
            for outer in await asyncio.to_thread(executions_around, pid):
                shown.setdefault(outer, set()).add(execution_of_session(names.get(session_id, "")))
        seen, ahead = set[str](), {execution_id}
        while ahead:
            seen |= ahead
            ahead = set[str]().union(*(shown.get(one, set()) for one in ahead)) - seen
        return not seen.isdisjoint(wanted)

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
