"""A file that was refused is left alone as it is, and looked at again once it changes or some time has passed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agentmon.usage.sources import CLAUDE, SourceFile
from agentmon.worker import refusals
from agentmon.worker.refusals import Refusals

if TYPE_CHECKING:
    import pytest

SOURCE = SourceFile(agent_slug=CLAUDE, path="/a.jsonl", thread_key="/a.jsonl", size=1, mtime_ns=1, inode=1)


def test_a_file_is_refused_only_as_it_was_the_last_time() -> None:
    refused = Refusals()
    grown = replace(SOURCE, size=2)

    refused.add(SOURCE)
    assert refused.has(SOURCE)
    assert not refused.has(grown)

    refused.add(grown)
    assert refused.has(grown)
    assert not refused.has(SOURCE)


def test_after_some_time_it_is_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Refusals()
    refused.add(SOURCE)

    monkeypatch.setattr(refusals, "TRY_AGAIN_AFTER_S", 0.0)

    assert not refused.has(SOURCE)
