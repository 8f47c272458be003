from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import Services, open_services
from agentmon.domain.agents import Agent, AgentKind, ToolType
from agentmon.domain.ids import AgentId, new_id
from agentmon.domain.programs import ProgramKind, ScanProgress
from agentmon.domain.scan_words import news_line, outcome_line
from agentmon.paths import find_paths
from agentmon.runners.discovery import path_scan, places
from agentmon.services.actors import USER_ACTOR
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable


class Machine:
    """A PATH of stub programs, each of which notes that it was run."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.home = Path(os.environ["HOME"])

    def add(self, name: str, script: str = "echo 1.0.0", *, folder: Path | None = None) -> Path:
        path = (folder or self.bin) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\nexit 0\n", encoding="utf-8")
        path.chmod(0o755)
        return path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    for variable in ("PYENV_ROOT", "NVM_DIR", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "VOLTA_HOME", "NPM_CONFIG_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(machine.bin))
    monkeypatch.setattr(places, "SYSTEM_PLACES", ())
    return machine


@pytest.fixture
async def services(tmp_path: Path, machine: Machine) -> AsyncIterator[Services]:
    del machine
    async with open_services(find_paths({"AGENTMON_HOME": str(tmp_path / "agentmon")})) as services:
        yield services


async def test_a_scan_runs_presets_programs_alone_and_tells_what_came_changed_and_went(
    services: Services, machine: Machine
) -> None:
    stubs = ("hangs", "writes", "asks", "crashes", "floods", "fails")
    for name in stubs:
        machine.add(name, f"touch {machine.bin}/ran-{name}; sleep 300")
    machine.add("git", "echo git version 2.40.1")
    machine.add("make", "echo GNU Make 4.3; sleep 300 &")
    progress: list[ScanProgress] = []

    first = await services.discovery.scan(on_progress=progress.append)

    assert first.is_first
    assert first.programs == len(first.came) == 8
    assert not [path for path in machine.bin.iterdir() if path.name.startswith("ran-")]
    versions = {agent.slug: agent.version for agent in await services.agents.registered()}
    assert (versions["git"], versions["make"]) == ("2.40.1", "4.3")
    assert [step.step for step in progress][-1] == "asking for versions"
    assert services.discovery.progress is None

    again = await services.discovery.scan()

    assert (again.came, again.changed, again.went, again.problems) == ((), (), (), ())
    assert news_line(again) == ""

    machine.add("git", "echo git version 2.41.0 # longer")
    machine.add("cargo", "echo cargo 1.90.0")
    (machine.bin / "make").unlink()
    (machine.bin / "hangs").unlink()
    third = await services.discovery.scan()

    assert third.came == (str(machine.bin / "cargo"),)
    assert third.changed == (str(machine.bin / "git"),)
    assert third.went == (str(machine.bin / "hangs"), str(machine.bin / "make"))
    assert (third.agents_added, third.agents_missing) == (("cargo",), ("make",))
    assert outcome_line(third) == (
        "7 programs in 1 folder; 1 came, 1 changed, 2 went; new here: cargo; not found any more: make"
    )
    agents = {agent.slug: agent for agent in await services.agents.registered()}
    assert agents["git"].version == "2.41.0"
    assert agents["make"].missing_since is not None
    assert [program.name for program in await services.discovery.programs(only_new=True)] == ["cargo", "git"]

    machine.add("make", "echo GNU Make 4.4")
    fourth = await services.discovery.scan()

    assert fourth.agents_back == ("make",)
    assert (await services.agents.by_slug("make")).version == "4.4"


async def test_an_agent_of_a_version_manager_is_found_with_a_short_path(services: Services, machine: Machine) -> None:
    node = machine.home / ".nvm/versions/node"
    for version in ("v9.9.0", "v20.1.0", "v18.0.0"):
        machine.add(
            "node", f'[ "$1" = --version ] && echo {version} || echo codex-cli {version}', folder=node / version / "bin"
        )
        codex = machine.add("codex", folder=node / version / "bin")
        codex.write_text("#!/usr/bin/env node\n", encoding="utf-8")
    (node.parent.parent / "alias").mkdir()
    (node.parent.parent / "alias/default").write_text("18\n", encoding="utf-8")
    package = machine.home / ".local/lib/node_modules/@anthropic-ai/claude-code"
    real = machine.add("cli.js", "echo '2.1.3 (Claude Code)'", folder=package)
    (package / "package.json").write_text('{"version": "2.1.3"}', encoding="utf-8")
    (machine.home / ".local/bin").mkdir()
    (machine.home / ".local/bin/claude").symlink_to(real)
    (machine.bin / "claude").symlink_to(machine.bin / "nowhere")
    (machine.bin / "codex").mkdir()
    (machine.bin / "git").write_text("#!/bin/sh\n", encoding="utf-8")

    outcome = await services.discovery.scan()

    agents = {agent.slug: agent for agent in await services.agents.registered()}
    assert outcome.problems == ()
    assert {"claude", "codex"} <= set(outcome.agents_added)
    assert "command" not in outcome.agents_added
    assert "git" not in agents
    assert agents["codex"].binary_path == str(node / "v18.0.0/bin/codex")
    assert agents["codex"].version == "18.0.0"
    assert agents["claude"].binary_path == str(machine.home / ".local/bin/claude")
    assert agents["claude"].package_name == "npm:@anthropic-ai/claude-code"
    found = {program.path: program for program in await services.discovery.programs()}
    assert found[str(machine.bin / "claude")].kind is ProgramKind.BROKEN
    assert found[str(machine.bin / "git")].kind is ProgramKind.BROKEN
    assert str(machine.bin / "codex") not in found
    assert found[str(node / "v9.9.0/bin/codex")].shadowed_by == str(node / "v18.0.0/bin/codex")
    health = await services.discovery.health(tuple(agents.values()))
    assert health[agents["codex"].id].found_path == str(node / "v18.0.0/bin/codex")


async def test_what_a_person_set_and_what_nobody_named_stays_as_it_is(
    services: Services, machine: Machine, tmp_path: Path
) -> None:
    own = machine.add("deploy", f"touch {machine.bin}/ran; echo 3.2.1")
    git = machine.add("git", "echo git version 2.40.1")
    agent = Agent(id=AgentId(new_id()), slug="deploy", name="Deploy", kind=AgentKind.CUSTOM, binary_path=str(own))
    await services.agents.add(agent)
    await services.discovery.scan()
    assert not (machine.bin / "ran").exists()
    daemon = await services.agents.add_program(str(machine.add("thingd", folder=tmp_path / "sbin")), actor=USER_ACTOR)
    assert (daemon.tool_type, daemon.package_name) == (ToolType.DAEMON, None)

    assert await services.discovery.version("deploy") == "3.2.1"

    own.unlink()
    machine.add("git", "echo unexpected")
    outcome = await services.discovery.scan()
    assert outcome.agents_missing == ("deploy",)
    assert await services.discovery.version("deploy") is None
    assert git.exists()


async def test_a_program_that_hangs_is_told_and_keeps_nothing_alive(
    services: Services, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentmon.services.discovery._ASKED_FOR_S", 0.5)
    path = machine.add("git", "trap '' TERM; /bin/sleep 300")

    outcome = await services.discovery.scan()

    assert outcome.problems == (f"git: {path} did not answer within 0.5 s when it was asked for its version",)
    assert (await services.agents.by_slug("git")).version is None


async def test_behind_a_shim_the_program_itself_is_asked(
    services: Services, machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    root = tmp_path / "pyenv"
    for folder, body in (("shims", 'exec pyenv exec "$0" "$@"'), ("versions/3.12.1/bin", "echo git version 2.41.0")):
        (root / folder).mkdir(parents=True)
        (root / folder / "git").write_text(f"#!/bin/sh\n{body}\n")
        (root / folder / "git").chmod(0o755)
    (root / "version").write_text("3.12.1\n")
    monkeypatch.setenv("PYENV_ROOT", str(root))
    monkeypatch.setenv("PATH", f"{root}/shims:{machine.bin}")

    outcome = await services.discovery.scan()

    assert outcome.problems == ()
    assert (await services.agents.by_slug("git")).version == "2.41.0"


async def test_a_namesake_is_told_whatever_it_ends_with(services: Services, machine: Machine) -> None:
    calm = machine.add("gh", "echo hello")
    failing = machine.add("git", "echo what is --version; exit 3")

    outcome = await services.discovery.scan()

    assert outcome.problems == (
        f"gh: {calm} may be another program of that name",
        f"git: {failing} told no version and ended with 3; it may not work, or be another program of that name",
    )


async def test_a_scan_that_is_left_writes_nothing_and_two_at_once_are_one(
    services: Services, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.add("tool")
    reads: list[Path] = []
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    read_folder = path_scan.read_folder

    def slow(folder: Path) -> path_scan.FolderScan:
        reads.append(folder)
        loop.call_soon_threadsafe(begun.set)
        if len(reads) == 1:
            is_let_go.wait(DEADLINE_S)
        return read_folder(folder)

    is_let_go = threading.Event()
    monkeypatch.setattr(path_scan, "read_folder", slow)
    leaving = asyncio.ensure_future(services.discovery.scan())
    await begun.wait()
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    is_let_go.set()
    assert await services.discovery.programs() == ()
    assert services.discovery.progress is None
    count = len(reads)

    one, other = await asyncio.gather(services.discovery.scan(), services.discovery.scan())

    assert one is other
    assert len(reads) == count + 1
    assert [program.name for program in await services.discovery.programs()] == ["tool"]


async def test_a_folder_that_does_not_answer_takes_nothing_away(
    services: Services, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    machine.add("make", "echo GNU Make 4.3", folder=other)
    machine.add("git", "echo git version 2.40.1")
    monkeypatch.setenv("PATH", f"{machine.bin}:{other}")
    await services.discovery.scan()
    monkeypatch.setattr(path_scan, "read_folder", refusing(other, path_scan.read_folder))

    outcome = await services.discovery.scan()

    assert outcome.problems == (f"{other} cannot be read: Permission denied",)
    assert (outcome.went, outcome.agents_missing) == ((), ())


async def test_a_shell_with_its_own_environment_and_a_job_with_a_short_path_see_the_same_machine(
    services: Services, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv, cargo, same = tmp_path / "venv/bin", machine.home / ".cargo/bin", tmp_path / "same"
    ruff = machine.add("ruff", "echo ruff 0.9.1", folder=venv)
    cargo_path = machine.add("cargo", "echo cargo 1.90.0", folder=cargo)
    for folder in (venv, cargo):
        machine.add("mypy", f"echo mypy 1.9.0 # {folder}", folder=folder)
    machine.add("make", "echo GNU Make 4.3")
    same.symlink_to(machine.bin)
    rich, poor = f"{venv}:{cargo}:{machine.bin}:{same}", f"{same}:{machine.bin}"
    monkeypatch.setenv("PATH", rich)
    first = await services.discovery.scan()
    assert {"cargo", "make", "ruff"} <= set(first.agents_added)

    for number, path in enumerate((poor, rich, poor, rich)):
        monkeypatch.setenv("PATH", path)
        trail = len(await services.audit.all(None))

        outcome = await services.discovery.scan()

        assert (outcome.came, outcome.changed, outcome.went) == ((), (), ())
        assert (outcome.agents_missing, outcome.agents_back, outcome.problems) == ((), (), ())
        # At first the whole path, which every PATH can start, takes the place of a name.
        assert number == 0 or len(await services.audit.all(None)) == trail
    agents = {agent.slug: agent for agent in await services.agents.registered()}
    binaries = [agents[slug].binary_path for slug in ("make", "ruff", "mypy", "cargo")]
    assert binaries == ["make", "ruff", "mypy", str(cargo_path)]

    monkeypatch.setenv("PATH", poor)
    ruff.unlink()
    last = await services.discovery.scan()
    assert (last.went, last.agents_missing) == ((str(ruff),), ("ruff",))


def refusing(folder: Path, read: Callable[[Path], path_scan.FolderScan]) -> Callable[[Path], path_scan.FolderScan]:
    def refused(asked: Path) -> path_scan.FolderScan:
        if asked == folder:
            return path_scan.FolderScan(real_path=str(asked), problem=f"{asked} cannot be read: Permission denied")
        return read(asked)

    return refused


async def test_a_scan_is_due_once_a_day_or_never(services: Services, machine: Machine) -> None:
    assert not await services.discovery.is_due()
    await services.settings.set("agents.scan_hours", "24", actor=USER_ACTOR)
    assert await services.discovery.is_due()
    machine.add("tool")

    await services.discovery.scan()

    assert not await services.discovery.is_due()
