"""That no content of one run holds up another: what cannot be recorded, and turns that fail or take long."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import SystemClock
from agentmon.domain.errors import DatabaseBusyError, StoreError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType
from agentmon.domain.ids import WorkerId
from agentmon.services.actors import USER_ACTOR
from agentmon.store.budgets import BudgetRepository
from agentmon.store.execution_commands import CommandRepository
from agentmon.store.executions import ExecutionRepository
from agentmon.store.live_executions import LiveExecutionRepository
from agentmon.worker.approving import Approver
from agentmon.worker.wake import wake_worker
from agentmon.worker.watching import Watch
from tests.endings import finish, watch_of
from tests.stored_runs import stored
from tests.waiting import until
from tests.worker.test_watching import FAILED, STARTED, claim, claim_next, living_host, running_loop, write_journal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime
    from pathlib import Path

    from agentmon.domain.executions import ClaimedExecution, ExecutionProgress
    from agentmon.domain.ids import CommandId
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.store.ingest import Recorded
    from agentmon.worker.watching import Watched
    from tests.stored_runs import Stored


def message(text: str, number: int) -> dict[str, object]:
    event = {"kind": "message", "role": "assistant", "text": text, "message_ref": f"m{number}"}
    return {"type": "agent_event", "event": event}


def conversation(number: int) -> dict[str, object]:
    return {"type": "agent_event", "event": {"kind": "session", "session_ref": f"s{number}"}}


def refuse(place: Stored, table: str, condition: str) -> None:
    """Let the database refuse rows, as it would for content that no release foresaw."""
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
        connection.execute(
            f"CREATE TRIGGER refused_{table} BEFORE INSERT ON {table} WHEN {condition} "
            "BEGIN SELECT RAISE(ABORT, 'poisoned'); END"
        )


def allow(place: Stored, table: str) -> None:
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
        connection.execute(f"DROP TRIGGER refused_{table}")


async def ask_to_stop(place: Stored, run: ClaimedExecution) -> None:
    """Ask as a client does, which here needs no worker of its own."""
    executions = ExecutionRepository(place.services.database)
    at = SystemClock().now()
    await executions.request_stop(run.task.id, command_type=CommandType.STOP, actor=USER_ACTOR, at=at)
    wake_worker(place.services.paths.worker_socket)


async def read_all(watch: Watch) -> None:
    """Read the journals until there is nothing more to read at once."""
    while await watch.read_journals():
        pass


async def messages_of(place: Stored, execution_id: str) -> list[str]:
    query = "SELECT content FROM messages WHERE execution_id = ? ORDER BY id"
    with closing(sqlite3.connect(place.services.paths.database_path)) as connection:
        return [content for (content,) in connection.execute(query, (execution_id,))]


async def test_a_row_that_cannot_be_written_is_left_out_and_everything_around_it_is_there(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (bad, bad_folder), (good, good_folder) = await claim(place), await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(bad)
        await watch.add(good)
        refuse(place, "messages", "NEW.content LIKE '%poison%'")
        said = [message(f"said {number}" if number != 7 else "poison", number) for number in range(20)]
        write_journal(bad_folder, STARTED, *said)
        write_journal(good_folder, STARTED, message("well", 1))

        await read_all(watch)

        present = await place.services.executions.get(bad.execution.id)
        assert await messages_of(place, good.execution.id) == ["well"]
        assert await messages_of(place, bad.execution.id) == [f"said {number}" for number in range(20) if number != 7]
        assert "poisoned" in (present.journal_problem or "")
        events = await place.services.executions.events(bad.execution.id)
        assert [event.payload.get("entry") for event in events].count("not_recorded") == 1

        write_journal(bad_folder, FAILED)
        await read_all(watch)
        await finish(watch, place.services.database)
        assert (await place.services.executions.get(bad.execution.id)).status is ExecutionStatus.FAILED


async def test_a_journal_that_cannot_be_recorded_at_all_is_set_aside_and_read_later(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (bad, bad_folder), (good, good_folder) = await claim(place), await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        watched = await watch.add(bad)
        await watch.add(good)
        refuse(place, "events", f"NEW.execution_id = '{bad.execution.id}'")
        write_journal(bad_folder, STARTED, message("kept", 1))
        write_journal(good_folder, STARTED)

        await read_all(watch)
        set_aside = await place.services.executions.get(bad.execution.id)
        other = await place.services.executions.get(good.execution.id)
        doctor = {finding.name: finding for finding in await place.services.doctor.check()}
        allow(place, "events")
        watched.set_aside_until = float("-inf")
        await read_all(watch)

        assert set_aside.journal_offset == 0
        assert "cannot be read" in (set_aside.last_line or "")
        assert other.journal_offset > 0
        assert "poisoned" in doctor["journals"].text
        assert await messages_of(place, bad.execution.id) == ["kept"]
        assert (await place.services.executions.get(bad.execution.id)).journal_problem is None


async def test_a_flood_in_one_journal_is_recorded_in_pieces_between_which_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as place:
        (loud, loud_folder), (quiet, quiet_folder) = await claim(place), await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        await watch.add(loud)
        await watch.add(quiet)
        write_journal(loud_folder, STARTED, *map(conversation, range(3_000)))
        write_journal(quiet_folder, STARTED, message("heard", 1))
        record, sizes, heard_after = watch._ingest.record, [], []

        async def note(stretches: Sequence[ExecutionProgress], *, at: datetime) -> Recorded:
            recorded = await record(stretches, at=at)
            sizes.append(sum(len(stretch.events) for stretch in stretches))
            if await messages_of(place, quiet.execution.id):
                heard_after.append(len(sizes))
            # As another process does; the worker's own transaction would refuse it.
            with closing(sqlite3.connect(place.services.paths.database_path, timeout=0)) as connection, connection:
                connection.execute("UPDATE tasks SET title = title")
            return recorded

        monkeypatch.setattr(watch._ingest, "record", note)
        await read_all(watch)

        assert sum(sizes) == 3_003
        assert max(sizes) <= 512
        assert heard_after[0] == 2
        assert (await place.services.executions.get(loud.execution.id)).session_ref == "s2999"


async def test_a_stop_reaches_its_host_while_the_journals_of_others_are_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as place:
        (run, folder), (_, noisy_folder) = await claim(place), await claim(place)
        for one in (folder, noisy_folder):
            write_journal(one, STARTED)
        with living_host(folder), living_host(noisy_folder):
            async with running_loop(place) as loop:
                await until(lambda: _is_watched(loop, run.execution.id))
                held, opened = asyncio.Event(), asyncio.Event()

                async def never(*_: object, **__: object) -> bool:
                    held.set()
                    await opened.wait()
                    return False

                monkeypatch.setattr(loop._watch, "read_journals", never)
                write_journal(noisy_folder, message("much", 1))
                await held.wait()
                await ask_to_stop(place, run)
                await until(lambda: _has_command(folder, CommandType.STOP))
                opened.set()


async def test_a_stop_waits_for_no_journal_when_a_worker_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = asyncio.Event()

    async def never(*_: object, **__: object) -> bool:
        await opened.wait()
        return False

    monkeypatch.setattr(Watch, "read_journals", never)
    async with stored(tmp_path) as place:
        run, folder = await claim(place)
        write_journal(folder, STARTED)
        with living_host(folder):
            async with running_loop(place) as loop:

                async def is_taken_over() -> bool:
                    return run.execution.id in loop._watch

                await until(is_taken_over)
                await ask_to_stop(place, run)
                await until(lambda: _has_command(folder, CommandType.STOP))
                opened.set()


@pytest.mark.parametrize("broken", [(Approver, "apply_rules"), (BudgetRepository, "list")])
async def test_turns_that_fail_keep_no_run_from_starting_and_no_stop_from_arriving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: tuple[type, str]
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise ValueError("embedded null byte")

    async with stored(tmp_path) as place:
        run, folder = await claim(place)
        write_journal(folder, STARTED)
        monkeypatch.setattr(*broken, fail)
        with living_host(folder):
            async with running_loop(place) as loop:
                await until(lambda: _is_watched(loop, run.execution.id))
                await ask_to_stop(place, run)
                await until(lambda: _has_command(folder, CommandType.STOP))

                async def is_claimed() -> bool:
                    return await place.services.database.read(_count_claimed) == 0

                monkeypatch.setattr(loop._hosts, "_start_apart", lambda *_: None)
                task = await place.add_task("another", "true")
                await place.add_run(task.id, ExecutionStatus.QUEUED)
                await until(is_claimed)


async def test_a_command_that_cannot_be_written_says_why_and_holds_up_no_other(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (first, first_folder), (second, second_folder) = await claim(place), await claim(place)
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute(
                "INSERT INTO execution_commands (id, execution_id, actor_type, cause, type, payload, created_at) "
                "VALUES ('00000000-0000-7000-8000-000000000000', ?, 'user', 'person', 'message', ?, ?)",
                (first.execution.id, "[" * 900 + "]" * 900, "2026-03-01T12:00:00.000Z"),
            )
        for one in (first_folder, second_folder):
            write_journal(one, STARTED)
        with living_host(first_folder), living_host(second_folder):
            async with running_loop(place) as loop:
                await until(lambda: _is_watched(loop, second.execution.id))
                await ask_to_stop(place, second)
                await until(lambda: _has_command(second_folder, CommandType.STOP))

                async def has_told() -> bool:
                    return await place.services.database.read(_count_told) == 1

                await until(has_told)


async def test_a_stop_is_handed_on_while_another_command_waits_to_be_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_free, noted = asyncio.Event(), list[str]()
    note = LiveExecutionRepository.mark_delivered

    async def note_late(self: LiveExecutionRepository, command_ids: Sequence[CommandId], *, at: datetime) -> None:
        await is_free.wait()
        noted.extend(command_ids)
        await note(self, command_ids, at=at)

    monkeypatch.setattr(LiveExecutionRepository, "mark_delivered", note_late)
    async with stored(tmp_path) as place:
        (first, first_folder), (second, second_folder) = await claim(place), await claim(place)
        for one in (first_folder, second_folder):
            write_journal(one, STARTED)
        with living_host(first_folder), living_host(second_folder):
            async with running_loop(place) as loop:
                await until(lambda: _is_watched(loop, second.execution.id))
                await ask_to_stop(place, first)
                await until(lambda: _has_command(first_folder, CommandType.STOP))
                await ask_to_stop(place, second)
                await until(lambda: _has_command(second_folder, CommandType.STOP))
                assert noted == []

                is_free.set()

                async def has_noted() -> bool:
                    return len(noted) == 2 and not await loop._delivery._undelivered()

                await until(has_noted)
        assert len(set(noted)) == 2


async def test_messages_that_one_run_does_not_take_hold_up_no_other(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (deaf, _), (other, _) = await claim(place), await claim(place)
        database, at = place.services.database, SystemClock().now()
        commands, live = CommandRepository(database), LiveExecutionRepository(database)
        worker_id = WorkerId("worker")
        await live.take_over([deaf.execution.id, other.execution.id], worker_id=worker_id, at=at)
        unread = [(CommandType.MESSAGE, {"text": str(number)}) for number in range(1_001)]
        await commands.add(deaf.execution.id, *unread, actor=USER_ACTOR, at=at)
        await commands.add(other.execution.id, (CommandType.MESSAGE, {"text": "hello"}), actor=USER_ACTOR, at=at)

        found = await live.undelivered_commands(worker_id)

        assert [one.payload["text"] for one in found] == [*(str(number) for number in range(100)), "hello"]


async def test_what_sqlite_itself_rolls_back_counts_as_written_of_no_journal(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        (first, first_folder), (second, second_folder) = await claim(place), await claim(place)
        watch = watch_of(place.services.database, place.services.paths)
        watched = [await watch.add(first), await watch.add(second)]
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            # As a full disk does: not the statement is undone but the whole transaction.
            connection.execute(
                "CREATE TRIGGER refused_messages BEFORE INSERT ON messages WHEN NEW.content = 'full' "
                "BEGIN SELECT RAISE(ROLLBACK, 'full'); END"
            )
        write_journal(first_folder, STARTED, message("kept", 1))
        write_journal(second_folder, STARTED, message("full", 1))

        with pytest.raises(StoreError):
            await watch.read_journals()
        offsets = [one.journal_offset for one in watched]
        allow(place, "messages")
        await read_all(watch)

        assert offsets == [0, 0]
        assert await messages_of(place, first.execution.id) == ["kept"]
        assert await messages_of(place, second.execution.id) == ["full"]


@pytest.mark.parametrize("name", ["control", "journal"])
async def test_a_file_that_an_agent_replaced_by_a_pipe_holds_up_no_other_run(tmp_path: Path, name: str) -> None:
    async with stored(tmp_path) as place:
        (bad, bad_folder), (good, good_folder) = await claim(place), await claim(place)
        for one in (bad_folder, good_folder):
            write_journal(one, STARTED)
        with living_host(bad_folder), living_host(good_folder):
            async with running_loop(place) as loop:
                await until(lambda: _is_watched(loop, good.execution.id))
                replaced = getattr(bad_folder, name)
                replaced.unlink(missing_ok=True)
                os.mkfifo(replaced)
                await ask_to_stop(place, bad)
                await ask_to_stop(place, good)
                await until(lambda: _has_command(good_folder, CommandType.STOP))
                write_journal(good_folder, message("still heard", 1))

                async def is_heard() -> bool:
                    return await messages_of(place, good.execution.id) == ["still heard"]

                await until(is_heard)


@pytest.mark.parametrize("hung", ["agentmon.worker.starting.prepare", "agentmon.worker.screen_watching._begin"])
async def test_files_of_one_run_that_do_not_answer_keep_no_stop_from_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hung: str
) -> None:
    is_over = threading.Event()
    has_begun = threading.Event()

    def hang(*_: object, **__: object) -> None:
        has_begun.set()
        is_over.wait()
        raise OSError("no answer")

    monkeypatch.setattr(hung, hang)
    # As many threads as there are on a small machine: what hangs in one would leave none.
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    async with stored(tmp_path) as place:
        good, good_folder = await claim(place)
        write_journal(good_folder, STARTED)
        task = await place.add_task("a task", "true")
        bad = await place.add_run(task.id, ExecutionStatus.QUEUED)
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET mode = 'tmux' WHERE id = ?", (bad.id,))
        if hung.endswith("_begin"):
            # One that is taken over: it holds up neither the others of the worker that is gone nor what is queued.
            await claim_next(place)
        try:
            with living_host(good_folder):
                async with running_loop(place) as loop:
                    await until(lambda: _is_watched(loop, good.execution.id))
                    await until(_is_set(has_begun))
                    await ask_to_stop(place, good)
                    await until(lambda: _has_command(good_folder, CommandType.STOP))
                    is_over.set()
        finally:
            is_over.set()


@pytest.mark.proof
async def test_a_dead_host_is_settled_although_another_run_cannot_be_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stored(tmp_path) as place:
        dead, dead_folder = await claim(place)
        never_begun, _ = await claim(place)
        write_journal(dead_folder, STARTED)
        fail = Watch.fail

        async def refuse(watch: Watch, watched: Watched, *words: str, **more: object) -> None:
            if watched.id == never_begun.execution.id:
                raise DatabaseBusyError("held")
            await fail(watch, watched, *words, **more)  # type: ignore[arg-type] # handed on

        monkeypatch.setattr(Watch, "fail", refuse)
        monkeypatch.setattr("agentmon.worker.hosts._MAX_START_TRIES", 0)
        monkeypatch.setattr("agentmon.worker.watching._START_PATIENCE_S", 0.0)
        async with running_loop(place) as loop:
            loop._hosts._start_apart = lambda *_: None  # type: ignore[method-assign] # nothing is started here

            async def is_lost() -> bool:
                return (await place.services.executions.get(dead.execution.id)).end_reason is EndReason.LOST

            await until(is_lost)


async def test_a_scheduled_task_that_cannot_be_read_keeps_no_other_run_from_starting(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        hostile = await place.add_task("hostile", "true")
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.execute(
                "UPDATE tasks SET input_context = '[1]', next_run_at = '2026-03-01T12:00:00.000Z' WHERE id = ?",
                (hostile.id,),
            )
        task = await place.add_task("another", "true")
        await place.add_run(task.id, ExecutionStatus.QUEUED)
        async with running_loop(place) as loop:
            loop._hosts._start_apart = lambda *_: None  # type: ignore[method-assign] # nothing is started here

            async def is_claimed() -> bool:
                return await place.services.database.read(_count_claimed) == 0

            await until(is_claimed)


def _count_claimed(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM executions WHERE status = 'queued'").fetchone()[0])


def _count_told(connection: sqlite3.Connection) -> int:
    query = "SELECT count(*) FROM execution_commands WHERE error IS NOT NULL AND delivered_at IS NOT NULL"
    return int(connection.execute(query).fetchone()[0])


async def _is_watched(loop: object, execution_id: str) -> bool:
    watched = loop._watch.find(execution_id)  # type: ignore[attr-defined] # the loop's own
    return watched is not None and watched.journal_offset > 0


def _is_set(event: threading.Event) -> Callable[[], Awaitable[bool]]:
    async def is_set() -> bool:
        return event.is_set()

    return is_set


async def _has_command(folder: ExecutionFolder, command_type: CommandType) -> bool:
    return folder.control.exists() and f'"{command_type.value}"' in folder.control.read_text()
