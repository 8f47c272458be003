"""Billed answers, each once, out of two kinds of notification.

``rawResponse/completed`` names the answer by the key of the rollout, but comes only for threads that were begun with
``experimentalRawEvents``; ``thread/tokenUsage/updated`` comes for all, is repeated, and has totals instead of a key
(both seen with Codex 0.171.0, 2026-11-28).
"""

from __future__ import annotations

from agentmon.domain.json_values import count_in, object_in, text_in
from agentmon.domain.letters import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

MAX_THREADS = 256
MAX_KEYS = 1_024

_TOTAL_FIELDS = (
    "inputTokens",
    "cachedInputTokens",
    "cacheWriteInputTokens",
    "outputTokens",
    "reasoningOutputTokens",
)


class UsageCounter:
    """Turns notifications of all threads into ``usage`` events; memory stays bounded."""

    __slots__ = ("_asked_at_ms", "_keys", "_with_keys")

    def __init__(self) -> None:
        self._asked_at_ms: dict[str, int | None] = {}
        self._keys: dict[str, int | None] = {}
        self._with_keys: dict[str, int | None] = {}

    def note_request(self, params: dict[str, object], at_ms: int) -> None:
        """Remember when the model was asked: the turn began, a call ended, or what failed is tried again."""
        _remember(self._asked_at_ms, text_in(params, "threadId"), MAX_THREADS, at_ms)

    def take_response(self, params: dict[str, object], model: str, provider: str, at_ms: int) -> Event | None:
        """Return the event of a ``rawResponse/completed``; None without usage, or when it was counted before."""
        usage = object_in(params, "usage")
        key = text_in(params, "responseId")
        if not usage or not key:
            return None
        thread_id = text_in(params, "threadId")
        _remember(self._with_keys, thread_id, MAX_THREADS)
        event = self._event(key, usage, model, provider, is_provisional=False)
        asked_at_ms = self._asked_at_ms.get(cut(thread_id, 500))
        if event is not None and asked_at_ms is not None:
            event["latency_ms"] = max(0, at_ms - asked_at_ms)
        return event

    def take_total(self, params: dict[str, object], model: str, provider: str) -> Event | None:
        """Return the event of a ``thread/tokenUsage/updated``; None when its answer was counted before."""
        thread_id = text_in(params, "threadId")
        if thread_id in self._with_keys:
            return None
        usage = object_in(params, "tokenUsage")
        last = object_in(usage, "last")
        total = object_in(usage, "total")
        if not last or not total or not any(count_in(last, name) for name in _TOTAL_FIELDS):
            return None
        return self._event(provisional_key(thread_id, total), last, model, provider, is_provisional=True)

    def _event(
        self, key: str, usage: dict[str, object], model: str, provider: str, *, is_provisional: bool
    ) -> Event | None:
        key = cut(key, 500)
        if key in self._keys:
            return None
        _remember(self._keys, key, MAX_KEYS)
        input_tokens = count_in(usage, "inputTokens")
        cache_read = min(count_in(usage, "cachedInputTokens"), input_tokens)
        cache_write = min(count_in(usage, "cacheWriteInputTokens"), input_tokens - cache_read)
        response_tokens = count_in(usage, "outputTokens")
        return {
            "kind": "usage",
            "key": key,
            "model": model,
            "provider": provider,
            "prompt_tokens": input_tokens - cache_read - cache_write,
            "cache_read_tokens": cache_read,
            "cache_write_5m_tokens": cache_write,
            "response_tokens": response_tokens,
            "reasoning_tokens": min(count_in(usage, "reasoningOutputTokens"), response_tokens),
            "is_key_provisional": is_provisional,
        }


def provisional_key(thread_id: str, total: dict[str, object]) -> str:
    """Return ``<thread>:<input>:<cached>:<cache write>:<output>:<reasoning>`` of the thread's running total.

    ``usage/codex.py`` makes the same key out of the rollout, so that the true one can replace it.
    """
    return ":".join((thread_id, *(str(count_in(total, name)) for name in _TOTAL_FIELDS)))


def _remember(known: dict[str, int | None], name: str, max_names: int, at_ms: int | None = None) -> None:
    known[cut(name, 500)] = at_ms
    if len(known) > max_names:
        del known[next(iter(known))]
