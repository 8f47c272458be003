from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.execution_status import ExecutionStatus
from agentmon.runners.presets import PresetLogin
from agentmon.services.agent_health import find_login, find_program
from tests.stored_runs import stored

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_why_a_program_cannot_be_started_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "dangling").symlink_to(tmp_path / "nowhere")
    (folder / "folder").mkdir()
    (folder / "plain").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "good").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "good").chmod(0o755)

    def told(binary: str) -> tuple[str | None, str]:
        return find_program(binary, [tmp_path / "none", folder])

    assert told("good") == told(str(folder / "good")) == (str(folder / "good"), "")
    assert told("dangling") == (None, f"{folder}/dangling is a link to {tmp_path}/nowhere, which is not there")
    assert told("folder") == (None, f"{folder}/folder is a folder")
    assert told("plain")[1].startswith(f"{folder}/plain cannot be executed")
    assert told("absent") == (None, "absent is not on the PATH")
    assert told(f"{folder}/absent") == (None, f"{folder}/absent is not there")
    assert told("") == (None, "")


async def test_the_health_of_an_agent_tells_its_runs_and_what_it_cost_this_week(tmp_path: Path) -> None:
    async with stored(tmp_path) as place:
        agents = await place.services.agents.registered()
        command = next(agent for agent in agents if agent.slug == "command")
        shell = next(agent for agent in agents if agent.slug == "sh")
        for status, age in (
            (ExecutionStatus.FAILED, timedelta(minutes=1)),
            (ExecutionStatus.SUCCEEDED, timedelta(hours=2)),
            (ExecutionStatus.RUNNING, timedelta(0)),
            (ExecutionStatus.CANCELLING, timedelta(0)),
        ):
            await place.add_run((await place.add_task(status.value)).id, status, age=age)
        today = datetime.now(UTC).date()
        with closing(sqlite3.connect(place.services.paths.database_path)) as connection, connection:
            connection.executemany(
                "INSERT INTO daily_model_usage VALUES (?, ?, ?, ?, 0, 0, 0, 0, 0, 0, 0, ?, ?, 0)",
                [
                    (str(today), command.id, "a", 2, 500, 0),
                    (str(today - timedelta(days=6)), command.id, "b", 1, 70, 1),
                    (str(today - timedelta(days=7)), command.id, "a", 1, 9000, 0),
                    (str(today), shell.id, "c", 3, 0, 3),
                ],
            )

        health = await place.services.discovery.health(agents)

        assert set(health) == {agent.id for agent in agents}
        of_command, of_shell = health[command.id], health[shell.id]
        assert (of_command.running, of_command.last_status) == (2, ExecutionStatus.FAILED)
        assert of_command.last_ended_at is not None
        assert (of_command.cost_week_nano, of_command.is_cost_known) == (570, False)
        assert of_command.found_path is None
        assert (of_shell.running, of_shell.last_status) == (0, None)
        assert (of_shell.cost_week_nano, of_shell.is_cost_known) == (None, False)
        assert Path(str(of_shell.found_path)).name == "sh"
        unused = health[next(agent.id for agent in agents if agent.slug == "git")]
        assert (unused.cost_week_nano, unused.is_cost_known) == (None, True)


LOGIN = PresetLogin(environment=("TOOL_KEY",), files=("~/.tool/auth.json",), hint="run `tool login`")


@pytest.mark.parametrize(
    ("login", "environ", "told"),
    [
        pytest.param(None, {}, (None, ""), id="no login"),
        pytest.param(LOGIN, {}, (False, "run `tool login`"), id="neither"),
        pytest.param(replace(LOGIN, may_be_elsewhere=True), {}, (None, "run `tool login`"), id="perhaps in a keyring"),
        pytest.param(LOGIN, {"TOOL_KEY": ""}, (False, "run `tool login`"), id="empty"),
        pytest.param(LOGIN, {"TOOL_KEY": "secret"}, (True, "TOOL_KEY is set"), id="variable"),
        pytest.param(
            PresetLogin(command=("auth", "status"), hint="run it"), {}, (None, "run it"), id="only the program can say"
        ),
    ],
)
def test_a_login_is_told_by_variables_and_files(
    login: PresetLogin | None, environ: Mapping[str, str], told: tuple[bool | None, str]
) -> None:
    assert find_login(login, {"HOME": os.environ["HOME"], **environ}) == told


def test_a_login_file_is_looked_for_and_not_read(tmp_path: Path) -> None:
    (tmp_path / ".tool").mkdir()
    (tmp_path / ".tool/auth.json").write_text("secret", encoding="utf-8")
    (tmp_path / ".tool/auth.json").chmod(0)

    assert find_login(LOGIN, {"HOME": str(tmp_path)}) == (True, "~/.tool/auth.json is there")
