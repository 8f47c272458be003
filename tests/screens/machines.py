"""A machine of stub programs, and one whose every letter is fixed, for the screens of agents."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from agentmon.domain.agent_health import AgentHealth
from agentmon.domain.agents import Agent, Capability, CapabilitySource, DangerLevel, ToolType
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.domain.programs import Program, ProgramKind
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.runners.discovery import places
from agentmon.services.actors import USER_ACTOR
from agentmon.services.agent_health import AgentHealthService
from agentmon.store.agents import AgentRepository
from agentmon.store.parking import park_for_quota
from agentmon.store.programs import ProgramRepository
from tests.screens.registered import a_coder, a_tool
from tests.screens.scenes import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pytest

    from agentmon.bootstrap import Services

_VARIABLES = ("PYENV_ROOT", "NVM_DIR", "CARGO_HOME", "RUSTUP_HOME", "GOPATH", "VOLTA_HOME", "NPM_CONFIG_PREFIX")
_GONE = "aider"
_CAPABILITIES = (
    ("status", "Show what is changed", DangerLevel.SAFE, ("status", "--short")),
    ("commit", "Keep what is staged", DangerLevel.CAUTION, ("commit", "-m", "{{args.message}}")),
    ("push", "Send commits", DangerLevel.DANGEROUS, ("push",)),
    ("clean", "Delete what is not tracked", DangerLevel.DESTRUCTIVE, ("clean", "-fdx")),
)


def stub_machine(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> Path:
    """Make a PATH of one folder with these programs, which tell a version; return the folder."""
    programs = folder / "bin"
    programs.mkdir()
    for name in names:
        add_program(programs, name)
    for variable in _VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(places, "SYSTEM_PLACES", ())
    return programs


def add_program(folder: Path, name: str) -> None:
    (folder / name).write_text("#!/bin/sh\necho 1.2.3\n")
    (folder / name).chmod(0o755)


def fixed_machine(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agents have fixed places and logins, whatever this machine has."""
    stub_machine(folder, monkeypatch)

    async def look(_service: AgentHealthService, agents: Sequence[Agent]) -> dict[AgentId, AgentHealth]:
        return {one.id: _health(one) for one in agents}

    monkeypatch.setattr(AgentHealthService, "look", look)


def _health(agent: Agent) -> AgentHealth:
    ended = {"last_status": ExecutionStatus.SUCCEEDED, "last_ended_at": NOW - timedelta(minutes=41)}
    facts: dict[str, dict[str, object]] = {
        "coder": {
            "is_logged_in": True,
            "login_note": "~/.claude.json is there",
            "running": 1,
            "cost_week_nano": 12_630_000_000,
        },
        "codex": {"is_logged_in": False, "login_note": "codex login", "cost_week_nano": 3_100_000_000},
        "git": ended,
        "make": ended | {"last_status": ExecutionStatus.FAILED, "last_ended_at": NOW - timedelta(days=2)},
    }
    is_there = agent.binary_path and agent.slug != _GONE
    found_path = f"/usr/bin/{agent.binary_path}" if is_there else None
    return AgentHealth(found_path=found_path, **facts.get(agent.slug, {}))  # type: ignore[arg-type] # named here


async def fill_machine(services: Services) -> None:
    """Put agents into the registry, and the programs of two scans into the database."""
    coder = replace(
        a_coder(),
        version="2.1.34",
        package_name="npm:@anthropic-ai/claude-code",
        role="writes code",
        model="opus",
        instructions="Keep changes small. Run the tests before you say that it is done.",
        edited_fields=("instructions", "model", "role"),
        max_concurrent=2,
    )
    tool = replace(a_tool(), slug="git", version="2.47.3", package_name="dpkg:git", package_section="vcs")
    tool = replace(tool, capabilities=(*tool.capabilities, *(_capability(tool.id, *one) for one in _CAPABILITIES)))
    others = (
        _agent("codex", "Codex", tool_type=ToolType.AI_AGENT, version="0.61.0", max_concurrent=1),
        _agent("gemini", "Gemini CLI", tool_type=ToolType.AI_AGENT, version="0.18.4", is_active=False),
        _agent(_GONE, "Aider", tool_type=ToolType.AI_AGENT, version="0.86.1"),
        _agent("qwen", "Qwen Code", tool_type=ToolType.AI_AGENT, version="0.4.1"),
        _agent("make", "Make", version="4.4.1", max_concurrent=1),
        _agent("jq", "jq", version="1.7.1"),
        _agent("terraform", "Terraform", version="1.13.4", is_active=False),
        _agent("translate", "Übersetzer 中文 🎉"),
    )
    for one in (coder, tool, *others):
        await services.agents.add(one)
    await services.agents.set_tools("coder", {"Bash(git:*)": True, "WebFetch": False}, actor=USER_ACTOR)
    gone = await services.agents.by_slug(_GONE)
    await AgentRepository(services.database).mark_missing([gone.id], at=NOW - timedelta(days=2))
    parked = await services.agents.by_slug("qwen")
    until = NOW + timedelta(minutes=58)
    refusal = Refusal(
        kind=RefusalKind.USAGE_LIMIT, text="Qwen usage limit reached, resets 3 pm", until=until, advice=""
    )
    async with services.database.writing() as connection:
        await park_for_quota(connection, parked.id, refusal, until=until, at=NOW)
    repository = ProgramRepository(services.database)
    before = [_program(name) for name in ("awk", "bat", "git", "jq", "make", "nano", "sh", "tar", "terraform")]
    await repository.record(before, unread=(), at=NOW - timedelta(days=3))
    after = [
        *(one for one in before if one.name not in {"nano", "make"}),
        replace(before[4], size_bytes=251_000),
        _program("fd", real_path="/usr/bin/fdfind"),
        _program("python3", kind=ProgramKind.SHIM, real_path="/home/ada/.pyenv/versions/3.13/bin/python3"),
        replace(_program("awk"), path="/usr/local/bin/awk", shadowed_by="/usr/bin/awk"),
        _program("dangling", kind=ProgramKind.BROKEN, size_bytes=0),
    ]
    await repository.record(after, unread=(), at=NOW)


def _capability(agent_id: AgentId, key: str, label: str, level: DangerLevel, tokens: tuple[str, ...]) -> Capability:
    return Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key=key,
        label=label,
        danger_level=level,
        command_tokens=tokens,
        requires_approval=level >= DangerLevel.DANGEROUS,
        timeout_s=60,
        source=CapabilitySource.SCAN_HELP if key == "push" else CapabilitySource.PRESET,
    )


def _agent(slug: str, name: str, **facts: object) -> Agent:
    return Agent(id=AgentId(new_id()), slug=slug, name=name, binary_path=slug, **facts)  # type: ignore[arg-type] # named by tests


def _program(name: str, **facts: object) -> Program:
    path = f"/usr/bin/{name}"
    fields: dict[str, object] = {
        "real_path": path,
        "kind": ProgramKind.BINARY,
        "size_bytes": 240_000,
        "package_manager": "dpkg",
        "package_name": name,
    }
    return Program(path=path, name=name, **{**fields, **facts})  # type: ignore[arg-type] # named by tests
