"""Messages that are being written: from the pieces of an agent through the file to who looks on."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.ids import ExecutionId
from agentmon.runners.drafts import DraftReader
from agentmon.runners.host.draft_log import INTERVAL_S, MAX_CHARACTERS, DraftLog

if TYPE_CHECKING:
    from pathlib import Path

_SECRET = "sk-ant-" + "api03-abcdefghijklmnopqrst"


class Writing:
    """A log and a reader of one file, and a clock that goes on by a batch with each write."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "drafts.jsonl"
        self.log = DraftLog(str(self.path), attempt=2)
        self.reader = self.new_reader()
        self._now = 0.0

    def new_reader(self) -> DraftReader:
        return DraftReader(self.path, execution_id=ExecutionId("run"), attempt=2)

    def write(self, ref: str, *pieces: str, **fields: object) -> None:
        for piece in pieces:
            self.log.add({"kind": "delta", "message_ref": ref, "text": piece, **fields})
        self._now += INTERVAL_S
        self.log.write(self._now)

    def seen(self, journal_offset: int = 0, reader: DraftReader | None = None) -> dict[str, str]:
        reader = reader or self.reader
        reader.poll()
        return {one.message_ref: one.text for one in reader.drafts(journal_offset)}


@pytest.fixture
def writing(tmp_path: Path) -> Writing:
    return Writing(tmp_path)


def test_a_message_grows_and_the_word_that_is_written_is_left_out(writing: Writing) -> None:
    writing.write("m", "I lo", "ok at")
    first = writing.seen()
    writing.write("m", " it.\nThen", is_thinking=False)

    assert first == {"2:m": "I look "}
    assert writing.seen() == {"2:m": "I look at it.\n"}
    assert not writing.reader.poll()


def test_a_secret_that_is_cut_anywhere_never_reaches_the_file(writing: Writing) -> None:
    text = f"The key is {_SECRET}, TOKEN={_SECRET} and more "
    for letter in text:
        writing.write("m", letter)

    shown = writing.seen()["2:m"]

    assert shown == "The key is [secret], TOKEN=[secret] and more "
    assert "api03" not in "".join(json.loads(line).get("text", "") for line in writing.path.read_text().splitlines())
    assert writing.path.stat().st_mode & 0o077 == 0


def test_of_messages_that_alternate_none_shows_a_secret_of_another_piece(writing: Writing) -> None:
    def add(ref: str, text: str) -> str:
        return writing.log.add({"kind": "delta", "message_ref": ref, "text": text})

    shown = [add("m", "It is password=ab"), add("n", "Other wo"), add("m", "c01234567 and"), add("n", "rds, ")]
    writing.write("m")
    rests = [(rest["message_ref"], rest["text"]) for rest in writing.log.settle(5, "m")]
    rests += [(rest["message_ref"], rest["text"]) for rest in writing.log.settle(9)]

    assert shown == ["It is ", "Other ", "password=[secret] ", "words, "]
    assert rests == [("m", "and")]
    assert writing.seen(4) == {"2:m": "It is password=[secret] ", "2:n": "Other words, "}


def test_pieces_are_written_in_batches(writing: Writing) -> None:
    for number in range(1000):
        writing.log.add({"kind": "delta", "message_ref": "m", "text": f"{number} "})
        writing.log.write(number * INTERVAL_S / 100)

    assert 10 <= len(writing.path.read_text().splitlines()) <= 12
    assert writing.log.next_write <= 11 * INTERVAL_S


def test_a_message_that_is_stored_is_no_draft_any_more_whatever_became_of_it(writing: Writing) -> None:
    writing.write("m", "one two ")
    writing.write("n", "three ")
    writing.log.settle(500, "m")
    writing.log.add({"kind": "delta", "message_ref": "n", "text": "four "})
    writing.log.settle(700, "n")
    writing.write("o")

    assert writing.seen(499) == {"2:m": "one two ", "2:n": "three "}
    assert writing.seen(500) == {"2:n": "three "}
    assert writing.seen(700) == {}
    writing.write("n", "late ")
    assert writing.seen(700) == {}


