"""What the answers of one turn took, and what the conversation has cost."""

from __future__ import annotations

from agentmon.domain.json_values import count_in, object_in, objects_in, one_line, text_in
from agentmon.runners.protocols.notices import failed_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.runners.protocols.adapter import Event

MAX_MODELS = 20
MAX_COST_NANO = 2**53
ANSWERING_AGENT = "opencode"
"""It tells what the last answer of a turn took, and keeps that under the id of its message."""
_PROVIDERS = {"gemini": "google", "claude": "anthropic", "codex": "openai"}
_FAILURES = range(400, 600)
"""With what status the code of an error of an agent is that of its vendor; JSON-RPC's own are below zero."""
_COUNTS = ("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "response_tokens")


def turn_usage(result: Mapping[str, object], turn_key: str, model: str, agent: str, answer_id: str) -> list[Event]:
    """Return what the result of ``session/prompt`` tells; nothing when it tells of no token.

    Args:
        result: The result.
        turn_key: The keys begin so, since the protocol tells none of its own.
        model: The model that is chosen, for an agent that names none.
        agent: The agent's name, which says who is paid for a model without a provider.
        answer_id: Id of the message with which the turn ended, or an empty text.
    """
    usage = object_in(result, "usage")
    found = [_of_usage(usage, model, agent)]
    if not usage:
        quota = object_in(object_in(result, "_meta"), "quota")
        found = [
            _of_quota(object_in(told, "token_count"), text_in(told, "model") or model, agent)
            for told in objects_in(quota, "model_usage", MAX_MODELS)
        ]
    events = [event for event in found if any(event[name] for name in _COUNTS)]
    for number, event in enumerate(events, 1):
        event["key"] = f"{turn_key}:{number}"
    if answer_id and agent.lower() == ANSWERING_AGENT:
        for event in events:
            event |= {"key": answer_id, "is_key_provisional": False}
    return events


def failed_turn(error: Mapping[str, object], turn_key: str, model: str, agent: str, line: str) -> list[Event]:
    """Return the failed call that an error of ``session/prompt`` tells; none when it has no status of HTTP.

    Args:
        error: The error.
        turn_key: The key begins so.
        model: The model that is chosen.
        agent: The agent's name.
        line: The error in one line.
    """
    status = error.get("code")
    if isinstance(status, bool) or not isinstance(status, int) or status not in _FAILURES:
        return []
    event = _event(model, agent, 0, 0, 0, 0, 0)
    return [failed_call(f"{turn_key}:failed", str(event["model"]), str(event["provider"]), line, status)]


def cost_nano(update: Mapping[str, object]) -> int | None:
    """Return the cost of the conversation in billionths of a dollar; None when it is not told in dollars."""
    cost = object_in(update, "cost")
    amount = cost.get("amount")
    if text_in(cost, "currency").upper() != "USD" or isinstance(amount, bool) or not isinstance(amount, int | float):
        return None
    return round(amount * 1e9) if 0 <= amount <= MAX_COST_NANO / 1e9 else None


def _of_usage(usage: Mapping[str, object], model: str, agent: str) -> Event:
    sent, read, written = (count_in(usage, key) for key in ("inputTokens", "cachedReadTokens", "cachedWriteTokens"))
    response, thought = count_in(usage, "outputTokens"), count_in(usage, "thoughtTokens")
    if count_in(usage, "totalTokens") == sent + read + written + response + thought:
        response = min(response + thought, 2**63 - 1)
    return _event(model, agent, sent, read, written, response, thought)


def _of_quota(count: Mapping[str, object], model: str, agent: str) -> Event:
    return _event(model, agent, count_in(count, "input_tokens"), 0, 0, count_in(count, "output_tokens"), 0)


def _event(model: str, agent: str, sent: int, read: int, written: int, response: int, thought: int) -> Event:
    provider, mark, name = model.partition("/")
    if not mark:
        name = model
        provider = next((paid for word, paid in _PROVIDERS.items() if word in agent.lower()), "")
    # How long a cache of Anthropic's lives has its price, and is not told.
    is_assumed = bool(written) and ("claude" in model.lower() or provider == "anthropic")
    return {
        "kind": "usage",
        "key": "",
        **({"confidence": "assumed"} if is_assumed else {}),
        "model": one_line(name, 200) or "unknown",
        "provider": one_line(provider, 200) or "unknown",
        "prompt_tokens": sent,
        "cache_read_tokens": read,
        "cache_write_5m_tokens": written,
        "response_tokens": response,
        "reasoning_tokens": min(thought, response),
        "is_key_provisional": True,
    }
