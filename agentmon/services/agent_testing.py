"""Looking at one agent because a person asks: is its program there, does it answer, is somebody logged in."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.agent_test import AgentTest
from agentmon.domain.agents import ToolType
from agentmon.runners.discovery import probe
from agentmon.runners.presets import load_library
from agentmon.services.agent_reading import AgentReading

if TYPE_CHECKING:
    from agentmon.domain.agents import Agent
    from agentmon.runners.presets import PresetLogin

_LOGIN_ASKED_FOR_S: Final = 15.0


class AgentTesting(AgentReading):
    """Tests agents; no model is asked and nothing is billed."""

    async def test_run(self, slug: str) -> AgentTest:
        """Ask an agent's program for its version and, where its preset says how, whether somebody is logged in.

        The program runs without a network, in a home that is thrown away, so that a login which it does not find
        there is not told as missing. What it answers is kept as the version of the agent.

        Raises:
            NotFoundError: There is no such agent.
        """
        agent = await self.by_slug(slug)
        if not agent.binary_path:
            return AgentTest(slug=slug, found_path=None, version=None, is_logged_in=None, problems=_of_state(agent))
        health = (await self._discovery.health([agent]))[agent.id]
        if health.found_path is None:
            where = health.missing_note or f"the program {agent.binary_path} is not there"
            return AgentTest(
                slug=slug, found_path=None, version=None, is_logged_in=None, problems=(where, *_of_state(agent))
            )
        version = await self._discovery.version(slug)
        is_logged_in, note = health.is_logged_in, health.login_note
        login = await asyncio.to_thread(_login_of, agent, self._paths.presets_dir)
        if is_logged_in is None and login is not None and login.command:
            is_logged_in, note = await _ask_login(health.found_path, login)
        problems = list(_of_state(agent))
        if version is None and agent.tool_type is ToolType.AI_AGENT:
            problems.append("it did not tell its version, so it may not start")
        if is_logged_in is False:
            problems.append("nobody is logged in" + (f": {note}" if note else ""))
        return AgentTest(
            slug=slug,
            found_path=health.found_path,
            version=version,
            is_logged_in=is_logged_in,
            login_note=note,
            problems=tuple(problems),
        )


def _of_state(agent: Agent) -> tuple[str, ...]:
    problems = []
    if not agent.is_active:
        problems.append("it is switched off")
    if agent.working_dir is not None and not Path(agent.working_dir).is_dir():
        problems.append(f"its folder {agent.working_dir} is not there")
    if not any(capability.is_enabled for capability in agent.capabilities):
        problems.append("it has no capability that is turned on")
    return tuple(problems)


def _login_of(agent: Agent, presets_dir: Path) -> PresetLogin | None:
    presets = load_library(presets_dir, of_programs={agent.slug, Path(agent.binary_path).name}).presets
    return next((preset.login for preset in presets if preset.slug == agent.slug), None)


async def _ask_login(path: str, login: PresetLogin) -> tuple[bool | None, str]:
    answer = await probe.ask(path, login.command, timeout_s=_LOGIN_ASKED_FOR_S, environ=dict(os.environ))
    is_said = login.pattern is None or login.pattern.search(answer.output) is not None
    if answer.problem is None and answer.exit_code == 0 and is_said:
        return True, "it says so itself"
    return None, login.hint