def test_what_came_to_nothing_goes_once_the_database_has_what_became_of_it(writing: Writing) -> None:
    writing.write("m", "half a ")
    writing.log.settle(500)
    writing.log.add({"kind": "delta", "message_ref": "n", "text": "next "})

    assert writing.seen(499) == {"2:m": "half a "}
    assert writing.seen(500) == {}
    writing.write("n")
    assert writing.seen(500) == {"2:n": "next "}


def test_pieces_that_were_not_written_when_the_turn_ended_are_left_out(writing: Writing) -> None:
    writing.write("m", "one ")
    writing.log.add({"kind": "delta", "message_ref": "m", "text": "two "})
    writing.log.settle(10)
    writing.write("n", "three ")

    assert writing.seen() == {"2:m": "one ", "2:n": "three "}


def test_the_file_stays_small_and_a_reader_goes_on_in_the_next_one(writing: Writing) -> None:
    late = writing.new_reader()
    sizes = []
    for number in range(40):
        writing.write(f"m{number}", "word " * 5_000)
        assert writing.seen(number)[f"2:m{number}"] == "word " * 5_000
        writing.log.settle(number + 1, f"m{number}")
        sizes.append(writing.path.stat().st_size)

    assert max(sizes) < 300_000
    assert writing.seen(39).keys() == {"2:m39"}
    assert set(writing.seen(reader=late)) <= {f"2:m{number}" for number in range(25, 40)}
    assert writing.seen(reader=late)["2:m39"] == "word " * 5_000


def test_the_file_is_not_begun_anew_while_another_message_is_written(writing: Writing) -> None:
    writing.write("a", "begun ")
    writing.write("b", "word " * 60_000)
    writing.log.settle(5, "b")
    writing.write("c", "other ")
    writing.write("a", "and more ")

    assert writing.seen(5, writing.new_reader()) == {"2:a": "begun and more ", "2:c": "other "}
    assert writing.seen(5) == {"2:a": "begun and more ", "2:c": "other "}
    writing.log.settle(6, "a")
    writing.log.settle(7, "c")
    writing.write("d", "new ")
    assert writing.path.stat().st_size < 1_000
    assert writing.seen(6) == {"2:a": "begun and more ", "2:c": "other ", "2:d": "new "}
    assert writing.seen(7) == {"2:d": "new "}


