from __future__ import annotations

import re
from pathlib import Path

from agentmon.runners.presets import load_presets

PAGE = (Path(__file__).parents[2] / "docs" / "presets.md").read_text(encoding="utf-8")


def test_the_page_of_presets_has_all_of_them_with_what_they_can_be_asked_to_do() -> None:
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| .+? \| (.+?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)

    told = {slug: (keys.split(", "), checked, unchecked) for slug, keys, checked, unchecked in rows}
    assert told == {
        preset.slug: ([part.key for part in preset.capabilities], preset.checked_with, preset.unchecked)
        for preset in load_presets()
    }
