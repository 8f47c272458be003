from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.billing import Confidence
from agentmon.runners.protocols.app_server.usage import provisional_key
from agentmon.usage.codex import CodexReader, find_parent_thread, running_totals

if TYPE_CHECKING:
    from collections.abc import Collection

    from agentmon.domain.billing import BilledAnswer
    from agentmon.usage.codex import Totals
    from agentmon.usage.reading import Reading

ROLLOUTS = Path(__file__).parent / "rollouts"

FIRST = "01a21ede-beb1-7032-834a-a20e3bf843ab"
FORK = "01a21edf-4855-72b0-af67-49c3d5f997a3"


def bytes_of(name: str) -> bytes:
    return (ROLLOUTS / f"{name}.jsonl").read_bytes()


def lines_of(name: str) -> list[bytes]:
    return bytes_of(name).splitlines(keepends=True)


def read(written: bytes, inherited: Collection[Totals] | None = None) -> Reading:
    return CodexReader(inherited=inherited).read(written, 0)


def answers_of(name: str, inherited: Collection[Totals] | None = None) -> tuple[BilledAnswer, ...]:
    return read(bytes_of(name), inherited).answers


def record(kind: str, at: str, **payload: object) -> bytes:
    return json.dumps({"timestamp": f"2026-05-02T09:{at}Z", "type": kind, "payload": payload}).encode() + b"\n"


def count(at: str, *, total: int, last: int | None = None, cache_write: int | None = None) -> bytes:
    usage = {"input_tokens": total, "output_tokens": 0}
    written = {} if cache_write is None else {"cache_write_input_tokens": cache_write}
    info: dict[str, object] = {"total_token_usage": {**usage, **written}}
    if last is not None:
        info["last_token_usage"] = {"input_tokens": last, "output_tokens": 0, **written}
    return record("event_msg", at, type="token_count", info=info)


def tokens_of(answers: Collection[BilledAnswer]) -> list[tuple[int, int, int, int, int]]:
    return [
        (
            answer.prompt_tokens,
            answer.cache_read_tokens,
            answer.cache_write_5m_tokens,
            answer.response_tokens,
            answer.reasoning_tokens,
        )
        for answer in answers
    ]


def test_a_resumed_thread_has_each_answer_once_under_its_response_id() -> None:
    answers = answers_of("resumed")

    assert [answer.key for answer in answers] == [
        "resp_4139b2a0fd5b41f98937170682e012c1",
        "resp_193b9f42d3f44d0ba12c04afdf20efd4",
        "resp_891eae3118ea4e60b7601ab24a2b9c91",
    ]
    assert {(answer.session_ref, answer.model, answer.provider) for answer in answers} == {(FIRST, "gpt-5.5", "mock")}
    assert tokens_of(answers)[0] == (1_900, 8_001, 100, 501, 301)
    assert answers[0].at_ms == 1_795_814_244_223
    assert {answer.confidence for answer in answers} == {Confidence.EXACT}


def test_a_fork_has_only_its_own_answer_though_its_total_goes_on_from_its_parent() -> None:
    answers = answers_of("forked")

    assert [answer.key for answer in answers] == ["resp_8e958d5abc654cea84a1f5979b04eb2f"]
    assert tokens_of(answers) == [(1_900, 8_004, 100, 504, 304)]
    assert answers[0].session_ref == FORK


def test_a_conversation_knows_its_parent_its_place_and_its_times() -> None:
    (session,) = read(bytes_of("forked")).sessions

    assert (session.session_ref, session.parent_ref) == (FORK, FIRST)
    assert (session.cwd, session.model) == ("/home/dev/proj", "gpt-5.5")
    assert (session.first_at_ms, session.last_at_ms) == (1_795_814_279_337, 1_795_814_279_421)


def test_records_of_another_thread_are_copies_and_belong_to_it() -> None:
    copied = [line for line in lines_of("resumed") if b"token_usage_record" in line]

    answers = read(b"".join([*lines_of("forked")[:1], *copied, *lines_of("forked")[1:]])).answers

    assert [answer.session_ref for answer in answers] == [FIRST, FIRST, FIRST, FORK]
    assert {answer.key for answer in answers[:3]} == {answer.key for answer in answers_of("resumed")}


