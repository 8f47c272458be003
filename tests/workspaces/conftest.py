from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.workspaces.snapshots import SnapshotStore

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return SnapshotStore(tmp_path / "store")
