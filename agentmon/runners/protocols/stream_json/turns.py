"""Messages on their way to Claude, and how a turn ended."""

from __future__ import annotations

from agentmon.domain.json_values import MAX_COUNT, object_in, one_line, ref_in, text_in, texts_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_OPEN_PROMPTS = 256
MAX_ERROR_CHARACTERS = 500
MAX_FOLDER_CHARACTERS = 200
"""Claude shortens the name of a longer folder in a way of its own."""
NANO_PER_DOLLAR = 10**9

_INTERRUPTED = {"aborted_streaming", "aborted_tools"}
_LIMITS = {"max_turns", "budget_exhausted"}
_ADVICE = {
    "prompt_too_long": "The conversation is too long for the model.",
    "blocking_limit": "The conversation is too long for the model.",
    "image_error": "An image could not be read.",
    "malformed_tool_use_exhausted": "The model kept calling its tools in a wrong form.",
    "turn_setup_failed": "The turn could not be set up.",
}


class _Prompt:
    __slots__ = ("command_id", "is_named", "is_taken", "size", "start")

    def __init__(self, command_id: str, text: str) -> None:
        self.command_id = command_id
        self.size = len(text)
        self.start = text[:200]
        self.is_taken = False
        self.is_named = False


class PromptBook:
    """The messages that were sent and not answered yet, by the ids under which they were sent."""

    __slots__ = ("_count", "_is_tracked", "_open", "_seed")

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0
        self._open: dict[str, _Prompt] = {}
        self._is_tracked = False
        """Whether Claude says which messages it takes up."""

    @property
    def is_any_open(self) -> bool:
        """Whether a message waits for its answer."""
        return bool(self._open)

    @property
    def is_full(self) -> bool:
        """Whether no more messages are kept."""
        return len(self._open) >= MAX_OPEN_PROMPTS

    def add(self, text: str, command_id: str, at_ms: int) -> str:
        """Return the UUID under which the message is sent; another at another time, even in a resumed conversation."""
        import hashlib  # noqa: PLC0415 - costs a millisecond that the host's start does not need

        self._count += 1
        seed = f"{self._seed}\n{at_ms}\n{self._count}\n{command_id}\n{text}".encode("utf-8", "replace")
        digits = hashlib.sha256(seed).hexdigest()
        prompt_id = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
        self._open[prompt_id] = _Prompt(command_id, text)
        return prompt_id

    def take_up(self, prompt_id: str, text: str) -> bool:
        """Take note that Claude works on a message, named by its id or repeated; whether it is one of these."""
        prompt = self._open.get(prompt_id)
        if prompt is None and text:
            same = (known for known in self._open.values() if known.size == len(text) and text.startswith(known.start))
            prompt = next((known for known in same if not known.is_taken), None)
        if prompt is None:
            return False
        prompt.is_taken = True
        self._is_tracked = True
        return True

    def turn_refs(self) -> list[str]:
        """Return the commands whose messages a turn begins with, each once."""
        refs = []
        for prompt in self._open.values():
            if prompt.is_taken and not prompt.is_named:
                prompt.is_named = True
                if prompt.command_id:
                    refs.append(prompt.command_id)
        return refs

    def settle(self, prompt_id: str) -> bool:
        """Take note that a message is answered or dropped; whether it was open."""
        return self._open.pop(prompt_id, None) is not None

    def settle_turn(self) -> None:
        """Take note that a turn ended: what it took up is answered; without any word of that, the oldest is."""
        taken = [prompt_id for prompt_id, prompt in self._open.items() if prompt.is_taken]
        if not taken and not self._is_tracked and self._open:
            taken = [next(iter(self._open))]
        for prompt_id in taken:
            del self._open[prompt_id]

    def clear(self) -> None:
        """Forget them all: the agent has ended."""
        self._open.clear()


def result_outcome(message: Mapping[str, object]) -> str:
    """Return the ``TurnOutcome``; the subtype is ``success`` for an error of the API and is not asked."""
    reason = text_in(message, "terminal_reason")
    if reason in _INTERRUPTED:
        return "interrupted"
    if reason in _LIMITS:
        return "limit"
    if message.get("is_error") is True:
        is_limit = not reason and text_in(message, "subtype").startswith("error_max_")
        return "limit" if is_limit else "failed"
    return "completed"


def result_error(outcome: str, message: Mapping[str, object]) -> str | None:
    """Return one line that says what went wrong, or None."""
    if outcome not in {"failed", "limit"}:
        return None
    errors = [text for text in texts_in(message, "errors") if not text.startswith("[ede_diagnostic]")]
    told = "; ".join(errors[:3]) or text_in(message, "result") or _ADVICE.get(text_in(message, "terminal_reason"), "")
    return one_line(told, MAX_ERROR_CHARACTERS) or "The turn failed; the agent does not say why."


def cost_nano(dollars: object) -> int | None:
    """Return the exact number of nano-dollars of a number from JSON, rounded half to even; None when it is none."""
    if (
        isinstance(dollars, bool)
        or not isinstance(dollars, int | float)
        or not 0 <= dollars <= MAX_COUNT // NANO_PER_DOLLAR
    ):
        return None
    from decimal import Decimal  # noqa: PLC0415 - needed once a turn, and costs the host's start

    return int(round(Decimal(repr(dollars)) * NANO_PER_DOLLAR, 0))


def transcript_path(init: Mapping[str, object]) -> str:
    """Return the file in which Claude keeps the conversation, from its ``init`` message; empty when it cannot be told.

    Its folder lies beside those of the memory, under the working folder with all but letters and digits as dashes.
    """
    session_ref = ref_in(init, "session_id")
    projects, mark, _ = text_in(object_in(init, "memory_paths"), "auto").rpartition("/projects/")
    cwd = text_in(init, "cwd")
    if not session_ref or not mark or not cwd or len(cwd) > MAX_FOLDER_CHARACTERS:
        return ""
    folder = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in cwd)
    return f"{projects}/projects/{folder}/{session_ref}.jsonl"
