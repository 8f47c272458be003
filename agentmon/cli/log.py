"""``agentmon log``: what a run printed, as clean text, as it came, or while it comes."""

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.calling import require_not_called
from agentmon.cli.context import (
    JsonOption,
    NumberArgument,
    RunOption,
    WorkspaceOption,
    chosen_execution,
    numbered_task,
    with_workspace,
)
from agentmon.cli.log_reading import (
    Wanted,
    check_order,
    check_readable,
    follow_offset,
    matching_offsets,
    offset_of,
    present_bytes,
    present_lines,
    print_followed,
    size_and_line_count,
)
from agentmon.cli.output import flush, say, say_bytes, say_clean_line, say_document, tell
from agentmon.cli.removed_logs import require_log
from agentmon.domain.amounts import size_text
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.executions import Execution
from agentmon.domain.tasks import Workspace
from agentmon.logs.line_text import plain_text
from agentmon.logs.log_text import iter_raw_chunks
from agentmon.logs.log_times import LogTimes
from agentmon.logs.pattern import LogPattern
from agentmon.logs.places import ClockPlace, SpanPlace, parse_place
from agentmon.logs.saving import write_new_file
from agentmon.logs.streams import LogStream, streams_of
from agentmon.runners.execution_folder import ExecutionFolder

_LOOK_INTERVAL_S = 0.1


