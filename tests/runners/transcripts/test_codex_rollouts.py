from __future__ import annotations

from pathlib import Path

from agentmon.runners.protocols.app_server.usage import provisional_key
from agentmon.runners.transcripts.codex import BilledAnswer, find_parent_thread, read_answer_keys

ROLLOUTS = Path(__file__).parent / "rollouts"

FIRST = "01a21ede-beb1-7032-834a-a20e3bf843ab"
FORK = "01a21edf-4855-72b0-af67-49c3d5f997a3"


def lines_of(name: str) -> list[bytes]:
    return (ROLLOUTS / f"{name}.jsonl").read_bytes().splitlines(keepends=True)


def answers_of(name: str, parent: list[BilledAnswer] | None = None) -> list[BilledAnswer]:
    return read_answer_keys(lines_of(name), parent or [])


def tokens_of(answers: list[BilledAnswer]) -> list[tuple[int, int, int, int, int]]:
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
    assert {(answer.thread_id, answer.model, answer.provider) for answer in answers} == {(FIRST, "gpt-5.5", "mock")}
    assert tokens_of(answers)[0] == (1_900, 8_001, 100, 501, 301)
    assert answers[0].at_ms == 1_795_814_244_223
    assert answers[2].running_total == (30_006, 24_006, 300, 1_506, 906)
    assert not any(answer.is_model_assumed for answer in answers)


def test_a_fork_has_only_its_own_answer_though_its_total_goes_on_from_its_parent() -> None:
    answers = answers_of("forked")

    assert [answer.key for answer in answers] == ["resp_8e958d5abc654cea84a1f5979b04eb2f"]
    assert tokens_of(answers) == [(1_900, 8_004, 100, 504, 304)]
    assert answers[0].thread_id == FORK
    assert answers[0].running_total == (40_010, 32_010, 400, 2_010, 1_210)
    assert find_parent_thread(lines_of("forked")) == FIRST
    assert find_parent_thread(lines_of("resumed")) is None


def test_records_of_another_thread_are_copies_and_belong_to_it() -> None:
    copied = [line for line in lines_of("resumed") if b"token_usage_record" in line]

    answers = read_answer_keys([*lines_of("forked")[:1], *copied, *lines_of("forked")[1:]])

    assert [answer.key for answer in answers] == ["resp_8e958d5abc654cea84a1f5979b04eb2f"]


def test_the_key_that_a_conversation_made_of_the_running_total_is_found_again() -> None:
    total: dict[str, object] = {
        "inputTokens": 40_010,
        "cachedInputTokens": 32_010,
        "cacheWriteInputTokens": 400,
        "outputTokens": 2_010,
        "reasoningOutputTokens": 1_210,
    }

    assert answers_of("forked")[0].provisional_key == provisional_key(FORK, total)


def test_a_turn_with_a_tool_has_an_answer_before_and_after_it() -> None:
    assert tokens_of(answers_of("with_a_tool")) == [(1_900, 8_005, 100, 505, 305), (1_900, 8_006, 100, 506, 306)]


def test_the_count_beside_a_record_is_its_twin() -> None:
    answers = answers_of("twin_records")

    assert [answer.key for answer in answers] == ["resp_x06a", "resp_x06b"]
    assert tokens_of(answers) == [(4_000, 15_000, 1_000, 800, 400), (1_500, 19_000, 500, 200, 0)]


def test_a_fork_that_copies_nothing_counts_its_own_turn_and_not_what_it_inherits() -> None:
    assert tokens_of(answers_of("inherited_totals")) == [(900, 21_000, 100, 100, 0)]


def test_repeated_counts_of_older_rollouts_are_one_answer_each_with_the_model_of_their_turn() -> None:
    answers = answers_of("repeated_counts")

    assert tokens_of(answers) == [(2_000, 8_000, 0, 500, 300), (3_000, 9_000, 0, 600, 200), (2_000, 0, 0, 100, 0)]
    assert [answer.model for answer in answers] == ["gpt-5.5", "gpt-5.5", "gpt-5.4"]
    assert answers[0].key == "019a0000-0000-7000-8000-000000000001:1:10000:8000:0:500:300"


def test_history_that_an_older_fork_copied_belongs_to_the_thread_it_came_from() -> None:
    answers = answers_of("copied_history", answers_of("repeated_counts"))

    assert tokens_of(answers) == [(1_000, 2_000, 0, 150, 50)]
    assert answers[0].thread_id == "019a0000-0000-7000-8000-000000000004"


def test_totals_alone_give_their_differences_and_an_assumed_model() -> None:
    answers = answers_of("totals_only")

    assert tokens_of(answers) == [(900, 100, 0, 50, 10), (1_000, 500, 0, 40, 10)]
    assert {(answer.model, answer.is_model_assumed) for answer in answers} == {("gpt-5", True)}


def test_totals_that_fall_back_after_a_compaction_leave_both_turns_counted() -> None:
    assert tokens_of(answers_of("compacted")) == [(20_000, 100_000, 0, 1_000, 0), (8_000, 0, 0, 80, 0)]


def test_a_cut_off_line_and_broken_ones_are_passed_over() -> None:
    lines = lines_of("twin_records")
    broken = [
        b"{",
        b"[" * 20_000 + b'"token_count"',
        b'"token_count"',
        b'{"type":"token_usage_record","payload":[]}\n',
        b'{"type":"token_usage_record","payload":{"response_id":"r","usage":{"input_tokens":true}}}\n',
        b'{"type":"event_msg","timestamp":7,"payload":{"type":"token_count","info":null}}\n',
        b'\xff"turn_context"\xfe\n',
    ]

    answers = read_answer_keys([*broken[:4], *lines, *broken[5:], lines[2][:-40]])

    assert [answer.key for answer in answers] == ["resp_x06a", "resp_x06b"]
    assert [answer.prompt_tokens for answer in read_answer_keys([broken[4]])] == [0]
