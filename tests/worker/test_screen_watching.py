from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.activity import Activity
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.services.actors import USER_ACTOR
from tests.live_home import until_started
from tests.waiting import DEADLINE_S, until
from tests.worker.screen_stubs import received, start_stub, until_note

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from tests.live_home import LiveHome

pytestmark = pytest.mark.timeout(60)
DONE = "done: waits for your next message"


async def until_activity(services: Services, execution: Execution, activity: Activity) -> Execution:
    async def is_so() -> bool:
        return (await services.executions.get(execution.id)).activity is activity

    await until(is_so, f"the activity {activity}")
    return await services.executions.get(execution.id)


def ask_tmux(home: LiveHome, *words: str) -> str:
    return subprocess.run(
        ["tmux", "-S", str(home.paths.tmux_socket), *words], check=True, capture_output=True, text=True, timeout=10
    ).stdout.strip()


def shown_last(home: LiveHome, execution: Execution) -> str:
    return ask_tmux(home, "capture-pane", "-p", "-t", f"=am-{execution.id}:")


def type_into(home: LiveHome, execution: Execution, *keys: str) -> None:
    ask_tmux(home, "send-keys", "-t", f"=am-{execution.id}:", *keys)


@pytest.mark.proof
@pytest.mark.parametrize("prompt", ["- [ ] first\n- [ ] second;", "/etc/hosts", "--help ünï©ode 日本語 🎉\ttab"])
async def test_a_prompt_arrives_byte_for_byte_and_once(live_home: LiveHome, prompt: str) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, prompt)

        shown = await until_note(services, execution, DONE)

        assert received(live_home) == [prompt]
        assert (shown.activity, shown.live_state) == (Activity.WAITING, LiveState.NEEDS_YOU)


@pytest.mark.proof
async def test_a_long_prompt_arrives_whole(live_home: LiveHome) -> None:
    prompt = "begin\n" + 'line with é and \\ and "\n' * 9_000 + "end"

    async with open_services() as services:
        execution = await start_stub(services, live_home, prompt)
        await until_note(services, execution, DONE)

    assert received(live_home) == [prompt]


async def test_the_mark_that_ends_a_paste_cannot_be_smuggled_in(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "one\x1b[201~\ntwo")
        await until_note(services, execution, DONE)

    assert received(live_home) == ["one\ntwo"]


@pytest.mark.proof
async def test_a_prompt_waits_for_an_agent_that_is_not_ready(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "patience", deaf_s=1.0)
        await until_note(services, execution, DONE)

    assert received(live_home) == ["patience"]


@pytest.mark.proof
async def test_a_return_key_that_became_a_line_feed_is_pressed_once_more(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "first\nsecond", swallows=1)
        await until_note(services, execution, DONE)

    assert received(live_home) == ["first\nsecond\n"]


@pytest.mark.proof
async def test_an_agent_that_is_slow_to_show_that_it_took_a_text_is_given_no_second_return_key(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "first\nsecond", slow_s=1.5)
        await until_note(services, execution, DONE)

    assert received(live_home) == ["first\nsecond"]


@pytest.mark.proof
async def test_a_start_dialog_is_shown_in_the_inbox_and_never_answered_for_a_person(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "after it", dialog="Do you trust this folder?")
        asking = await until_note(services, execution, "Do you trust this folder?")
        (listed,) = await services.approvals.inbox(None)
        assert asking.live_state is LiveState.NEEDS_YOU
        assert (listed.approval.ask_kind, listed.approval.title) == ("dialog", "Do you trust this folder?")
        assert "1. Yes" in listed.approval.detail
        assert received(live_home) == []

        type_into(live_home, execution, "Enter")
        await until_note(services, execution, DONE)

        assert received(live_home) == ["after it"]
        assert await services.approvals.inbox(None) == ()


