from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.runners.protocols.acp.adapter import AcpAdapter
from benchmarks.protocol_fuzz import check_one, recordings
from tests.runners.protocols.fuzzing import check_conversation

RECORDED = recordings("acp")
FORM = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "title": "Which?", "oneOf": [{"const": "A", "title": "a"}, {"const": "B"}]},
        "count": {"type": "integer"},
        "extras": {"type": "array", "items": {"enum": ["A", "B"]}},
        "sure": {"type": "boolean", "description": "Sure?"},
    },
    "required": ["colour"],
}
ASKING = [
    json.dumps({"jsonrpc": "2.0", **message}).encode()
    for message in (
        {"id": 1, "result": {"protocolVersion": 1}},
        {"id": 2, "result": {"sessionId": "s1"}},
        *(
            {
                "id": number,
                "method": "elicitation/create",
                "params": {"sessionId": "s1", "mode": "form", "message": "Choose.", "requestedSchema": FORM},
            }
            for number in range(6)
        ),
        {"id": 3, "result": {"stopReason": "end_turn"}},
    )
]


@pytest.mark.proof
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_whatever_an_agent_writes_the_contract_holds(seed: int) -> None:
    check_one("acp", RECORDED, seed)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_whatever_an_agent_asks_in_forms_the_contract_holds(seed: int) -> None:
    check_one("acp", [ASKING, ASKING], seed)


@settings(max_examples=200, deadline=None)
@given(stream=st.binary(max_size=2_000), seed=st.integers(min_value=0, max_value=2**32))
def test_whatever_bytes_come_the_contract_holds(stream: bytes, seed: int) -> None:
    check_conversation(lambda: AcpAdapter({"prompt": "go"}), stream, Random(seed))
