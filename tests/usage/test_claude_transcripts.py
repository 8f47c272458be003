from __future__ import annotations

import json
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.billing import Confidence
from agentmon.usage.claude import ClaudeReader
from tests.usage.histories import SAMPLES, History
from tests.usage.transcripts import AT, answered, usage

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from agentmon.domain.billing import BilledAnswer
    from agentmon.usage.reading import Reading

SAMPLE = (SAMPLES / "claude/projects/-home-dev-webshop/aaaaaaaa-1111-4111-8111-000000000001.jsonl").read_bytes() + b"\n"


def read(*lines: bytes, is_subagent: bool = False) -> Reading:
    return ClaudeReader(session_ref="file", is_subagent=is_subagent).read(b"".join(lines), 0)


def only(*lines: bytes) -> BilledAnswer:
    (answer,) = read(*lines).answers
    return answer


def split_reading(pieces: Sequence[bytes]) -> History:
    """Read pieces of whole lines, each with a reader that was restored from what JSON holds."""
    history = History()
    state, offset = ClaudeReader(session_ref="file").state(), 0
    for piece in pieces:
        reader = ClaudeReader.restore(json.loads(json.dumps(state)))
        history.keep("claude", reader.read(piece, offset))
        state, offset = reader.state(), offset + len(piece)
    return history


def told(history: History) -> dict[str, tuple[object, ...]]:
    return {
        key: (answer.session_ref, answer.model, answer.at_ms, answer.total_tokens, answer.response_tokens)
        for (_, key), answer in history.answers.items()
    }


@pytest.mark.parametrize("order", list(permutations([9, 9, 159])))
def test_of_a_placeholder_and_its_end_the_end_counts_in_any_order(order: tuple[int, ...]) -> None:
    answer = only(*(answered(stop=None, counts=usage(output_tokens=tokens)) for tokens in order))

    assert (answer.response_tokens, answer.confidence) == (159, Confidence.EXACT)


def test_an_answer_that_was_only_begun_is_marked() -> None:
    begun = answered(stop=None, counts=usage(output_tokens=1))

    assert only(begun, begun).confidence is Confidence.INCOMPLETE
    assert only(begun, answered(counts=usage(output_tokens=1))).confidence is Confidence.EXACT


def test_a_growing_answer_counts_once_with_its_first_time() -> None:
    lines = [
        answered(stop=None, counts=usage(output_tokens=tokens), at=f"2026-11-10T14:00:0{tokens}.000Z")
        for tokens in (1, 2, 9)
    ]

    assert (only(*lines).response_tokens, only(*lines).at_ms) == (9, only(lines[0]).at_ms)


def test_a_copy_that_names_its_owner_belongs_to_it_and_makes_it_the_parent() -> None:
    fork = answered(session="fork", requestSessionId="s1", forkedFrom={"sessionId": "middle"})
    branch = answered("m2", session="fork", forkedFrom={"sessionId": "middle"})

    reading = read(fork, branch, answered("m3", session="fork"))

    assert [answer.session_ref for answer in reading.answers] == ["s1", "middle", "fork"]
    assert [(session.session_ref, session.parent_ref) for session in reading.sessions] == [("fork", "middle")]


@pytest.mark.parametrize("order", [("fork", "own"), ("own", "fork")])
def test_a_marked_copy_never_takes_an_answer_from_its_owner(order: tuple[str, ...]) -> None:
    files = {"own": answered(session="s1"), "fork": answered(session="fork", requestSessionId="s1")}
    history = History()
    for name in order:
        history.keep("claude", read(files[name]))

    assert [answer.session_ref for answer in history.answers.values()] == ["s1"]


def test_subagents_count_for_their_parent_and_tell_nothing_of_it() -> None:
    lines = [answered("m1", isSidechain=True, cwd="/worktree"), answered("m2", agentId="a1", cwd="/worktree")]

    reading = read(*lines)

    assert [(answer.session_ref, answer.is_subagent) for answer in reading.answers] == [("s1", True)] * 2
    assert reading.sessions == ()
    assert read(answered(), is_subagent=True).answers[0].is_subagent


def test_what_the_program_made_up_and_what_cost_nothing_is_no_answer() -> None:
    nothing = usage(input_tokens=0, cache_read_input_tokens=0, output_tokens=0)

    assert read(answered(model="<synthetic>"), answered("m2", counts=nothing), answered("m3", counts={})).answers == ()


