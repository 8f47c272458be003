from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.clock import FakeClock
from agentmon.domain.errors import UsageError
from agentmon.domain.events import Actor, ActorType, TaskEventType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, Schedule, TaskDraft, draft_of
from agentmon.services.actors import USER_ACTOR
from agentmon.store.agent_files import AgentFileRepository
from agentmon.store.agents import AgentRepository
from agentmon.store.moments import moment_text
from agentmon.store.schedules import ScheduleRepository
from agentmon.store.task_authors import TaskAuthorRepository
from agentmon.store.workspaces import WorkspaceRepository
from agentmon.worker.project_folders import find_project
from agentmon.worker.scheduling import Scheduler
from tests.stored_runs import stored
from tests.waiting import until
from tests.worker.test_watching import running_loop

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome
    from tests.stored_runs import Stored

DAILY = Schedule(cron="30 7 * * *", zone="Europe/Berlin")


async def add_scheduled(services: Services, workspace: Workspace, schedule: Schedule) -> Task:
    agent = await services.agents.by_slug("command")
    draft = TaskDraft(
        title="a daily task",
        assignee_agent_id=agent.id,
        input_context=InputContext(args={"argv": ["true"]}),
        schedule=schedule,
    )
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)


def scheduler_of(place: Stored, clock: FakeClock) -> Scheduler:
    database = place.services.database
    return Scheduler(
        schedules=ScheduleRepository(database),
        agents=AgentRepository(database),
        agent_files=AgentFileRepository(database),
        workspaces=WorkspaceRepository(database),
        authors=TaskAuthorRepository(database),
        paths=place.services.paths,
        clock=clock,
    )


async def test_a_task_says_when_it_runs_next_in_the_zone_of_its_schedule(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)

        assert task.schedule == DAILY
        assert task.next_run_at is not None
        local = task.next_run_at.astimezone(ZoneInfo("Europe/Berlin"))
        assert (local.hour, local.minute) == (7, 30)
        assert timedelta(0) < task.next_run_at - datetime.now(UTC) <= timedelta(days=1, hours=1)


@pytest.mark.parametrize("saw_it_happen", [True, False])
async def test_a_clock_that_is_set_back_leaves_no_daily_task_to_rest_for_a_year(
    tmp_path: Path, *, saw_it_happen: bool
) -> None:
    now = datetime.now(UTC)
    clock = FakeClock(now + timedelta(days=365))
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)
        with closing(sqlite3.connect(place.services.database.path)) as connection, connection:
            next_year = moment_text(now + timedelta(days=366))
            connection.execute("UPDATE tasks SET next_run_at = ?", (next_year,))
        scheduler = scheduler_of(place, clock)
        if saw_it_happen:
            await scheduler.queue_due()
        clock.move(timedelta(days=-365))

        await scheduler.queue_due()

        assert (await place.services.tasks.get(task.id)).next_run_at == task.next_run_at


async def test_a_clock_that_steps_forth_and_back_skips_no_time_and_repeats_none(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)
        due = task.next_run_at
        assert due is not None
        clock = FakeClock(due - timedelta(hours=1))
        scheduler = scheduler_of(place, clock)
        await scheduler.look()
        assert not await scheduler.queue_due()

        clock.move(timedelta(hours=2))
        assert await scheduler.queue_due()
        (run,) = await place.services.executions.of_task(task.id)
        place.set_status(run.id, ExecutionStatus.SUCCEEDED)
        clock.move(timedelta(hours=-2))
        assert not await scheduler.queue_due()
        clock.move(timedelta(hours=1, minutes=5))
        assert not await scheduler.queue_due()

        assert len(await place.services.executions.of_task(task.id)) == 1
        clock.move(timedelta(days=1))
        assert await scheduler.queue_due()
        assert len(await place.services.executions.of_task(task.id)) == 2


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule(cron="61 * * * *", zone="UTC"),
        Schedule(cron="* * *", zone="UTC"),
        Schedule(cron="0 0 30 2 *", zone="UTC"),
        Schedule(cron="@daily", zone="Europe/Berlni"),
    ],
)
async def test_a_schedule_that_cannot_be_read_is_refused(tmp_path: Path, schedule: Schedule) -> None:
    async with stored(tmp_path) as place:
        with pytest.raises(UsageError):
            await add_scheduled(place.services, place.workspace, schedule)

        assert await place.services.tasks.list(place.workspace) == ()


