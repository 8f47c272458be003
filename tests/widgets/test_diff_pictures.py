"""What a difference looks like; ``pytest -n 0 …/test_diff_pictures.py --snapshot-update`` takes new pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pytest_textual_snapshot import SVGImageExtension  # type: ignore[import-untyped] # it has no types

from agentmon.domain.diffs import Diff
from agentmon.screens.settings.themes import DARK, LIGHT, THEMES
from tests.domain.test_diffs import patch_of
from tests.screens.scenes import svg_of
from tests.widgets.test_diff_view import DiffApp, go, until

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from textual.pilot import Pilot

pytestmark = pytest.mark.proof

OLD = '''"""Reads the settings."""

import json
from pathlib import Path

LIMIT = 4


def read(path, default=None):
    # Nothing is there before the first start.
    if not path.exists():
        return default
    text = path.read_text()
    return json.loads(text)


def write(path, values):
    path.write_text(json.dumps(values))


class Settings:
    """What a person chose."""

    def __init__(self, folder):
        self.path = Path(folder) / "settings.json"
        self.values = read(self.path, {})

    def limit(self):
        return self.values.get("limit", LIMIT)

    def close(self):
        write(self.path, self.values)
'''
NEW = (
    OLD.replace("import json\n", "import json\nimport os\n")
    .replace("def read(path, default=None):", "def read(path: Path, default: object = None) -> object:")
    .replace("    text = path.read_text()\n    return json.loads(text)\n", "    return json.loads(path.read_bytes())\n")
    .replace('self.values.get("limit", LIMIT)', 'int(self.values.get("limit") or os.environ.get("LIMIT", LIMIT))')
)
PATCH = (
    patch_of(OLD.splitlines(keepends=True), NEW.splitlines(keepends=True), "agentmon/settings/reading.py")
    + "diff --git a/docs/logo.png b/docs/logo.png\nindex 12..34 100644\n"
    + "Binary files a/docs/logo.png and b/docs/logo.png differ\n"
    + "diff --git a/run.sh b/scripts/run.sh\nold mode 100644\nnew mode 100755\nsimilarity index 100%\n"
    + "rename from run.sh\nrename to scripts/run.sh\n"
    + patch_of(
        [], ["# Notes\n", "\n", "Read `settings.json` first.\n"], "docs/a long folder/notes on settings.md"
    ).replace("\n---", "\nnew file mode 100644\n---")
    + patch_of(["a\n", "b\n"], [], "old.txt").replace("\n---", "\ndeleted file mode 100644\n---")
)
FORMS = (
    ((80, 24), DARK.name),
    ((80, 24), LIGHT.name),
    ((120, 40), LIGHT.name),
    ((120, 40), DARK.name),
    ((200, 60), DARK.name),
)


async def compare(app: DiffApp, pilot: Pilot[None], name: str, snapshot: SnapshotAssertion) -> None:
    """Take the picture in every form; fail at the end with the names of those that look otherwise."""
    different = []
    for size, theme in FORMS:
        app.theme = theme
        await pilot.resize_terminal(*size)
        await until(pilot, lambda: not app.text.is_colouring)
        await pilot._wait_for_screen()
        form = f"{name}-{size[0]}x{size[1]}-{theme.removeprefix('agentmon-')}"
        if svg_of(app) != snapshot(name=form, extension_class=SVGImageExtension):
            different.append(form)
    assert not different, f"these look otherwise: {different}"


async def test_a_difference_looks_as_it_did(snapshot: SnapshotAssertion) -> None:
    app = DiffApp(Diff(PATCH))
    for theme in THEMES:
        app.register_theme(theme)
    async with app.run_test(size=(80, 24)) as pilot:
        await go(pilot, "J", "space", "j", "j", "j", "j")
        await compare(app, pilot, "read", snapshot)
        await go(pilot, "slash", *"read", "enter", "n", "v", "j", "j")
        await compare(app, pilot, "marked", snapshot)
