"""What a search found, as lines and as a document; imports little, since the search is to answer at once."""

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from agentmon.cli import exit_codes
from agentmon.cli.columns import fill, fit, terminal_width
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.errors import UsageError
from agentmon.domain.letters import columns_of
from agentmon.domain.moments import moment_words
from agentmon.domain.search import FoundOfKind, SearchHit, SearchKind, parse_query
from agentmon.paths import find_paths, find_workspace_root, is_repository
from agentmon.services.log_moments import LogMoments
from agentmon.store.search_reading import SearchReader, opened_search

LIMIT = 20
LARGEST_LIMIT = 1_000
_MOST_S = 20.0
_SHOWN_ID = 13
"""Letters of an id that name it: those of ids of one millisecond begin alike."""
_WIDEST_COMMAND = 44
_WIDEST_PLACE = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is searched, and where."""

    text: str
    kinds: tuple[str, ...] = ()
    """The beginnings of their names; none means what the text says, or all."""
    limit: int = LIMIT
    is_everywhere: bool = False
    folder: Path
    as_json: bool = False


def print_found(asked: Asked, *, workspace_id: str | None = None) -> int | None:
    """Search, print what was found, and return the exit code: 1 when nothing was; None when the database is not ready.

    It is when this release made or upgraded it and the workspace of the folder is known.

    Args:
        asked: What is asked for.
        workspace_id: Of the folder; it is looked for in the database when it is None.

    Raises:
        UsageError: A kind is unknown, or nothing is asked for.
        StoreError: The database cannot be read.
    """
    query_text = asked.text if not asked.kinds else f"{_kinds_text(asked.kinds)} {asked.text}"
    query = parse_query(query_text)
    if query.is_empty:
        raise UsageError("nothing to search for", hint="agentmon search login; agentmon search 'in:logs timeout'")
    database = find_paths().database_path
    if not database.is_file():
        return None
    with opened_search(database) as reader:
        if not reader.is_current():
            return None
        if not asked.is_everywhere:
            workspace_id = workspace_id or _workspace_of(reader, asked.folder)
            if workspace_id is None:
                return None
        found = reader.search(query, workspace_id=workspace_id, limit=asked.limit, most_s=_MOST_S)
    found = LogMoments().date(found)
    if asked.as_json:
        say_document(_document(asked, found))
    else:
        _print_lines(asked, found)
    return exit_codes.DONE if any(group.hits for group in found) else exit_codes.FAILED


def _kinds_text(kinds: tuple[str, ...]) -> str:
    for name in kinds:
        if not name or not any(kind.value.startswith(name) for kind in SearchKind):
            raise UsageError(f"{name!r} is no kind", hint=f"--in takes {', '.join(SearchKind)}")
    return f"in:{','.join(kinds)}"


def _workspace_of(reader: SearchReader, folder: Path) -> str | None:
    """Return the workspace of a folder, as ``services.workspaces`` finds it; None when it takes more than that."""
    root = find_workspace_root(folder)
    found = reader.find_workspace([str(part) for part in (folder, *folder.parents)])
    if found is None:
        return None
    workspace_id, root_path = found
    return workspace_id if not is_repository(root) or len(root_path) >= len(str(root)) else None


def _print_lines(asked: Asked, found: tuple[FoundOfKind, ...]) -> None:
    width = terminal_width()
    is_first = True
    for group in found:
        if group.hits:
            if not is_first:
                say()
            is_first = False
            more = "+" if group.has_more else ""
            say(f"{group.kind.value} ({len(group.hits)}{more})")
            rows = [(_command(hit, asked), _place(hit), hit.snippet.text) for hit in group.hits]
            first = min(_WIDEST_COMMAND, max(columns_of(command) for command, _, _ in rows))
            second = min(_WIDEST_PLACE, max(columns_of(place) for _, place, _ in rows))
            for command, place, text in rows:
                line = f"  {fill(command, max(first, columns_of(command)))}  {fill(place, second)}  "
                say(line + fit(text, max(20, width - columns_of(line))))
    for group in found:
        for note in _notes(group):
            tell(note)
    if is_first:
        tell(f"nothing has {asked.text!r}" + ("" if asked.is_everywhere else "; --all searches every workspace"))


def _notes(group: FoundOfKind) -> list[str]:
    notes = []
    if group.unindexed:
        notes.append(f"{group.unindexed:,} of the {group.kind.value} are not searched yet; the worker takes them up")
    if group.is_cut:
        notes.append(f"not all {group.kind.value} were searched: that took too long")
    if any(hit.is_partial for hit in group.hits):
        notes.append("of long logs only the beginning and the end are searched (search.log_mb)")
    return notes


def _place(hit: SearchHit) -> str:
    when = (
        ""
        if hit.at is None
        else moment_words(hit.at, now=datetime.now(UTC), zone=datetime.now().astimezone().tzinfo or UTC)
    )
    place = hit.where
    if hit.kind is SearchKind.LOGS:
        place = f"byte {hit.offset}" if hit.line is None else f"line {hit.line}, byte {hit.offset}"
    archived = "archived" if hit.is_archived else ""
    return ", ".join(part for part in (place, when, archived) if part)


def _command(hit: SearchHit, asked: Asked) -> str:
    """Return the command that shows what was found."""
    words = ["agentmon"]
    match hit.kind:
        case SearchKind.TASKS:
            words += ["task", "show", str(hit.task_number)]
        case SearchKind.LOGS:
            words += ["log", str(hit.task_number), "--execution", str(hit.execution_id)]
        case SearchKind.CHANGES:
            words += ["diff", str(hit.task_number), "--run", str(hit.execution_id)]
        case SearchKind.MESSAGES | SearchKind.OPERATIONS if hit.task_number is not None:
            shown = "conversation" if hit.kind is SearchKind.MESSAGES else "operations"
            words += [shown, str(hit.task_number)]
            words += ["--session", str(hit.session_id)[:_SHOWN_ID]] if hit.kind is SearchKind.MESSAGES else []
        case _:
            words += ["sessions", "show", str(hit.session_id)[:_SHOWN_ID]]
    if asked.is_everywhere and hit.task_number is not None and hit.kind is not SearchKind.SESSIONS:
        words += ["-C", hit.workspace_root]
    return shlex.join(words)


def _document(asked: Asked, found: tuple[FoundOfKind, ...]) -> dict[str, object]:
    return {
        "query": asked.text,
        "found": sum(len(group.hits) for group in found),
        "kinds": [
            {
                "kind": group.kind.value,
                "has_more": group.has_more,
                "is_cut": group.is_cut,
                "unindexed": group.unindexed,
                "hits": [_hit_form(hit, asked) for hit in group.hits],
            }
            for group in found
        ],
    }


def _hit_form(hit: SearchHit, asked: Asked) -> dict[str, object]:
    return {
        "id": hit.key,
        "task_number": hit.task_number,
        "title": hit.title,
        "workspace": hit.workspace_root,
        "is_archived": hit.is_archived,
        "where": hit.where,
        "at": None
        if hit.at is None
        else hit.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "text": hit.snippet.text,
        "marks": [list(mark) for mark in hit.snippet.marks],
        "session_id": hit.session_id,
        "execution_id": hit.execution_id,
        "offset": hit.offset,
        "line": hit.line,
        "is_log_searched_in_part": hit.is_partial,
        "command": _command(hit, asked),
    }
