from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import CapabilitySource, DangerLevel
from agentmon.domain.errors import RunnerError
from agentmon.domain.ids import AgentId, new_id
from agentmon.runners.adapters.template import check_arguments, render_command
from agentmon.runners.host.process_table import read_processes
from agentmon.runners.mcp_servers import call
from agentmon.runners.mcp_servers.tools import ServerTools, scan_tools
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAM = str(Path(__file__).with_name("mcp_server_program.py"))


async def scan(behaviour: str, *, timeout_s: float = 30, environ: Mapping[str, str] | None = None) -> ServerTools:
    server = (sys.executable, "-I", "-S", PROGRAM, behaviour)
    return await scan_tools(
        server, agent_id=AgentId("a"), environ={**os.environ, **(environ or {})}, timeout_s=timeout_s
    )


def run(argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.proof
async def test_the_tools_of_a_server_are_capabilities_that_run() -> None:
    told = await scan("pages")
    tools = {one.key: one for one in told.capabilities}
    find = tools["find-notes"]

    assert (find.label, find.description, find.source) == (
        "Find notes",
        "Finds notes by words",
        CapabilitySource.SCAN_MCP,
    )
    levels = [tools[key].danger_level for key in ("find-notes", "add-note", "delete-note")]
    assert levels == [DangerLevel.SAFE, DangerLevel.CAUTION, DangerLevel.DANGEROUS]
    assert tools["delete-note"].requires_approval
    assert told.problems == ("the tool odd is left out: its argument 'a b' cannot be named",)

    given = {"words": "a=b {{x}}", "tags": ["x", "y"], "whole": False, "place": {"folder": "/"}}
    server = ("-I", "-S", PROGRAM, "notes")
    found = run(
        render_command(
            find,
            binary=sys.executable,
            base_args=server,
            task_title="",
            args=check_arguments(find.args_schema, given),
            prompt_additions="",
        )
    )
    assert found.stdout.splitlines() == [
        'find_notes {"most": 10, "place": {"folder": "/"}, "tags": ["x", "y"], "whole": false, "words": "a=b {{x}}"}',
        "[image: image/png]",
    ]
    assert found.returncode == 0


def test_a_tool_that_fails_and_one_that_is_not_there_end_with_a_failure(capfd: pytest.CaptureFixture[str]) -> None:
    server = [sys.executable, "-I", "-S", PROGRAM, "notes"]

    failed = call.main([str(len(server)), *server, "delete_note", "number=3"])
    missing = call.main([str(len(server)), *server, "nothing"])
    wrong = call.main([str(len(server)), *server, "delete_note", "number=many"])
    output = capfd.readouterr()

    assert (failed, missing, wrong, call.main(["x"])) == (1, 1, 2, 2)
    assert output.out == ""
    assert "there is no such note" in output.err
    assert "has no tool nothing; it has: find_notes, delete_note, add_note, odd" in output.err
    assert "argument number must be a whole number" in output.err


async def test_a_server_that_says_other_things_too_is_understood() -> None:
    told = await scan("noisy")

    assert len(told.capabilities) == 3


@pytest.mark.proof
async def test_a_server_that_nobody_waits_for_ends_with_all_that_it_started() -> None:
    mark = new_id()
    marker = f"MCP_TEST_MARK={mark}".encode()

    def marked() -> int:
        return sum(process.has_marker for process in read_processes(marker))

    asked = asyncio.create_task(scan("silent", environ={"MCP_TEST_MARK": mark}))
    await asyncio.to_thread(wait_for, lambda: marked() == 2)
    asked.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked

    await asyncio.to_thread(wait_for, lambda: marked() == 0)


@pytest.mark.proof
async def test_a_server_that_does_not_answer_is_not_waited_for_without_end() -> None:
    with pytest.raises(RunnerError, match=r"did not list its tools within 0\.5 s"):
        await scan("silent", timeout_s=0.5)


async def test_without_the_client_library_the_way_to_get_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)

    with pytest.raises(RunnerError, match="need the package mcp") as failure:
        await scan("notes")

    assert failure.value.hint == f"{sys.executable} -m pip install 'mcp>=2.3,<3'"


async def test_a_server_that_crashes_or_is_none_is_told_with_its_last_words() -> None:
    with pytest.raises(RunnerError, match="does not answer as one") as crash:
        await scan("crash")
    with pytest.raises(RunnerError, match="cannot be started"):
        await scan_tools(("/nowhere/server",), agent_id=AgentId("a"), environ=os.environ)

    assert crash.value.hint == "it said: no notes today"
