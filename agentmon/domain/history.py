"""Messages and tool calls as agents themselves wrote them down, in conversations that nobody here has followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from agentmon.domain.operations import MessageRole, OperationStatus, OperationType

MAX_MESSAGE_CHARACTERS: Final = 65_536
MAX_SUMMARY_CHARACTERS: Final = 1_000
"""Of what a call was given and gave back: the agent's own file has it whole."""
MAX_PLACE: Final = 0xFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryMessage:
    """One message, without secrets and cut to ``MAX_MESSAGE_CHARACTERS``."""

    session_ref: str
    """The agent's own id of the conversation that it belongs to."""
    is_owner_marked: bool = False
    """Whether the record names that conversation as the owner, rather than the file in which it stands."""
    ref: str
    """The same in every copy of the message, and no other message of the agent has it."""
    role: MessageRole
    text: str
    is_thinking: bool = False
    parent_ref: str | None = None
    """The tool call or the name of the subagent that speaks."""
    at_ms: int
    place: int = 0
    """Among records of the same millisecond, from 0 to ``MAX_PLACE``."""

    @property
    def begin_ms(self) -> int:
        """When it was said."""
        return self.at_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOperation:
    """One tool call, without secrets; told again as a whole when it has ended."""

    session_ref: str
    is_owner_marked: bool = False
    ref: str
    tool_name: str
    type: OperationType
    target: str
    input_summary: str = ""
    output_summary: str = ""
    status: OperationStatus
    """``CANCELLED`` as long as no end is known: a conversation of the past does not wait."""
    error: str | None = None
    started_at_ms: int
    finished_at_ms: int | None = None
    duration_ms: int | None = None
    parent_ref: str | None = None
    answer_key: str | None = None
    place: int = 0
    differences: tuple[tuple[str, str], ...] = ()
    """Paths that it changed, each with unified hunks of line numbers, as far as the record shows them; not kept."""

    @property
    def begin_ms(self) -> int:
        """When it began."""
        return self.started_at_ms


def merge_messages(earlier: HistoryMessage, later: HistoryMessage) -> HistoryMessage:
    """Return one message for two tellings of it: the one with more text, of equal ones the earlier one."""
    return later if len(later.text) > len(earlier.text) else earlier


def merge_operations(earlier: HistoryOperation, later: HistoryOperation) -> HistoryOperation:
    """Return one call for two tellings of it: one that has ended, of equal ones the later one."""
    has_ended_before = earlier.finished_at_ms is not None and later.finished_at_ms is None
    return earlier if has_ended_before else later