def test_the_key_that_a_conversation_made_of_the_running_total_is_found_again() -> None:
    total: dict[str, object] = {
        "inputTokens": 40_010,
        "cachedInputTokens": 32_010,
        "cacheWriteInputTokens": 400,
        "outputTokens": 2_010,
        "reasoningOutputTokens": 1_210,
    }

    assert answers_of("forked")[0].provisional_key == provisional_key(FORK, total)


def test_counts_beside_the_records_of_the_same_answers_count_nothing() -> None:
    answers = answers_of("twin_records")

    assert [answer.key for answer in answers] == ["resp_x06a", "resp_x06b"]
    assert tokens_of(answers) == [(4_000, 15_000, 1_000, 800, 400), (1_500, 19_000, 500, 200, 0)]


@pytest.mark.parametrize("thread_usage", [{"input_tokens": 90, "cache_write_input_tokens": 5}, None])
@pytest.mark.parametrize("cache_write", [5, None])
def test_twins_are_known_though_one_tells_less(thread_usage: object, cache_write: int | None) -> None:
    usage = {"input_tokens": 40, "cache_write_input_tokens": 5}
    own = record("token_usage_record", "01:00", response_id="r", usage=usage, thread_token_usage=thread_usage)

    answers = read(own + count("01:01", total=90, last=40, cache_write=cache_write)).answers

    assert [answer.key for answer in answers] == ["r"]


def told(key: str, *, spent: int, total: int | None) -> bytes:
    usage = {"input_tokens": spent, "output_tokens": 0}
    sums = {} if total is None else {"thread_token_usage": {"input_tokens": total, "output_tokens": 0}}
    return record("token_usage_record", "30:00", response_id=key, thread_id=FIRST, usage=usage, **sums)


@pytest.mark.parametrize(
    "lines",
    [
        (count("30:00", total=10, last=10), told("r1", spent=10, total=10), count("30:00", total=30, last=20)),
        (told("r1", spent=10, total=10), told("r2", spent=20, total=30), count("30:00", total=10, last=10)),
        (told("r1", spent=10, total=None), count("30:00", total=10), told("r2", spent=20, total=None)),
        (count("30:00", total=10), told("r1", spent=10, total=None)),
    ],
)
def test_an_answer_counts_once_in_whatever_order_its_record_and_its_count_come(lines: tuple[bytes, ...]) -> None:
    begun = record("session_meta", "29:00", id=FIRST, model_provider="openai")
    rest = (told("r2", spent=20, total=30), count("30:01", total=30, last=20))

    answers = read(b"".join((begun, *lines, *rest))).answers

    assert [(answer.key, answer.prompt_tokens) for answer in answers] == [("r1", 10), ("r2", 20)]


def test_of_two_answers_alike_without_records_both_count() -> None:
    begun = record("session_meta", "29:00", id=FIRST)
    lines = (told("r1", spent=10, total=10), count("30:00", total=10, last=10), count("31:00", total=20, last=10))

    assert len(read(b"".join((begun, *lines))).answers) == 2


def test_a_long_thread_may_have_spent_more_than_any_answer() -> None:
    huge = 5 * 10**9

    answers = read(count("30:00", total=huge, last=10) + count("31:00", total=huge + 7)).answers

    assert [answer.prompt_tokens for answer in answers] == [10, 7]
    assert read(count("30:00", total=huge)).answers == ()


def test_a_fork_that_is_read_while_it_copies_stays_one_that_copies() -> None:
    begun = record("session_meta", "30:00", id=FORK, forked_from_id=FIRST)
    reader = CodexReader()
    reader.read(begun, 0)

    copied = record("turn_context", "30:01", model="gpt-5.5") + count("30:01", total=10, last=10)

    assert CodexReader.restore(reader.state()).read(copied, len(begun)).answers == ()


def test_a_record_right_behind_one_that_was_cut_off_counts() -> None:
    (answer,) = read(count("30:00", total=10, last=10)[:-30] + count("31:00", total=20, last=10)).answers

    assert answer.prompt_tokens == 10


