from __future__ import annotations

from agentmon.runners.screens.judging import Look, ScreenJudge
from agentmon.runners.screens.reading import ScreenText
from agentmon.runners.screens.rules import find_rules
from agentmon.runners.screens.states import Finding, ScreenState
from tests.runners.screens.test_screen_rules import screen_of

BUSY = Finding(state=ScreenState.WORKING, source="claude session file")
FREE = Finding(state=ScreenState.READY, source="claude session file")
READY_SCREEN = screen_of("claude-21_after_allow_idle")
PERMISSION_SCREEN = screen_of("claude-20_permission_bash")
WORKING_SCREEN = screen_of("claude-24_running_text")
UNDRAWN_SCREEN = READY_SCREEN
STRANGE_SCREEN = ScreenText.of("", ["something new", "that no rule knows"])


def judge_of(agent: str = "claude") -> ScreenJudge:
    return ScreenJudge(find_rules(agent))


def test_the_agent_s_own_signal_is_believed_at_once() -> None:
    judge = judge_of()

    working = judge.judge(Look(at=0.0, screen=READY_SCREEN, signal=BUSY, has_grown=True))
    idle = judge.judge(Look(at=0.1, screen=READY_SCREEN, signal=FREE, has_grown=True))

    assert working.state is ScreenState.WORKING
    assert idle.state is ScreenState.READY


def test_a_screen_is_free_after_two_looks_that_agree_and_no_sooner() -> None:
    judge = judge_of()

    states = [judge.judge(Look(at=0.0, screen=WORKING_SCREEN, has_grown=True)).state]
    states += [judge.judge(Look(at=at, screen=READY_SCREEN)).state for at in (1.0, 1.2, 1.31)]

    assert states == ["working", "working", "working", "ready"]


def test_output_that_grows_outweighs_an_idle_screen() -> None:
    judge = judge_of()
    busy_screens = [ScreenText.of("", [*(f"line {number}",), *READY_SCREEN.lines]) for number in range(20)]

    states = {
        judge.judge(Look(at=number * 0.3, screen=screen, has_grown=True)).state
        for number, screen in enumerate(busy_screens)
    }

    assert states == {ScreenState.WORKING}


def test_output_that_changes_nothing_on_the_screen_is_no_work() -> None:
    judge = judge_of()

    verdicts = [judge.judge(Look(at=step * 0.3, screen=READY_SCREEN, has_grown=True)) for step in range(12)]

    assert verdicts[-1].state is ScreenState.READY


def test_one_drawing_of_an_idle_screen_is_over_as_soon_as_it_is_seen() -> None:
    judge = judge_of()

    drawn = judge.judge(Look(at=0.0, screen=READY_SCREEN, has_grown=True))
    later = [judge.judge(Look(at=at, screen=READY_SCREEN)) for at in (0.1, 0.41)]

    assert drawn.state is ScreenState.WORKING
    assert later[-1].state is ScreenState.READY
    assert judge.settles_at == float("inf")


def test_it_is_told_when_a_look_may_find_something_else() -> None:
    judge = judge_of()

    judge.judge(Look(at=0.0, screen=READY_SCREEN))
    settles_at = judge.settles_at
    settled = judge.judge(Look(at=settles_at, screen=READY_SCREEN))

    assert settled.state is ScreenState.READY
    assert judge.same_since == 0.0


def test_new_wording_that_prints_steadily_is_work_and_never_idle() -> None:
    judge = judge_of()
    states = []
    for step in range(30):
        screen = ScreenText.of("", ["a wording of tomorrow", f"step {step // 3}"])
        states.append(judge.judge(Look(at=step * 0.1, screen=screen, has_grown=step % 3 == 0)).state)

    assert set(states) == {ScreenState.WORKING}


def test_a_quiet_screen_that_no_rule_knows_is_unknown() -> None:
    judge = judge_of()

    judge.judge(Look(at=0.0, screen=STRANGE_SCREEN))
    verdict = judge.judge(Look(at=1.5, screen=STRANGE_SCREEN))

    assert (verdict.state, verdict.doubt) == (None, "no rule fits its screen")


def test_a_signal_and_a_screen_that_exclude_each_other_make_it_unknown_only_when_they_stay_so() -> None:
    judge = judge_of()
    judge.judge(Look(at=0.0, screen=WORKING_SCREEN, signal=BUSY))

    short = judge.judge(Look(at=0.3, screen=PERMISSION_SCREEN, signal=BUSY))
    long = judge.judge(Look(at=2.0, screen=PERMISSION_SCREEN, signal=BUSY))

    assert short.state is ScreenState.WORKING
    assert long.state is None
    assert "says working, its screen says permission" in long.doubt


