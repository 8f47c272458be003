from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.execution_mode import ExecutionMode
from tests.agents.agent_homes import is_installed, make_home
from tests.agents.change_watch import ChangeWatch
from tests.agents.drive import Drive
from tests.agents.state_table import DELAY, STATE, summary_lines
from tests.waiting import wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from agentmon.domain.executions import Execution
    from tests.live_home import LiveHome

ALL_AGENTS = ("claude", "codex", "gemini", "opencode")


def chosen_agents() -> list[str]:
    """The agents that are tried: those of AGENTMON_TEST_AGENTS, or all."""
    return os.environ.get("AGENTMON_TEST_AGENTS", " ".join(ALL_AGENTS)).split()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "drive" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("only")
        wanted = ALL_AGENTS if marker is None else marker.args
        metafunc.parametrize("slug", [slug for slug in chosen_agents() if slug in wanted])


@pytest.fixture
def mock_url(tmp_path: Path) -> Iterator[str]:
    port_file = tmp_path / "mock-port"
    root = Path(__file__).parents[2]
    server = subprocess.Popen([sys.executable, "-m", "tests.agents.mock_llm", str(port_file)], cwd=root)
    try:
        wait_for(port_file.exists, "the mock model")
        yield f"http://127.0.0.1:{port_file.read_text()}"
    finally:
        server.terminate()
        server.wait(timeout=10)


@pytest.fixture
def changes(drive: Drive, request: pytest.FixtureRequest) -> Iterator[ChangeWatch]:
    """Measure how much later than the agent its card changes; the times are printed at the end."""
    paths = drive.services.paths
    watch = ChangeWatch(
        slug=drive.agent.slug,
        database=paths.database_path,
        executions_dir=paths.executions_dir,
        agent_home=drive.home,
    )
    watch.start()
    yield watch
    watch.stop()
    request.node.user_properties.extend(
        (DELAY, [drive.agent.slug, mode, activity, delay_ms]) for mode, activity, delay_ms in watch.delays_ms()
    )


@pytest.fixture
def seen(drive: Drive, request: pytest.FixtureRequest) -> Callable[[str, Execution], None]:
    """Note for the table at the end what the board shows in a state."""

    def note(state: str, execution: Execution) -> None:
        mode = "own screen" if execution.mode is ExecutionMode.TMUX else "protocol"
        parts = [execution.live_state.value, execution.activity_note, execution.error, execution.activity_source]
        request.node.user_properties.append((STATE, [drive.agent.slug, mode, state, *parts]))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [report for found in terminalreporter.stats.values() for report in found]
    notes = [note for report in reports if getattr(report, "when", "") == "teardown" for note in report.user_properties]
    for line in summary_lines(notes):
        terminalreporter.write_line(line)


@pytest.fixture
async def drive(slug: str, live_home: LiveHome, mock_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Drive]:
    assert is_installed(slug), f"{slug} is not installed; `scripts/agents {slug}` does it"
    project = live_home.project
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q", str(project)], check=True)
    agent = make_home(slug, live_home.folder / "agent-home", mock_url, project)
    # Whoever opens the board and writes messages has the agent's home as well.
    for name, value in agent.environ.items():
        monkeypatch.setenv(name, value)
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(project)
        yield Drive(services=services, workspace=workspace, project=project, agent=agent, mock_url=mock_url)