@pytest.mark.parametrize("author", list(ActorType))
async def test_a_dangerous_command_that_an_agent_wrote_waits_when_its_time_comes(
    tmp_path: Path, author: ActorType
) -> None:
    async with stored(tmp_path) as place:
        services = place.services
        task = await add_scheduled(services, place.workspace, DAILY)
        draft = replace(draft_of(task), input_context=InputContext(args={"argv": ["rm", "-rf", "src"]}))
        earlier = await place.add_run(task.id, ExecutionStatus.SUCCEEDED)
        task = await services.tasks.get(task.id)
        actor = Actor(type=author, id=earlier.id)
        await services.tasks.edit(task.id, draft, expected_version=task.version, actor=actor)
        clock = FakeClock(datetime.now(UTC) + timedelta(days=2))
        scheduler = scheduler_of(place, clock)
        await scheduler.look()

        assert await scheduler.queue_due()

        (run,) = [one for one in await services.executions.of_task(task.id) if one.id != earlier.id]
        assert run.is_held is (author is ActorType.AGENT)


async def test_times_that_were_missed_run_once(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)
        assert task.next_run_at is not None
        clock = FakeClock(task.next_run_at + timedelta(days=10, hours=1))
        scheduler = scheduler_of(place, clock)
        await scheduler.look()

        assert await scheduler.queue_due()
        assert not await scheduler.queue_due()

        runs = await place.services.executions.of_task(task.id)
        assert [run.status for run in runs] == [ExecutionStatus.QUEUED]
        moved_on = await place.services.tasks.get(task.id)
        assert moved_on.next_run_at is not None
        assert timedelta(0) < moved_on.next_run_at - clock.now() <= timedelta(days=1)
        queued = [
            event
            for event in await place.services.audit.of_task(task.id)
            if event.event_type is TaskEventType.EXECUTION_QUEUED
        ]
        assert [event.actor.type for event in queued] == [ActorType.SYSTEM]


async def test_a_time_that_comes_while_the_last_run_goes_on_is_passed_over_and_told(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)
        await place.add_run(task.id, ExecutionStatus.RUNNING)
        assert task.next_run_at is not None
        scheduler = scheduler_of(place, FakeClock(task.next_run_at))
        await scheduler.look()

        assert await scheduler.queue_due()

        assert len(await place.services.executions.of_task(task.id)) == 1
        last = (await place.services.audit.of_task(task.id))[-1]
        assert last.event_type is TaskEventType.SCHEDULE_PASSED_OVER
        assert last.payload["reason"] == "it is still running"


