from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.programs import Program, ProgramKind
from agentmon.paths import find_paths
from agentmon.store.programs import ProgramChanges, ProgramRepository

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    import pytest

    from agentmon.store.programs import _Different

START = datetime(2026, 3, 1, tzinfo=UTC)


def program(number: int) -> Program:
    return Program(
        path=f"/bin/p{number:03d}", name=f"p{number:03d}", real_path=f"/bin/p{number:03d}", kind=ProgramKind.BINARY
    )


async def test_two_first_scans_at_once_write_each_program_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_services(find_paths({"AGENTMON_HOME": str(tmp_path)})) as services:
        programs = ProgramRepository(services.database)
        everything = [program(number) for number in range(450)]
        compare, both = programs._compare, asyncio.Barrier(2)

        async def compare_at_once(found: Mapping[str, Program], unread: Collection[str]) -> _Different:
            different = await compare(found, unread)
            await both.wait()
            return different

        monkeypatch.setattr(programs, "_compare", compare_at_once)
        first, other = await asyncio.gather(
            programs.record(everything, unread=(), at=START), programs.record(everything, unread=(), at=START)
        )
        assert len(first.came) == len(other.came) == len(await programs.list()) == 450
        assert {first.is_first, other.is_first} == {True, False}


async def test_scans_are_compared_program_by_program(tmp_path: Path) -> None:
    async with open_services(find_paths({"AGENTMON_HOME": str(tmp_path)})) as services:
        programs = ProgramRepository(services.database)
        everything = [program(number) for number in range(450)]

        def after(hours: int) -> datetime:
            return START + timedelta(hours=hours)

        first = await programs.record(everything, unread=(), at=START)
        assert (len(first.came), first.is_first) == (len(await programs.list()), True) == (450, True)

        hidden = replace(everything[3], shadowed_by="/usr/bin/p003", package_section="vcs")
        newer = replace(everything[4], package_version="2")
        away = replace(everything[5], path="/away/p005")
        await programs.record([*everything, away], unread=(), at=after(1))
        changes = await programs.record([hidden, newer, *everything[10:]], unread=("/away",), at=after(2))
        assert changes == ProgramChanges(
            came=(),
            changed=("/bin/p004",),
            went=tuple(one.path for one in everything[:10] if one.name not in {"p003", "p004"}),
            is_first=False,
        )
        known = {one.path: one for one in await programs.list(with_missing=True)}
        assert (known["/bin/p003"].shadowed_by, known["/bin/p003"].changed_at) == ("/usr/bin/p003", START)
        assert (known["/bin/p004"].package_version, known["/bin/p004"].changed_at) == ("2", after(2))
        assert (known["/bin/p000"].missing_since, known["/bin/p000"].last_seen_at) == (after(2), after(1))
        assert known["/away/p005"].missing_since is None
        assert [one.path for one in await programs.list("VCS p00")] == ["/bin/p003"]
        assert await programs.list("vcs p009") == ()
        assert await programs.scanned_at() == after(2)

        back = await programs.record([everything[0], hidden, newer, *everything[10:]], unread=("/away",), at=after(3))
        assert (back.came, back.changed, back.went) == (("/bin/p000",), (), ())
        assert [one.path for one in await programs.list(only_new=True)] == ["/bin/p000"]
        (again,) = await programs.list("p000")
        assert (again.missing_since, again.first_seen_at, again.changed_at) == (None, START, after(3))
