from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from tests.live_home import LiveHome


async def test_a_setting_is_kept_and_wins_over_file_and_environment(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_home.paths.config_dir.mkdir()
    live_home.paths.settings_file.write_text("[worker]\nmax_running = 6\ngrace_s = 1.5\n")
    monkeypatch.setenv("AGENTMON_WORKER_GRACE_S", "2.5")

    async with open_services(live_home.paths) as services:
        before = {setting.key: setting.value for setting in await services.settings.all()}
        await services.settings.set("worker.max_running", "9")
    async with open_services(live_home.paths) as services:
        after = await services.settings.get("worker.max_running")

    assert before["worker.max_running"] == 6
    assert before["worker.grace_s"] == 2.5
    assert (after.value, after.default) == (9, 4)


@pytest.mark.parametrize("text", ["many", "0", "-1", "1.5", ""])
async def test_a_value_that_is_not_allowed_is_refused_and_not_kept(live_home: LiveHome, text: str) -> None:
    async with open_services(live_home.paths) as services:
        with pytest.raises(UsageError, match=r"worker\.max_running"):
            await services.settings.set("worker.max_running", text)

        assert (await services.settings.get("worker.max_running")).value == 4


async def test_an_unknown_setting_names_the_known_ones(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        with pytest.raises(NotFoundError) as caught:
            await services.settings.get("worker.nothing")

    assert "worker.max_running" in caught.value.hint


async def test_a_settings_file_that_cannot_be_read_says_where_it_lies(live_home: LiveHome) -> None:
    live_home.paths.config_dir.mkdir()
    live_home.paths.settings_file.write_text("[worker\n")

    async with open_services(live_home.paths) as services:
        with pytest.raises(UsageError, match=r"config\.toml"):
            await services.settings.all()