@pytest.mark.parametrize("spaces", [False, True])
def test_a_count_right_behind_an_event_that_was_cut_off_counts(*, spaces: bool) -> None:
    said = record("event_msg", "29:00", type="agent_message", message="x" * 9_000)
    counted = count("30:00", total=10, last=10)
    if not spaces:
        said, counted = (
            json.dumps(json.loads(line), separators=(",", ":")).encode() + b"\n" for line in (said, counted)
        )

    (answer,) = read(said + said[:-30] + counted).answers

    assert answer.prompt_tokens == 10


def test_rollouts_that_do_not_say_whose_they_are_do_not_mix() -> None:
    answers = [CodexReader(thread_id=thread).read(count("30:00", total=10, last=10), 0).answers for thread in "ab"]

    assert answers[0][0].key != answers[1][0].key


def test_a_fork_that_copies_nothing_counts_its_own_turn_and_not_what_it_inherits() -> None:
    assert tokens_of(answers_of("inherited_totals")) == [(900, 21_000, 100, 100, 0)]


def test_repeated_counts_of_older_rollouts_are_one_answer_each_with_the_model_of_their_turn() -> None:
    answers = answers_of("repeated_counts")

    assert tokens_of(answers) == [(2_000, 8_000, 0, 500, 300), (3_000, 9_000, 0, 600, 200), (2_000, 0, 0, 100, 0)]
    assert [answer.model for answer in answers] == ["gpt-5.5", "gpt-5.5", "gpt-5.4"]
    assert answers[0].key == "019a0000-0000-7000-8000-000000000001:1:10000:8000:0:500:300"


@pytest.mark.parametrize("is_parent_there", [True, False])
def test_history_that_an_older_fork_copied_belongs_to_the_thread_it_came_from(*, is_parent_there: bool) -> None:
    inherited = running_totals(bytes_of("repeated_counts")) if is_parent_there else None

    answers = answers_of("copied_history", inherited)

    assert tokens_of(answers) == [(1_000, 2_000, 0, 150, 50)]
    assert answers[0].session_ref == "019a0000-0000-7000-8000-000000000004"
    assert answers[0].key.split(":")[1] == "1"


def test_a_fork_that_goes_on_at_once_is_told_from_its_copy_by_the_totals_of_its_parent() -> None:
    beginning = record("session_meta", "00:00.000", id="child", forked_from_id="parent")
    copied = count("00:00.010", total=100, last=100) + count("00:00.011", total=150, last=50)
    own = record("turn_context", "00:00.300", model="m") + count("00:00.500", total=180, last=30)

    answers = read(beginning + copied + own, {(100, 0, 0, 0, 0), (150, 0, 0, 0, 0)}).answers

    assert [(answer.prompt_tokens, answer.session_ref) for answer in answers] == [(30, "child")]


def test_a_spawned_thread_is_a_subagent_of_the_one_that_pays() -> None:
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    beginning = record("session_meta", "00:00", id="child", source=source, history_mode="paginated")

    reading = read(beginning + count("00:09", total=10, last=10))

    assert [(answer.session_ref, answer.is_subagent) for answer in reading.answers] == [("parent", True)]
    assert reading.answers[0].key.startswith("child:1:")
    assert reading.sessions == ()


def test_the_parent_is_named_by_the_beginning_or_by_a_second_one() -> None:
    first, second = (record("session_meta", "00:00", id=name) for name in ("child", "parent"))
    paginated = record("session_meta", "00:00", id="child", forked_from_id="parent", history_mode="paginated")

    assert find_parent_thread(lines_of("copied_history")) == "019a0000-0000-7000-8000-000000000001"
    assert find_parent_thread([first, second]) == "parent"
    assert find_parent_thread([first, first]) == ""
    assert find_parent_thread([paginated]) == ""


def test_totals_alone_give_their_differences_and_an_assumed_model() -> None:
    answers = answers_of("totals_only")

    assert tokens_of(answers) == [(900, 100, 0, 50, 10), (1_000, 500, 0, 40, 10)]
    assert {(answer.model, answer.confidence) for answer in answers} == {("gpt-5", Confidence.ASSUMED)}


