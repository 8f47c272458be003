"""No bytes make a reader of history fail, and what it tells can be kept."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.history import MAX_PLACE
from agentmon.usage.history.claude import ClaudeHistoryReader
from agentmon.usage.history.codex import CodexHistoryReader
from agentmon.usage.history.gemini import GeminiHistoryReader
from tests.usage.histories import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS = {"claude": ClaudeHistoryReader, "codex": CodexHistoryReader, "gemini": GeminiHistoryReader}
ODD: list[Any] = [
    *(None, True, -1, 1e300, 10**30, "", [], {}, "x" * 300, "\ud800", "\0", [[]], [None, 1, "a"], {"a": {"b": []}}),
    *(json.loads("[" * 300 + "]" * 300), json.loads('{"a":' * 300 + "1" + "}" * 300), float("nan"), "a\0b" * 9_000),
    *("2026-13-99", "9999-12-31T23:59:59.999Z", {"type": "text"}, [{"type": "tool_use", "id": 1}], {"secs": "a"}),
]


def changed(dice: random.Random, value: Any) -> Any:
    """Return the value of JSON with some parts replaced, left out or cut."""
    if isinstance(value, dict):
        kept = {name: part for name, part in value.items() if dice.random() > 0.01}
        return {name: dice.choice(ODD) if dice.random() < 0.04 else changed(dice, part) for name, part in kept.items()}
    if isinstance(value, list):
        return [changed(dice, part) for part in value if dice.random() > 0.02]
    return value


def lines(dice: random.Random, slug: str) -> Iterator[bytes]:
    for path in sorted((SAMPLES / "captured" / slug).rglob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            written = json.dumps(changed(dice, json.loads(line)), separators=(",", ":")).encode()
            yield (written[: dice.randint(0, len(written))] if dice.random() < 0.03 else written) + b"\n"


@pytest.mark.parametrize("slug", READERS)
@pytest.mark.parametrize("seed", range(12))
def test_damaged_records_are_read_as_far_as_they_go(slug: str, seed: int) -> None:
    dice = random.Random(seed)
    kind: Any = READERS[slug]
    reader: Any = kind()
    for line in lines(dice, slug):
        reading = reader.read(line, 0)
        reader = kind.restore(json.loads(json.dumps(reader.state())))

        for message in reading.messages:
            "".join((message.text, message.ref, message.session_ref, message.parent_ref or "")).encode()
            assert message.at_ms >= 0
            assert 0 <= message.place <= MAX_PLACE
        for call in reading.operations:
            texts = (call.ref, call.tool_name, call.target, call.input_summary, call.output_summary, call.error or "")
            "".join(texts).encode()
            assert call.duration_ms is None or 0 <= call.duration_ms < 2**63
            assert call.finished_at_ms is None or call.started_at_ms <= call.finished_at_ms
