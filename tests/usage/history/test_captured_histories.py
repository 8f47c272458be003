"""What the real programs wrote is read without a problem, and as it was said."""

from __future__ import annotations

import random
import shutil
from typing import TYPE_CHECKING

import pytest

from agentmon.usage.following import read_source
from agentmon.usage.history.openings import HISTORY_READERS
from agentmon.usage.history.reading import HistoryReading
from agentmon.usage.sources import find_sources
from tests.usage.histories import SAMPLES, environ_of
from tests.usage.history.conversations_read import Part, parts_of, read_home, told

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.usage.sources import SourceFile


@pytest.fixture
def captured(tmp_path: Path) -> dict[str, str]:
    for name in ("claude", "codex"):
        shutil.copytree(SAMPLES / "captured" / name, tmp_path / name)
    shutil.copytree(SAMPLES / "captured" / "gemini", tmp_path / "gemini-home" / ".gemini")
    return environ_of(tmp_path)


def test_conversations_of_the_real_programs_are_read(captured: dict[str, str]) -> None:
    sessions = read_home(captured)

    assert told(sessions["5fad6088-134d-4d0c-968c-d8ccba4ccb0f"]) == [
        ("user", "USETOOL please"),
        ("thought", "Let me think about it."),
        ("assistant", "Running a command."),
        ("Bash", "execute echo hello: success"),
        ("thought", "Final thinking."),
        ("assistant", "Done. Reply number 9"),
    ]
    assert told(sessions["01a21ee8-a52b-7260-b4f1-e9f909f870dc"]) == [
        ("user", "USETOOL please"),
        ("thought", "thinking"),
        ("shell", "execute echo hello: success"),
        ("thought", "thinking"),
        ("assistant", "Done reply 6"),
    ]
    assert told(sessions["661a2518-6ec3-454c-8482-bc495fe14b68"]) == [
        ("user", "USETOOL please"),
        ("list_directory", "query .: success"),
        ("assistant", "Done reply 2"),
    ]


def test_a_subagent_of_the_real_program_speaks_within_its_call(captured: dict[str, str]) -> None:
    parts = read_home(captured)["2a5b79e8-d4bc-4be9-8220-ea0b4380e706"]

    inner = [part for part in parts if part.parent_ref == "toolu_015b3949054feb4a528c2c64"]
    assert told(inner)[2:4] == [("assistant", "Running a command."), ("Bash", "execute echo hello: success")]


def _sources(environ: dict[str, str]) -> list[SourceFile]:
    return find_sources(environ)


@pytest.mark.parametrize("seed", range(3))
def test_pieces_tell_what_the_whole_file_tells(captured: dict[str, str], seed: int) -> None:
    dice = random.Random(seed)
    for source in _sources(captured):
        whole: dict[str, Part] = {}
        for read in read_source(source, None, HISTORY_READERS):
            assert isinstance(read.reading, HistoryReading)
            assert read.reading.problems == ()
            whole |= {part.ref: part for part in parts_of(read.reading)}
        with open(source.path, "rb") as opened:  # noqa: PTH123 - as the import does
            lines = opened.read().splitlines(keepends=True)
        reader, offset = HISTORY_READERS.open(source), 0
        pieces: dict[str, Part] = {}
        while lines:
            count = dice.randint(1, 5)
            piece, lines = b"".join(lines[:count]), lines[count:]
            reading = reader.read(piece, offset)
            assert isinstance(reading, HistoryReading)
            pieces |= {part.ref: part for part in parts_of(reading)}
            offset += len(piece)
            reader = HISTORY_READERS.type_of(source).restore(reader.state())
        assert pieces == whole
