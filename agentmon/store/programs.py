"""The programs that scans found; one that is gone keeps its row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, or_, select, update
from sqlalchemy.dialects.sqlite import insert

from agentmon.domain.programs import Program, ProgramKind
from agentmon.store import tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import datetime

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from agentmon.store.database import Database

_MOST_PROGRAMS: Final = 50_000
_AT_ONCE: Final = 200
_FACTS: Final = (
    *("real_path", "kind", "size_bytes", "modified_ms"),
    *("package_manager", "package_name", "package_version"),
)
"""What makes another program of the one at a path when it differs."""
_BESIDE: Final = ("name", "shadowed_by", "package_section")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChanges:
    """What a scan found beside what was known; paths, sorted."""

    came: tuple[str, ...]
    """Also those that had gone."""
    changed: tuple[str, ...]
    went: tuple[str, ...]
    is_first: bool


class ProgramRepository:
    """Reads and writes what scans found."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def scanned_at(self) -> datetime | None:
        """Return when the newest scan was; None when there was none."""
        newest = select(func.max(tables.programs.c.last_seen_at))
        async with self._database.reading() as connection:
            found: datetime | None = (await connection.execute(newest)).scalar()
        return found

    async def folders(self) -> tuple[str, ...]:
        """Return the folders of the programs that were there with the newest scan, sorted."""
        path = tables.programs.c.path
        folder = func.rtrim(path, func.replace(path, "/", ""))
        chosen = (
            select(folder)
            .where(tables.programs.c.missing_since.is_(None), path.startswith("/"))
            .distinct()
            .order_by(folder)
        )
        async with self._database.reading() as connection:
            found = (await connection.execute(chosen)).scalars().all()
        return tuple(name.rstrip("/") or "/" for name in found)

    async def list(self, words: str = "", *, only_new: bool = False, with_missing: bool = False) -> tuple[Program, ...]:
        """Return programs by name, of one name in the order of the PATH.

        Args:
            words: All of them have to be in the name, the path or the package; case does not matter.
            only_new: Those that came with the newest scan; none after the very first.
            with_missing: Also those that are gone.
        """
        programs = tables.programs.c
        statement = select(tables.programs).order_by(programs.name, programs.shadowed_by.is_not(None), programs.path)
        for word in words.split():
            statement = statement.where(
                or_(
                    *(
                        column.icontains(word, autoescape=True)
                        for column in (programs.path, programs.package_name, programs.package_section)
                    )
                )
            )
        if only_new:
            newest, oldest = func.max(programs.last_seen_at), func.min(programs.first_seen_at)
            statement = statement.where(
                programs.changed_at == select(newest).scalar_subquery(),
                programs.changed_at > select(oldest).scalar_subquery(),
            )
        if not with_missing:
            statement = statement.where(programs.missing_since.is_(None))
        async with self._database.reading() as connection:
            rows = (await connection.execute(statement.limit(_MOST_PROGRAMS))).mappings().all()
        return tuple(_program_of(row) for row in rows)

    async def record(self, programs: Sequence[Program], *, unread: Collection[str], at: datetime) -> ProgramChanges:
        """Write what a scan found in one transaction, and return what is different.

        It is compared and written some hundred programs at a time, so that nothing else on the event loop waits long.

        Args:
            programs: All that there are, each path once.
            unread: Folders of which the scan knows nothing: what was known of them stays as it is.
            at: When it was.
        """
        found = {program.path: program for program in programs}
        different = await self._compare(found, unread)
        rows = tables.programs
        new, moved, went = different.back | different.changed, different.moved, different.went
        async with self._database.writing() as connection:
            is_first = (await connection.execute(select(rows.c.path).limit(1))).first() is None
            seen = dict.fromkeys(("first_seen_at", "last_seen_at", "changed_at", "created_at", "updated_at"), at)
            for paths in _parts(different.fresh):
                # Another process may have scanned meanwhile.
                added = [_row_of(found[path]) | seen for path in paths]
                await connection.execute(insert(rows).on_conflict_do_nothing(), added)
            for paths in _parts(new):
                facts = [_row_of(found[path]) for path in paths]
                await _update(connection, facts, {"changed_at": at, "missing_since": None, "updated_at": at})
            for paths in _parts(moved):
                await _update(connection, [_row_of(found[path]) for path in paths], {"updated_at": at})
            for paths in _parts(went):
                await _update(connection, [{"path": path} for path in paths], {"missing_since": at, "updated_at": at})
            await connection.execute(update(rows).where(rows.c.missing_since.is_(None)).values(last_seen_at=at))
        return ProgramChanges(
            came=tuple(sorted(different.fresh | different.back)),
            changed=tuple(sorted(different.changed)),
            went=tuple(sorted(went)),
            is_first=is_first,
        )

    async def _compare(self, found: Mapping[str, Program], unread: Collection[str]) -> _Different:
        different = _Different(fresh=set(found))
        async with self._database.reading() as connection:
            result = await connection.stream(_known())
            async for rows in result.mappings().partitions(_AT_ONCE):
                for row in rows:
                    different.take(row, found.get(row["path"]), unread)
        return different


