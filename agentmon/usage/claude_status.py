"""What Claude Code hands to its status line (2.0.65 to 2.1.332), read without anything that takes long to import.

A status line is asked for several times a minute and has to be there at once: no dataclasses, no ``json``, no ``re``.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MAX_BYTES = 4_000_000
_MAX_TOKENS = 1_000_000_000
_MAX_PERCENT = 10_000
_MAX_DOLLARS = 1_000_000
_MAX_SECONDS = 100_000_000_000
_MAX_TEXT = 200
_MAX_WINDOWS = 20
_NANO = 1_000_000_000
FIVE_HOUR = "five_hour"
"""As ``agentmon.domain.limit_readings`` names it."""


class StatusWindow:
    """How much of one of the vendor's windows is taken."""

    __slots__ = ("name", "resets_at_ms", "used_percent")

    def __init__(self, name: str, used_percent: float, resets_at_ms: int | None) -> None:
        self.name = name
        self.used_percent = used_percent
        self.resets_at_ms = resets_at_ms


class ClaudeStatus:
    """What is understood of one status; what was missing or damaged is empty, None or left out."""

    __slots__ = (
        "context_limit_tokens",
        "context_percent",
        "context_tokens",
        "cost_nano",
        "model",
        "model_name",
        "session_ref",
        "windows",
    )

    def __init__(self, told: Mapping[str, object]) -> None:
        model, context, cost = (_object_in(told, name) for name in ("model", "context_window", "cost"))
        self.session_ref = _text_in(told, "session_id")
        self.model = _text_in(model, "id")
        self.model_name = _text_in(model, "display_name") or self.model
        self.context_tokens = _context_tokens(context)
        self.context_limit_tokens = _whole(context.get("context_window_size")) or None
        self.context_percent = _number(context.get("used_percentage"), _MAX_PERCENT)
        if self.context_percent is None and self.context_tokens is not None and self.context_limit_tokens:
            self.context_percent = 100 * self.context_tokens / self.context_limit_tokens
        dollars = _number(cost.get("total_cost_usd"), _MAX_DOLLARS)
        self.cost_nano = None if dollars is None else round(dollars * _NANO)
        self.windows = _windows_in(_object_in(told, "rate_limits"))

    def window(self, name: str) -> StatusWindow | None:
        """Return what is said of the window of this name."""
        return next((window for window in self.windows if window.name == name), None)

    def report(self, at_ms: int) -> dict[str, object]:
        """Return what is worth keeping in the words of Claude Code, so that ``read_status`` understands it."""
        return {
            "at_ms": at_ms,
            "session_id": self.session_ref,
            "model": {"id": self.model},
            "context_window": {
                "context_window_size": self.context_limit_tokens,
                "current_usage": None if self.context_tokens is None else {"input_tokens": self.context_tokens},
            },
            "rate_limits": {
                window.name: {"used_percentage": window.used_percent, "resets_at": _seconds(window.resets_at_ms)}
                for window in self.windows
            },
        }


def read_status(written: bytes) -> ClaudeStatus | None:
    """Return what the bytes tell; None when they are no JSON object."""
    told = parse_object(written)
    return None if told is None else ClaudeStatus(told)


def parse_object(written: bytes) -> dict[str, object] | None:
    """Return the JSON object that the bytes are; None when they are none."""
    text = written.decode("utf-8", "replace").strip(" \t\r\n\ufeff")
    try:
        told, end = _scanner()(text, 0)
    except (StopIteration, ValueError, RecursionError, SystemError):
        # What is inside of ``json`` wants to raise an error that stands in a module which nobody has imported.
        return None
    return told if isinstance(told, dict) and end == len(text) else None


def _scanner() -> Callable[[str, int], tuple[object, int]]:
    """Return what reads a JSON value in a text: that inside of ``json``, which itself takes longer than the rest."""
    try:
        from _json import make_scanner  # noqa: PLC0415 - not every Python has it
    except ImportError:
        from json import JSONDecoder  # noqa: PLC0415 - only where there is no other way

        return JSONDecoder().raw_decode

    class Options:
        strict = False
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = float

    return make_scanner(Options())  # type: ignore[arg-type] # any object that has these will do


def _context_tokens(context: Mapping[str, object]) -> int | None:
    usage = context.get("current_usage")
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(_whole(usage.get(name)) for name in names)


def _windows_in(limits: Mapping[str, object]) -> tuple[StatusWindow, ...]:
    found = []
    for name, told in list(limits.items())[:_MAX_WINDOWS]:
        percent = _number(told.get("used_percentage"), _MAX_PERCENT) if isinstance(told, dict) else None
        if isinstance(told, dict) and percent is not None and name.isidentifier() and len(name) <= _MAX_TEXT:
            seconds = _number(told.get("resets_at"), _MAX_SECONDS)
            found.append(StatusWindow(name, percent, round(seconds * 1000) if seconds else None))
    return tuple(found)


def _object_in(holder: Mapping[str, object], name: str) -> dict[str, object]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _text_in(holder: Mapping[str, object], name: str) -> str:
    """Return the text under the name without anything that a terminal would obey."""
    value = holder.get(name)
    return "".join(filter(str.isprintable, value[:_MAX_TEXT])) if isinstance(value, str) else ""


def _whole(value: object) -> int:
    number = _number(value, _MAX_TOKENS)
    return 0 if number is None else int(number)


def _number(value: object, largest: int) -> float | None:
    """Return the number when it is one from 0 to the largest; infinite ones and such are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= largest:
        return None
    return value


def _seconds(at_ms: int | None) -> float | None:
    return None if at_ms is None else at_ms / 1000
