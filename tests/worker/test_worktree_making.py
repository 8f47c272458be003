"""Runs in worktrees of their own, with a real worker: made, set up, killed at each step, and gone under a run."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.errors import ConflictError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.tasks import InputContext, TaskDraft
from agentmon.domain.worktrees import Isolation, WorktreeStatus
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from agentmon.workspaces.snapshots import SnapshotStore
from tests.live_home import add_command, marked_processes, run_to_end, until_started
from tests.waiting import until
from tests.workspaces.worktree_place import a_repository, git, write

if TYPE_CHECKING:
    from agentmon.bootstrap import Services
    from agentmon.domain.executions import Execution
    from agentmon.domain.tasks import Task, Workspace
    from agentmon.domain.worktrees import Worktree
    from tests.live_home import LiveHome

_SAY_WHERE = 'pwd; git rev-parse --abbrev-ref HEAD; echo "$AGENTMON_TASK $AGENTMON_PORT_BASE"'


async def _opened(services: Services, home: LiveHome, **files: str) -> Workspace:
    a_repository(home.project, **(files or {"readme": "hello\n"}))
    return await services.workspaces.open(home.project)


async def _isolated(services: Services, workspace: Workspace, *argv: str, base: str | None = None) -> Task:
    return await add_command(services, workspace, *argv, isolation=Isolation.WORKTREE, base=base)


async def _of(services: Services, task: Task) -> Worktree:
    found = await services.worktrees.of_task(task.id)
    assert found is not None
    return found


def _output(services: Services, execution: Execution) -> str:
    return services.executions.log_path(execution).read_text()


async def _trust_setup(services: Services, workspace: Workspace, script: str) -> None:
    folder = Path(workspace.root_path, ".agentmon")
    folder.mkdir(exist_ok=True)
    (folder / "agents.toml").write_text(f"[worktree]\nsetup = '''{script}'''\n")
    state = await services.agent_files.state(workspace)
    assert script in state.setup
    await services.agent_files.trust(workspace, state.digest, actor=USER_ACTOR)


async def test_a_run_works_in_a_tree_of_its_own_and_the_next_run_of_its_task_in_the_same(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        task = await _isolated(services, workspace, "sh", "-c", f"{_SAY_WHERE}; echo more > new")
        first = await run_to_end(services, task)
        worktree = await _of(services, task)
        again = await run_to_end(services, task)

    assert (first.status, again.status) == (ExecutionStatus.SUCCEEDED, ExecutionStatus.SUCCEEDED)
    lines = _output(services, first).splitlines()
    assert lines[-3:] == [worktree.path, worktree.branch, f"{task.number} 20000"]
    assert any(worktree.base_commit is not None and worktree.base_commit[:10] in line for line in lines[:-3])
    assert _output(services, again).splitlines() == lines[-3:]
    assert first.log_byte_size == len(_output(services, first))
    assert (again.worktree_id, again.working_dir) == (worktree.id, worktree.path)
    assert worktree.status is WorktreeStatus.READY
    assert Path(worktree.path, "new").is_file()
    assert git(live_home.project, "status", "--porcelain") == ""


async def test_of_two_agents_in_one_repository_the_second_works_beside_the_first(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        await services.agents.add(make_demo_agent(pace_s=60))
        demo = await services.agents.by_slug("demo-agent")
        runs = []
        for title in ("One", "Two"):
            draft = TaskDraft(title=title, description="edit", assignee_agent_id=demo.id, input_context=InputContext())
            task = await services.tasks.add(workspace, draft, actor=USER_ACTOR)
            runs.append(await services.queue.run(task.id, actor=USER_ACTOR))
        first, second = [await until_started(services, one) for one in runs]
        for one in runs:
            await services.queue.stop(one.task_id, actor=USER_ACTOR, kill=True)
            await services.queue.wait(one.id)

    assert (first.working_dir, first.worktree_id) == (str(live_home.project), None)
    assert second.worktree_id is not None
    assert Path(second.working_dir or "", "readme").is_file()


async def test_what_cannot_have_a_tree_of_its_own_never_runs_in_the_folder(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        task = await _isolated(services, workspace, "touch", "ran", base="no-such-branch")
        ended = await run_to_end(services, task)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.START_FAILED)
    assert "no-such-branch" in (ended.error or "")
    assert not (live_home.project / "ran").exists()
    assert ended.error is not None
    assert ended.error in _output(services, ended) or "no-such-branch" in _output(services, ended)


@pytest.mark.proof
async def test_what_is_ignored_comes_along_as_it_is_named_and_the_set_up_runs_with_ports_of_its_own(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        workspace = await _opened(
            services,
            live_home,
            **{".gitignore": ".env\nlib/\nout/\n.agentmon/\n", ".worktreeinclude": ".env\nlink:lib/\n", "a": "1"},
        )
        write(live_home.project, **{".env": "KEY=1", "lib__x": "2", "out__y": "3"})
        await _trust_setup(services, workspace, 'echo "ports $AGENTMON_PORT_BASE for $AGENTMON_TASK"; touch made')
        tasks = [await _isolated(services, workspace, "ls", "-A") for _ in range(2)]
        ended = [await run_to_end(services, task) for task in tasks]
        trees = [Path((await _of(services, task)).path) for task in tasks]
        state = await services.worktrees.state(await _of(services, tasks[0]))

    for number, (tree, run, task) in enumerate(zip(trees, ended, tasks, strict=True)):
        assert run.status is ExecutionStatus.SUCCEEDED
        assert (tree / ".env").read_text() == "KEY=1"
        assert (tree / "lib").readlink() == live_home.project / "lib"
        assert (tree / "made").is_file()
        assert not (tree / "out").exists()
        assert f"ports {20_000 + 10 * number} for {task.number}" in _output(services, run)
    assert [loss.names for loss in state.losses] == [("made",)]


async def test_a_set_up_that_fails_is_the_failure_of_the_run_and_is_done_again_by_the_next(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        flag = live_home.folder / "flag"
        await _trust_setup(services, workspace, f"echo no compiler; test -e {flag}")
        task = await _isolated(services, workspace, "touch", "ran")
        failed = await run_to_end(services, task)
        failed_tree = await _of(services, task)
        flag.touch()
        fine = await run_to_end(services, task)
        tree = await _of(services, task)

    assert (failed.status, failed.end_reason) == (ExecutionStatus.FAILED, EndReason.START_FAILED)
    assert "no compiler" in (failed.error or "")
    assert "no compiler" in _output(services, failed)
    assert (failed_tree.status, tree.status, tree.id) == (WorktreeStatus.FAILED, WorktreeStatus.READY, failed_tree.id)
    assert fine.status is ExecutionStatus.SUCCEEDED
    assert Path(tree.path, "ran").is_file()


async def test_a_set_up_that_nobody_trusts_is_not_run(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        await _trust_setup(services, workspace, "true")
        script = live_home.project / ".agentmon" / "agents.toml"
        script.write_text(script.read_text().replace("true", "touch evil"))
        task = await _isolated(services, workspace, "touch", "ran")
        ended = await run_to_end(services, task)
        tree = await _of(services, task)

    assert ended.end_reason is EndReason.START_FAILED
    assert not Path(tree.path, "evil").exists()
    assert not Path(tree.path, "ran").exists()


async def test_a_stop_ends_the_set_up_and_all_that_it_started(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        started = live_home.folder / "started"
        await _trust_setup(services, workspace, f"setsid sleep 300 & touch {started}; wait")
        task = await _isolated(services, workspace, "touch", "ran")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until(lambda: _is_there(started))
        await services.queue.stop(task.id, actor=USER_ACTOR)
        ended = await services.queue.wait(execution.id)
        tree = await _of(services, task)

    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []
    assert tree.status is WorktreeStatus.FAILED
    assert not Path(tree.path, "ran").exists()


@pytest.mark.proof
async def test_a_run_whose_tree_is_removed_under_it_fails_with_the_reason(live_home: LiveHome) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        task = await _isolated(services, workspace, "sleep", "300")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        tree = await _of(services, task)
        with pytest.raises(ConflictError):
            await services.worktrees.remove(tree, confirmed=tree.branch, actor=USER_ACTOR)
        shutil.rmtree(tree.path)
        ended = await services.queue.wait(execution.id)
        again = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, again)
        is_made_again = Path(tree.path, "readme").is_file()
        await services.queue.stop(task.id, actor=USER_ACTOR, kill=True)
        stopped = await services.queue.wait(again.id)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.LOST)
    assert tree.path in (ended.error or "")
    assert is_made_again
    assert stopped.status is ExecutionStatus.CANCELLED


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="the system does not tell where a program works")
async def test_a_run_whose_plain_folder_is_removed_fails_and_one_whose_folder_is_moved_goes_on(
    live_home: LiveHome,
) -> None:
    async with open_services() as services:
        runs, places = [], []
        for name in ("removed", "moved"):
            place = live_home.folder / name
            place.mkdir()
            workspace = await services.workspaces.open(place)
            task = await add_command(services, workspace, "sleep", "300")
            run = await services.queue.run(task.id, actor=USER_ACTOR)
            await until_started(services, run)
            runs.append(run)
            places.append(place)
        places[1].rename(live_home.folder / "elsewhere")
        shutil.rmtree(places[0])
        ended = await services.queue.wait(runs[0].id)
        moved = await services.executions.get(runs[1].id)
        await services.queue.stop(moved.task_id, actor=USER_ACTOR, kill=True)
        stopped = await services.queue.wait(moved.id)

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.LOST)
    assert str(places[0]) in (ended.error or "")
    assert moved.status is ExecutionStatus.RUNNING
    assert stopped.status is ExecutionStatus.CANCELLED


@pytest.mark.proof
@pytest.mark.parametrize("how", ["rm -rf", "git worktree remove"])
async def test_what_was_seen_of_a_tree_that_vanished_under_a_run_comes_back_on_its_branch(
    live_home: LiveHome, how: str
) -> None:
    async with open_services() as services:
        workspace = await _opened(services, live_home, readme="hello\n", other="1\n2\n3\n4\n5\n6\n7\n")
        script = (
            "git config user.name n; git config user.email e; echo done > done; git add done; git commit -qm done;"
            "echo more >> readme; echo new > new; sed -i s/7/seven/ other; exec sleep 300"
        )
        task = await _isolated(services, workspace, "sh", "-c", script)
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until_started(services, execution)
        tree = await _of(services, task)
        path = Path(tree.path)
        store = SnapshotStore(services.paths.snapshots_dir)

        async def is_seen() -> bool:
            newest = store.newest(path)
            names = "" if newest is None else store.git(newest).run("ls-tree", "--name-only", newest.tree).decode()
            return {"new", "done"} <= set(names.split())

        await until(is_seen, "its work in a snapshot")
        if how == "rm -rf":
            shutil.rmtree(path)
        else:
            git(live_home.project, "worktree", "remove", "--force", "--force", tree.path)
        ended = await services.queue.wait(execution.id)
        # The branch goes on meanwhile, elsewhere in one of the files.
        beside = live_home.folder / "beside"
        git(live_home.project, "worktree", "add", "--force", "--detach", str(beside), tree.branch)
        (beside / "other").write_text("one\n2\n3\n4\n5\n6\n7\n")
        git(beside, "commit", "-qam", "on")
        git(live_home.project, "update-ref", f"refs/heads/{tree.branch}", git(beside, "rev-parse", "HEAD"))
        restored = await services.worktrees.restore(await _of(services, task), actor=USER_ACTOR)
        with pytest.raises(ConflictError):
            await services.worktrees.restore(await _of(services, task), actor=USER_ACTOR)
        changes = await services.changes.of_run(await services.executions.get(execution.id))

    assert (ended.status, ended.end_reason) == (ExecutionStatus.FAILED, EndReason.LOST)
    assert f"agentmon worktrees restore {task.number}" in (ended.error or "")
    assert {"done", "new", "other", "readme"} == {one.path for one in changes.files}
    assert restored.left_alone == ()
    assert (path / "readme").read_text() == "hello\nmore\n"
    assert (path / "new").read_text() == "new\n"
    assert (path / "done").read_text() == "done\n"
    assert (path / "other").read_text() == "one\n2\n3\n4\n5\n6\nseven\n"
    assert git(path, "rev-parse", "--abbrev-ref", "HEAD") == tree.branch
    assert set(restored.paths) == {"new", "other", "readme"}


async def _is_there(path: Path) -> bool:
    return path.exists()


@pytest.mark.usefixtures("workers_are_programs")
@pytest.mark.parametrize("at", ["making", "set-up"])
@pytest.mark.proof
async def test_a_worker_that_is_killed_while_a_tree_is_made_has_it_finished_by_the_next(
    live_home: LiveHome, at: str
) -> None:
    hold, held = live_home.folder / "hold", live_home.folder / "held"
    hold.touch()
    wait = f"touch {held}; while test -e {hold}; do sleep 0.05; done"
    async with open_services() as services:
        workspace = await _opened(services, live_home, **{".gitattributes": "big filter=slow\n", "big": "x", "a": "1"})
        if at == "making":
            # git itself is held in the middle of the files that it writes.
            git(live_home.project, "config", "filter.slow.smudge", f"{wait}; cat")
            git(live_home.project, "config", "filter.slow.clean", "cat")
        else:
            await _trust_setup(services, workspace, wait)
        task = await _isolated(services, workspace, "sh", "-c", "cat big a; git status --porcelain")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until(lambda: _is_there(held))
        live_home.kill_worker()
        hold.unlink()
        await services.workers.ensure_running()
        ended = await services.queue.wait(execution.id)
        tree = await _of(services, task)

    assert ended.status is ExecutionStatus.SUCCEEDED
    assert "x1" in _output(services, ended)
    assert tree.status is WorktreeStatus.READY
    git(live_home.project, "fsck", "--strict")
    assert len(git(live_home.project, "worktree", "list").splitlines()) == 2
    assert git(live_home.project, "branch", "--list", "agentmon/*").count("agentmon/") == 1


@pytest.mark.proof
@pytest.mark.usefixtures("workers_are_programs")
async def test_a_run_that_is_stopped_while_no_worker_makes_its_tree_leaves_none_behind(live_home: LiveHome) -> None:
    held = live_home.folder / "held"
    async with open_services() as services:
        workspace = await _opened(services, live_home)
        await _trust_setup(services, workspace, f"touch {held}; sleep 300")
        task = await _isolated(services, workspace, "touch", "ran")
        execution = await services.queue.run(task.id, actor=USER_ACTOR)
        await until(lambda: _is_there(held))
        live_home.kill_worker()
        await services.queue.stop(task.id, actor=USER_ACTOR)
        ended = await services.queue.wait(execution.id)
        pid = live_home.kill_worker()
        await services.workers.ensure_running()
        tree = await _of(services, task)
        states = await services.worktrees.states(workspace.id)

    assert pid
    assert ended.status is ExecutionStatus.CANCELLED
    assert marked_processes(execution.id) == []
    assert [state.worktree.id for state in states] == [tree.id]
