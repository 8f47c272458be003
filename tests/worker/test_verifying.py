"""Work that has to pass something, with a real worker: run after the end, sent back, stopped, killed in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.agent_changes import AgentChanges
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.live_state import LiveState
from agentmon.domain.operations import MessageRole
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft, draft_of
from agentmon.domain.verifications import Verdict, VerificationStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from agentmon.worker.presence import read_presence
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import DEADLINE_S, until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from tests.live_home import LiveHome

_SECOND_TIME = "echo again >> tries; echo 'one test failed' >&2; test $(wc -l < tries) -ge 2"
_HANGING = "echo begun; touch begun; sleep 1000 & wait"


async def _agent_task(services: Services, workspace: Workspace, **context: object) -> Task:
    await services.agents.add(make_demo_agent(pace_s=0))
    agent = await services.agents.by_slug(DEMO_AGENT_SLUG)
    draft = TaskDraft(
        title="hello",
        assignee_agent_id=agent.id,
        input_context=InputContext(**context),  # type: ignore[arg-type]  # named by tests
    )
    return await services.tasks.add(workspace, draft, actor=USER_ACTOR)


async def _until_over(services: Services, task: Task, count: int) -> tuple[Execution, ...]:
    """Return the runs of the task, oldest first, when there are so many and all are over."""

    async def are_over() -> bool:
        runs = await services.executions.of_task(task.id)
        return len(runs) >= count and not any(run.status.is_open for run in runs)

    await until(are_over)
    return tuple(reversed(await services.executions.of_task(task.id)))


async def _status(services: Services, task: Task) -> TaskStatus:
    return (await services.tasks.get(task.id)).status


async def _until_verifying(services: Services, run: Execution) -> Execution:
    async def is_verifying() -> bool:
        return (await services.executions.get(run.id)).live_state is LiveState.VERIFYING

    await until(is_verifying)
    return await services.executions.get(run.id)


async def test_a_run_counts_when_its_work_has_passed_in_its_folder_with_its_environment(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        check = 'pwd; echo "$MODE $AGENTMON_EXECUTION_ID"; test -e made'
        task = await add_command(services, workspace, "touch", "made", verify=check, env_overrides={"MODE": "fast"})
        waiting = await add_command(services, workspace, "true", title="later")
        await services.tasks.add_dependency(waiting.id, task.number, actor=USER_ACTOR)
        ended = await run_to_end(services, task)
        verification = await services.verifications.newest(task, ended)
        status, released = await _status(services, task), await _status(services, waiting)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.SUCCEEDED, EndReason.EXITED)
    assert ended.verification == Verdict(VerificationStatus.PASSED, check, verification.took_ms)
    assert (verification.status, verification.exit_code, verification.attempt) == (VerificationStatus.PASSED, 0, 1)
    assert Path(verification.log_path).read_text().splitlines() == [str(live_home.project), f"fast {ended.id}"]
    assert Path(verification.log_path).parent == live_home.paths.execution_dir(ended.id)
    assert (status, released) == (TaskStatus.DONE, TaskStatus.TODO)


async def test_a_program_whose_work_does_not_pass_has_failed_and_releases_nothing(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true", verify="echo no; exit 3", max_retries=2)
        waiting = await add_command(services, workspace, "true", title="later")
        await services.tasks.add_dependency(waiting.id, task.number, actor=USER_ACTOR)
        ended = await run_to_end(services, task)
        verification = await services.verifications.newest(task, ended)
        runs = await services.executions.of_task(task.id)
        status, held = await _status(services, task), await _status(services, waiting)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED)
    assert (ended.exit_code, ended.attempt, len(runs)) == (0, 0, 1)
    assert ended.error == verification.failure
    assert (verification.status, verification.exit_code) == (VerificationStatus.FAILED, 3)
    assert (status, held) == (TaskStatus.BLOCKED, TaskStatus.BLOCKED)


async def test_an_agent_gets_the_end_of_the_output_and_goes_on_in_the_same_conversation(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.settings.set("workspace.verify", _SECOND_TIME, actor=USER_ACTOR, workspace=workspace)
        task = await _agent_task(services, workspace)
        await services.queue.run(task.id, actor=USER_ACTOR)
        first, second = await _until_over(services, task, 2)
        status = await _status(services, task)
        log = (await services.verifications.newest(task, first)).log_path

    assert (first.status, first.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED)
    assert (second.status, second.verify_retry) == (ExecutionStatus.SUCCEEDED, 1)
    assert (second.session_id, second.parent_execution_id) == (first.session_id, first.id)
    assert second.session_ref == first.session_ref
    assert "one test failed" in (second.prompt or "")
    assert _SECOND_TIME in (second.prompt or "")
    assert "one test failed" in Path(log).read_text()
    assert status is TaskStatus.DONE


@pytest.mark.proof
async def test_an_agent_is_sent_back_as_often_as_the_task_says_and_then_a_person_decides(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await _agent_task(services, workspace, verify="exit 1", verify_retries=2)
        await services.queue.run(task.id, actor=USER_ACTOR)
        runs = await _until_over(services, task, 3)
        status = await _status(services, task)
        streak = (await services.agents.by_slug(DEMO_AGENT_SLUG)).failure_streak
        sent = await services.conversations.send(task.id, "try again", actor=USER_ACTOR)
        begun = sent.execution.verify_retry
        await _until_over(services, task, 6)

    assert [run.verify_retry for run in runs] == [0, 1, 2]
    assert {run.end_reason for run in runs} == {EndReason.UNVERIFIED}
    assert status is TaskStatus.BLOCKED
    assert begun == 0, "a person's message begins anew"
    assert streak == 0, "no fault of the program"


async def test_a_message_that_comes_while_the_work_is_verified_begins_the_next_run(live_home: LiveHome) -> None:
    check = "touch begun; while [ ! -e said ]; do sleep 0.05; done"
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await _agent_task(services, workspace, verify=check)
        run = await services.queue.run(task.id, actor=USER_ACTOR)
        await _until_verifying(services, run)
        sent = await services.conversations.send(task.id, "one more thing", actor=USER_ACTOR)
        (live_home.project / "said").touch()
        first, second = await _until_over(services, task, 2)
        status = await _status(services, task)
        said = await services.conversations.messages(first.session_id) if first.session_id else ()

    assert sent.execution.id == first.id == run.id
    assert (first.status, second.status) == (ExecutionStatus.SUCCEEDED, ExecutionStatus.SUCCEEDED)
    assert (second.parent_execution_id, second.session_id) == (first.id, first.session_id)
    assert second.prompt == "one more thing"
    assert [message.content for message in said if message.role is MessageRole.USER][-1] == "one more thing"
    assert status is TaskStatus.DONE


@pytest.mark.proof
async def test_the_nearest_word_counts_and_an_empty_one_means_none(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.agents.add(make_demo_agent(pace_s=0))
        await services.agents.edit(DEMO_AGENT_SLUG, AgentChanges(verify="touch agent"), actor=USER_ACTOR)
        await services.settings.set("workspace.verify", "touch workspace", actor=USER_ACTOR, workspace=workspace)
        agent = await services.agents.by_slug(DEMO_AGENT_SLUG)
        made = []
        for word in ("touch task", None, ""):
            draft = TaskDraft(title="hi", assignee_agent_id=agent.id, input_context=InputContext(verify=word))
            task = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
            ended = await run_to_end(services, task)
            made.append({file.name for file in live_home.project.iterdir()})
            assert ended.status is ExecutionStatus.SUCCEEDED
            for file in live_home.project.iterdir():
                file.unlink()
        tool = await run_to_end(services, await add_command(services, workspace, "true"))

    assert made == [{"task"}, {"agent"}, set()]
    assert tool.verification is None, "that of a workspace is for AI agents"


async def test_a_kill_in_the_middle_is_finished_by_the_next_worker_and_ends_what_the_first_left_running(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        check = 'echo "$$" >> pids; echo begun; test $(wc -l < pids) -ge 2 || { sleep 1000 & wait; }'
        task = await add_command(services, workspace, "true", verify=check)
        run = await services.queue.run(task.id, actor=USER_ACTOR)
        await _until_verifying(services, run)
        pids = live_home.project / "pids"
        log = live_home.paths.executions_dir / run.id / "verification-1.log"
        await until(lambda: asyncio.to_thread(lambda: log.exists() and "begun" in log.read_text()))
        live_home.kill_worker()
        assert marked_processes(run.id), "it outlives its worker"
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(run.id)
        verification = await services.verifications.newest(task, ended)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert (verification.status, verification.attempt) == (VerificationStatus.PASSED, 1)
    assert len(pids.read_text().splitlines()) == 2
    assert Path(verification.log_path).read_text().count("begun") == 2
    assert not marked_processes(run.id)


async def test_a_stop_ends_the_verification_and_the_run_has_not_succeeded(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true", verify=_HANGING)
        run = await services.queue.run(task.id, actor=USER_ACTOR)
        await _until_verifying(services, run)
        await services.queue.stop(task.id, actor=USER_ACTOR)
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(run.id)
        status = await _status(services, task)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.CANCELLED, EndReason.STOPPED)
    assert ended.verification is not None
    assert ended.verification.status is VerificationStatus.STOPPED
    assert status is TaskStatus.TODO
    assert not marked_processes(run.id)


async def test_a_worker_that_is_replaced_in_the_middle_leaves_it_to_the_next(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        check = "echo x >> tries; test $(wc -l < tries) -ge 2 || sleep 1000"
        task = await add_command(services, workspace, "true", verify=check)
        run = await services.queue.run(task.id, actor=USER_ACTOR)
        await _until_verifying(services, run)
        tries = live_home.project / "tries"
        await until(lambda: asyncio.to_thread(tries.exists))
        pid = read_presence(live_home.paths.worker_lock).pid
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        await until(lambda: asyncio.to_thread(lambda: read_presence(live_home.paths.worker_lock).pid != pid))
        async with asyncio.timeout(DEADLINE_S):
            ended = await services.queue.wait(run.id)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert len(tries.read_text().splitlines()) == 2
    assert not marked_processes(run.id)


@pytest.mark.proof
async def test_what_was_verified_by_hand_and_killed_is_settled_at_the_next_start(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true")
        ended = await run_to_end(services, task)
        await _set_verify(services, task, _HANGING)
        live_home.kill_worker()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agentmon", "verify", str(task.number), "-C", str(live_home.project)),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await until(lambda: asyncio.to_thread((live_home.project / "begun").exists))
        process.kill()
        await process.wait()
        cut_off = await services.executions.get(ended.id)
        await services.workers.ensure_running()

        async def is_settled() -> bool:
            return (await services.verifications.newest(task, ended)).status is VerificationStatus.STOPPED

        await until(is_settled)
        after = await services.executions.get(ended.id)

    assert cut_off.verification is not None
    assert cut_off.verification.status is VerificationStatus.RUNNING
    assert after.verification is not None
    assert after.verification.status is VerificationStatus.STOPPED
    assert after.status is ExecutionStatus.SUCCEEDED
    assert not marked_processes(ended.id)


async def _set_verify(services: Services, task: Task, command: str) -> None:
    present = await services.tasks.get(task.id)
    draft = replace(draft_of(present), input_context=replace(present.input_context, verify=command))
    await services.tasks.edit(task.id, draft, expected_version=present.version, actor=USER_ACTOR)


async def test_what_takes_too_long_has_not_passed(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.settings.set("verification.timeout_s", "1", actor=USER_ACTOR)
        task = await add_command(services, workspace, "true", verify=_HANGING)
        ended = await run_to_end(services, task)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED)
    assert ended.verification is not None
    assert ended.verification.status is VerificationStatus.TIMED_OUT
    assert not marked_processes(ended.id)


@pytest.mark.proof
async def test_a_project_s_command_runs_only_as_it_was_trusted(live_home: LiveHome) -> None:
    file = live_home.project / ".agentmon" / "agents.toml"
    file.parent.mkdir()
    file.write_text('[verification]\ncommand = "touch verified"\n')
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await _agent_task(services, workspace)
        untrusted = await run_to_end(services, task)
        blocked = await _status(services, task)
        state = await services.agent_files.state(workspace)
        await services.agent_files.trust(workspace, state.digest, actor=USER_ACTOR)
        trusted = await run_to_end(services, task)
        file.write_text('[verification]\ncommand = "touch more"\n')
        changed = await run_to_end(services, task)

    assert state.verification == "touch verified"
    assert [run.status for run in (untrusted, trusted, changed)] == [
        *(ExecutionStatus.FAILED, ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED),
    ]
    assert {untrusted.end_reason, changed.end_reason} == {EndReason.UNVERIFIED}
    assert str(file) in (untrusted.error or "")
    assert blocked is TaskStatus.BLOCKED
    assert (live_home.project / "verified").exists()
    assert not (live_home.project / "more").exists()


async def test_a_run_that_is_over_is_verified_by_hand_and_stays_as_it_is(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await services.workspaces.open(live_home.project)
        task = await add_command(services, workspace, "true", verify="echo out; test -e ok")
        ended = await run_to_end(services, task)
        (live_home.project / "ok").touch()
        said = bytearray()
        command = await services.verifications.command(task, ended)
        again = await services.verifications.verify(task, ended, command, actor=USER_ACTOR, on_output=said.extend)
        after = await services.executions.get(ended.id)
        status = await _status(services, task)
        other = await add_command(services, workspace, "sleep", "1000")
        running = await until_started(services, await services.queue.run(other.id, actor=USER_ACTOR))
        with pytest.raises(ConflictError):
            await services.verifications.verify(other, running, "true", actor=USER_ACTOR)
        with pytest.raises(UsageError):
            await services.verifications.command(other, running)

    assert ended.end_reason is EndReason.UNVERIFIED
    assert (again.status, again.attempt, bytes(said)) == (VerificationStatus.PASSED, 2, b"out\n")
    assert (after.status, after.end_reason) == (ExecutionStatus.FAILED, EndReason.UNVERIFIED)
    assert after.verification is not None
    assert after.verification.status is VerificationStatus.PASSED
    assert status is TaskStatus.BLOCKED