async def test_a_permission_on_the_screen_needs_a_person(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")

        asking = await until_note(services, execution, "permission: touch it")
        type_into(live_home, execution, "1")
        done = await until_note(services, execution, DONE)

        assert asking.activity_source == "rule stub/permission"
        assert done.activity is Activity.WAITING
        assert received(live_home) == ["go"]


@pytest.mark.proof
@pytest.mark.parametrize(("decision", "seen"), [("allow", "allowed"), ("deny", "denied")])
async def test_a_permission_on_the_screen_is_decided_from_here(live_home: LiveHome, decision: str, seen: str) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")
        await until_note(services, execution, "permission: touch it")
        (listing,) = await services.approvals.inbox(None)
        decide = services.approvals.allow if decision == "allow" else services.approvals.deny

        await decide(listing.approval.id, actor=USER_ACTOR, seen_digest=listing.approval.input_digest)
        await until_note(services, execution, DONE)

        decided = (await services.approvals.get(listing.approval.id)).approval
    assert (decided.status.value, decided.decided_by) == (seen, USER_ACTOR)
    assert shown_last(live_home, execution).count(seen) == 1


@pytest.mark.proof
async def test_keys_that_a_dialog_did_not_hear_yet_are_pressed_once_more_for_an_interrupt(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask", lost_keys=1)
        await until_note(services, execution, "permission: touch it")

        await services.conversations.interrupt(execution.task_id, actor=USER_ACTOR)
        await until_note(services, execution, DONE)

    assert shown_last(live_home, execution).count("denied") == 1


@pytest.mark.proof
async def test_words_that_no_rule_knows_are_work_while_they_go_on_and_never_idle(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="strange")
        await until(lambda: _has_received(live_home, 1))
        seen = set()
        for _ in range(6):
            present = await services.executions.get(execution.id)
            seen.add((present.activity, present.activity_source))
            await _a_look(services, execution)

    assert not {activity for activity, _ in seen} & {Activity.WAITING}


async def test_what_goes_on_behind_the_prompt_counts_as_work(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="background")

        shown = await until_note(services, execution, "works in the background: 2 helpers running")

        assert shown.activity is Activity.WORKING
        assert shown.live_state is LiveState.RUNNING


async def test_an_agent_that_dies_ends_its_execution_within_a_moment(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="fail")

        ended = await services.queue.wait(execution.id)

        assert (ended.status, ended.exit_code, ended.activity) == (ExecutionStatus.FAILED, 1, None)


@pytest.mark.proof
async def test_an_agent_that_is_halted_from_outside_is_unknown_until_it_goes_on(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go")
        running = await until_note(services, execution, DONE)
        assert running.pid is not None
        os.kill(running.pid, signal.SIGSTOP)
        try:
            halted = await until_activity(services, execution, Activity.UNKNOWN)
        finally:
            os.kill(running.pid, signal.SIGCONT)

        assert halted.activity_note == "its process is halted"
        await until_note(services, execution, DONE)


@pytest.mark.proof
async def test_panes_that_a_person_opens_beside_the_agent_are_not_looked_at(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")
        await until_note(services, execution, "permission")
        ask_tmux(live_home, "split-window", "-t", f"=am-{execution.id}:", "sleep 600")
        ask_tmux(live_home, "rename-session", "-t", f"=am-{execution.id}", "mine")
        pane = ask_tmux(live_home, "list-panes", "-a", "-F", "#{?@agentmon_session,#{pane_id},}")
        ask_tmux(live_home, "send-keys", "-t", pane, "1")

        await until_note(services, execution, DONE)


@pytest.mark.proof
async def test_a_message_goes_the_same_way_once_the_turn_is_over(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "first")
        await until_note(services, execution, DONE)

        await services.conversations.send(execution.task_id, "- second;", actor=USER_ACTOR)
        await until(lambda: _has_received(live_home, 2))

        assert received(live_home) == ["first", "- second;"]
        await until_note(services, execution, DONE)


@pytest.mark.proof
async def test_a_worker_that_dies_in_between_types_nothing_twice(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "once\nonly", deaf_s=0.5)
        await until_started(services, execution)
        for _ in range(3):
            live_home.kill_worker()
            await services.workers.ensure_running()

        await until_note(services, execution, DONE)

        assert received(live_home) == ["once\nonly"]


@pytest.mark.proof
@pytest.mark.parametrize("name", ["deliveries.json", "deliveries.json.partial"])
async def test_a_file_that_an_agent_replaced_by_a_pipe_holds_up_no_other_screen_and_no_next_worker(
    live_home: LiveHome, name: str
) -> None:
    async with open_services() as services:
        bad = await start_stub(services, live_home, "first")
        good = await start_stub(services, live_home, "first", name="other")
        await until(lambda: _has_received(live_home, 1, "other"))
        await until_note(services, bad, DONE)
        replaced = live_home.paths.execution_dir(bad.id) / name
        replaced.unlink(missing_ok=True)
        os.mkfifo(replaced)
        await services.conversations.send(bad.task_id, "to the bad one", actor=USER_ACTOR)

        await services.conversations.send(good.task_id, "second", actor=USER_ACTOR)
        await until(lambda: _has_received(live_home, 2, "other"))
        live_home.kill_worker()
        await services.workers.ensure_running()
        await services.conversations.send(good.task_id, "third", actor=USER_ACTOR)
        await until(lambda: _has_received(live_home, 3, "other"))


@pytest.mark.proof
async def test_a_conversation_that_is_finished_ends_well_also_when_its_agent_says_goodbye_and_stays(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTMON_WORKER_GRACE_S", "1")
    async with open_services() as services:
        runs = [
            await start_stub(services, live_home, "go", name="leaves"),
            await start_stub(services, live_home, "go", name="stays", turn="bye"),
        ]
        for run in runs:
            await until_note(services, run, DONE)

        for run in runs:
            await services.conversations.finish(run.task_id, actor=USER_ACTOR)
        ended = [await services.queue.wait(run.id) for run in runs]

        assert [one.status for one in ended] == [ExecutionStatus.SUCCEEDED] * 2


@pytest.mark.proof
async def test_a_conversation_that_is_finished_while_its_agent_asks_waits_for_the_answer(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")
        other = await start_stub(services, live_home, "go", name="other")
        await until_note(services, execution, "permission")
        await until_note(services, other, DONE)
        await services.conversations.finish(execution.task_id, actor=USER_ACTOR)
        # What comes after it has gone all its way.
        await services.conversations.finish(other.task_id, actor=USER_ACTOR)
        assert (await services.queue.wait(other.id)).end_reason is EndReason.FINISHED

        type_into(live_home, execution, "1")
        ended = await services.queue.wait(execution.id)

        assert (ended.status, ended.end_reason) == (ExecutionStatus.SUCCEEDED, EndReason.FINISHED)
        assert "allowed" in (live_home.paths.execution_dir(execution.id) / "output.log").read_text()


@pytest.mark.proof
async def test_the_event_says_what_decided(live_home: LiveHome) -> None:
    async with open_services() as services:
        execution = await start_stub(services, live_home, "go", turn="ask")
        await until_note(services, execution, "permission: touch it")

        event = (await services.conversations.events(execution_id=execution.id))[-1]

        assert event.type == "status_change"
        assert event.payload["source"] == "rule stub/permission"
        assert str(event.payload["where"]).startswith(str(live_home.paths.config_dir / "screens" / "stub.toml:"))


async def _has_received(home: LiveHome, count: int, name: str = "stub") -> bool:
    return len(received(home, name)) >= count


async def _a_look(services: Services, execution: Execution) -> None:
    """Wait until the stub has drawn again."""
    before = (await services.executions.get(execution.id)).log_byte_size
    log = services.paths.execution_dir(execution.id) / "output.log"
    size = log.stat().st_size

    async def has_grown() -> bool:
        return log.stat().st_size > size

    await until(has_grown, f"output after {before} bytes", deadline_s=DEADLINE_S)
