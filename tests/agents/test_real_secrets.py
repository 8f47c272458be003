"""Secrets of many shapes, written in many ways, printed by commands of real agents: agentmon keeps none of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.agents.drive import require_succeeded
from tests.agents.test_real_limits import shell, steps
from tests.sentinels import secrets

if TYPE_CHECKING:
    from tests.agents.drive import Drive

pytestmark = pytest.mark.agents


def found(drive: Drive, wanted: dict[str, tuple[str, str]]) -> list[str]:
    """Return which of them stand in a file of agentmon."""
    files = [path for path in drive.services.paths.data_dir.rglob("*") if path.is_file()]
    contents = [path.read_bytes() for path in files if "snapshots" not in path.parts]
    return [name for name, (_, core) in wanted.items() if any(core.encode() in content for content in contents)]


async def test_no_secret_that_a_command_of_an_agent_prints_is_kept(drive: Drive) -> None:
    printed, complained = secrets(1), secrets(2)
    (drive.project / "keys").write_text("\n".join(written for written, _ in printed.values()))
    (drive.project / "errors").write_text("\n".join(written for written, _ in complained.values()))

    ended = await drive.allow_all_until_over(
        await drive.start(steps(shell("cat keys"), shell("cat errors >&2; false"), {"text": "Seen."}))
    )

    require_succeeded(ended, drive)
    assert len(drive.rows("operations", ended)) == 2
    assert found(drive, printed | {f"error {name}": one for name, one in complained.items()}) == []
