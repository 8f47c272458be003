"""``agentmon log``: what a run printed, as clean text, as it came, or while it comes."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.context import JsonOption, NumberArgument, WorkspaceOption, numbered_task, with_workspace
from agentmon.cli.output import flush, say, say_bytes, say_clean_line, say_document, tell
from agentmon.cli.removed_logs import require_log
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.executions import Execution
from agentmon.domain.ids import ExecutionId
from agentmon.domain.tasks import Task, Workspace
from agentmon.logs.log_file import LogFile
from agentmon.logs.log_text import iter_clean_lines, iter_raw_chunks, tail_lines
from agentmon.logs.saving import write_new_file

_LOOK_INTERVAL_S = 0.1
_INDEX_SLICE_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What to print of one log."""

    path: Path
    is_raw: bool
    line_count: int | None


def log(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    is_following: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    is_raw: Annotated[bool, typer.Option("--raw", help="Every byte as the program wrote it.")] = False,
    line_count: Annotated[
        int | None, typer.Option("--lines", "-n", min=0, metavar="LINES", help="Only the last lines.")
    ] = None,
    execution_id: Annotated[
        str | None, typer.Option("--execution", metavar="ID", help="This run of the task instead of its newest.")
    ] = None,
    try_number: Annotated[
        int | None,
        typer.Option("--try", min=1, metavar="N", help="The N-th try of the run, when it was tried again."),
    ] = None,
    save_path: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write it to a new file instead of printing it.")
    ] = None,
    is_overwriting: Annotated[bool, typer.Option("--overwrite", help="With --save, also over a file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print what a task's newest run printed, safe for the terminal.

    A run that failed and was tried again has a log of each try: --try 1 is the first, without --try it is the last.

    Examples:
      agentmon log 12
      agentmon log 12 --try 1
      agentmon log 12 -f -n 20
      agentmon log 12 --raw > output.log
      agentmon log 12 --save output.txt
    """

    async def work(services: Services, workspace: Workspace) -> None:
        _check_ways(is_raw=is_raw, as_json=as_json, is_following=is_following, save_path=save_path)
        if is_overwriting and save_path is None:
            raise UsageError("--overwrite belongs to --save", hint="agentmon log 12 --save FILE --overwrite")
        task = await numbered_task(services, workspace, number)
        execution = await _chosen_execution(services, task, execution_id)
        await require_log(services, task, execution)
        path, is_earlier = _path_of_try(services.executions.log_path(execution), execution, try_number)
        if try_number is None and execution.attempt:
            tell(_tries_note(number, execution))
        wanted = _Wanted(path=path, is_raw=is_raw, line_count=line_count)
        if save_path is not None:
            target = save_path.absolute()
            byte_count = await asyncio.to_thread(_save, wanted, target, is_overwriting)
            say(f"saved {size_text(byte_count)} to {target}")
        elif as_json:
            if is_following and not is_earlier:
                await services.queue.wait(execution.id)
            document = await asyncio.to_thread(_document, wanted, execution)
            say_document(document)
        elif is_following and not is_earlier:
            await _follow(services, wanted, execution)
        else:
            await asyncio.to_thread(_print_present, wanted)
            if not wanted.path.exists():
                what = "that try printed nothing" if is_earlier else "no output yet"
                tell(f"{what}: the run is {execution.status.value.replace('_', ' ')}")

    with_workspace(folder, work)


def _check_ways(*, is_raw: bool, as_json: bool, is_following: bool, save_path: Path | None) -> None:
    if as_json and is_raw:
        raise UsageError("--raw and --json exclude each other", hint="--json names the file with the raw bytes")
    if save_path is not None and (is_following or as_json):
        raise UsageError("--save goes with neither --follow nor --json", hint="a redirect (> FILE) takes both")


async def _chosen_execution(services: Services, task: Task, execution_id: str | None) -> Execution:
    if execution_id is not None:
        execution = await services.executions.get(ExecutionId(execution_id))
        if execution.task_id != task.id:
            raise NotFoundError(
                f"the run {execution_id} is not one of #{task.number}",
                hint=f"agentmon executions --task {task.number} lists its runs",
            )
        return execution
    newest = await services.executions.newest(task.id)
    if newest is None:
        raise NotFoundError(f"#{task.number} has not run yet", hint=f"agentmon run {task.number} starts it")
    return newest


def _path_of_try(path: Path, execution: Execution, try_number: int | None) -> tuple[Path, bool]:
    """Return the log of a try, the last one by default, and whether it is over because others came after it.

    Raises:
        NotFoundError: The run has had no such try.
    """
    tries = execution.attempt + 1
    if try_number is None:
        return path, False
    if try_number > tries:
        had = "1 try" if tries == 1 else f"{tries} tries"
        raise NotFoundError(f"the run has no try {try_number}: it had {had}", hint="without --try it is the last one")
    aside = path.parent / f"try-{try_number}" / path.name
    # The files of a try are set aside when the next one begins, which a queued retry has not done yet.
    has_begun = not execution.attempt or (path.parent / f"try-{execution.attempt}").is_dir()
    if try_number == tries and not has_begun:
        raise NotFoundError(f"try {try_number} has not begun yet", hint=f"--try {try_number - 1} is the one before")
    is_in_place = try_number == (tries if has_begun else execution.attempt)
    return (path, False) if is_in_place else (aside, True)


def _tries_note(number: str, execution: Execution) -> str:
    earlier = "the first try" if execution.attempt == 1 else f"the first of {execution.attempt} earlier tries"
    return f"note: agentmon log {number.lstrip('#')} --try 1 shows {earlier}"


async def _follow(services: Services, wanted: _Wanted, execution: Execution) -> None:
    """Print what is there and what comes, until the run is over and everything is printed."""
    is_over = threading.Event()
    is_left = threading.Event()

    def wait_for_more() -> bool:
        flush()
        return not is_over.wait(_LOOK_INTERVAL_S)

    def print_all() -> None:
        start = _offset_of_last_lines(wanted)
        if wanted.is_raw:
            for chunk in iter_raw_chunks(wanted.path, first_offset=start, wait_for_more=wait_for_more):
                if is_left.is_set():
                    return
                say_bytes(chunk)
        else:
            for line in iter_clean_lines(wanted.path, first_offset=start, wait_for_more=wait_for_more):
                if is_left.is_set():
                    return
                say_clean_line(line)

    async def wait_for_end() -> None:
        await services.queue.wait(execution.id)
        is_over.set()

    try:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(wait_for_end(), name="wait for the end")
            await asyncio.to_thread(print_all)
            waiting.cancel()
    finally:
        is_left.set()
        is_over.set()


def _print_present(wanted: _Wanted) -> None:
    if wanted.is_raw:
        for chunk in iter_raw_chunks(wanted.path, first_offset=_offset_of_last_lines(wanted)):
            say_bytes(chunk)
    else:
        for line in _clean_lines(wanted):
            say_clean_line(line)


def _save(wanted: _Wanted, target: Path, overwrite: bool) -> int:
    if not wanted.path.exists():
        raise NotFoundError("no output yet: there is nothing to save")
    if target.exists() and target.samefile(wanted.path):
        raise UsageError("that is the log itself", hint="name another file")
    if wanted.is_raw:
        pieces: Iterator[bytes] = iter_raw_chunks(wanted.path, first_offset=_offset_of_last_lines(wanted))
    else:
        pieces = (f"{line}\n".encode() for line in _clean_lines(wanted))
    try:
        return write_new_file(target, pieces, overwrite=overwrite)
    except ConflictError as error:
        raise ConflictError(str(error), hint="--overwrite takes its place") from error


def _clean_lines(wanted: _Wanted) -> Iterator[str]:
    if wanted.line_count is not None:
        return iter(tail_lines(wanted.path, wanted.line_count))
    return iter_clean_lines(wanted.path)


def _offset_of_last_lines(wanted: _Wanted) -> int:
    if wanted.line_count is None:
        return 0
    with LogFile(wanted.path) as log_file:
        lines = log_file.lines_before(log_file.size, wanted.line_count)
        return lines[0].start if lines else log_file.size


def _document(wanted: _Wanted, execution: Execution) -> dict[str, object]:
    with LogFile(wanted.path) as log_file:
        while not log_file.index_more(_INDEX_SLICE_S):
            pass
        size_bytes, line_count = log_file.size, log_file.line_count
    return {
        "execution_id": execution.id,
        "path": str(wanted.path),
        "size_bytes": size_bytes,
        "line_count": line_count,
        "lines": list(_clean_lines(wanted)),
    }
