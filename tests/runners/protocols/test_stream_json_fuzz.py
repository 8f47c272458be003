from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.runners.protocols.stream_json.adapter import StreamJsonAdapter
from benchmarks.protocol_fuzz import check_one, recordings
from tests.runners.protocols.fuzzing import check_conversation

RECORDED = recordings("stream-json")


@pytest.mark.proof
@settings(max_examples=400, deadline=None)
@given(seed=st.integers(min_value=0, max_value=2**32))
def test_whatever_claude_writes_the_contract_holds(seed: int) -> None:
    check_one("stream-json", RECORDED, seed)


@settings(max_examples=200, deadline=None)
@given(stream=st.binary(max_size=2_000), seed=st.integers(min_value=0, max_value=2**32))
def test_whatever_bytes_come_the_contract_holds(stream: bytes, seed: int) -> None:
    check_conversation(lambda: StreamJsonAdapter({"prompt": "go"}), stream, Random(seed))
