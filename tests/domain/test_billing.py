from __future__ import annotations

from agentmon.domain.billing import BilledAnswer, Confidence, HistorySession, merge_answers, merge_sessions


def answer(**facts: object) -> BilledAnswer:
    told: dict[str, object] = {
        "key": "m1",
        "session_ref": "s1",
        "provider": "anthropic",
        "model": "m",
        "at_ms": 10,
        "prompt_tokens": 1,
        "cache_read_tokens": 2,
        "cache_write_5m_tokens": 3,
        "cache_write_1h_tokens": 4,
        "response_tokens": 5,
        "reasoning_tokens": 5,
        "offset": 0,
    }
    return BilledAnswer(**(told | facts))  # type: ignore[arg-type]  # facts are given by name


def test_all_tokens_count_those_of_reasoning_once() -> None:
    assert answer().total_tokens == 15


def test_the_larger_telling_counts_in_any_order_with_the_time_of_the_earliest() -> None:
    begun = answer(response_tokens=1, at_ms=20, confidence=Confidence.INCOMPLETE)
    ended = answer(response_tokens=310, at_ms=30, offset=7)

    for merged in (merge_answers(begun, ended), merge_answers(ended, begun)):
        assert (merged.response_tokens, merged.at_ms, merged.offset) == (310, 20, 7)
        assert merged.confidence is Confidence.EXACT


def test_a_whole_telling_of_the_conversation_itself_counts_before_that_of_its_subagent() -> None:
    own, copied = answer(), answer(response_tokens=500, is_subagent=True)
    begun = answer(confidence=Confidence.INCOMPLETE)

    for merged in (merge_answers(own, copied), merge_answers(copied, own)):
        assert (merged.response_tokens, merged.is_subagent) == (5, False)
    for merged in (merge_answers(begun, copied), merge_answers(copied, begun)):
        assert (merged.response_tokens, merged.is_subagent) == (500, True)


def test_of_two_that_are_alike_the_later_counts_and_the_first_owner_stays() -> None:
    merged = merge_answers(answer(), answer(session_ref="copy", model="later", at_ms=0))

    assert (merged.session_ref, merged.model, merged.at_ms) == ("s1", "later", 10)


def test_an_owner_that_a_record_names_wins_in_any_order() -> None:
    unmarked, marked = answer(session_ref="copy", cwd="/copy"), answer(is_owner_marked=True, cwd="/own")

    for merged in (merge_answers(unmarked, marked), merge_answers(marked, unmarked)):
        assert (merged.session_ref, merged.is_owner_marked, merged.cwd) == ("s1", True, "/own")


def test_a_cost_that_was_reported_once_stays() -> None:
    told, silent = answer(reported_cost_nano=7), answer(response_tokens=9)

    assert merge_answers(told, silent).reported_cost_nano == 7
    assert merge_answers(silent, told).reported_cost_nano == 7


def test_later_facts_of_a_conversation_win_and_its_times_reach_from_first_to_last() -> None:
    earlier = HistorySession(session_ref="s1", title="old", cwd="/a", first_at_ms=5, last_at_ms=9)
    later = HistorySession(session_ref="s1", title="new", model="m", first_at_ms=7, last_at_ms=8)

    assert merge_sessions(earlier, later) == HistorySession(
        session_ref="s1", title="new", cwd="/a", model="m", first_at_ms=5, last_at_ms=9
    )
    assert merge_sessions(HistorySession(session_ref="s1"), later) == later
