"""Secrets of many shapes, written in many ways, of which a part may be found nowhere."""

from __future__ import annotations

import json
import random
import string
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_SHAPES = (
    *("sk-{}", "sk-ant-api03-{}", "sk-proj-{}", "ghp_{}", "gho_{}", "ghs_{}", "ghu_{}", "ghr_{}", "github_pat_{}"),
    *("glpat-{}", "xoxb-{}", "xoxp-{}", "xapp-1-{}", "AKIA{:U}", "ASIA{:U}", "AIza{}", "ya29.{}", "GOCSPX-{}"),
    *("sk_live_{}", "rk_test_{}", "npm_{}", "pypi-{}", "hf_{}", "gsk_{}", "xai-{}", "r8_{}", "pplx-{}", "tvly-{}"),
    *("nvapi-{}", "dckr_pat_{}", "SG.abcdefghijklmnopqrst.{}", "shpat_{:H}", "glsa_{}", "lin_api_{}", "figd_{}"),
    *("eyJhbGciOiJIUzI1NiJ9.eyJ{}.abcdefgh1234", "Bearer {}", "password={}", "--token {}", "AccountKey={}"),
)
_WAYS: dict[str, Callable[[str], str]] = {
    "plain": lambda secret: secret,
    "quoted": lambda secret: f'"{secret}"',
    "in JSON": lambda secret: json.dumps({"value": secret}),
    "in JSON in JSON": lambda secret: json.dumps({"value": json.dumps({"value": secret})}),
    "in color": lambda secret: f"\x1b[32m{secret}\x1b[0m",
    "in color that JSON wrote": lambda secret: json.dumps(f"\x1b[1;32m{secret}\x1b[0m"),
    "with color within": lambda secret: f"{secret[:-12]}\x1b[32m{secret[-12:]}\x1b[0m",
    "behind a title": lambda secret: f"\x1b]0;title\x07{secret}",
    "behind a control code": lambda secret: f"\x01{secret}\x02",
    "in an export": lambda secret: f"export VALUE='{secret}'",
}


class _Filling:
    """Random characters of a kind: all, capitals and digits for ``U``, hexadecimal for ``H``."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.text = ""

    def __format__(self, kind: str) -> str:
        letters = {"U": string.ascii_uppercase + string.digits, "H": "0123456789abcdef"}
        length = {"U": 16, "H": 32}.get(kind, 40)
        chosen = letters.get(kind, string.ascii_letters + string.digits)
        self.text = "".join(self._chance.choices(chosen, k=length - 1)) + "7"
        return self.text


def secrets(seed: int) -> dict[str, tuple[str, str]]:
    """Return for each shape and way what is written, and the part of it that may be found nowhere."""
    chance = random.Random(seed)
    made = {}
    for shape in _SHAPES:
        for name, way in _WAYS.items():
            filling = _Filling(chance)
            made[f"{shape} {name}"] = (way(shape.format(filling)), filling.text[-12:])
    return made
