"""Whatever a terminal sends: no error, nothing but a key is a key, and what comes next is read right."""

from __future__ import annotations

from codecs import getincrementaldecoder
from random import Random

import pytest
from textual import constants, events

from agentmon.widgets import input_units
from agentmon.widgets.whole_keys import WholeKeyParser
from tests.seeds import seeds
from tests.widgets.terminal_inputs import KEYS, REPLIES, anything, no_key

INPUTS = 3_000
TYPED = (events.Key, events.Paste)
RESYNC = b"\x1b[201~\x1b[201~\x1b[B\x1b[A"


@pytest.fixture(autouse=True)
def no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ESCAPE_DELAY", 0.0)


class Line:
    """A parser behind a line that cuts what comes anywhere."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._parser = WholeKeyParser()
        self._decode = getincrementaldecoder("utf-8")("surrogateescape").decode

    def send(self, data: bytes, *, whole: bool = False) -> list[object]:
        got: list[object] = []
        while data:
            size = len(data) if whole else self._random.randrange(1, len(data) + 1)
            got += self._parser.feed(self._decode(data[:size]))
            data = data[size:]
        return got

    def wait(self) -> list[object]:
        return list(self._parser.tick())


def said(event: object) -> str:
    """Return the event without where the mouse was before."""
    return repr(event).partition(", delta_x")[0]


@pytest.mark.parametrize("reply", REPLIES)
def test_what_a_terminal_says_is_no_key(reply: bytes) -> None:
    line = Line(Random(0))

    assert not [event for event in line.send(reply, whole=True) if isinstance(event, TYPED)]
    assert not [event for event in line.wait() if isinstance(event, TYPED)]


@pytest.mark.parametrize("key", KEYS)
def test_keys_are_keys_behind_each_reply(key: bytes) -> None:
    alone = Line(Random(0))
    expected = [said(event) for event in alone.send(key, whole=True) + alone.wait()]

    assert expected
    for reply in REPLIES:
        line = Line(Random(0))
        before = line.send(reply, whole=True)
        assert [said(event) for event in line.send(key, whole=True) + line.wait()][-len(expected) :] == expected, reply
        assert not [event for event in before if isinstance(event, TYPED)]


@pytest.mark.parametrize("seed", seeds(20))
def test_nothing_but_a_key_is_a_key(seed: int) -> None:
    random = Random(seed)
    line = Line(random)
    for _ in range(INPUTS):
        data = no_key(random)
        assert not [event for event in line.send(data) if isinstance(event, TYPED)], data


@pytest.mark.parametrize("seed", seeds(20))
def test_nothing_is_an_error_or_keeps_the_next_key(seed: int) -> None:
    random = Random(seed)
    line = Line(random)
    for _ in range(INPUTS):
        data = anything(random)
        line.send(data)
        if random.random() < 0.1:
            line.wait()
        last = line.send(RESYNC)[-1]
        assert isinstance(last, events.Key) and last.key == "up", data  # noqa: PT018 - one thing, with its input


def test_what_was_cut_off_is_dropped_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_units, "WAIT_S", 0.0)
    for cut in (b"\x1b[1;", b"\x1b[M ", b"\x1b]11;rgb:", b"\x1bPx", b"\x1bO"):
        line = Line(Random(0))

        got = line.send(cut, whole=True) + line.wait() + line.send(b"j")

        assert [event.key for event in got if isinstance(event, events.Key)] == ["j"], cut


def test_a_paste_whose_end_was_lost_is_ended_by_esc(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(Random(0))
    held = line.send(b"\x1b[200~one\x1btwo\xff")
    monkeypatch.setattr(input_units, "WAIT_S", 0.0)

    ended = line.send(b"\x1b")

    assert held == []
    assert [event.text for event in ended if isinstance(event, events.Paste)] == ["one\x1btwo\N{REPLACEMENT CHARACTER}"]
    assert [event.key for event in line.send(b"j") if isinstance(event, events.Key)] == ["j"]
