"""agentmon's private tmux server: sessions are started, listed, looked at and ended, each by its exact name or id."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import RunnerError, TmuxUnavailableError
from agentmon.domain.plain_text import plain_line
from agentmon.runners.tmux.command import Answer, Outcome, TmuxCommands, refusal
from agentmon.runners.tmux.pane_looks import PaneLooks, PaneQuestion
from agentmon.runners.tmux.version import TmuxVersion, find_version

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

DEFAULT_CONFIG_PATH: Final = Path(__file__).parent.parent / "tmux.conf"
MAX_TITLE_CHARACTERS: Final = 200

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")
_SESSION_ID: Final = re.compile(r"\$\d+")
_LIST_FORMAT: Final = "#{session_id}|#{pane_id}|#{session_attached}|#{session_created}|#{@agentmon_session}"
"""Asked per pane: only the pane that agentmon made carries the option, whatever became of its session's name."""
_NO_SESSION_WORDS: Final = ("no current target", "no sessions")
"""What a server says that has no session at all, in the moment before it ends."""
_RETRY_DELAYS_S: Final = (0.0, 0.01, 0.02, 0.04, 0.08, 0.16)
"""Waits between tries: a server that ends with its last session can vanish under whoever asks it meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHandle:
    """A session that has just been started."""

    session_id: str
    """``$3``; another session may get it once the server has ended."""
    pane_id: str
    """``%5``; lives as long as ``session_id``."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session as it stands now."""

    session_id: str
    """Of the session that holds the pane now."""
    pane_id: str
    """The pane that agentmon made; other panes and windows of the session are not looked at."""
    attached_count: int
    """How many terminals show the session."""
    created_at: datetime
    """Aware UTC, in whole seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionListing:
    """All sessions that agentmon made on the server; known, even when empty."""

    sessions: Mapping[str, SessionInfo]
    """By the name that they were started with."""
    is_server_running: bool
    """False says that nobody listens on the socket; a server whose socket file was removed looks the same."""
    is_socket_present: bool
    """False while the server is gone says that it was never started, or that something removed the socket file."""


class Tmux:
    """One private tmux server, reached through its socket; started with its first session, gone with its last.

    Args:
        socket_path: Where the server listens; a missing folder is made with mode 0700.
        config_path: The configuration of the server; the user's own is never read.
        deadline_s: How long one call may take, waiting for a free thread included.
        environ: Where PATH and the locale come from. The server gets PATH, HOME, the locale and TMPDIR of it and
            nothing else, so no secret of the user can show up in a session. No TERM: tmux refuses even a question
            from a terminal that it does not know.
    """

    def __init__(
        self,
        socket_path: Path,
        *,
        config_path: Path = DEFAULT_CONFIG_PATH,
        deadline_s: float = 5.0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.socket_path = socket_path.absolute()
        self._environ = dict(os.environ if environ is None else environ)
        self._deadline_s = deadline_s
        self._commands = TmuxCommands(
            socket_path=self.socket_path, config_path=config_path, deadline_s=deadline_s, environ=self._environ
        )

    def close(self) -> None:
        """End the calls that wait and free the threads; the server and its sessions go on. Idempotent."""
        self._commands.close()

    async def check(self) -> TmuxVersion:
        """Return the version of tmux, without asking the server.

        Raises:
            TmuxUnavailableError: tmux is missing, does not answer, or is older than the minimum.
        """
        return await asyncio.to_thread(find_version, self._environ, time_limit_s=self._deadline_s)

    async def start_session(
        self,
        *,
        name: str,
        command: Sequence[str],
        working_dir: Path,
        title: str,
        columns: int = 200,
        rows: int = 50,
        wake: Path | None = None,
    ) -> SessionHandle:
        """Return the new session, in which the command runs without a shell; its pane may be gone again already.

        It has the size that is given, also while smaller or larger terminals show it. What is attached to it and leaves
        is told to the FIFO ``wake``, as commands for the host.

        The name is unique for ever (it is made from the execution id). When the call fails by its deadline or is
        cancelled, the session may exist: ``list_sessions`` tells.

        Raises:
            RunnerError: The name is taken or has other characters than ``A-Z a-z 0-9 _ -``, the folder is missing,
                or tmux refused.
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        if not _NAME.fullmatch(name):
            raise RunnerError(f"{plain_line(name, max_characters=80)!r} cannot name a tmux session")
        if not await asyncio.to_thread(working_dir.is_dir):
            message = f"the folder {plain_line(str(working_dir))} does not exist"
            raise RunnerError(message, hint="choose another folder for the task, or make it again")
        folder_option = f"@folder-{name}"
        # -c is a format, and no escape covers every path; the value of an option is never expanded again.
        commands = (
            ("set-option", "-g", folder_option, str(working_dir)),
            (
                *("new-session", "-d", "-P", "-F", "#{session_id}|#{pane_id}", "-s", name, "-n", "agent"),
                *("-x", str(columns), "-y", str(rows), "-c", f"#{{{folder_option}}}", "--"),
                # A single word would be given to a shell.
                *(command if len(command) > 1 else ("/bin/sh", "-c", 'exec "$0"', *command)),
            ),
            ("set-option", "-gu", folder_option),
            ("set-option", "-p", "-t", f"={name}:", "@agentmon_session", name),
            ("set-option", "-t", f"={name}:", "@agentmon_title", _status_text(title)),
            ("set-option", "-t", f"={name}:", "@agentmon_size", f"-x {columns} -y {rows}"),
            # Its own from now on. As an option of the server this ends tmux 3.3a at its first session.
            ("resize-window", "-t", f"={name}:", "-x", str(columns), "-y", str(rows)),
            *(() if wake is None else [("set-option", "-t", f"={name}:", "@agentmon_wake", str(wake))]),
        )
        answer = await self._settle({Outcome.UNSETTLED, Outcome.NO_SERVER}, *commands, may_start_server=True)
        session_id, separator, pane_id = (answer.lines[0] if answer.lines else "").partition("|")
        is_started = bool(separator) and _SESSION_ID.fullmatch(session_id) is not None
        # After the start only a session that has ended by itself may refuse its options.
        if is_started and (answer.outcome is not Outcome.REFUSED or not await self._end_session(session_id)):
            return SessionHandle(session_id=session_id, pane_id=pane_id, name=name)
        await self._commands.run(("set-option", "-gu", folder_option))
        raise refusal(f"the session {name} could not be started", answer)

    async def list_sessions(self) -> SessionListing:
        """Return every session that agentmon made and that is there now, asked in one call.

        Raises:
            TmuxUnavailableError: What is there cannot be told; nothing follows about any session.
        """
        answer = await self._ask(("list-panes", "-a", "-F", _LIST_FORMAT))
        match answer.outcome:
            case Outcome.DONE:
                sessions = dict(_read_session(line) for line in answer.lines if not line.endswith("|"))
                return SessionListing(sessions=sessions, is_server_running=True, is_socket_present=True)
            case Outcome.NO_SERVER:
                is_present = await asyncio.to_thread(self.socket_path.exists)
                return SessionListing(sessions={}, is_server_running=False, is_socket_present=is_present)
            case Outcome.REFUSED if answer.words in _NO_SESSION_WORDS:
                return SessionListing(sessions={}, is_server_running=True, is_socket_present=True)
            case Outcome.REFUSED | Outcome.UNSETTLED:
                words = answer.words or "it gave no reason"
                raise TmuxUnavailableError(f"the sessions cannot be listed: tmux said: {words}")

    async def list_clients(self) -> tuple[tuple[int, str], ...]:
        """Return the terminals that show a session that agentmon made: the process of each, and the session's id.

        Raises:
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        answer = await self._ask(("list-clients", "-F", "#{client_pid}|#{session_id}"))
        pairs = (line.partition("|") for line in answer.lines)
        return tuple((int(pid), session_id) for pid, _separator, session_id in pairs if pid.isdigit())

    async def kill_session(self, session: str) -> bool:
        """End a session, named by id (``$3``) or by the exact name that it was started with; False when it is gone.

        A session that agentmon did not make is never ended. Prefer the name: an id can belong to another session once
        the server has ended. The programs in the session get a hang-up and may outlive it.

        Raises:
            RunnerError: tmux refused.
            TmuxUnavailableError: Whether there is such a session cannot be told.
        """
        session_id = await self._find_session_id(session)
        return session_id is not None and await self._end_session(session_id)

    async def capture(self, pane_id: str, *, lines: int) -> str:
        """Return the last lines of a pane's screen and history as plain text, wrapped lines joined, without blank ends.

        Raises:
            RunnerError: There is no such pane, or tmux refused.
            TmuxUnavailableError: tmux is missing or did not answer.
        """
        answer = await self._ask(("capture-pane", "-p", "-J", "-t", pane_id, "-S", f"-{lines}"))
        if answer.outcome is not Outcome.DONE:
            raise refusal(f"the pane {pane_id} could not be read", answer)
        screen_lines = "\n".join(line.rstrip() for line in answer.lines).rstrip().split("\n")
        return "\n".join(screen_lines[-lines:])

    async def look_at_panes(
        self, pane_ids: Collection[str], *, history_lines: int = 0, is_coloured: bool = False
    ) -> PaneLooks:
        """Return which panes agentmon made, and what those of these ids show, asked in one call.

        ``history_lines`` and ``is_coloured`` mean what they mean for ``PaneQuestion``.

        A pane that is gone by then breaks the call off: those after it have no screen in the answer, and nothing
        follows about them.

        Raises:
            TmuxUnavailableError: What is there cannot be told.
        """
        question = PaneQuestion(pane_ids, history_lines=history_lines, is_coloured=is_coloured)
        answer = await self._commands.run(*question.commands)
        if answer.outcome is Outcome.DONE or answer.lines:
            return question.read(answer.lines)
        if answer.words.startswith(_NO_SESSION_WORDS):
            return PaneLooks()
        raise TmuxUnavailableError(f"the panes cannot be looked at: {answer.words or 'there is no server'}")

    async def _find_session_id(self, session: str) -> str | None:
        sessions = (await self.list_sessions()).sessions
        if _SESSION_ID.fullmatch(session):
            return session if any(known.session_id == session for known in sessions.values()) else None
        return sessions[session].session_id if session in sessions else None

    async def _end_session(self, session_id: str) -> bool:
        kill = ("kill-session", "-t", session_id)
        answer = await self._commands.run(kill)
        # The server ends with its last session, at times before it has answered.
        is_ending = answer.outcome is Outcome.UNSETTLED
        if is_ending:
            answer = await self._ask(kill)
        if answer.outcome is Outcome.DONE:
            return True
        if answer.outcome is Outcome.NO_SERVER or answer.words.startswith(("can't find session", *_NO_SESSION_WORDS)):
            return is_ending
        raise refusal(f"the session {session_id} could not be ended", answer)

    async def _ask(self, command: Sequence[str]) -> Answer:
        return await self._settle({Outcome.UNSETTLED}, command)

    async def _settle(
        self, passing: Collection[Outcome], *commands: Sequence[str], may_start_server: bool = False
    ) -> Answer:
        answer = await self._commands.run(*commands, may_start_server=may_start_server)
        for delay_s in _RETRY_DELAYS_S:
            if answer.lines or answer.outcome not in passing:
                break
            await asyncio.sleep(delay_s)
            answer = await self._commands.run(*commands, may_start_server=may_start_server)
        return answer


def _read_session(line: str) -> tuple[str, SessionInfo]:
    fields = line.split("|")
    try:
        session_id, pane_id, attached, created, name = fields
        info = SessionInfo(
            session_id=session_id,
            pane_id=pane_id,
            attached_count=int(attached),
            created_at=datetime.fromtimestamp(int(created), tz=UTC),
        )
    except ValueError as error:
        raise TmuxUnavailableError(f"tmux gave an answer that cannot be read: {plain_line(line)}") from error
    return name, info


def _status_text(title: str) -> str:
    line = plain_line(title, max_characters=MAX_TITLE_CHARACTERS)
    # tmux expands nothing in the value of an option, but draws #[…] as a style and ## as one sign.
    return line.replace("#", "##")
