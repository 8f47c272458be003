from __future__ import annotations

import asyncio
import hashlib
import os
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.errors import AgentNotInstalledError, ArgumentsError, ConflictError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.services.actors import USER_ACTOR
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import until

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome


async def test_a_run_leaves_its_output_its_exit_code_and_its_history(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "sh", "-c", "echo one; echo two >&2; exit 3")

    execution = await run_to_end(services, task)

    assert execution.status is ExecutionStatus.FAILED
    assert (execution.exit_code, execution.error) == (3, "exit 3: two")
    assert services.executions.log_path(execution).read_bytes() == b"one\ntwo\n"
    assert (execution.log_byte_size, execution.log_line_count, execution.last_line) == (8, 2, "two")
    assert (await services.tasks.get(task.id)).status is TaskStatus.BLOCKED
    history = [entry.event_type.value for entry in await services.audit.of_task(task.id)]
    assert history == [
        "task_created",
        "execution_queued",
        "execution_started",
        "task_moved",
        "execution_ended",
        "task_moved",
    ]
    entries = [event.payload["entry"] for event in await services.executions.events(execution.id)]
    assert entries == ["host_started", "agent_started", "exited", "ended"]


async def test_a_successful_run_moves_its_card_to_done(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "true")

    execution = await run_to_end(services, task)

    assert execution.status is ExecutionStatus.SUCCEEDED
    assert (await services.tasks.get(task.id)).status is TaskStatus.DONE


async def test_a_stopped_run_leaves_no_process_and_its_card_is_to_do_again(
    services: Services, workspace: Workspace
) -> None:
    script = "trap '' TERM; (setsid sleep 300 &) ; echo ready; sleep 300"
    await services.settings.set("worker.grace_s", "0.3", actor=services.actor)
    task = await add_command(services, workspace, "sh", "-c", script)
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    log = services.executions.log_path(execution)
    await until(lambda: _reads(log, b"ready\n"))

    asked = await services.queue.stop(task.id, actor=USER_ACTOR)
    ended = await services.queue.wait(execution.id)

    assert asked.status is ExecutionStatus.CANCELLING
    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []
    assert (await services.tasks.get(task.id)).status is TaskStatus.TODO


async def test_who_acts_is_settled_where_the_process_starts(
    services: Services, workspace: Workspace, live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await add_command(services, workspace, "sleep", "300")
    execution = await services.queue.run(task.id, actor=services.actor)
    actors = []
    for marker in (execution.id, "of another place"):
        monkeypatch.setenv("AGENTMON_EXECUTION_ID", marker)
        async with open_services(live_home.paths) as inside:
            monkeypatch.delenv("AGENTMON_EXECUTION_ID")
            actors.append(inside.actor)

    assert services.actor == USER_ACTOR
    assert actors == [Actor(type=ActorType.AGENT, id=execution.id), USER_ACTOR]


async def test_a_second_run_of_a_running_task_is_refused(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "sleep", "300")
    starts = [services.queue.run(task.id, actor=USER_ACTOR) for _ in range(5)]

    outcomes = await asyncio.gather(*starts, return_exceptions=True)

    refused = [outcome for outcome in outcomes if isinstance(outcome, ConflictError)]
    assert len(refused) == 4
    assert "already" in str(refused[0])
    assert len(await services.executions.of_task(task.id)) == 1
    await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)


@pytest.mark.proof
async def test_a_failed_run_is_tried_again_as_often_as_allowed(services: Services, workspace: Workspace) -> None:
    task = await add_command(
        services, workspace, "sh", "-c", "echo x >> tries; test $(wc -l < tries) -ge 2", max_retries=3
    )

    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert ended.retry_count == 1
    assert (Path(workspace.root_path) / "tries").read_text() == "x\nx\n"
    folder = services.paths.execution_dir(execution.id)
    assert (folder / "try-1" / "journal.jsonl").exists()


async def test_a_task_that_waits_for_an_open_one_does_not_start(services: Services, workspace: Workspace) -> None:
    first = await add_command(services, workspace, "true")
    second = await add_command(services, workspace, "true")
    await services.tasks.add_dependency(second.id, first.number, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match=f"#{second.number} waits for #{first.number}"):
        await services.queue.run(second.id, actor=USER_ACTOR)
    blocked = (await services.tasks.get(second.id)).status
    await run_to_end(services, first)

    assert blocked is TaskStatus.BLOCKED
    assert (await services.tasks.get(second.id)).status is TaskStatus.TODO
    assert (await run_to_end(services, second)).status is ExecutionStatus.SUCCEEDED