def test_of_a_message_whose_beginning_is_in_the_file_no_more_nothing_is_shown(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentmon.runners.host.draft_log._MAX_FILE_BYTES", 2_000_000)
    for _ in range(3):
        for ref in "abcd":
            writing.write(ref, "word " * 50_000)
    late = writing.new_reader()
    writing.write("a", "later ")
    writing.write("e", "new ")

    assert writing.path.stat().st_size < 2_300_000
    assert writing.seen() == writing.seen(reader=late)
    assert writing.seen()["2:e"] == "new "
    assert all(text.startswith("word ") for ref, text in writing.seen().items() if ref != "2:e")


def test_a_reader_goes_on_whatever_comes_at_once(writing: Writing) -> None:
    writing.write("m", "\U0001f600 " * (MAX_CHARACTERS // 2))
    while writing.reader.poll():
        pass
    writing.write("n", "after ")

    assert writing.seen() == {"2:m": "\U0001f600 " * (MAX_CHARACTERS // 2), "2:n": "after "}


def test_no_message_is_begun_in_its_middle_however_many_there_are(writing: Writing) -> None:
    writing.write("m", "my password = ")
    for number in range(150):
        writing.write(f"s{number}", "x ")
        if number < 50:
            writing.log.settle(5, f"s{number}")
    writing.write("m", "hunter2hunter2 ")
    full = writing.seen(5)
    writing.write("s149", "more ")

    assert full["2:m"] == "my password = [secret] "
    assert "2:s149" not in writing.seen(5)
    writing.log.settle(6)
    writing.write("t", "the next turn ")
    assert writing.seen(6) == {"2:t": "the next turn "}


def test_another_file_with_the_inode_of_the_one_before_is_read_from_its_beginning(writing: Writing) -> None:
    writing.write("m", "one ")
    writing.seen()
    # As a new file that got the same inode, and is longer already.
    lines = [
        {"n": 3, "settled": 0, "attempt": 2},
        *({"n": number, "message_ref": "n", "at_ms": 5, "text": f"{number} "} for number in range(4, 20)),
    ]
    with writing.path.open("r+") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))

    assert writing.seen()["2:n"] == "".join(f"{number} " for number in range(4, 20))


def test_what_a_killed_host_left_is_not_taken_for_the_next_try(writing: Writing) -> None:
    left = DraftLog(str(writing.path), attempt=1)
    left.add({"kind": "delta", "message_ref": "m", "text": "of the try before "})
    left.write(1.0)

    assert writing.seen() == {}
    writing.write("m", "of this try, as much or more than before ")
    assert writing.seen() == {"2:m": "of this try, as much or more than before "}


def test_what_is_unfinished_when_the_file_goes_is_no_draft_any_more(writing: Writing) -> None:
    writing.write("m", "one ")
    writing.write("n", "two ")
    writing.log.settle(500, "m")
    before = writing.seen()
    writing.log.remove()

    assert before == {"2:m": "one ", "2:n": "two "}
    assert writing.reader.poll()
    assert not writing.reader.poll()
    assert writing.seen(0) == {"2:m": "one "}
    assert writing.seen(500) == {}


def test_a_message_without_an_end_is_bounded(writing: Writing) -> None:
    for _ in range(MAX_CHARACTERS // 100_000 + 3):
        writing.write("m", "x y " * 25_000)

    assert len(writing.seen()["2:m"]) == MAX_CHARACTERS
    assert writing.path.stat().st_size < 1.1 * MAX_CHARACTERS


def test_where_nothing_can_be_written_nobody_waits_and_no_half_message_is_shown(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    writing = Writing(folder)
    writing.write("m", "one ")
    folder.mkdir()
    writing.write("m", "two ")
    unwritten = writing.seen()
    writing.log.settle(10)
    writing.write("n", "three ")
    writing.log.settle(20, "m")

    assert unwritten == {}
    assert writing.seen() == {"2:n": "three "}
    writing.log.remove()
    assert list(folder.iterdir()) == []


def test_a_turn_whose_end_cannot_be_written_costs_the_next_one_nothing(
    writing: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing.write("m", "one ")
    before = writing.seen()
    with monkeypatch.context() as patch:
        patch.setattr("agentmon.runners.host.draft_log.os.write", lambda *_: 0)
        writing.log.settle(10)
    writing.write("n", "two ")

    assert before == {"2:m": "one "}
    assert writing.seen(10) == {"2:n": "two "}


@pytest.mark.parametrize(
    "damage", ['{"n": 3}', "no JSON", '{"n": "x", "text": 1}', '{"n": 4, "message_ref": "m"}', "[]"]
)
def test_a_damaged_line_hides_no_other(writing: Writing, damage: str) -> None:
    writing.write("m", "one ")
    with writing.path.open("a") as file:
        file.write(f"{damage}\n")
        file.write(json.dumps({"n": 9, "message_ref": "m", "at_ms": 5, "text": "two\ud800 "}) + "\n")
        file.write('{"n": 10, "message_ref": "m", "at_ms": 5, "text": "half a line')

    assert writing.seen() == {"2:m": "one two� "}


def test_a_long_text_in_single_bytes_is_written_once(writing: Writing) -> None:
    text = "word " * 20_000
    for start, end in itertools.pairwise(range(0, len(text) + 1, 5_000)):
        writing.write("m", *text[start:end])

    assert writing.seen() == {"2:m": text}
    assert writing.path.stat().st_size < 1.1 * len(text)
