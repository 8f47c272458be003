"""Costs: what agents took and cost, imported from what they wrote down, summed up and explained."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

from agentmon.domain.costs import AnswerSource, CostFilter, CostGroup, CostSums, PricedAnswer
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.domain.local_days import LocalDays
from agentmon.private_folders import make_private_folder
from agentmon.schedule import check_zone
from agentmon.services.cost_reports import CostReport, buckets_of
from agentmon.services.day_spans import chosen_days, settled_zone
from agentmon.threads import to_its_end
from agentmon.worker.import_progress import find_running_import

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.domain.billing import BilledAnswer
    from agentmon.domain.clock import Clock
    from agentmon.domain.events import Actor
    from agentmon.paths import Paths
    from agentmon.services.sessions import SessionService
    from agentmon.services.settings import SettingsService
    from agentmon.store.agents import AgentRepository
    from agentmon.store.usage_costs import CostRepository
    from agentmon.store.usage_days import UsageDayRepository
    from agentmon.store.usage_prices import UsagePriceRepository
    from agentmon.usage.prices.book import PriceBook
    from agentmon.usage.prices.explanation import PriceExplanation
    from agentmon.worker.history_outcome import HistoryOutcome
    from agentmon.worker.import_progress import ImportOutcome, ImportProgress
    from agentmon.worker.usage_importing import UsageImporter

MAX_EXPLAINED: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedAnswer:
    """An answer with how its cost comes about by the prices of now."""

    source: AnswerSource
    price: PriceExplanation


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPlace:
    """A folder in which an agent's files are looked for."""

    agent_slug: str
    path: str
    problem: str
    """Why nothing can be found there; empty when it can be read."""


