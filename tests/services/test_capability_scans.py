from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agent_changes import CapabilityChanges
from agentmon.domain.agents import Agent, Capability, CapabilitySource, DangerLevel, ToolType
from agentmon.domain.capability_proposals import CapabilityProposal, ProposalChange
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.services.actors import USER_ACTOR
from agentmon.services.demo_agent import make_demo_agent
from tests.runners import mcp_server_program

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.bootstrap import Services

HELP, MAN, SHELL = CapabilitySource.SCAN_HELP, CapabilitySource.SCAN_MAN, CapabilitySource.SCAN_COMPLETION
MCP, LLM = CapabilitySource.SCAN_MCP, CapabilitySource.LLM_GENERATED
HELP_TEXT = """\
usage: brew [options] COMMAND

commands:
  add       Add a thing
  delete    Delete a thing

options:
  -v, --verbose      say more
  --depth N          how deep
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A program with a help and a completion file beside it."""
    path = tmp_path / "opt/bin/brewer"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\ncat <<'EOF'\n{HELP_TEXT}EOF\n")
    path.chmod(0o755)
    file = tmp_path / "opt/share/fish/completions/brewer.fish"
    file.parent.mkdir(parents=True)
    file.write_text(
        "complete -c brewer -s d -l depth -x\n"
        "complete -c brewer -n '__fish_seen_subcommand_from add' -l color -xa 'auto never'\n"
    )
    return path


async def agent_of(services: Services, path: Path, *capabilities: str) -> Agent:
    agent_id = AgentId(new_id())
    own = tuple(
        Capability(
            id=CapabilityId(new_id()), agent_id=agent_id, key=key, label=key, command_tokens=(key,), description="mine"
        )
        for key in capabilities
    )
    agent = Agent(
        id=agent_id, slug="brewer", name="Brewer", tool_type=ToolType.CLI_TOOL, binary_path=str(path), capabilities=own
    )
    return await services.agents.add(agent)


def by_key(proposals: Sequence[CapabilityProposal]) -> dict[str, CapabilityProposal]:
    return {proposal.capability.key: proposal for proposal in proposals}


async def test_sources_are_put_together_and_stored_only_when_they_are_accepted(
    services: Services, program: Path
) -> None:
    await agent_of(services, program, "add")
    steps: list[str] = []
    problems: list[str] = []

    found = await services.capability_scans.scan(
        "brewer",
        [SHELL, HELP, MAN],
        on_progress=lambda progress: steps.append(progress.step),
        on_problem=problems.append,
        actor=services.actor,
    )
    proposed = by_key(found)
    unchanged = await services.agents.by_slug("brewer")
    agent = await services.capability_scans.accept("brewer", found, actor=USER_ACTOR)
    again = await services.capability_scans.scan("brewer", [HELP, SHELL], actor=services.actor)
    runnable = {one.key: one for one in agent.capabilities}

    assert list(proposed) == ["run", "add-full", "delete"]
    assert steps == ["asking for its help", "reading its manual page", "reading its completion files", "comparing"]
    assert problems == []
    assert proposed["run"].sources == (HELP, SHELL)
    assert proposed["run"].argument_sources["depth"] == (HELP, SHELL)
    assert proposed["add-full"].capability.args_schema["properties"]["color"]["enum"] == ["auto", "never"]  # type: ignore[index]
    assert proposed["delete"].capability.danger_level is DangerLevel.DANGEROUS
    assert proposed["delete"].capability.requires_approval
    assert proposed["delete"].danger_reasons == ("brewer: its words say that it deletes something",)
    assert [one.key for one in unchanged.capabilities] == ["add"]
    assert (runnable["add"].description, runnable["add"].source) == ("mine", CapabilitySource.PRESET)
    assert {proposal.change for proposal in again} == {ProposalChange.SAME}


async def test_what_a_person_edited_stays_and_is_told(services: Services, program: Path) -> None:
    await agent_of(services, program)
    first = await services.capability_scans.scan("brewer", [HELP], actor=services.actor)
    await services.capability_scans.accept("brewer", first, actor=USER_ACTOR)
    await services.agents.edit_capability(
        "brewer",
        "delete",
        CapabilityChanges(danger_level=DangerLevel.SAFE, requires_approval=False, label="Away"),
        actor=USER_ACTOR,
    )
    program.write_text(program.read_text().replace("Delete a thing", "Delete all").replace("--depth N", "--deep N"))

    second = by_key(await services.capability_scans.scan("brewer", [HELP], actor=services.actor))
    agent = await services.capability_scans.accept("brewer", tuple(second.values()), actor=USER_ACTOR)
    delete = next(one for one in agent.capabilities if one.key == "delete")

    assert second["delete"].changed_fields == ("description",)
    assert set(second["delete"].kept_fields) == {"label", "danger_level", "requires_approval"}
    assert (second["run"].new_arguments, second["run"].lost_arguments) == (("deep",), ("depth",))
    assert (delete.label, delete.description, delete.danger_level) == ("Away", "Delete all", DangerLevel.SAFE)
    assert not delete.requires_approval