def test_a_dialog_on_the_screen_counts_also_when_the_signal_says_idle() -> None:
    judge = judge_of()
    trust = screen_of("claude-01_dialog1")

    judge.judge(Look(at=0.0, screen=trust, signal=FREE))
    verdict = judge.judge(Look(at=0.4, screen=trust, signal=FREE))

    assert verdict.state is ScreenState.DIALOG


def test_the_screen_says_what_the_signal_waits_for() -> None:
    waiting = Finding(state=ScreenState.PERMISSION, note="permission prompt", source="claude session file")

    verdict = judge_of().judge(Look(at=0.0, screen=PERMISSION_SCREEN, signal=waiting))

    assert verdict.finding is not None
    assert verdict.finding.source == "claude session file"
    assert verdict.finding.note == "permission: Bash command touch made-by-agent && echo ran"


def test_one_failed_look_changes_nothing_and_two_make_it_unknown() -> None:
    judge = judge_of()
    judge.judge(Look(at=0.0, screen=WORKING_SCREEN))

    once = judge.judge(Look(at=0.3, screen=None))
    twice = [judge.judge(Look(at=at, screen=None)) for at in (1.0, 1.5)]

    assert once.state is ScreenState.WORKING
    assert (twice[-1].state, twice[-1].doubt) == (None, "tmux does not show its screen")


def test_a_signal_is_enough_when_tmux_does_not_answer() -> None:
    judge = judge_of()

    verdict = judge.judge(Look(at=0.0, screen=None, signal=FREE))

    assert verdict.state is ScreenState.READY


def test_an_agent_that_is_halted_is_unknown_whatever_its_screen_shows() -> None:
    judge = judge_of()
    judge.judge(Look(at=0.0, screen=READY_SCREEN, signal=FREE, is_halted=True))

    verdict = judge.judge(Look(at=0.4, screen=READY_SCREEN, signal=FREE, is_halted=True))

    assert (verdict.state, verdict.doubt) == (None, "its process is halted")


def test_what_goes_on_behind_an_idle_prompt_is_work_in_the_background() -> None:
    judge = judge_of("codex")
    screen = ScreenText.of("ci | project", screen_of("codex-07_after_tool_interrupt").lines)

    judge.judge(Look(at=0.0, screen=screen))
    verdict = judge.judge(Look(at=0.5, screen=screen))

    assert verdict.state is ScreenState.BACKGROUND


def test_a_title_that_works_outweighs_a_box_that_is_always_there() -> None:
    screen = ScreenText.of("⠙ ci | project", screen_of("codex-02_running_text").lines)

    assert judge_of("codex").judge(Look(at=0.0, screen=screen)).state is ScreenState.WORKING


def test_a_request_that_is_not_drawn_yet_counts_at_once_and_one_that_is_wiped_keeps_its_words() -> None:
    judge = judge_of()
    waiting = Finding(state=ScreenState.PERMISSION, note="permission prompt", source="claude session file")

    verdicts = [
        judge.judge(Look(at=at, screen=screen, signal=waiting))
        for at, screen in ((0.0, UNDRAWN_SCREEN), (0.2, PERMISSION_SCREEN), (5.0, UNDRAWN_SCREEN))
    ]

    assert [verdict.finding.note if verdict.finding else "" for verdict in verdicts] == [
        "permission prompt",
        "permission: Bash command touch made-by-agent && echo ran",
        "permission: Bash command touch made-by-agent && echo ran",
    ]
    assert [verdict.is_drawn for verdict in verdicts[:2]] == [False, True]


def test_a_menu_in_words_that_no_rule_knows_is_unknown_although_the_signal_says_idle() -> None:
    judge = judge_of()
    menu = ScreenText.of("", ["● Done.", "", "Which plan suits you", "  1. Pro", "❯ 2. Max", "  3. None"])

    verdicts = [judge.judge(Look(at=at, screen=menu, signal=FREE)) for at in (0.0, 1.1)]

    assert verdicts[-1].state is None
    assert "menu" in verdicts[-1].doubt


def test_a_list_in_an_answer_is_no_menu() -> None:
    judge = judge_of()
    screen = ScreenText.of("", ["● Two ways:", "  1. this", "  2. that", "> quoted", "something new"])

    verdicts = [judge.judge(Look(at=at, screen=screen, signal=FREE)) for at in (0.0, 2.0)]

    assert verdicts[-1].state is ScreenState.READY


def test_quoted_words_do_not_outrank_the_agent_s_own_signal() -> None:
    judge = judge_of()
    lines = READY_SCREEN.lines
    screen = ScreenText.of("", ["● It asks: Select login method:", *lines])

    verdicts = [judge.judge(Look(at=at, screen=screen, signal=FREE)) for at in (0.0, 2.0)]

    assert verdicts[-1].state is ScreenState.READY