class CostService:
    """Imports, sums up, explains and prices anew."""

    def __init__(
        self,
        *,
        costs: CostRepository,
        days: UsageDayRepository,
        prices: UsagePriceRepository,
        agents: AgentRepository,
        sessions: SessionService,
        settings: SettingsService,
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._costs = costs
        self._days = days
        self._prices = prices
        self._agents = agents
        self._sessions = sessions
        self._settings = settings
        self._paths = paths
        self._clock = clock

    async def report(
        self, group: CostGroup, chosen: CostFilter, *, last: int | None = None, zone_name: str | None = None
    ) -> CostReport:
        """Return the costs by group.

        Args:
            group: By what they are summed up.
            chosen: Which answers count.
            last: So many days up to the last one or today, or weeks or months when these are asked for.
            zone_name: The zone whose days count; that of the settings by default.

        Raises:
            UsageError: The zone or a day cannot be read, or there is no such span of days.
            NotFoundError: There is no such agent.
        """
        if chosen.agent_slug:
            slugs = [agent.slug for agent in await self._agents.list(active_only=False)]
            if chosen.agent_slug not in slugs:
                raise NotFoundError(
                    f"there is no agent {chosen.agent_slug!r}", hint=f"agents are: {', '.join(sorted(slugs))}"
                )
        stored = await settled_zone(self._days, self._settings, self._clock)
        zone_name = stored if zone_name is None else check_zone(zone_name)
        days = LocalDays(ZoneInfo(zone_name))
        since_day, until_day = chosen_days(
            chosen.since_day, chosen.until_day, last, period=group.value, today=days.day_of_moment(self._clock.now())
        )
        chosen = replace(chosen, since_day=since_day, until_day=until_day)
        parts = await self._costs.parts(group, chosen, days, are_stored_days=zone_name == stored)
        labels = await self._costs.labels(group, list({part.group for part in parts}))
        # Ten thousand of them would hold up the event loop.
        buckets = await asyncio.to_thread(buckets_of, group, parts, labels)
        return CostReport(
            group=group,
            zone_name=zone_name,
            since_day=since_day,
            until_day=until_day,
            buckets=buckets,
            totals=CostSums.of_all(bucket.sums for bucket in buckets),
            running_import=find_running_import(self._paths.import_progress),
        )

    def places(self) -> tuple[HistoryPlace, ...]:
        """Return the folders in which the agents' files are looked for."""
        from agentmon.usage.sources import list_places  # noqa: PLC0415 - reports do not need it

        return tuple(
            HistoryPlace(agent_slug=place.agent_slug, path=place.path, problem=place.problem)
            for place in list_places(os.environ)
        )

    async def has_history_to_read(self) -> bool:
        """Return whether a worker is to read what agents wrote down, and there is a folder of one."""
        if not (await self._settings.costs()).import_history:
            return False
        return any(not place.problem for place in await asyncio.to_thread(self.places))

    async def import_history(
        self, *, rescan: bool = False, report: Callable[[ImportProgress], None] | None = None
    ) -> ImportOutcome:
        """Read in this process what is new in the files of all agents.

        Args:
            rescan: Read everything again from its beginning.
            report: Hears of the progress in another thread.

        Raises:
            StoreError: The database refused a piece; all before it is kept.
        """
        from agentmon.worker.usage_importing import UsageImporter, import_usage  # noqa: PLC0415 - reports do not need it

        zone_name = await settled_zone(self._days, self._settings, self._clock)
        make_private_folder(self._paths.run_dir)
        importer = UsageImporter(
            paths=self._paths, environ=os.environ, zone_name=zone_name, clock=self._clock, report=report
        )

        async def read() -> ImportOutcome:
            if rescan:
                await asyncio.to_thread(importer.forget_cursors)
            outcome = await import_usage(importer, self._agents, self._clock)
            await self._price_unlooked(importer)
            return outcome

        try:
            return await to_its_end(read(), stop=importer.stop)
        finally:
            importer.close()

    async def import_conversations(
        self, *, rescan: bool = False, gently: bool = False, report: Callable[[ImportProgress], None] | None = None
    ) -> HistoryOutcome:
        """Read in this process what is new of what was said and done, in files whose answers were imported.

        Args:
            rescan: Read everything again from its beginning.
            gently: Rest after each piece as long as it took.
            report: Hears of the progress in another thread.

        Raises:
            StoreError: The database refused a piece; all before it is kept.
        """
        from agentmon.worker.history_importing import HistoryImporter  # noqa: PLC0415 - reports do not need it

        history = await self._settings.history()
        importer = HistoryImporter(
            paths=self._paths,
            environ=os.environ,
            zone_name=await settled_zone(self._days, self._settings, self._clock),
            clock=self._clock,
            keeps_messages=history.import_messages,
            report=report,
        )

        def read() -> HistoryOutcome:
            if rescan:
                importer.forget_cursors()
            outcome = importer.read(importer.find_changed(), rest_share=1.0 if gently else 0.0)
            importer.take_names()
            return outcome

        try:
            return await to_its_end(asyncio.to_thread(read), stop=importer.stop)
        finally:
            importer.close()

    async def _price_unlooked(self, importer: UsageImporter) -> None:
        until_ms = round(self._clock.now().timestamp() * 1000)
        if places := await self._prices.find_unlooked(until_ms=until_ms):
            await asyncio.to_thread(importer.warm_prices)
            await self._prices.price(places, importer.priced)

    async def explain(self, text: str) -> tuple[ExplainedAnswer, ...]:
        """Return the answers of a session, or one answer, each with how its cost comes about.

        Args:
            text: The start of the id of a session or an answer, or the agent's own name of one.

        Raises:
            NotFoundError: There is none.
            UsageError: Several are called so.
        """
        found = await self._costs.find_answers(text.strip())
        if len(found) > 1:
            raise UsageError(f"several answers are called {text!r}", hint=f"write more of the id: {found[0].id}")
        if not found:
            try:
                session = await self._sessions.find(text)
            except NotFoundError as error:
                raise NotFoundError(
                    f"there is no session and no answer {text!r}", hint="`agentmon costs --by session` lists sessions"
                ) from error
            found = await self._costs.of_session(session.id, limit=MAX_EXPLAINED)
        return await asyncio.to_thread(self._explained, found)

    async def reprice(self, *, actor: Actor) -> tuple[int, int]:
        """Look up the price of every answer anew; return how many answers there are, and how many costs changed."""
        book = self._book()
        return await self._prices.price_all(lambda answer: priced(book, answer))

    def _explained(self, found: tuple[AnswerSource, ...]) -> tuple[ExplainedAnswer, ...]:
        book = self._book()
        return tuple(ExplainedAnswer(source=one, price=book.explain(one.answer)) for one in found)

    def _book(self) -> PriceBook:
        from agentmon.usage.prices.book import PriceBook  # noqa: PLC0415 - reports do not need it

        return PriceBook(self._paths.prices_file, self._paths.price_data_file)


def priced(book: PriceBook, answer: BilledAnswer) -> PricedAnswer:
    """Return the answer with its price."""
    price = book.price(answer)
    return PricedAnswer(answer=answer, cost_nano=price.cost_nano, cost_source=price.source, price_version=price.version)
