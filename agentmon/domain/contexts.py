"""How full the context of a conversation is, as its billed answers tell."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import Confidence
from agentmon.domain.limit_readings import ContextReading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.billing import BilledAnswer

_SMALL: Final = 200_000
_LARGE: Final = 1_000_000
_LARGE_MARK: Final = "[1m]"
_SMALL_MODELS: Final = re.compile(r"claude-(?:[23][.-]|(?:opus|sonnet|haiku)-4(?:-[015])?(?:-\d{8}|-latest)?$)")
_LARGE_MODELS: Final = re.compile(r"claude-[a-z]+-5(?:[.-]|$)")
"""Source: genai-prices 0.2.3; the models between the two have either, as the person chose."""
_ADVICE_MARK: Final = "#adv"
"""In the key of what another model was asked within an answer; it has a context of its own."""


def context_limit(model: str, tokens: int = 0) -> int | None:
    """Return how many tokens the context of a model holds; None when that is not known.

    Args:
        model: As recorded.
        tokens: How many are in it: more than the model has by default means that the larger one was chosen.
    """
    if _LARGE_MARK in model or _LARGE_MODELS.match(model):
        return _LARGE
    if _SMALL_MODELS.match(model):
        return _SMALL if tokens <= _SMALL else _LARGE
    return None


def contexts_of(answers: Iterable[BilledAnswer]) -> tuple[ContextReading, ...]:
    """Return how full the context of each conversation was when its last answer was asked for.

    Answers of subagents have a context of their own, and running totals tell nothing of one.
    """
    last: dict[str, BilledAnswer] = {}
    for answer in answers:
        if answer.is_subagent or not answer.at_ms or answer.confidence is Confidence.DERIVED:
            continue
        known = last.get(answer.session_ref)
        if (known is None or answer.at_ms >= known.at_ms) and _ADVICE_MARK not in answer.key:
            last[answer.session_ref] = answer
    return tuple(_context_of(answer) for answer in last.values())


def _context_of(answer: BilledAnswer) -> ContextReading:
    tokens = answer.total_tokens - answer.response_tokens
    return ContextReading(
        session_ref=answer.session_ref,
        tokens=tokens,
        limit_tokens=context_limit(answer.model, tokens),
        at_ms=answer.at_ms,
    )