def test_differences_under_a_named_model_are_marked_as_derived() -> None:
    written = record("turn_context", "00:00", model="gpt-5") + count("00:01", total=5)

    assert [answer.confidence for answer in read(written).answers] == [Confidence.DERIVED]


def test_totals_that_fall_back_after_a_compaction_leave_both_turns_counted() -> None:
    assert tokens_of(answers_of("compacted")) == [(20_000, 100_000, 0, 1_000, 0), (8_000, 0, 0, 80, 0)]


@pytest.mark.parametrize("later", [30, 1_000, 2_500])
@pytest.mark.parametrize("zeros", [1, 2])
@pytest.mark.parametrize("cut", [False, True])
def test_a_total_that_falls_to_zero_begins_anew_and_is_marked(later: int, zeros: int, cut: bool) -> None:
    begun = (
        record("turn_context", "00:00", model="gpt-5") + count("00:01", total=1_000) + count("00:02", total=0) * zeros
    )
    more = count("00:03", total=later) + count("00:04", total=later + 5)
    reader = CodexReader()
    answers = reader.read(begun if cut else begun + more, 0).answers
    if cut:
        answers += CodexReader.restore(reader.state()).read(more, len(begun)).answers

    assert [answer.prompt_tokens for answer in answers] == [1_000, later, 5]
    assert [answer.confidence.value for answer in answers] == ["derived", "assumed", "derived"]


def test_a_total_that_falls_is_marked_unless_the_answer_tells_its_own_numbers() -> None:
    begun = record("turn_context", "00:00", model="gpt-5") + count("00:01", total=1_000)

    assumed, told = (read(begun + count("00:02", total=40, last=last)).answers[-1] for last in (None, 12))

    assert (assumed.prompt_tokens, assumed.confidence.value) == (40, "assumed")
    assert (told.prompt_tokens, told.confidence.value) == (12, "exact")


def test_a_cut_off_line_and_broken_ones_are_passed_over_and_counted() -> None:
    lines = lines_of("twin_records")
    broken = [
        b'{"token_count"\n',
        b"[" * 20_000 + b'"token_count"\n',
        b'"token_count"\n',
        b'{"type":"token_usage_record","payload":[]}\n',
        b'{"type":"event_msg","timestamp":7,"payload":{"type":"token_count","info":null}}\n',
        b'\xff"turn_context"\xfe\n',
    ]

    reading = read(b"".join([*broken[:3], *lines, *broken[3:], lines[2][:-40], b"\n"]))

    assert [answer.key for answer in reading.answers] == ["resp_x06a", "resp_x06b"]
    assert [problem.offset for problem in reading.problems][:2] == [0, len(broken[0])]
    assert len(reading.problems) == 5


def test_counts_that_are_no_counts_are_nothing() -> None:
    usage = {"input_tokens": True, "cached_input_tokens": -4, "output_tokens": 10**30, "reasoning_output_tokens": "9"}

    assert read(record("token_usage_record", "00:01", response_id="r", usage=usage)).answers == ()


def test_a_total_that_changed_without_an_answer_is_none() -> None:
    written = count("00:01", total=10, last=10) + count("00:02", total=12, last=0) + count("00:03", total=15, last=3)

    answers = read(record("session_meta", "00:00", id="t") + written).answers

    assert [answer.key for answer in answers] == ["t:1:10:0:0:0:0", "t:2:15:0:0:0:0"]


def test_a_turn_that_failed_is_a_failed_call_of_its_model() -> None:
    written = (
        record("turn_context", "00:00", model="gpt-5.5")
        + record("event_msg", "00:01", type="task_complete", turn_id="t1", last_agent_message="done")
        + record(
            "event_msg",
            "00:02",
            type="task_complete",
            turn_id="t2",
            error={"message": '{"error": {"message": "bad"}}', "codex_error_info": {"x": {"http_status_code": 529}}},
        )
    )

    (failure,) = CodexReader(thread_id="thread").read(written, 0).failures

    assert (failure.key, failure.model, failure.error, failure.status, failure.session_ref) == (
        "t2:failed",
        "gpt-5.5",
        "bad",
        529,
        "thread",
    )
