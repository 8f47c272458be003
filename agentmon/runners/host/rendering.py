"""What a conversation looks like in the pane and in the log: a calm chat, one event after the other."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(?:\x07|\x1b\\|\Z)|[ -/]*[0-~])", re.DOTALL)
# Controls but line feed and tab, and the marks that turn the direction of text round.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_BOLD, _DIM, _RED, _GREEN, _YELLOW, _CYAN, _PLAIN = (
    "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[36m", "\x1b[0m",
)  # fmt: skip
_MAX_REMEMBERED = 1000
_MAX_RESULT_LINES = 6
_MAX_DIFF_LINES = 60
_MAX_ASKED_LINES = 20
_MAX_LINE_CHARACTERS = 400
_PLAN_MARKS = {"completed": "✓", "in_progress": "▸", "pending": "·"}
_STATUS_MARKS = {"success": "✓", "failed": "✗", "blocked": "⊘", "cancelled": "⊘"}
_OUTCOMES = {
    "completed": "done",
    "failed": "failed",
    "interrupted": "interrupted: type what to do now, or stop it",
    "limit": "it reached its limit",
}
_LEVELS = {"info": _DIM, "warn": _YELLOW, "error": _RED}


class Rendering:
    """Turns events into text with line feeds; remembers what was streamed, so that nothing is shown twice."""

    __slots__ = ("_asked", "_calls", "_is_mid_line", "_newest", "_plan", "_root", "_streamed", "_vague")

    def __init__(self, working_dir: str) -> None:
        self._root = working_dir.rstrip("/") + "/"
        self._streamed: dict[str, int] = {}
        """Characters of each message that were shown piece by piece."""
        self._newest = ""
        """The message of the newest piece."""
        self._calls: dict[str, str] = {}
        """The line of each open call."""
        self._vague: set[str] = set()
        """Calls whose line was not shown, since it says no more than the name of the tool."""
        self._asked: dict[str, int] = {}
        """The mark of the changed lines that a request showed, by the call that waited for it."""
        self._plan: object = None
        self._is_mid_line = False

    @property
    def is_mid_line(self) -> bool:
        """Whether what comes next goes on in the newest line."""
        return self._is_mid_line

    def render(self, event: Mapping[str, object]) -> str:
        """Return what the event adds to what is shown; often nothing."""
        show = getattr(self, f"_show_{event.get('kind')}", None)
        text: str = show(event) if show is not None else ""
        if event.get("kind") != "delta":
            text = text.replace(self._root, "").replace(f"{_DIM}{_PLAIN}", "")
        return text and self._placed(text, goes_on=event.get("kind") == "delta")

    def render_errors(self, text: str) -> str:
        """Return what the agent wrote to its error output as it is shown: cleaned, on lines of its own."""
        cleaned = clean(text)
        return cleaned and self._placed(cleaned if cleaned.endswith("\n") else f"{cleaned}\n", goes_on=False)

    def _placed(self, text: str, *, goes_on: bool) -> str:
        if self._is_mid_line and not goes_on and not text.startswith("\n"):
            text = f"\n{text}"
        self._is_mid_line = not text.endswith("\n")
        return text

    def _show_delta(self, event: Mapping[str, object]) -> str:
        piece, ref = clean(_text(event, "text")), _text(event, "message_ref")
        if not piece:
            return ""
        start = "\n" if self._is_mid_line and ref != self._newest else ""
        self._newest = ref
        if len(self._streamed) > _MAX_REMEMBERED:
            self._streamed.clear()
        self._streamed[ref] = self._streamed.get(ref, 0) + len(piece)
        return start + (f"{_DIM}{piece}{_PLAIN}" if event.get("is_thinking") else piece)

    def _show_message(self, event: Mapping[str, object]) -> str:
        text, role = clean(_text(event, "text")).rstrip(), _text(event, "role")
        if self._streamed.pop(_text(event, "message_ref"), 0):
            return "\n" if self._is_mid_line else ""
        if not text:
            return ""
        if role == "user":
            return f"\n{_BOLD}{_CYAN}› {_indented(text)}{_PLAIN}\n\n"
        return f"{_DIM}{text}{_PLAIN}\n" if event.get("is_thinking") or role != "assistant" else f"{text}\n"

    def _show_plan(self, event: Mapping[str, object]) -> str:
        steps = event.get("steps")
        if steps == self._plan or not isinstance(steps, list | tuple):
            return ""
        self._plan = steps
        lines = [
            f"  {_PLAN_MARKS.get(_text(step, 'status'), '·')} {_one_line(_text(step, 'text'))}"
            for step in steps
            if isinstance(step, dict)
        ]
        return "".join(f"{_DIM}{line}{_PLAIN}\n" for line in lines)

    def _show_tool_started(self, event: Mapping[str, object]) -> str:
        ref = _text(event, "tool_ref")
        target = _one_line(_text(event, "target").replace(self._root, ""))
        line = f"{_one_line(_text(event, 'tool_name'))}  {target}".rstrip()
        shown = f"{'  ' if event.get('parent_tool_ref') else ''}{_CYAN}●{_PLAIN} {line}\n"
        if self._calls.get(ref) == shown:
            return ""
        if len(self._calls) > _MAX_REMEMBERED:
            self._calls.clear()
            self._vague.clear()
        self._calls[ref] = shown
        if target in {"", _text(event, "tool_name")}:  # it comes again once it is known what the call is aimed at
            self._vague.add(ref)
            return ""
        self._vague.discard(ref)
        return shown

    def _show_tool_finished(self, event: Mapping[str, object]) -> str:
        ref = _text(event, "tool_ref")
        call = self._calls.pop(ref, "")
        head = call if ref in self._vague else ""
        self._vague.discard(ref)
        status = _text(event, "status")
        text = clean(_text(event, "error") or _text(event, "output_summary")).strip()
        lines = text.split("\n") if text else []
        shown = [_one_line(line) for line in lines[:_MAX_RESULT_LINES]]
        if len(lines) > _MAX_RESULT_LINES:
            shown.append(f"… {len(lines) - _MAX_RESULT_LINES} more lines")
        mark = _STATUS_MARKS.get(status, "·")
        colour = _DIM if status == "success" else _RED
        if not shown:
            shown = [status]
        return head + "".join(
            f"  {colour}{mark if position == 0 else ' '} {line}".rstrip() + f"{_PLAIN}\n"
            for position, line in enumerate(shown)
        )

    def _show_diff(self, event: Mapping[str, object]) -> str:
        lines = clean(_text(event, "diff")).rstrip("\n").split("\n")
        counts = f"+{event.get('added_lines', 0)} -{event.get('removed_lines', 0)}"
        head = f"  {_DIM}{_one_line(_text(event, 'path'))} {counts}{_PLAIN}\n"
        if _mark(lines) == self._asked.pop(_text(event, "tool_ref"), None):
            return head
        body = []
        for line in lines[:_MAX_DIFF_LINES] if lines != [""] else []:
            colour = _GREEN if line.startswith("+") else _RED if line.startswith("-") else _DIM
            body.append(f"  {colour}{_one_line(line)}{_PLAIN}\n" if line.strip() else "\n")
        if len(lines) > _MAX_DIFF_LINES:
            body.append(f"  {_DIM}… {len(lines) - _MAX_DIFF_LINES} more lines{_PLAIN}\n")
        return head + "".join(body)

    def _show_ask(self, event: Mapping[str, object]) -> str:
        detail = clean(_text(event, "detail")).strip()
        lines = [f"{_BOLD}{_YELLOW}◆ needs you: {_one_line(_text(event, 'title'))}{_PLAIN}"]
        told = detail.split("\n") if detail else []
        lines += [f"  {_one_line(line)}" for line in told[:_MAX_ASKED_LINES]]
        tool_ref = _text(event, "tool_ref")
        if tool_ref and len(told) <= _MAX_ASKED_LINES:
            if len(self._asked) > _MAX_REMEMBERED:
                self._asked.clear()
            self._asked[tool_ref] = _mark(told)
        lines.append(f"  {_DIM}answer in agentmon: inbox (6), or y on the card{_PLAIN}")
        return "\n" + "\n".join(lines) + "\n"

    def _show_ask_closed(self, event: Mapping[str, object]) -> str:
        return f"  {_YELLOW}◆ {_one_line(_text(event, 'outcome'))}{_PLAIN}\n"

    def _show_notice(self, event: Mapping[str, object]) -> str:
        if event.get("topic") == "unknown_message":
            return ""
        return f"{_LEVELS.get(_text(event, 'level'), _DIM)}{_one_line(_text(event, 'text'))}{_PLAIN}\n"

    def _show_turn_ended(self, event: Mapping[str, object]) -> str:
        outcome = _text(event, "outcome")
        error = _one_line(_text(event, "error"))
        said = _OUTCOMES.get(outcome, outcome) + (f": {error}" if error else "")
        colour = _DIM if outcome == "completed" else _RED
        return f"\n{colour}── {said}{_PLAIN}\n"


def clean(text: str) -> str:
    """Return the text without escape sequences, control characters and turned directions; line feeds stay."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", _SEQUENCES.sub("", text))


def _one_line(text: str) -> str:
    line = clean(text).replace("\n", " ⏎ ").rstrip()
    return line if len(line) <= _MAX_LINE_CHARACTERS else line[: _MAX_LINE_CHARACTERS - 1] + "…"


def _mark(diff: list[str]) -> int:
    """Return a number that is the same for differences that add and remove the same lines, wherever that is."""
    return hash(tuple(line.rstrip() for line in diff if line[:1] in ("+", "-") and line[:4] not in ("+++ ", "--- ")))


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")


def _text(event: Mapping[str, object], name: str) -> str:
    value = event.get(name)
    return value if isinstance(value, str) else ""
