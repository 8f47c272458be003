from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.amounts import DOLLARS, MoneyFormat
from agentmon.domain.budgets import BudgetAction, BudgetPeriod, BudgetScope
from agentmon.domain.errors import ConflictError, NotFoundError, UsageError
from agentmon.domain.events import Actor, ActorType
from agentmon.services.actors import USER_ACTOR
from agentmon.services.settings import SettingOrigin
from agentmon.settings import SETTING_TABLES, TableSettings
from agentmon.store.money_setting import find_money_words, money_format
from tests.stored_runs import stored

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.budgets import BudgetState
    from tests.live_home import LiveHome


async def test_a_setting_is_kept_and_wins_over_file_and_environment(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_home.paths.config_dir.mkdir()
    live_home.paths.settings_file.write_text("[worker]\nmax_running = 6\ngrace_s = 1.5\n")
    monkeypatch.setenv("AGENTMON_WORKER_GRACE_S", "2.5")

    async with open_services(live_home.paths) as services:
        before = {setting.key: setting.value for setting in await services.settings.all()}
        await services.settings.set("worker.max_running", "9", actor=services.actor)
    async with open_services(live_home.paths) as services:
        after = await services.settings.get("worker.max_running")

    assert before["worker.max_running"] == 6
    assert before["worker.grace_s"] == 2.5
    assert (after.value, after.default) == (9, 4)


@pytest.mark.parametrize("text", ["many", "0", "-1", "1.5", ""])
async def test_a_value_that_is_not_allowed_is_refused_and_not_kept(live_home: LiveHome, text: str) -> None:
    async with open_services(live_home.paths) as services:
        with pytest.raises(UsageError, match=r"worker\.max_running"):
            await services.settings.set("worker.max_running", text, actor=services.actor)

        assert (await services.settings.get("worker.max_running")).value == 4


async def test_every_table_of_settings_can_be_seen_and_set(live_home: LiveHome) -> None:
    assert set(SETTING_TABLES) == set(TableSettings.__subclasses__())

    async with open_services(live_home.paths) as services:
        assert (await services.settings.set("search.log_mb", "100", actor=services.actor)).value == 100


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


async def test_a_currency_needs_a_rate_and_dollars_need_none(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        with pytest.raises(UsageError, match=r"without costs\.exchange_rate nothing can be shown in EUR"):
            await services.settings.set("costs.currency", "eur", actor=services.actor)
        before = await services.settings.money()
        await services.settings.set("costs.exchange_rate", "0.920", actor=services.actor)
        still_dollars = await services.settings.money()
        await services.settings.set("costs.currency", "eur", actor=services.actor)
        await services.settings.set("costs.decimals", "3", actor=services.actor)

        assert before == still_dollars == DOLLARS
        assert await services.settings.money() == MoneyFormat("EUR", "0.92", 3)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("costs.currency", ""),
        ("costs.currency", "two words"),
        ("costs.currency", "R2"),
        ("costs.currency", "x" * 9),
        ("costs.currency", "\x1b[31m"),
        ("costs.exchange_rate", "0"),
        ("costs.exchange_rate", "-1"),
        ("costs.exchange_rate", "much"),
        ("costs.exchange_rate", "inf"),
        ("costs.exchange_rate", "1e30"),
        ("costs.decimals", "10"),
        ("costs.decimals", "-1"),
    ],
)
async def test_how_money_is_shown_is_checked(live_home: LiveHome, key: str, text: str) -> None:
    async with open_services(live_home.paths) as services:
        with pytest.raises(UsageError, match=key.replace(".", r"\.")):
            await services.settings.set(key, text, actor=services.actor)

        assert await services.settings.money() == DOLLARS


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[worker]\nmax_running = 3\n",
        '[costs]\ncurrency = "eur"\nexchange_rate = 0.92\n',
        '[costs]\ncurrency = "€"\nexchange_rate = "1.0500"\ndecimals = 0\n',
        '[costs]\nexchange_rate = "0.92"\n',
    ],
)
async def test_what_is_read_early_shows_money_as_the_settings_do(live_home: LiveHome, content: str) -> None:
    live_home.paths.config_dir.mkdir()
    live_home.paths.settings_file.write_text(content)

    early = money_format(find_money_words(str(live_home.paths.settings_file), {}))

    async with open_services(live_home.paths) as services:
        settled = await services.settings.money()
    for nano in (1, 4_210_000_000, 10**18):
        assert early.text(nano) == settled.text(nano)


