"""Where a block of a conversation stands in the log of its run, and the other way round.

The time leads to the neighbourhood, since the host notes it every second or two; what the block says leads to the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.near_paths import near_text
from agentmon.domain.plain_text import plain_line
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_file import LogFile
from agentmon.logs.pattern import LogPattern
from agentmon.logs.search import search_log
from agentmon.widgets.call_blocks import OperationBlock
from agentmon.widgets.conversation_blocks import AskBlock, MessageBlock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId
    from agentmon.logs.log_times import LogTimes
    from agentmon.widgets.block_view import Block

_EARLIER: Final = timedelta(seconds=6)
_LATER: Final = timedelta(seconds=6)
_MOST_BYTES: Final = 2 * 1024 * 1024
_LOOK_BACK_BYTES: Final = 64 * 1024
_LONGEST_WORDS: Final = 50


@dataclass(frozen=True, slots=True)
class _Said:
    """What is known of a block."""

    key: str
    at: datetime
    run: ExecutionId | None
    words: tuple[str, ...]
    """Texts that its lines in the log begin with, the surest first."""


def log_offset(path: Path, times: LogTimes, block: Block, run: ExecutionId) -> int | None:
    """Return where a block stands in the log of the run; None when it is of another run or has no place.

    Args:
        path: The log.
        times: When it was written.
        block: What is looked for.
        run: The run whose log it is.
    """
    said = _said(block)
    if said is None or (said.run is not None and said.run != run):
        return None
    with LogFile(path) as log:
        if not log.size:
            return None
        guess = times.offset_at(said.at, size=log.size)
        start = log.line_start(times.offset_at(said.at - _EARLIER, size=log.size))
        stop = min(times.offset_at(said.at + _LATER, size=log.size), start + _MOST_BYTES)
        for words in said.words:
            steps = search_log(log, LogPattern.of_words(words), start=start, stop=max(stop, guess + 1))
            found = [match for step in steps for match in step.matches]
            if found:
                return min(found, key=lambda place: abs(place - guess))
        return guess


def block_key(path: Path, times: LogTimes, offset: int, blocks: Sequence[Block], run: ExecutionId) -> str | None:
    """Return the key of the block that a line of the log belongs to; None when the run has none.

    Args:
        path: The log.
        times: When it was written.
        offset: A byte of the line.
        blocks: The conversation.
        run: The run whose log it is.
    """
    told = [said for said in map(_said, blocks) if said is not None and said.run in {run, None}]
    with LogFile(path) as log:
        moment = times.moment_at(offset, size=log.size) or times.newest
        if moment is None or not told:
            return None
        lines = log.lines_from(log.line_start(offset), 1)
        end = lines[0].end if lines else log.size
        before = log.read(max(0, end - _LOOK_BACK_BYTES), end)
    text = "\n".join(map(plain_text, before.split(b"\n")))
    near = [said for said in told if moment - _EARLIER - _EARLIER <= said.at <= moment + _LATER]
    places = [(max(text.rfind(words) for words in said.words), said.at, said.key) for said in near if said.words]
    place, _, key = max(places, default=(-1, None, ""))
    if place >= 0:
        return key
    return next((said.key for said in reversed(told) if said.at <= moment), told[0].key)


def _said(block: Block) -> _Said | None:
    match block:
        case MessageBlock(message=message):
            lines = [plain_line(line).strip() for line in message.content.split("\n")]
            first = next((line[:_LONGEST_WORDS] for line in lines if line), "")
            return _Said(block.key, message.created_at, message.execution_id, (first,) if first else ())
        case OperationBlock(operation=operation, folder=folder):
            tool = plain_line(operation.tool_name)
            target = plain_line(near_text(operation.target, folder)).split("\n")[0][:_LONGEST_WORDS]
            words = (f"● {tool}  {target}".rstrip(), f"● {tool}")
            return _Said(block.key, operation.started_at, operation.execution_id, words)
        case AskBlock(approval=approval):
            return _Said(block.key, approval.asked_at, approval.execution_id, ("◆ needs you: ",))
        case _:
            return None