@pytest.mark.parametrize(
    ("argv", "error", "words"),
    [
        (["no-such-program-here"], AgentNotInstalledError, "not on the PATH"),
        (["./missing.sh"], AgentNotInstalledError, "there is no program"),
        (["/etc/passwd"], AgentNotInstalledError, "cannot be executed"),
        ([], ArgumentsError, "argv"),
        (["a\0b"], ArgumentsError, "NUL"),
    ],
)
async def test_a_start_that_cannot_work_is_refused_with_the_reason(
    services: Services, workspace: Workspace, argv: list[str], error: type[Exception], words: str
) -> None:
    task = await add_command(services, workspace, *argv)

    with pytest.raises(error, match=words):
        await services.queue.run(task.id, actor=USER_ACTOR)

    assert await services.executions.of_task(task.id) == ()
    assert not services.paths.executions_dir.exists() or not list(services.paths.executions_dir.iterdir())


async def test_a_working_folder_that_vanished_is_named(
    services: Services, workspace: Workspace, tmp_path: Path
) -> None:
    task = await add_command(services, workspace, "true", working_dir=str(tmp_path / "gone"))

    with pytest.raises(UsageError, match="gone"):
        await services.queue.run(task.id, actor=USER_ACTOR)


async def test_a_folder_that_vanishes_between_queue_and_start_fails_the_run_with_that_reason(
    services: Services, workspace: Workspace, tmp_path: Path
) -> None:
    folder = tmp_path / "soon gone"
    folder.mkdir()
    await services.settings.set("worker.max_running", "1", actor=services.actor)
    holder = await add_command(services, workspace, "sleep", "300")
    held = await services.queue.run(holder.id, actor=USER_ACTOR)
    await until_started(services, held)
    task = await add_command(services, workspace, "true", working_dir=str(folder))
    execution = await services.queue.run(task.id, actor=USER_ACTOR)
    folder.rmdir()

    await services.queue.stop(holder.id, actor=USER_ACTOR, kill=True)
    ended = await services.queue.wait(execution.id)

    assert ended.status is ExecutionStatus.FAILED
    assert "soon gone" in (ended.error or "")


async def test_a_queued_run_that_is_stopped_never_starts(services: Services, workspace: Workspace) -> None:
    await services.settings.set("worker.max_running", "1", actor=services.actor)
    holder = await add_command(services, workspace, "sleep", "300")
    held = await services.queue.run(holder.id, actor=USER_ACTOR)
    await until_started(services, held)
    task = await add_command(services, workspace, "touch", "started")
    execution = await services.queue.run(task.id, actor=USER_ACTOR)

    stopped = await services.queue.stop(task.id, actor=USER_ACTOR)
    await services.queue.stop(holder.id, actor=USER_ACTOR, kill=True)
    await services.queue.wait(held.id)
    last = await add_command(services, workspace, "true")
    await run_to_end(services, last)

    assert stopped.status is ExecutionStatus.CANCELLED
    assert (await services.executions.get(execution.id)).status is ExecutionStatus.CANCELLED
    assert not (Path(workspace.root_path) / "started").exists()


async def test_never_more_runs_are_live_than_the_limit_allows(services: Services, workspace: Workspace) -> None:
    await services.settings.set("worker.max_running", "2", actor=services.actor)
    script = 'mkdir "live-$$"; ls -d live-* | wc -l >> seen; sleep 0.1; rmdir "live-$$"'
    tasks = [await add_command(services, workspace, "sh", "-c", script) for _ in range(8)]

    executions = [await services.queue.run(task.id, actor=USER_ACTOR) for task in tasks]
    ended = [await services.queue.wait(execution.id) for execution in executions]

    assert {execution.status for execution in ended} == {ExecutionStatus.SUCCEEDED}
    seen = [int(line) for line in (Path(workspace.root_path) / "seen").read_text().split()]
    assert len(seen) == 8
    assert max(seen) <= 2


async def test_what_a_shell_would_expand_reaches_the_program_letter_for_letter(
    services: Services, workspace: Workspace
) -> None:
    words = ["' \" ` $(touch X) ${HOME} ! \\", "two\nlines", "- [ ] do it", "--help", "do x;", "ü-漢-🙂", "#{pane_pid}"]
    task = await add_command(services, workspace, "printf", "%s\\0", *words, title="$(touch X) #(touch X) `touch X`")

    execution = await run_to_end(services, task)

    printed = services.executions.log_path(execution).read_bytes()
    assert printed.decode().split("\0")[:-1] == words
    assert not list(Path(workspace.root_path).glob("X"))