async def test_an_agent_accepts_nothing_and_a_key_that_came_meanwhile_is_not_overwritten(
    services: Services, program: Path
) -> None:
    agent = await agent_of(services, program)
    found = await services.capability_scans.scan("brewer", [HELP], actor=services.actor)
    own = Capability(
        id=CapabilityId(new_id()),
        agent_id=agent.id,
        key="delete",
        label="Mine",
        source=CapabilitySource.MANUAL,
        command_tokens=("delete",),
    )
    await services.agents.add_capability("brewer", own, actor=USER_ACTOR)

    with pytest.raises(ConflictError, match="may not change"):
        await services.capability_scans.accept("brewer", found, actor=Actor(type=ActorType.AGENT, id="x"))
    with pytest.raises(ConflictError, match="capability delete already that no scan made"):
        await services.capability_scans.accept("brewer", found, actor=USER_ACTOR)
    with pytest.raises(UsageError, match="what should be asked"):
        await services.capability_scans.scan("brewer", [], actor=services.actor)
    with pytest.raises(UsageError, match="runs any command"):
        await services.capability_scans.scan("command", [HELP], actor=services.actor)

    assert [one.key for one in (await services.agents.by_slug("brewer")).capabilities] == ["delete"]


async def test_a_program_of_which_nobody_knows_anything_is_told_source_by_source(
    services: Services, tmp_path: Path
) -> None:
    path = tmp_path / "mute"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    await agent_of(services, path)
    problems: list[str] = []

    found = await services.capability_scans.scan(
        "brewer", [HELP, MAN, SHELL], on_problem=problems.append, actor=services.actor
    )

    assert found == ()
    assert problems[0].startswith("mute --help tells nothing that can be learned")
    assert problems[1:] == [
        "there is no manual page of mute with options in it",
        "no completion file tells anything of mute",
    ]


async def test_the_tools_of_a_server_are_learned(services: Services) -> None:
    agent = await agent_of(services, Path(sys.executable))
    await services.agents.remove("brewer", actor=USER_ACTOR)
    server = replace(
        agent,
        id=AgentId(new_id()),
        slug="notes",
        base_args=("-I", "-S", str(Path(mcp_server_program.__file__)), "notes"),
    )
    await services.agents.add(server)
    problems: list[str] = []

    found = await services.capability_scans.scan("notes", [MCP], on_problem=problems.append, actor=services.actor)
    learned = await services.capability_scans.accept("notes", found, actor=USER_ACTOR)

    assert [one.key for one in learned.capabilities] == ["find-notes", "delete-note", "add-note"]
    assert learned.mcp_enabled
    assert problems == ["the tool odd is left out: its argument 'a b' cannot be named"]


async def test_an_agent_is_asked_by_a_run_and_only_what_the_program_knows_is_proposed(
    services: Services, program: Path, tmp_path: Path
) -> None:
    await agent_of(services, program)
    page = tmp_path / "opt/share/man/man1/brewer.1"
    page.parent.mkdir(parents=True)
    page.write_text(".SH OPTIONS\n.TP\n\\-\\-cold\nwithout heat\n")
    demo = make_demo_agent()
    answer = tmp_path / "answer"
    script = str(Path(__file__).with_name("answering_agent.py"))
    await services.agents.add(replace(demo, base_args=("-I", "-S", script, str(answer))))
    depth = {"type": "integer", "minimum": 1}
    told = [
        {"key": "deep", "label": "Go deep", "words": ["{{--depth args.depth}}"], "arguments": {"depth": depth}},
        {"key": "drop", "label": "Drop it", "words": ["delete", "--verbose"]},
        {"key": "cold", "label": "Brew cold", "words": ["--cold"]},
        {"key": "invented", "label": "Guess", "words": ["--secret-flag"]},
    ]
    answer.write_text(f"Here it is:\n```json\n{json.dumps({'capabilities': told})}\n```\nThat is all.")
    problems: list[str] = []

    steps: list[str] = []
    found = await services.capability_scans.scan(
        "brewer",
        [LLM],
        ask=demo.slug,
        on_problem=problems.append,
        on_progress=lambda progress: steps.append(progress.step),
        actor=services.actor,
    )
    proposed = by_key(found)
    tasks = await services.workspaces.open(services.paths.questions_dir)
    (task,) = await services.tasks.list(tasks)

    assert "Demo agent answers in #1 of the workspace questions" in steps
    assert list(proposed) == ["deep", "drop", "cold"]
    assert proposed["deep"].capability.danger_level is DangerLevel.CAUTION
    assert proposed["drop"].capability.danger_level is DangerLevel.DANGEROUS
    assert problems == [
        "the agent's capability invented is refused: the option --secret-flag stands nowhere in the program's own words"
    ]
    assert (await services.agents.by_slug("brewer")).capabilities == ()
    assert HELP_TEXT in answer.with_suffix(".asked").read_text()
    assert task.title == "What can brewer be asked to do?"

    answer.write_text("I would rather not say.")
    refused: list[str] = []
    assert (
        await services.capability_scans.scan(
            "brewer", [LLM], ask=demo.slug, on_problem=refused.append, actor=services.actor
        )
        == ()
    )
    assert refused[0].startswith("the agent did not answer in the form that it was asked for")


async def test_a_page_that_is_nested_without_end_does_not_stop_the_other_sources(
    services: Services, program: Path
) -> None:
    page = program.parents[1] / "share/man/man1/brewer.1"
    page.parent.mkdir(parents=True)
    page.write_text(".SH OPTIONS\n" + ".if n " * 20_000)
    await agent_of(services, program)
    problems: list[str] = []

    found = await services.capability_scans.scan(
        "brewer", [MAN, HELP], on_problem=problems.append, actor=services.actor
    )

    assert {"add", "delete"} <= set(by_key(found))
    assert problems == ["reading its manual page ended: it is nested too deep to be read"]