@dataclass(slots=True, kw_only=True)
class _Different:
    """Paths by what is different about their programs."""

    fresh: set[str]
    back: set[str] = field(default_factory=set)
    changed: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    """Only what hides it, or the like, is another one."""
    went: set[str] = field(default_factory=set)

    def take(self, row: RowMapping, program: Program | None, unread: Collection[str]) -> None:
        """Put a known program where it belongs; None for one that was not found."""
        path = row["path"]
        self.fresh.discard(path)
        if program is None:
            if not row["is_missing"] and path.rpartition("/")[0] not in unread:
                self.went.add(path)
        elif row["is_missing"]:
            self.back.add(path)
        elif _differs(program, row, _FACTS):
            self.changed.add(path)
        elif _differs(program, row, _BESIDE):
            self.moved.add(path)


def _parts(paths: Collection[str]) -> Iterator[Sequence[str]]:
    ordered = sorted(paths)
    return (ordered[begin : begin + _AT_ONCE] for begin in range(0, len(ordered), _AT_ONCE))


async def _update(
    connection: AsyncConnection, programs: Sequence[Mapping[str, object]], stamps: Mapping[str, object]
) -> None:
    """Write into the rows of some programs what each has to say, and the stamps into all of them."""
    if not programs:
        return
    rows = tables.programs
    named = {name: bindparam(f"new_{name}", type_=rows.c[name].type) for name in programs[0] if name != "path"}
    await connection.execute(
        update(rows).where(rows.c.path == bindparam("new_path")).values({**named, **stamps}),
        [{f"new_{name}": value for name, value in program.items()} for program in programs],
    )


def _known() -> Select[tuple[object, ...]]:
    """Return what reads what programs are compared by; without times, which would take two thousand rows long."""
    columns = tables.programs.c
    compared = (columns[name] for name in ("path", *_FACTS, *_BESIDE))
    return select(*compared, columns.missing_since.is_not(None).label("is_missing"))


def _differs(program: Program, row: RowMapping, names: Sequence[str]) -> bool:
    return any(getattr(program, name) != row[name] for name in names)


def _row_of(program: Program) -> dict[str, object]:
    return {name: getattr(program, name) for name in ("path", *_FACTS, *_BESIDE)}


def _program_of(row: RowMapping) -> Program:
    return Program(
        path=row["path"],
        name=row["name"],
        real_path=row["real_path"],
        kind=ProgramKind(row["kind"]),
        shadowed_by=row["shadowed_by"],
        size_bytes=row["size_bytes"],
        modified_ms=row["modified_ms"],
        package_manager=row["package_manager"],
        package_name=row["package_name"],
        package_section=row["package_section"],
        package_version=row["package_version"],
        first_seen_at=row["first_seen_at"],
        last_seen_at=row["last_seen_at"],
        changed_at=row["changed_at"],
        missing_since=row["missing_since"],
    )
