from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from textual.widgets import Input, TextArea

from agentmon.domain.approvals import ApprovalScope, ApprovalStatus
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.budget_requests import budget_ask
from agentmon.domain.budgets import Budget, BudgetPeriod, BudgetScope, BudgetState, BudgetUse
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import AskChoice, AskClosedNews, AskKind, AskNews, AskOutcome, AskQuestion
from agentmon.domain.errors import ConflictError, UndeliveredError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import BudgetId
from agentmon.runners.danger import load_danger_rules
from agentmon.screens.dialogs.name_dialog import NameDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.frame import StoreChanged
from agentmon.screens.inbox import request_dialog, request_screen
from agentmon.screens.inbox.request_dialog import RequestDialog
from agentmon.screens.inbox.rule_dialog import RuleDialog
from agentmon.screens.inbox.screen import InboxScreen
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.store.execution_commands import CommandRepository
from agentmon.widgets.block_view import BlockView
from agentmon.worker.loop_report import write_loop_report
from tests.conversing import a_typed_wish, a_wish
from tests.screen_stage import screen_text, until
from tests.screens.scenes import NOW
from tests.screens.talks import asks_questions, talks, wants_command, wants_edit

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.screen import Screen

    from agentmon.domain.executions import Execution
    from tests.screen_stage import Stage
    from tests.screens.talks import Talks


@pytest.fixture(autouse=True)
def short_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_screen, "GUARD_S", 0.0)
    monkeypatch.setattr(request_dialog, "OPENING_GUARD_S", 0.0)


async def opened(stage: Stage, pilot: Pilot[None], place: Talks, *, shown: str = "") -> InboxScreen:
    screen = InboxScreen(place.get_services, place.get_workspace, clock=FakeClock(NOW))
    stage.show(screen)  # type: ignore[arg-type] # a screen ends with its own type
    await until(pilot, lambda: stage.screen is screen and screen._is_loaded)
    await until(pilot, lambda: shown in screen_text(stage) and not screen.is_guarded)
    return screen


async def sees(stage: Stage, pilot: Pilot[None], *words: str) -> None:
    await until(pilot, lambda: all(word in screen_text(stage) for word in words))


async def in_dialog(stage: Stage, pilot: Pilot[None], kind: type[object]) -> None:
    await until(pilot, lambda: isinstance(stage.screen, kind))
    await pilot.pause()


async def answering(stage: Stage, pilot: Pilot[None]) -> None:
    await pilot.press("enter")
    await in_dialog(stage, pilot, RequestDialog)


async def answers_of(place: Talks, execution: Execution) -> object:
    (command,) = await CommandRepository(place.services.database).of_execution(
        execution.id, types=(CommandType.ANSWER,)
    )
    return command.payload["answers"]


async def click_on(screen: Screen[Any], pilot: Pilot[None], words: str) -> None:
    view = screen.query_one("#request", BlockView)
    row = next(at for at, line in enumerate(view.shown_text.splitlines()) if words in line)
    await pilot.click(view, offset=(10, row))