def test_usage_inside_tools_and_their_results_counts_nothing() -> None:
    big = {"usage": {"input_tokens": 999, "output_tokens": 999}, "stop_reason": "end_turn"}
    call = [{"type": "tool_use", "id": "t", "name": "Write", "input": {**big, "type": "assistant"}}]
    outcome = json.dumps({"type": "user", "message": {"role": "user"}, "toolUseResult": {**big, "type": "assistant"}})
    nested = json.dumps({"type": "progress", "data": {"message": json.loads(answered("m9"))}})

    reading = read(answered(content=call), outcome.encode() + b"\n", nested.encode() + b"\n")

    assert [(answer.key, answer.total_tokens) for answer in reading.answers] == [("m1", 35)]


def test_a_part_that_only_looks_like_the_one_before_is_read() -> None:
    call = [{"type": "tool_use", "input": {"usage": {"x": 1}}}]
    lines = [
        answered(counts=usage(output_tokens=30), content=call),
        answered(counts=usage(output_tokens=40), content=call),
        answered("m2", counts=usage(output_tokens=40)),
    ]

    assert [(answer.key, answer.response_tokens) for answer in read(*lines).answers] == [("m1", 40), ("m2", 40)]


def test_a_damaged_part_does_not_hide_the_next_one() -> None:
    damaged = answered().replace(b'"isSidechain":false', b'"isSidechain":fals')

    reading = read(damaged, answered())

    assert [answer.key for answer in reading.answers] == ["m1"]
    assert [problem.offset for problem in reading.problems] == [0]


def test_a_line_that_another_was_written_into_is_damaged() -> None:
    merged = answered("m1", counts=usage(output_tokens=99))[:200] + answered("m2")

    reading = read(merged, answered("m3"))

    assert [answer.key for answer in reading.answers] == ["m3"]
    assert len(reading.problems) == 1


def test_what_an_answer_says_is_no_part_of_what_it_cost() -> None:
    content = [{"type": "tool_use", "input": {"stop_reason": "x", "usage": {"input_tokens": 9}}}]
    without_usage = answered("m1", content=content).replace(
        b'"usage":{"input_tokens":10', b'"spent":{"input_tokens":10'
    )

    reading = read(without_usage, answered("m2", content=[{"type": "text", "text": "]}"}]))

    assert [answer.key for answer in reading.answers] == ["m2"]


def test_cache_writes_that_are_not_split_live_for_five_minutes() -> None:
    split = {"ephemeral_1h_input_tokens": 30, "ephemeral_5m_input_tokens": 20}
    empty = {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0}

    answers = read(
        answered("m1", counts=usage(cache_creation_input_tokens=50)),
        answered("m2", counts=usage(cache_creation_input_tokens=50, cache_creation=split)),
        answered("m3", counts=usage(cache_creation_input_tokens=50, cache_creation=empty)),
        answered("m4", counts=usage(cache_creation=split)),
    ).answers

    written = [(answer.cache_write_5m_tokens, answer.cache_write_1h_tokens) for answer in answers]
    assert written == [(50, 0), (20, 30), (50, 0), (20, 30)]
    assert [answer.confidence.value for answer in answers] == ["assumed", "exact", "assumed", "exact"]


def test_a_time_that_is_a_number_counts_in_each_unit() -> None:
    at_s = 1_789_000_000.25
    lines = [answered(f"m{number}", timestamp=at_s * unit) for number, unit in enumerate((1, 1_000, 1_000_000))]
    lines += [answered("m3", timestamp=str(round(at_s * 1_000))), answered("m4", timestamp="2026-09-10T00:26:40.250Z")]

    assert {answer.at_ms for answer in read(*lines).answers} == {1_789_000_000_250}
    assert {answer.at_ms for answer in read(answered("m5", timestamp=7), answered("m6", timestamp=True)).answers} == {0}


def test_what_changes_the_price_is_told() -> None:
    searched = {"web_search_requests": 3}

    answers = read(
        answered("m1", counts=usage(speed="fast", inference_geo="us", server_tool_use=searched)),
        answered("m2", counts=usage(service_tier="priority", speed="standard", inference_geo="global"), costUSD=0.0185),
    ).answers

    assert [(one.speed, one.geo, one.web_searches, one.reported_cost_nano) for one in answers] == [
        ("fast", "us", 3, None),
        ("priority", "", 0, 18_500_000),
    ]


def test_the_advice_of_another_model_is_an_answer_of_its_own() -> None:
    advice = {"type": "advisor_message", "model": "claude-opus-5-5", **usage(output_tokens=7)}
    parts = [{"type": "message", **usage()}, advice, advice]

    answers = read(answered(counts=usage(iterations=parts))).answers

    assert [(answer.key, answer.model, answer.response_tokens) for answer in answers] == [
        ("m1", "claude-opus-4-8", 20),
        ("m1#adv1", "claude-opus-5-5", 7),
        ("m1#adv2", "claude-opus-5-5", 7),
    ]