async def test_a_time_is_passed_over_when_the_file_of_its_agent_has_changed(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        services, workspace = place.services, place.workspace
        file = Path(workspace.root_path) / ".agentmon" / "agents.toml"
        file.parent.mkdir(parents=True)
        file.write_text(
            '[[agent]]\nslug = "calm"\nname = "Calm"\nbinary = "true"\n'
            '[[agent.capability]]\nkey = "rest"\nlabel = "Rest"\ncommand_tokens = []\n'
        )
        seen = await services.agent_files.state(workspace)
        await services.agent_files.trust(workspace, seen.digest, actor=USER_ACTOR)
        calm = await services.agents.by_slug("calm")
        draft = TaskDraft(title="rest daily", assignee_agent_id=calm.id, schedule=DAILY)
        task = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
        assert task.next_run_at is not None
        clock = FakeClock(task.next_run_at)
        scheduler = scheduler_of(place, clock)
        await scheduler.look()

        await scheduler.queue_due()
        await services.queue.stop(task.id, actor=USER_ACTOR)
        file.write_text(file.read_text() + "# more\n")
        clock.move(timedelta(days=1, hours=1))
        await scheduler.queue_due()

        assert len(await services.executions.of_task(task.id)) == 1
        last = (await services.audit.of_task(task.id))[-1]
        assert last.event_type is TaskEventType.SCHEDULE_PASSED_OVER
        assert "has changed since you trusted it" in str(last.payload["reason"])


async def test_two_workers_queue_a_due_task_once(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        task = await add_scheduled(place.services, place.workspace, DAILY)
        assert task.next_run_at is not None
        clock = FakeClock(task.next_run_at)
        schedulers = [scheduler_of(place, clock) for _ in range(2)]
        for scheduler in schedulers:
            await scheduler.look()

        for scheduler in schedulers:
            await scheduler.queue_due()

        assert len(await place.services.executions.of_task(task.id)) == 1


async def test_a_task_without_a_program_is_passed_over_and_told(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        draft = TaskDraft(title="no program", schedule=DAILY)
        task = await place.services.tasks.add(place.workspace, draft, actor=USER_ACTOR)
        assert task.next_run_at is not None
        scheduler = scheduler_of(place, FakeClock(task.next_run_at))
        await scheduler.look()

        await scheduler.queue_due()

        last = (await place.services.audit.of_task(task.id))[-1]
        assert last.payload["reason"] == "it has no program to run"


async def test_a_living_worker_runs_a_task_when_its_time_comes(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_scheduled(services, workspace, DAILY)
        with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
            past = moment_text(datetime.now(UTC) - timedelta(days=3))
            connection.execute("UPDATE tasks SET next_run_at = ?", (past,))
        await services.workers.ensure_running()

        async def is_done() -> bool:
            return (await services.tasks.get(task.id)).status is TaskStatus.DONE

        await until(is_done)
        runs = await services.executions.of_task(task.id)

    assert [run.status for run in runs] == [ExecutionStatus.SUCCEEDED]


@pytest.mark.proof
async def test_a_folder_that_does_not_answer_holds_up_no_other_schedule_and_no_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, folder = threading.Event(), tmp_path / "dead"
    folder.mkdir()

    def find(named: str) -> str:
        if named == str(folder):
            answers.wait()
        return find_project(named)

    monkeypatch.setattr("agentmon.worker.scheduling.find_project", find)
    async with stored(tmp_path) as place:
        services = place.services
        agent = await services.agents.by_slug("command")
        drafts = [
            TaskDraft(
                title=title,
                assignee_agent_id=agent.id,
                input_context=InputContext(working_dir=working_dir, args={"argv": ["true"]}),
                schedule=DAILY,
            )
            for title, working_dir in (("dead", str(folder)), ("alive", ""))
        ]
        dead, alive = [await services.tasks.add(place.workspace, draft, actor=USER_ACTOR) for draft in drafts]
        plain = await place.add_task("plain", "true")
        queued = await place.add_run(plain.id, ExecutionStatus.QUEUED)
        with closing(sqlite3.connect(services.paths.database_path)) as connection, connection:
            connection.execute(
                "UPDATE tasks SET next_run_at = '2026-01-01T00:00:00.000Z' WHERE next_run_at IS NOT NULL"
            )

        async def is_claimed() -> bool:
            return (await services.executions.get(queued.id)).status is not ExecutionStatus.QUEUED

        async def is_queued(task: Task) -> bool:
            return bool(await services.executions.of_task(task.id, limit=1))

        try:
            async with running_loop(place) as loop:
                monkeypatch.setattr(loop._hosts, "_start_apart", lambda *_: None)
                await until(is_claimed)
                await until(lambda: is_queued(alive))

                async def says_so() -> bool:
                    return any(f"#{dead.number}" in state.problem for state in loop._supervisor.states)

                await until(says_so)
                assert not await is_queued(dead)
                answers.set()
                await until(lambda: is_queued(dead))
        finally:
            answers.set()
