"""Messages are found by their words, however they came and whether the index knows them yet."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import MessageNews, SessionNews
from agentmon.domain.operations import MessageRole
from agentmon.store.history_import import HistoryImport
from agentmon.store.message_index import INDEX, INDEX_SOME, UNINDEXED
from agentmon.store.search_indexing import SearchIndexing
from tests.store.conversation_place import opened_place
from tests.store.queue_place import NOON
from tests.store.test_history_import import says, write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from agentmon.domain.history import HistoryMessage
    from tests.store.conversation_place import ConversationPlace


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[ConversationPlace]:
    async with opened_place(tmp_path) as opened:
        yield opened


@pytest.fixture
def history(place: ConversationPlace) -> Iterator[HistoryImport]:
    with closing(HistoryImport(place.database.path, zone_name="UTC", clock=FakeClock(NOON))) as store:
        yield store


def of(session: str, text: str, number: int = 0) -> HistoryMessage:
    return says(f"{session}-{number}", text, session_ref=session, role=MessageRole.ASSISTANT)


async def found(place: ConversationPlace, search: str) -> list[str]:
    listed = await place.sessions.list(None, search=search, limit=99)
    return sorted(one.session.session_ref or "" for one in listed)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("discount", ["a", "b"]),
        ("DISCOUNT", ["a", "b"]),
        ("disc", ["a", "b"]),
        ("discount round", ["a"]),
        ("disc rounding", []),
        ("rounding discount", ["a"]),
        ("src/cart.py", ["b"]),
        ("cart.py", ["b"]),
        ("snake_case", ["c"]),
        ("snake-case", []),
        ("100%", ["c"]),
        ("café", ["c"]),
        ("割引", ["d"]),
        ("いて", ["d"]),
        ('"discount', ["a", "b"]),
        ('"needs rounding"', ["a"]),
        ("discount OR nothing", []),
        ("NEAR(discount)", []),
        ("content:discount", []),
        ("discount* ^ - + ( ) : {", []),
        ("'", ["b"]),
        ("*", []),
        ("\0", ["a", "b", "c", "d"]),
        ("a" * 500, []),
    ],
)
async def test_messages_are_found_by_all_words_the_last_of_which_may_have_begun(
    place: ConversationPlace, history: HistoryImport, search: str, expected: list[str]
) -> None:
    write(history, of("a", "The discount needs rounding"), of("b", "discounts live in src/cart.py, don't they"))
    write(history, of("c", "100% of snake_case in the café"), of("d", "割引について"))

    assert await found(place, search) == expected


async def test_words_may_stand_in_different_messages_of_a_conversation(
    place: ConversationPlace, history: HistoryImport
) -> None:
    write(history, of("a", "discount"), of("a", "rounding", 1), of("b", "rounding"))

    assert await found(place, "discount rounding") == ["a"]


async def test_where_a_message_has_the_words_is_shown(place: ConversationPlace, history: HistoryImport) -> None:
    write(history, of("a", f"{'x ' * 100}the discount is wrong{' y' * 100}"))

    (listing,) = await place.sessions.list(None, search="discount", limit=9)

    assert "the discount is wrong" in listing.match
    assert len(listing.match) < 200


async def test_a_message_is_found_while_it_streams_in(place: ConversationPlace) -> None:
    execution = await place.begin()
    await place.tell(execution.id, SessionNews(session_ref="live"))
    with closing(SearchIndexing(place.database.path)) as index:
        for piece in ("The disc", "ount is", " wrong"):
            news = MessageNews(message_ref="m", role=MessageRole.ASSISTANT, text=piece, continues=True)
            await place.tell(execution.id, news)
            index.take_up_some(most_s=9, log_bytes=0)

    assert await found(place, "discount wrong") == ["live"]
    assert await found(place, "ount wrong") == []
    assert place.rows(f"SELECT 1 FROM {UNINDEXED}") == []


@pytest.mark.parametrize("seed", range(5))
def test_the_index_holds_what_the_messages_say_after_any_changes(
    place: ConversationPlace, history: HistoryImport, seed: int
) -> None:
    dice = random.Random(seed)
    write(history, of("a", "first"))
    words = ["alpha", "beta", "gamma", "delta", "eps-ilon", "ζήτα"]
    with closing(sqlite3.connect(place.database.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        ((session_id,),) = connection.execute("SELECT id FROM sessions").fetchall()
        for number in range(120):
            text = " ".join(dice.choices(words, k=dice.randint(0, 5)))
            match dice.randint(0, 4):
                case 0 | 1:
                    connection.execute(
                        "INSERT INTO messages (id, session_id, role, content, created_at) VALUES (?, ?, 'user', ?, '')",
                        (f"{number}", session_id, text),
                    )
                case 2:
                    connection.execute("UPDATE messages SET content = content || ? WHERE rowid % 3 = 0", (text,))
                case 3:
                    connection.execute("DELETE FROM messages WHERE rowid % 4 = ?", (dice.randint(0, 3),))
                case 4:
                    connection.execute("BEGIN")
                    for statement in INDEX_SOME:
                        connection.execute(statement)
                    connection.execute("COMMIT")
        for statement in INDEX_SOME:
            connection.execute(statement)

        assert connection.execute(f"SELECT count(*) FROM {UNINDEXED}").fetchone() == (0,)
        # Fails where an entry of the index is missing, or is of a message that does not say that.
        connection.execute(f"INSERT INTO {INDEX} ({INDEX}) VALUES ('integrity-check')")
        for word in ("alpha", "beta", "gamma", "delta", "eps", "ζήτα"):
            by_index = connection.execute(
                f"SELECT rowid FROM {INDEX} WHERE {INDEX} MATCH ? ORDER BY rowid", (f'"{word}"*',)
            ).fetchall()
            by_text = connection.execute(
                "SELECT rowid FROM messages WHERE content LIKE ? ORDER BY rowid", (f"%{word}%",)
            ).fetchall()
            assert set(by_index) <= set(by_text)