def log(
    number: NumberArgument,
    folder: WorkspaceOption = None,
    *,
    is_following: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run is over.")] = False,
    is_raw: Annotated[bool, typer.Option("--raw", help="Every byte as the program wrote it.")] = False,
    line_count: Annotated[
        int | None, typer.Option("--lines", "-n", min=0, metavar="LINES", help="Only the last lines.")
    ] = None,
    run: RunOption = None,
    try_number: Annotated[
        int | None,
        typer.Option("--try", min=1, metavar="N", help="The N-th try of the run, when it was tried again."),
    ] = None,
    save_path: Annotated[
        Path | None, typer.Option("--save", metavar="FILE", help="Write it to a new file instead of printing it.")
    ] = None,
    is_overwriting: Annotated[bool, typer.Option("--overwrite", help="With --save, also over a file.")] = False,
    expression: Annotated[
        str | None,
        typer.Option(
            "--grep", "-g", metavar="REGEX", help="Only lines that match; capitals count when there are any. 1 if none."
        ),
    ] = None,
    from_place: Annotated[
        str | None,
        typer.Option("--from", metavar="PLACE", help="From a line, a share or a time: 1200, 50%, 14:02, -5m, +5m."),
    ] = None,
    to_place: Annotated[
        str | None, typer.Option("--to", metavar="PLACE", help="Up to a line, a share or a time, as with --from.")
    ] = None,
    stream: Annotated[
        LogStream | None,
        typer.Option(
            "--stream",
            help="The screen, which is the default where a program repaints it; all output; the newest verification; "
            "or of a conversation over a protocol the errors or the protocol.",
        ),
    ] = None,
    is_coloured: Annotated[
        bool | None,
        typer.Option("--color/--no-color", help="Keep the colours of the program; by itself only in a terminal."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Print the output of a task's newest run.

    It is safe for the terminal. Of a program that repaints, such as an agent in its own screen, it is the screen as
    it stands, below what scrolled off it: --stream output gives the lines as they came, --raw every byte.

    A run that failed and was tried again has a log of each try: --try 1 is the first, without --try it is the last.
    Times are those that the host noted, every second or two.

    Examples:
      agentmon log 12
      agentmon log 12 --try 1
      agentmon log 12 -f -n 20
      agentmon log 12 --grep "error|warn" --from -10m
      agentmon log 12 --stream errors
      agentmon log 12 --raw > output.log
      agentmon log 12 --save output.txt
    """

    async def work(services: Services, workspace: Workspace) -> None:
        _check_ways(is_raw=is_raw, as_json=as_json, is_following=is_following, save_path=save_path)
        _check_parts(is_following=is_following, is_raw=is_raw, to_place=to_place, expression=expression)
        if is_overwriting and save_path is None:
            raise UsageError("--overwrite belongs to --save", hint="agentmon log 12 --save FILE --overwrite")
        task = await numbered_task(services, workspace, number)
        execution = await chosen_execution(services, task, run)
        await require_log(services, task, execution)
        path, is_earlier = _path_of_try(services.executions.log_path(execution), execution, try_number)
        if try_number is None and execution.attempt:
            tell(_tries_note(number, execution))
        places = (from_place, to_place)
        is_whole = not is_raw and not is_following and places == (None, None)
        shown = _shown_stream(path, stream, is_whole=is_whole)
        times = await _times(services, execution, path, shown, places)
        text = await services.screens.text_of(execution, path) if shown is LogStream.SCREEN else None
        path = shown.path(path)
        check_readable(path)
        start, stop = await asyncio.to_thread(_span, path, places, times)
        wanted = Wanted(
            path=path,
            text=text,
            is_raw=is_raw,
            is_coloured=_is_coloured(is_coloured) and save_path is None and not as_json,
            line_count=line_count,
            pattern=None if expression is None else LogPattern(expression),
            start=start,
            stop=stop,
        )
        if save_path is not None:
            target = save_path.absolute()
            byte_count = await asyncio.to_thread(_save, wanted, target, is_overwriting)
            say(f"saved {size_text(byte_count)} to {target}")
        elif as_json:
            if is_following and not is_earlier:
                await services.queue.wait(execution.id)
            document = await asyncio.to_thread(_document, wanted, execution, shown)
            say_document(document)
        elif is_following and not is_earlier:
            await _follow(services, wanted, execution)
        else:
            count = await asyncio.to_thread(_print_present, wanted)
            if not wanted.path.exists():
                tell(_absence(execution, shown, is_earlier=is_earlier))
            elif not count and wanted.pattern is not None:
                tell("no line matches")
                raise typer.Exit(1)

    with_workspace(folder, work)


def _shown_stream(path: Path, stream: LogStream | None, *, is_whole: bool) -> LogStream:
    """Return what is printed: what was asked for, else the screen of a program that repaints it."""
    if stream is LogStream.SCREEN and not is_whole:
        raise UsageError("a screen has no --raw, --follow, --from or --to", hint="leave --stream screen out")
    return stream or (streams_of(path)[0] if is_whole else LogStream.OUTPUT)


def _check_ways(*, is_raw: bool, as_json: bool, is_following: bool, save_path: Path | None) -> None:
    if as_json and is_raw:
        raise UsageError("--raw and --json exclude each other", hint="--json names the file with the raw bytes")
    if save_path is not None and (is_following or as_json):
        raise UsageError("--save goes with neither --follow nor --json", hint="a redirect (> FILE) takes both")
    if save_path is not None:
        require_not_called("it writes no files", hint="`agentmon log NUMBER > FILE`")


def _check_parts(*, is_following: bool, is_raw: bool, to_place: str | None, expression: str | None) -> None:
    if is_following and to_place is not None:
        raise UsageError("--follow has no end, so --to means nothing", hint="agentmon log 12 -f --from -5m")
    if is_following and is_raw and expression is not None:
        raise UsageError("--raw with --follow gives every byte, so --grep means nothing", hint="leave --raw out")


def _absence(execution: Execution, stream: LogStream, *, is_earlier: bool) -> str:
    """Return why there is nothing to print."""
    if stream not in {LogStream.OUTPUT, LogStream.SCREEN}:
        return f"this run has no {stream.value} apart: only conversations over a protocol may have"
    what = "that try printed nothing" if is_earlier else "no output yet"
    return f"{what}: the run is {execution.live_state.value}"


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
    has_begun = ExecutionFolder(path.parent).is_of_try(execution.attempt)
    if try_number == tries and not has_begun:
        raise NotFoundError(f"try {try_number} has not begun yet", hint=f"--try {try_number - 1} is the one before")
    is_in_place = try_number == (tries if has_begun else execution.attempt)
    return (path, False) if is_in_place else (aside, True)


def _tries_note(number: str, execution: Execution) -> str:
    earlier = "the first try" if execution.attempt == 1 else f"the first of {execution.attempt} earlier tries"
    return f"note: agentmon log {number.lstrip('#')} --try 1 shows {earlier}"


async def _times(
    services: Services, execution: Execution, path: Path, stream: LogStream, places: tuple[str | None, str | None]
) -> LogTimes:
    """Return when the log was written, where a place needs that."""
    parsed = [parse_place(place) for place in places if place is not None]
    if not any(isinstance(place, ClockPlace | SpanPlace) for place in parsed):
        return LogTimes(())
    if stream is not LogStream.OUTPUT:
        raise UsageError("only the whole output is known by time", hint="a line or a share (50%) works")
    return await asyncio.to_thread(services.executions.log_times_reader(execution, path).read)


def _span(path: Path, places: tuple[str | None, str | None], times: LogTimes) -> tuple[int, int | None]:
    from_place, to_place = places
    start = 0 if from_place is None else offset_of(path, parse_place(from_place), times, is_end=False)
    stop = None if to_place is None else offset_of(path, parse_place(to_place), times, is_end=True)
    check_order(start, stop)
    return start, stop


def _is_coloured(wanted: bool | None) -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") if wanted is None else wanted


async def _follow(services: Services, wanted: Wanted, execution: Execution) -> None:
    """Print what is there and what comes, until the run is over and everything is printed."""
    is_over = threading.Event()
    is_left = threading.Event()

    def wait_for_more() -> bool:
        flush()
        return not is_over.wait(_LOOK_INTERVAL_S)

    def print_all() -> None:
        if wanted.is_raw:
            for chunk in iter_raw_chunks(wanted.path, first_offset=follow_offset(wanted), wait_for_more=wait_for_more):
                if is_left.is_set():
                    return
                say_bytes(chunk)
        else:
            print_followed(wanted, wait_for_more, is_left.is_set)

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


def _print_present(wanted: Wanted) -> int:
    count = 0
    if wanted.is_raw:
        for chunk in present_bytes(wanted):
            say_bytes(chunk)
            count += 1
    else:
        for line in present_lines(wanted):
            say_clean_line(wanted.shown(line))
            count += 1
    return count


def _save(wanted: Wanted, target: Path, overwrite: bool) -> int:
    if not wanted.path.exists():
        raise NotFoundError("no output yet: there is nothing to save")
    if target.exists() and target.samefile(wanted.path):
        raise UsageError("that is the log itself", hint="name another file")
    if wanted.is_raw:
        pieces = present_bytes(wanted)
    else:
        pieces = (f"{plain_text(line)}\n".encode() for line in present_lines(wanted))
    try:
        return write_new_file(target, pieces, overwrite=overwrite)
    except ConflictError as error:
        raise ConflictError(str(error), hint="--overwrite takes its place") from error


def _document(wanted: Wanted, execution: Execution, stream: LogStream) -> dict[str, object]:
    size_bytes, line_count = size_and_line_count(wanted)
    document: dict[str, object] = {
        "execution_id": execution.id,
        "path": str(wanted.path),
        "stream": stream.value,
        "size_bytes": size_bytes,
        "line_count": line_count,
        "lines": [plain_text(line) for line in present_lines(wanted)],
    }
    if wanted.pattern is not None:
        document["offsets"] = matching_offsets(wanted)
    return document