async def test_a_reset_setting_is_what_file_environment_and_default_say(
    live_home: LiveHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTMON_WORKER_GRACE_S", "2.5")
    async with open_services(live_home.paths) as services:
        await services.settings.set("worker.grace_s", "9", actor=services.actor)
        await services.settings.set("worker.max_running", "9", actor=services.actor)
        assert (await services.settings.get("worker.grace_s")).origin is SettingOrigin.STORED

        grace = await services.settings.reset("worker.grace_s", actor=services.actor)
        most = await services.settings.reset("worker.max_running", actor=services.actor)
        again = await services.settings.reset("worker.max_running", actor=services.actor)

        assert (grace.value, grace.origin) == (2.5, SettingOrigin.OUTSIDE)
        assert (most.value, most.origin) == (again.value, again.origin) == (4, SettingOrigin.DEFAULT)
        lines = await services.audit.all(None)
        assert [line.event.payload["key"] for line in lines][-2:] == ["worker.grace_s", "worker.max_running"]


async def test_a_setting_that_another_one_needs_is_not_reset(live_home: LiveHome) -> None:
    async with open_services(live_home.paths) as services:
        await services.settings.set("costs.exchange_rate", "0.9", actor=services.actor)
        await services.settings.set("costs.currency", "EUR", actor=services.actor)

        with pytest.raises(UsageError, match="EUR"):
            await services.settings.reset("costs.exchange_rate", actor=services.actor)

        assert (await services.settings.get("costs.exchange_rate")).value == "0.9"


async def test_an_agent_may_set_and_reset_nothing(live_home: LiveHome) -> None:
    agent = Actor(type=ActorType.AGENT, id="a")
    async with open_services(live_home.paths) as services:
        await services.settings.set("approvals.agents_may_decide", "true", actor=services.actor)
        before = await services.settings.all()
        assert len(before) > 40
        for setting in before:
            with pytest.raises(ConflictError, match="an agent may not"):
                await services.settings.set(setting.key, str(setting.value), actor=agent)
            with pytest.raises(ConflictError, match="an agent may not"):
                await services.settings.reset(setting.key, actor=agent)

        assert await services.settings.all() == before


async def test_an_agent_may_set_and_remove_no_budget(live_home: LiveHome) -> None:
    agent = Actor(type=ActorType.AGENT, id="a")
    async with open_services(live_home.paths) as services:

        async def set_budget(limit: int, actor: Actor, action: BudgetAction = BudgetAction.STOP) -> BudgetState:
            return await services.budgets.set(
                scope=BudgetScope.ALL, period=BudgetPeriod.DAY, limit=limit, action=action, actor=actor
            )

        state = await set_budget(100, USER_ACTOR)
        for limit, action in ((101, BudgetAction.STOP), (50, BudgetAction.WARN), (1, BudgetAction.STOP)):
            with pytest.raises(ConflictError, match="an agent may not"):
                await set_budget(limit, agent, action)
        with pytest.raises(ConflictError, match="an agent may not"):
            await services.budgets.remove(state.budget.id, actor=agent)
        with pytest.raises(ConflictError, match="an agent may not"):
            await services.settings.set("costs.import_history", "false", actor=agent)

        (kept,) = await services.budgets.states()
        assert kept.budget == state.budget


@pytest.mark.parametrize(
    ("key", "text", "rule"),
    [
        ("worker.max_running", "many", "a whole number from 1 to 1,000"),
        ("worker.max_running", "0", "a whole number from 1 to 1,000"),
        ("worktrees.setup_timeout_s", "soon", "a number from 1 to 86,400"),
        ("board.review", "maybe", "true or false"),
    ],
)
async def test_a_wrong_value_is_told_what_is_allowed(tmp_path: Path, key: str, text: str, rule: str) -> None:
    async with stored(tmp_path) as place:
        with pytest.raises(UsageError, match=f"{rule} is expected"):
            await place.services.settings.set(key, text, actor=USER_ACTOR)