async def test_an_empty_inbox_says_what_would_land_there(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        await opened(stage, pilot, place, shown="Nothing waits for you.")

        assert "Permissions, questions, plans" in screen_text(stage)


async def test_a_request_is_shown_whole_and_y_allows_it_once(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="$ rm -r build")
        assert "The old build is in the way" in screen_text(stage)

        await pilot.press("y")
        await sees(stage, pilot, "Nothing waits for you.")

        decided = (await place.decided()).approval
        assert (decided.status, decided.scope) == (ApprovalStatus.ALLOWED, ApprovalScope.ONCE)
        commands = await CommandRepository(place.services.database).of_execution(
            execution.id, types=(CommandType.ANSWER,)
        )
        assert [command.payload["input_digest"] for command in commands] == ["d1"]


@pytest.mark.proof
async def test_a_decision_that_nobody_carries_out_is_kept_and_told(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")
        long_ago = datetime.now(UTC) - timedelta(minutes=10)
        write_loop_report(place.services.paths.worker_loops, (), at=long_ago)

        await pilot.press("y")
        await sees(stage, pilot, "Nothing waits for you.")

        assert [type(error) for error in stage.failures] == [UndeliveredError]
        assert (await place.decided()).approval.status is ApprovalStatus.ALLOWED
        commands = CommandRepository(place.services.database)
        assert len(await commands.of_execution(execution.id, types=(CommandType.ANSWER,))) == 1


@pytest.mark.parametrize("kind", [AskKind.PERMISSION, AskKind.DIALOG])
async def test_a_dialog_of_an_own_screen_says_what_is_typed_and_is_decided(tmp_path: Path, kind: AskKind) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask(ask=a_typed_wish(ask_kind=kind))
        screen = await opened(stage, pilot, place, shown="types 1 into its terminal: Yes")
        assert "types 3 into its terminal: No" in screen_text(stage)
        offered = [screen.check_action(one, ()) for one in ("allow", "deny", "allow_session", "deny_and_interrupt")]
        assert offered == [True, True, False, False]

        await pilot.press("n")
        await in_dialog(stage, pilot, TextDialog)
        assert "types 3 into its terminal (No)" in screen_text(stage)
        await pilot.press(*"why", "ctrl+s")
        await sees(stage, pilot, "Nothing waits for you.")

        decided = (await place.decided()).approval
        assert (decided.status, decided.decision_reason) == (ApprovalStatus.DENIED, "why")
        (command,) = await CommandRepository(place.services.database).of_execution(
            execution.id, types=(CommandType.ANSWER,)
        )
        # A dialog at the start is about no tool: who is denied there ends.
        assert command.payload.get("reason") == ("why" if kind is AskKind.PERMISSION else None)


async def test_a_dialog_that_no_rule_knows_whole_offers_its_terminal_alone(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask(ask=a_typed_wish(ask_kind=AskKind.DIALOG, questions=(), reason="attach to it"))
        screen = await opened(stage, pilot, place, shown="attach to it")

        assert not any(screen.check_action(one, ()) for one in ("allow", "deny", "allow_always"))
        await pilot.press("y", "n")
        assert len(await place.waiting()) == 1


async def test_an_app_that_was_started_in_a_run_decides_nothing(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        place.services = replace(place.services, actor=Actor(type=ActorType.AGENT, id=execution.id))
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("y")
        await until(pilot, lambda: bool(stage.failures))

        assert isinstance(stage.failures[0], ConflictError)
        assert len(await place.waiting()) == 1


async def test_capital_y_allows_it_for_the_session(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("Y")
        await sees(stage, pilot, "Nothing waits for you.")

        assert (await place.decided()).approval.scope is ApprovalScope.SESSION


async def test_always_shows_the_rule_first_and_it_can_be_changed(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("A")
        await in_dialog(stage, pilot, RuleDialog)
        stage.screen.query_one("#note", Input).value = "builds are cheap"
        await pilot.press("ctrl+s")
        await sees(stage, pilot, "Nothing waits for you.")

        (rule,) = await place.services.approvals.rules()
        assert (rule.tool, rule.note) == ("Bash", "builds are cheap")
        assert (await place.decided()).approval.scope is ApprovalScope.ALWAYS


@pytest.mark.proof
async def test_what_destroys_things_is_allowed_by_its_name_alone(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask(ask=with_danger(wants_command("git push --force"), load_danger_rules()))
        screen = await opened(stage, pilot, place, shown="git push --force")
        assert "▲ level 3, destroys things: git push: replaces what others have pushed" in screen_text(stage)

        await pilot.press("Y", "A", "y")
        await in_dialog(stage, pilot, NameDialog)
        await pilot.press("g", "i", "t", "enter")
        await sees(stage, pilot, "That is not its name.")
        await pilot.press("escape")
        await until(pilot, lambda: stage.screen is screen)
        assert len(await place.waiting()) == 1

        await pilot.press("y")
        await in_dialog(stage, pilot, NameDialog)
        await pilot.press(*"git", "space", *"push", "enter")
        await sees(stage, pilot, "Nothing waits for you.")

        decided = (await place.decided()).approval
        assert (decided.status, decided.scope) == (ApprovalStatus.ALLOWED, ApprovalScope.ONCE)


async def test_leaving_the_rule_decides_nothing(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        screen = await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("A")
        await in_dialog(stage, pilot, RuleDialog)
        await pilot.press("escape")
        await until(pilot, lambda: stage.screen is screen)

        assert len(await place.waiting()) == 1
        assert not await place.services.approvals.rules()


@pytest.mark.parametrize(("key", "reason"), [("n", "use make clean"), ("n", ""), ("N", "")])
async def test_deny_asks_why_and_the_reason_may_be_empty(key: str, reason: str, tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press(key)
        await in_dialog(stage, pilot, TextDialog)
        stage.screen.query_one(TextArea).text = reason
        await pilot.press("ctrl+s")
        await sees(stage, pilot, "Nothing waits for you.")

        decided = (await place.decided()).approval
        assert decided.status is ApprovalStatus.DENIED
        assert (decided.decision_reason or "") == reason
        (command,) = await CommandRepository(place.services.database).of_execution(
            execution.id, types=(CommandType.ANSWER,)
        )
        assert bool(command.payload.get("interrupts")) is (key == "N")


async def test_the_input_can_be_edited_and_nonsense_is_refused(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("e")
        await in_dialog(stage, pilot, TextDialog)
        box = stage.screen.query_one(TextArea)
        box.text = "rm"
        await pilot.press("ctrl+s")
        await sees(stage, pilot, "This is no JSON")
        box.text = '{"command": "make clean"}'
        await pilot.press("ctrl+s")
        await sees(stage, pilot, "Nothing waits for you.")

        (command,) = await CommandRepository(place.services.database).of_execution(
            execution.id, types=(CommandType.ANSWER,)
        )
        assert command.payload["tool_input"] == {"command": "make clean"}


async def test_enter_opens_a_question_in_which_digits_space_and_enter_answer(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask(ask=asks_questions())
        await opened(stage, pilot, place, shown="Which clock should the session use?")

        await answering(stage, pilot)
        await pilot.press("2", "enter", "1", "j", "space", "enter")
        await sees(stage, pilot, "Nothing waits for you.")

        assert (await place.decided()).approval.status is ApprovalStatus.ANSWERED
        assert await answers_of(place, execution) == {
            "Which clock should the session use?": "Wall",
            "Which tests should run?": ["Unit", "End to end"],
        }
        await pilot.press("h")
        await sees(stage, pilot, "answered by you: Clock: Wall; Tests: Unit,")


async def test_digits_are_places_in_the_inbox_and_choose_nothing(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask(ask=asks_questions())
        screen = await opened(stage, pilot, place, shown="Which clock should the session use?")
        shown = screen_text(stage)

        await pilot.press("2", "space", "t")

        assert stage.screen is screen
        assert screen_text(stage) == shown
        assert not any(key.isdecimal() for key in screen.active_bindings)


async def test_a_question_before_can_be_answered_anew(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask(ask=asks_questions())
        await opened(stage, pilot, place, shown="Which clock should the session use?")

        await answering(stage, pilot)
        await pilot.press("2", "enter", "1", "h", "1", "enter")
        await sees(stage, pilot, "Nothing waits for you.")

        assert await answers_of(place, execution) == {
            "Which clock should the session use?": "Monotonic",
            "Which tests should run?": ["Unit"],
        }


async def test_a_click_on_a_choice_chooses_it(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask(ask=asks_questions())
        screen = await opened(stage, pilot, place, shown="Which clock should the session use?")

        await click_on(screen, pilot, "Wall")
        await in_dialog(stage, pilot, RequestDialog)
        for words in ("Wall", "End to end"):
            await click_on(stage.screen, pilot, words)
        await pilot.press("enter")
        await sees(stage, pilot, "Nothing waits for you.")

        assert await answers_of(place, execution) == {
            "Which clock should the session use?": "Wall",
            "Which tests should run?": ["End to end"],
        }


async def test_the_lit_one_of_many_choices_stays_in_view(tmp_path: Path) -> None:
    choices = tuple(AskChoice(key=f"c{at}", label=f"Choice {at}", description="Words") for at in range(1, 21))
    question = AskQuestion(question="Which of many?", header="Many", choices=choices)
    ask = AskNews(request_id="r4", ask_kind=AskKind.QUESTION, title="Which of many?", questions=(question,))
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        execution = await place.ask(ask=ask)
        await opened(stage, pilot, place, shown="Which of many?")

        await answering(stage, pilot)
        await pilot.press(*["j"] * 16)
        await sees(stage, pilot, "( ) Choice 17")
        await pilot.press("enter")
        await sees(stage, pilot, "Nothing waits for you.")

        assert await answers_of(place, execution) == {"Which of many?": "c17"}


async def test_a_question_can_be_answered_in_ones_own_words(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask(ask=asks_questions())
        await opened(stage, pilot, place, shown="Which clock should the session use?")

        await answering(stage, pilot)
        dialog = stage.screen
        await pilot.press("t")
        await in_dialog(stage, pilot, TextDialog)
        stage.screen.query_one(TextArea).text = "the one of the test"
        await pilot.press("ctrl+s")
        await until(pilot, lambda: stage.screen is dialog)
        await pilot.press("enter", "1", "enter")
        await sees(stage, pilot, "Nothing waits for you.")

        assert (await place.decided()).approval.status is ApprovalStatus.ANSWERED


async def test_what_is_new_goes_below_and_what_is_shown_stays(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        screen = await opened(stage, pilot, place, shown="rm -r build")

        await place.ask("Rename the module", ask=wants_edit())
        screen.post_message(StoreChanged())
        await sees(stage, pilot, "#2 Rename the module")
        assert "Run rm -r build" in screen_text(stage)
        await pilot.press("j")
        await sees(stage, pilot, "+    return check(user, clock.now())")
        await pilot.press("k")

        await sees(stage, pilot, "$ rm -r build")


async def test_what_is_lit_stays_in_view_when_the_window_shrinks_and_when_another_is_decided(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        for number in range(8):
            await place.ask(ask=a_wish(f"rm -r build-{number}"))
        screen = await opened(stage, pilot, place, shown="rm -r build-0")
        items = screen.query_one("#waiting", BlockView)
        await pilot.press(*"jjjjjj")
        await sees(stage, pilot, "$ rm -r build-6")

        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: items.size.height < 10)
        assert "build-6" in items.shown_text

        await pilot.press("y")
        await until(pilot, lambda: len(items.blocks) == 7)
        await until(pilot, lambda: "build-7" in items.shown_text)


async def test_a_withdrawn_request_says_so_and_nothing_can_be_allowed(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await place.ask("Another one")
        screen = await opened(stage, pilot, place, shown="rm -r build")

        await place.tell(execution, AskClosedNews(request_id="r1", outcome=AskOutcome.WITHDRAWN))
        screen.post_message(StoreChanged())
        await sees(stage, pilot, "The agent no longer asks this")
        await pilot.press("y", "Y", "A", "n")

        assert stage.screen is screen
        assert len(await place.waiting()) == 1


async def test_a_key_right_after_another_request_came_under_it_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await place.ask("Another one", ask=wants_command("make deploy"))
        screen = await opened(stage, pilot, place, shown="$ rm -r build")
        monkeypatch.setattr(request_screen, "GUARD_S", 1000.0)

        await pilot.press("y")
        await sees(stage, pilot, "$ make deploy")
        await pilot.press("y", "Y", "n", "A", "e")

        assert screen.is_guarded
        assert stage.screen is screen
        assert [one.approval.target for one in await place.waiting()] == ["make deploy"]
        told = [one.message for one in stage._notifications]
        assert sum("This came just now" in words for words in told) == 1


async def test_each_key_that_came_too_early_asks_for_another_second_of_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await place.ask("Another one", ask=wants_command("make deploy"))
        screen = await opened(stage, pilot, place, shown="$ rm -r build")
        monkeypatch.setattr(request_screen, "GUARD_S", 1000.0)
        await pilot.press("y")
        await sees(stage, pilot, "$ make deploy")
        screen._guarded_until = monotonic() + 30

        await pilot.press("y")

        assert screen._guarded_until > monotonic() + 900


async def test_a_request_that_a_person_went_to_can_be_decided_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await place.ask("Another one", ask=wants_command("make deploy"))
        await place.ask("The third", ask=wants_command("make clean"))
        await opened(stage, pilot, place, shown="$ rm -r build")
        monkeypatch.setattr(request_screen, "GUARD_S", 1000.0)
        await pilot.press("y")
        await sees(stage, pilot, "$ make deploy")

        await pilot.press("j")
        await sees(stage, pilot, "$ make clean")
        await pilot.press("y")
        await until(pilot, lambda: "make clean" not in screen_text(stage))

        assert [one.approval.target for one in await place.waiting()] == ["make deploy"]


async def test_the_title_of_a_denial_tells_paths_from_the_folder(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        inside = f"{place.workspace.root_path}/src/login.py"
        await place.ask(ask=replace(wants_edit(), title=f"Edit {inside}", target=inside))
        await opened(stage, pilot, place, shown="Edit src/login.py")

        await pilot.press("n")
        await in_dialog(stage, pilot, TextDialog)

        await sees(stage, pilot, "Deny: Edit src/login.py")


async def test_history_shows_what_was_decided_by_whom_and_why(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")
        await pilot.press("n")
        await in_dialog(stage, pilot, TextDialog)
        stage.screen.query_one(TextArea).text = "use make clean"
        await pilot.press("ctrl+s")
        await sees(stage, pilot, "Nothing waits for you.")

        await pilot.press("h")
        await sees(stage, pilot, "History", "denied by you: use make clean")
        await pilot.press("y", "h")

        await sees(stage, pilot, "Nothing waits for you.")


async def test_enter_opens_the_task_at_its_conversation(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("enter")

        await until(
            pilot, lambda: isinstance(stage.screen, TaskPage) and "wants Bash: rm -r build" in screen_text(stage)
        )


async def test_attach_asks_the_application(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await pilot.press("a")
        await until(pilot, lambda: bool(stage.attach_requests))

        assert stage.attach_requests[0].execution_id == execution.id


@pytest.mark.proof
async def test_a_long_request_scrolls_in_a_small_window(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(80, 24)) as pilot:
        await place.ask(ask=wants_command("\n".join(f"echo {number}" for number in range(80))))
        screen = await opened(stage, pilot, place, shown="$ echo 0")

        await pilot.press(*["ctrl+d"] * 20)
        await sees(stage, pilot, "echo 79")
        await pilot.press(*["ctrl+u"] * 20)

        await sees(stage, pilot, "$ echo 0")
        assert screen.query_one("#waiting", BlockView).has_focus


async def test_a_stale_answer_is_told_and_changes_nothing(tmp_path: Path) -> None:
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        execution = await place.ask()
        await opened(stage, pilot, place, shown="rm -r build")

        await place.tell(execution, AskClosedNews(request_id="r1", outcome=AskOutcome.WITHDRAWN))
        await pilot.press("y")
        await until(pilot, lambda: bool(stage.failures))

        assert (await place.decided()).approval.status is ApprovalStatus.WITHDRAWN


@pytest.mark.parametrize(
    ("keys", "status"),
    [("enter", ApprovalStatus.ANSWERED), ("2", ApprovalStatus.ALLOWED), ("3", ApprovalStatus.DENIED)],
)
async def test_a_spent_budget_is_decided_by_a_digit_and_enter(
    keys: str, status: ApprovalStatus, tmp_path: Path
) -> None:
    budget = Budget(id=BudgetId("b1"), scope=BudgetScope.ALL, period=BudgetPeriod.DAY, limit=2 * 10**9, created_at=NOW)
    ask = budget_ask(BudgetState(budget=budget, use=BudgetUse(spent=3 * 10**9), span=None))
    async with talks(tmp_path) as (place, stage), stage.run_test(size=(120, 40)) as pilot:
        await place.ask(ask=ask)
        await opened(stage, pilot, place, shown="Budget spent")
        await answering(stage, pilot)
        await pilot.press(*([keys] if keys != "enter" else []), "enter")
        await until(pilot, lambda: not isinstance(stage.screen, RequestDialog))
        listing = await place.decided()

        assert listing.approval.status is status
