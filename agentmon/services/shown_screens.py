"""What the terminal of a run shows: from its pane while it lives, by an emulator afterwards."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import TmuxUnavailableError
from agentmon.logs.streams import find_repaint
from agentmon.runners.execution_folder import open_descriptor, read_whole
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.executions import Execution
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.store.executions import ExecutionRepository

_DEFAULT_SIZE: Final = (50, 200)
_REMEMBERED_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Emulated:
    path: Path
    stamp: tuple[int, int]
    text: bytes


class ScreenService:
    """Reads screens: coloured lines, those that scrolled off before those of the screen as it stands."""

    def __init__(self, executions: ExecutionRepository, paths: Paths) -> None:
        self._executions = executions
        self._paths = paths
        self._pane_ids: dict[str, str] = {}
        self._emulated: _Emulated | None = None

    async def text(self, execution_id: ExecutionId) -> bytes:
        """Return what the terminal of an execution shows, or of one that is over what it showed last.

        Raises:
            NotFoundError: There is no such execution.
        """
        execution = await self._executions.get(execution_id)
        return await self.text_of(execution, self._log_path(execution))

    async def text_of(self, execution: Execution, log: Path) -> bytes:
        """Return what the terminal of one try shows; of a try that is over what it showed last.

        Args:
            execution: Whose terminal.
            log: The output of the try.
        """
        is_present = log == self._log_path(execution) and not await asyncio.to_thread(_has_gone_on_plainly, log)
        if is_present and execution.status.is_live and execution.tmux_session_name is not None:
            shown = await self._read_pane(execution.tmux_session_name)
            if shown is not None:
                return shown
        return await in_daemon_thread(lambda: self._emulate(log), name="emulate a screen")

    def _log_path(self, execution: Execution) -> Path:
        return self._paths.output_of(execution.id, execution.log_file_path)

    async def _read_pane(self, session: str) -> bytes | None:
        """Return what a pane and its history show; None when tmux cannot tell."""
        from agentmon.runners.screens.pane_text import HISTORY_LINES, pane_text  # noqa: PLC0415 - seldom needed
        from agentmon.runners.tmux import Tmux  # noqa: PLC0415 - seldom needed

        tmux = Tmux(self._paths.tmux_socket)
        try:
            for _ in range(2):
                known = self._pane_ids.get(session)
                asked = () if known is None else (known,)
                looks = await tmux.look_at_panes(asked, history_lines=HISTORY_LINES, is_coloured=True)
                pane = looks.panes.get(session)
                if pane is None:
                    return None
                self._pane_ids = {session: pane.pane_id}
                if pane.pane_id in looks.screens:
                    return pane_text(looks.screens[pane.pane_id])
        except TmuxUnavailableError:
            return None
        finally:
            tmux.close()
        return None

    def _emulate(self, log: Path) -> bytes:
        from agentmon.runners.screens.terminal import MAX_BYTES, terminal_text  # noqa: PLC0415 - seldom needed

        try:
            descriptor = open_descriptor(log, os.O_RDONLY)
        except OSError:
            return b""
        try:
            stat = os.fstat(descriptor)
            stamp = (stat.st_size, stat.st_mtime_ns)
            known = self._emulated
            if known is not None and (known.path, known.stamp) == (log, stamp):
                return known.text
            rows, columns = _size_of(log.with_name("spec.json"))
            end = _end_of_painting(descriptor, stat.st_size, find_repaint(log), rows)
            begin = max(0, end - MAX_BYTES)
            output = os.pread(descriptor, end - begin, begin)
            plain = os.pread(descriptor, stat.st_size - end, end)
        except OSError:
            return b""
        finally:
            os.close(descriptor)
        text = terminal_text(output, rows=rows, columns=columns, begins_within=begin > 0)
        if plain:
            text = text.rstrip(b"\n") + b"\n" * bool(text) + plain
        self._emulated = _Emulated(log, stamp, text)
        return text


def _has_gone_on_plainly(log: Path) -> bool:
    """Return whether so much plain output followed what was painted that no pane remembers all of it."""
    place = find_repaint(log)
    return place is not None and log.stat().st_size - place > _REMEMBERED_BYTES


def _end_of_painting(descriptor: int, size: int, repaint: int | None, rows: int) -> int:
    """Return behind which byte the output only scrolls: a screenful of lines after the last repaint."""
    if repaint is None:
        return size
    followed = os.pread(descriptor, _REMEMBERED_BYTES, repaint)
    end = -1
    for _ in range(rows):
        end = followed.find(b"\n", end + 1)
        if end < 0:
            # Lines so long that the screen is full of them before there are as many.
            end = followed.rfind(b"\n") if len(followed) == _REMEMBERED_BYTES else -1
            return repaint + end + 1 if end >= 0 else size
    return repaint + end + 1


def _size_of(spec: Path) -> tuple[int, int]:
    try:
        document = json.loads(read_whole(spec))
        rows, columns = int(document["rows"]), int(document["columns"])
    except (OSError, LookupError, TypeError, ValueError):
        return _DEFAULT_SIZE
    return rows, columns
