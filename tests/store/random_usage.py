"""Any history of billed answers: told live and by files, told again, priced anew, moved to other days and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentmon.domain.billing import BilledAnswer, HistorySession
from agentmon.domain.conversation import CostNews, SessionNews, UsageNews
from agentmon.domain.costs import CostSource, FileCursor, PricedAnswer
from agentmon.store.usage_days import UsageDayRepository
from agentmon.store.usage_import import FilePiece
from agentmon.store.usage_prices import UsagePriceRepository
from tests.store.conversation_place import NOON_MS, an_ending
from tests.store.queue_place import NOON

if TYPE_CHECKING:
    import random

    from agentmon.domain.ids import ExecutionId
    from agentmon.store.usage_import import UsageImport
    from tests.store.conversation_place import ConversationPlace

ZONES: Final = ("UTC", "Asia/Kolkata", "America/New_York", "Pacific/Auckland")
MODELS: Final = ("m", "n", "")
PROJECTS: Final = ("", "/w", "/w/sub", "/wide", "/v")
_KEYS: Final = "abcdefghijkl"
_SPAN_MS: Final = 100 * 86_400_000


class RandomUsage:
    """Makes one change after another; with the same chance the same ones."""

    def __init__(self, place: ConversationPlace, files: UsageImport, chance: random.Random) -> None:
        self._place = place
        self._files = files
        self._chance = chance
        self._running: list[ExecutionId] = []
        self._offset = 0
        self._version = 1

    async def change(self) -> str:
        """Make one change and return what it was."""
        changes = (
            (self._begin, 1 if len(self._running) < 3 else 0),
            (self._tell, 4),
            (self._name_conversation, 2),
            (self._say_cost, 1),
            (self._end, 0.3),
            (self._tell_by_file, 6),
            (self._price, 1),
            (self._move, 0.7),
            (self._drop_stand_ins, 0.5),
            (self._adopt, 2),
        )
        ((change, _),) = self._chance.choices(changes, [weight for _, weight in changes])
        await change()
        return change.__name__

    async def _begin(self) -> None:
        self._running.append((await self._place.begin()).id)

    async def _tell(self) -> None:
        news = [
            UsageNews(
                key=f"{'turn:' if is_provisional else ''}{self._chance.choice(_KEYS)}",
                model=self._chance.choice(MODELS),
                provider="anthropic",
                prompt_tokens=self._chance.randrange(50),
                cache_read_tokens=self._chance.randrange(50),
                response_tokens=self._chance.randrange(50),
                is_key_provisional=is_provisional,
            )
            for is_provisional in self._chance.choices([True, False], k=2)
        ]
        if self._running:
            await self._place.tell(self._chance.choice(self._running), *news, at_ms=self._at_ms())

    async def _name_conversation(self) -> None:
        if self._running:
            await self._place.tell(self._chance.choice(self._running), SessionNews(session_ref=self._ref()))

    async def _say_cost(self) -> None:
        if self._running:
            await self._place.tell(
                self._chance.choice(self._running), CostNews(cost_nano=self._chance.randrange(10**9))
            )

    async def _end(self) -> None:
        if self._running:
            ended = self._running.pop(self._chance.randrange(len(self._running)))
            await self._place.tell(ended, ending=an_ending())

    async def _tell_by_file(self) -> None:
        path = f"/{self._chance.randrange(4)}.jsonl"
        slug = self._chance.choice(["claude", "codex"])
        keys = self._chance.sample(_KEYS, self._chance.randrange(1, 4))
        answers = [self._priced(self._answer(key)) for key in keys]
        before = self._files.cursors().get(path)
        self._offset += 100
        after = FileCursor(
            agent_slug=slug if before is None else before.agent_slug,
            path=path,
            thread_key=path,
            inode=1,
            size_bytes=100,
            mtime_ns=1,
            read_offset=self._offset,
            head_hash="",
            parser_version=1,
        )
        sessions = [HistorySession(session_ref=answers[0].answer.session_ref, cwd="/w", first_at_ms=self._at_ms())]
        assert self._files.write(FilePiece(before=before, after=after, answers=answers, sessions=sessions))

    async def _price(self) -> None:
        self._version += 1
        await UsagePriceRepository(self._place.database).price_all(self._priced)

    async def _move(self) -> None:
        await UsageDayRepository(self._place.database).move_to(self._chance.choice(ZONES), at=NOON)

    async def _drop_stand_ins(self) -> None:
        self._files.drop_stand_ins(since_ms=0)

    async def _adopt(self) -> None:
        self._files.adopt_conversations()

    def _answer(self, key: str) -> BilledAnswer:
        counts = [self._chance.randrange(100) for _ in range(6)]
        return BilledAnswer(
            key=key,
            session_ref=self._ref(),
            is_owner_marked=self._chance.random() < 0.3,
            cwd="/w",
            provider="anthropic",
            model=self._chance.choice(MODELS),
            at_ms=self._at_ms(),
            prompt_tokens=counts[0],
            cache_read_tokens=counts[1],
            cache_write_5m_tokens=counts[2],
            cache_write_1h_tokens=counts[3],
            response_tokens=counts[4],
            reasoning_tokens=counts[4] // 2,
            web_searches=self._chance.randrange(3),
            reported_cost_nano=self._chance.choice([None, counts[5]]),
            offset=self._chance.randrange(1000),
        )

    def _priced(self, answer: BilledAnswer) -> PricedAnswer:
        cost_nano = self._chance.choice([None, 0, 7, self._chance.randrange(10**12)])
        sources = [CostSource.LIST, CostSource.OVERRIDE, CostSource.REPORTED]
        source = CostSource.NONE if cost_nano is None else self._chance.choice(sources)
        return PricedAnswer(
            answer=answer,
            cost_nano=cost_nano,
            cost_source=source.value,
            price_version=str(self._version),
            project=self._chance.choice(PROJECTS),
        )

    def _ref(self) -> str:
        return self._chance.choice(["one", "two", "three", "four"])

    def _at_ms(self) -> int:
        """Return a moment, often while executions run and often at the turn of a day."""
        spread = self._chance.choice([3_600_000, 86_400_000, _SPAN_MS])
        return NOON_MS + self._chance.randrange(-spread // 10, spread)
