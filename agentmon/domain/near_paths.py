"""Texts that name paths, made shorter for people who know in which folder they are."""

from __future__ import annotations

import re
from functools import lru_cache


def near_text(text: str, folder: str) -> str:
    """Return the text with every path below the folder told from there; an empty folder changes nothing."""
    root = folder.rstrip("/")
    if not root or root not in text:
        return text
    return _below(root).sub("", text)


@lru_cache(maxsize=256)
def _below(root: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\s:=,;'\"`(\[{{<]){re.escape(root)}/(?=[^\s/])")
