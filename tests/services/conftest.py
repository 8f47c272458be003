from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import Services, open_services

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from agentmon.domain.tasks import Workspace
    from tests.live_home import LiveHome


@pytest.fixture
async def services(live_home: LiveHome) -> AsyncIterator[Services]:
    async with open_services(live_home.paths) as services:
        yield services


@pytest.fixture
async def workspace(services: Services, live_home: LiveHome) -> Workspace:
    return await services.workspaces.open(live_home.project)