def test_advice_is_not_given_in_the_speed_of_the_answer_but_in_its_region() -> None:
    advice = {"type": "advisor_message", "model": "claude-opus-5-5", **usage()}
    counts = usage(iterations=[advice], speed="fast", inference_geo="us")

    answers = read(answered(counts=counts)).answers

    assert [(answer.speed, answer.geo) for answer in answers] == [("fast", "us"), ("standard", "us")]


def test_a_summary_that_shortens_the_prompt_is_billed_besides_the_numbers_of_the_answer() -> None:
    summary = {"type": "compaction", **usage(input_tokens=180_000, output_tokens=3_500)}
    counts = usage(iterations=[summary, {"type": "message", **usage()}], speed="fast")

    answers = read(answered(counts=counts)).answers

    assert [(answer.key, answer.model, answer.speed, answer.prompt_tokens) for answer in answers] == [
        ("m1", "claude-opus-4-8", "fast", 10),
        ("m1#cmp1", "claude-opus-4-8", "fast", 180_000),
    ]


def test_the_model_that_answers_for_one_that_declined_is_billed() -> None:
    declined = {"type": "message", "model": "claude-fable-5-2", **usage(output_tokens=0)}
    tried = {"type": "fallback_message", "model": "claude-opus-5-5", **usage(output_tokens=1)}
    served = {"type": "fallback_message", "model": "claude-sonnet-5-5", **usage()}

    answers = read(
        answered("m1", model="claude-fable-5-2", counts=usage(iterations=[declined, served])),
        answered("m2", model="claude-fable-5-2", counts=usage(iterations=[declined, tried, served])),
        answered("m3", model="claude-fable-5-2", counts=usage(iterations=[{"type": "fallback_message"}])),
    ).answers

    assert [(answer.key, answer.model) for answer in answers] == [
        ("m1", "claude-sonnet-5-5"),
        ("m2", "claude-sonnet-5-5"),
        ("m2#fb1", "claude-opus-5-5"),
        ("m3", "claude-fable-5-2"),
    ]


def test_a_later_part_of_an_answer_may_name_its_owner() -> None:
    answers = read(answered("m1"), answered("m1", requestSessionId="first"), answered("m1", costUSD=0.5)).answers

    assert [(one.session_ref, one.is_owner_marked, one.reported_cost_nano) for one in answers] == [
        ("first", True, 500_000_000)
    ]


def test_the_model_may_stand_behind_the_content() -> None:
    written = json.loads(answered("m1", content=[{"type": "text", "text": "hi"}]))
    message = written["message"]
    names = ("id", "type", "role", "content", "model", "stop_reason", "usage")
    written["message"] = {name: message[name] for name in names}

    assert only(json.dumps(written, separators=(",", ":")).encode() + b"\n").model == "claude-opus-4-8"


def test_a_record_right_behind_one_that_was_cut_off_counts() -> None:
    second = answered("m2", parentUuid="u-m1")
    reading = read(answered("m1")[:150] + second, b"\0" * 600 + answered("m3"))

    assert [answer.key for answer in reading.answers] == ["m2", "m3"]
    assert [problem.reason for problem in reading.problems] == ["a damaged line"]


def test_a_record_right_behind_one_of_another_type_that_was_cut_off_counts() -> None:
    torn = b'{"parentUuid":"u0","isSidechain":false,"type":"user","message":{"role":"user","content":"' + b"x" * 9_000

    reading = read(torn + answered("m1", parentUuid="u0"), torn + b'"}}\n', answered("m2"))

    assert [answer.key for answer in reading.answers] == ["m1", "m2"]


def test_a_record_inside_a_damaged_one_is_none() -> None:
    inner = answered("m1", parentUuid="u0").strip()

    assert read(b'{"data":' + inner + b',"more":\n').answers == ()
    assert read(b'{"data":[' + inner + b"}\n").answers == ()


def test_a_reader_that_goes_on_knows_the_time_of_the_record_before() -> None:
    reader = ClaudeReader(session_ref="file")
    reader.read(answered("m1"), 0)

    (later,) = ClaudeReader.restore(reader.state()).read(answered("m2", at=None), 1_000).answers

    assert later.at_ms == 1_794_319_200_000


def test_without_an_id_the_uuid_of_the_record_is_the_key() -> None:
    assert only(answered("", uuid="u1")).key == "u1"


def test_a_record_without_a_time_has_that_of_the_one_before_and_one_without_a_session_that_of_the_file() -> None:
    first, second = read(answered("m1"), answered("m2", at=None, session=None)).answers

    assert second.at_ms == first.at_ms == 1_794_319_200_000
    assert second.session_ref == "file"


def test_a_moment_before_midnight_is_not_one_of_the_next_day() -> None:
    assert only(answered(at="2026-03-08T04:59:59.999999Z")).at_ms == 1_772_945_999_999
    assert only(answered(at="2026-03-08T06:59:59.9999999+02:00")).at_ms == 1_772_945_999_999
    assert only(answered(at="0001-01-01T00:00:00+10:00")).at_ms == 0