@pytest.mark.parametrize("name", ["My Project", "it's", "ü-漢", "-dash", "trailing ", "new\nline", "#{pane_id}", "a;b"])
async def test_a_run_is_in_its_folder_whatever_the_folder_is_called(
    services: Services, live_home: LiveHome, name: str
) -> None:
    root = live_home.folder / name
    root.mkdir()
    workspace = await services.workspaces.open(root)
    task = await add_command(services, workspace, "pwd", "-P")

    execution = await run_to_end(services, task)

    assert services.executions.log_path(execution).read_bytes() == os.fsencode(root) + b"\n"


async def test_binary_output_is_recorded_byte_for_byte(
    services: Services, workspace: Workspace, tmp_path: Path
) -> None:
    source = tmp_path / "noise"
    noise = random.Random(1).randbytes(300_000)
    # A question is answered by the pane, and the program's terminal echoes the answer, as any terminal does.
    assert not re.search(rb"\x1b\[[^@-~]*[cn]", noise)
    source.write_bytes(noise + b"\r\n\n\r\x00" * 100)
    task = await add_command(services, workspace, "cat", str(source))

    execution = await run_to_end(services, task)

    recorded = services.executions.log_path(execution).read_bytes()
    assert hashlib.sha256(recorded).hexdigest() == hashlib.sha256(source.read_bytes()).hexdigest()


async def test_the_environment_is_that_of_who_ran_it_and_no_secret_slips_in(
    services: Services, workspace: Workspace
) -> None:
    await services.workers.ensure_running()
    environ = dict(os.environ) | {"LANG": "xx_XX", "DEPLOY_TOKEN": "sentinel-one", "PASSED_KEY": "sentinel-two"}
    # In one write with a last line of its own: the newest line of the output stands in the journal too.
    script = 'environment=$(env); printf "%s\\nend\\n" "$environment"'
    task = await add_command(
        services, workspace, "sh", "-c", script, env_passed=("PASSED_KEY",), env_overrides={"MODE": "a b;c"}
    )

    execution = await services.queue.run(task.id, actor=USER_ACTOR, environ=environ)
    ended = await services.queue.wait(execution.id)

    lines = services.executions.log_path(ended).read_text().splitlines()
    assert {"LANG=xx_XX", "PASSED_KEY=sentinel-two", "MODE=a b;c"} <= set(lines)
    assert not [line for line in lines if "sentinel-one" in line]
    folder = services.paths.execution_dir(execution.id)

    async def is_swept() -> bool:
        return not [*folder.glob("*environment.json"), *folder.glob("reserve")]

    # The end is recorded before the last files go.
    await until(is_swept)
    left = [path.name for path in folder.iterdir() if b"sentinel" in path.read_bytes()]
    assert left == ["output.log"]
    database = services.paths.database_path
    assert not [path for path in database.parent.glob(f"{database.name}*") if b"sentinel" in path.read_bytes()]


async def test_everything_that_is_written_is_for_its_owner_only(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "echo", "hi")

    execution = await run_to_end(services, task)

    folder = services.paths.execution_dir(execution.id)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert services.paths.database_path.stat().st_mode & 0o777 == 0o600
    assert services.paths.worker_log.stat().st_mode & 0o777 == 0o600


async def test_a_task_without_a_program_says_how_to_choose_one(services: Services, workspace: Workspace) -> None:
    task = await services.tasks.add(workspace, TaskDraft(title="think"), actor=USER_ACTOR)

    with pytest.raises(UsageError, match="no program") as caught:
        await services.queue.run(task.id, actor=USER_ACTOR)

    assert "agentmon task edit" in caught.value.hint


async def test_other_arguments_can_be_given_for_one_run(services: Services, workspace: Workspace) -> None:
    task = await add_command(services, workspace, "echo", "usual")

    execution = await services.queue.run(task.id, actor=USER_ACTOR, args={"argv": ["echo", "other"]})
    await services.queue.wait(execution.id)

    assert services.executions.log_path(execution).read_bytes() == b"other\n"
    assert (await services.tasks.get(task.id)).input_context == InputContext(args={"argv": ["echo", "usual"]})


async def _reads(path: Path, content: bytes) -> bool:
    return path.exists() and path.read_bytes() == content