@pytest.mark.parametrize("count", [-5, True, "7", None, 10**30, 1e400, [1], {"a": 1}])
def test_a_count_that_is_none_is_nothing(count: object) -> None:
    answer = only(answered(counts=usage(input_tokens=count)))

    assert (answer.prompt_tokens, answer.total_tokens) == (0, 25)


def test_the_best_title_stays() -> None:
    records = [
        {"type": "summary", "summary": "first"},
        {"type": "custom-title", "customTitle": "mine", "sessionId": "s1"},
        {"type": "ai-title", "aiTitle": "guessed", "sessionId": "s1"},
    ]
    lines = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records]

    titles = {session.session_ref: session.title for session in read(*lines).sessions}

    assert titles == {"file": "first", "s1": "mine"}


def test_line_ends_and_a_byte_order_mark_of_other_systems_change_nothing() -> None:
    lines = answered("m1") + answered("m2")

    windows = read(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))

    assert [answer.key for answer in windows.answers] == ["m1", "m2"]
    assert windows.problems == ()


def test_bytes_that_are_no_text_spoil_no_answer() -> None:
    (answer,) = read(answered(cwd="/caf%").replace(b"%", b"\xe9"), b"\xff\xfe\x00\n").answers

    assert answer.cwd == "/caf\ufffd"


def test_half_surrogates_and_zeros_do_not_leave_the_reader() -> None:
    answer = only(answered(cwd="/a\ud800b\0c", model="m\udfff"))

    assert (answer.cwd, answer.model) == ("/a?b\ufffdc", "m?")


@given(st.lists(st.binary(max_size=60), max_size=20))
def test_no_bytes_make_it_fail(pieces: list[bytes]) -> None:
    marks = [b'"usage"', b'"assistant"', b"\n", b"{", b"}", b'{"type":"summary"']
    chunk = b"".join(piece + marks[number % len(marks)] for number, piece in enumerate(pieces))

    read(chunk + b"\n", answered())


@given(st.lists(st.integers(min_value=0, max_value=len(SAMPLE)), max_size=12))
def test_any_split_into_appends_gives_the_same(cuts: list[int]) -> None:
    places = sorted({0, len(SAMPLE), *(SAMPLE.rfind(b"\n", 0, cut) + 1 for cut in cuts)})
    pieces = [SAMPLE[begin:end] for begin, end in pairwise(places)]

    appended, whole = split_reading(pieces), split_reading([SAMPLE])

    assert told(appended) == told(whole)
    assert appended.sessions == whole.sessions
    assert len(appended.problems) == len(whole.problems)


@given(st.randoms(use_true_random=False))
def test_any_order_of_the_lines_and_files_gives_the_same_totals(order: random.Random) -> None:
    lines = [
        answered(f"m{number}", stop=None, counts=usage(output_tokens=tokens), session="s1", requestSessionId=owner)
        for number in range(3)
        for tokens in (1, 50, 200)
        for owner in ("s0", None)
    ]
    shuffled = list(lines)
    order.shuffle(shuffled)
    cut = order.randrange(len(shuffled))

    assert told(split_reading([b"".join(shuffled[:cut]), b"".join(shuffled[cut:])])) == {
        f"m{number}": ("s0", "claude-opus-4-8", only(answered(at=AT)).at_ms, 215, 200) for number in range(3)
    }


def failed(kind: str, **fields: object) -> bytes:
    common = {"type": kind, "timestamp": AT, "sessionId": "s1", "uuid": f"{kind}-uuid"}
    return json.dumps(common | fields, separators=(",", ":")).encode() + b"\n"


def test_calls_that_failed_are_told_with_their_status_and_are_no_answers() -> None:
    message = {"id": "f1", "model": "<synthetic>", "content": [{"type": "text", "text": "API Error: 500 no"}]}
    given_up = {"message": {**message, "usage": usage(output_tokens=0)}, "isApiErrorMessage": True}
    reading = read(
        failed("system", subtype="api_error", error={"status": 529, "formatted": "529 overloaded"}, retryAttempt=1),
        failed("assistant", **given_up, apiErrorStatus=500),
        failed("assistant", **given_up | {"message": {**message, "id": "f2"}}),
        failed("user", message={"content": '"subtype":"api_error" "isApiErrorMessage":true'}),
        answered(),
    )

    assert [(one.key, one.status, one.error, one.session_ref) for one in reading.failures] == [
        ("system-uuid", 529, "529 overloaded", "s1"),
        ("f1", 500, "API Error: 500 no", "s1"),
    ]
    assert len(reading.answers) == 1
