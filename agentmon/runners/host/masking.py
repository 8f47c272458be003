"""Secrets by their shape, masked before anything an agent says is written; only protocols need it, so it comes late."""

from __future__ import annotations

import json
import re

from agentmon.domain.redaction import MASK, redact

_HINT = re.compile(
    rb"sk-|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|AIza|[rs]k_(?:live|test)_|npm_|pypi-|eyJ|PRIVATE KEY"
    rb"|(?i:api[_-]?key|secret|passw|credential|authorization|token[a-z0-9_.-]{0,40}\\?[\"']?\s*[=:]\s*\\?[\"']?[a-z])"
    rb"|://[^\s:/@\"]{0,200}:[^\s/@\"]{1,200}@"
)
"""What every shape of ``redaction`` has in it; a line without one is passed on as it is."""
_SECRET_NAME = re.compile(r"(?i)api[_-]?key|secret|passw(?:or)?d|credential|authorization|(?:^|[_-])token$")
_SHORTEST_SECRET = 6


def mask(value: object) -> object:
    """Return the JSON value with every text in it masked; numbers, names and the form stay."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            str(name): MASK
            if isinstance(part, str) and len(part) >= _SHORTEST_SECRET and _SECRET_NAME.search(str(name))
            else mask(part)
            for name, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask(part) for part in value]
    return value


def mask_line(line: bytes) -> str:
    """Return a line of a protocol with what has the shape of a secret masked; other lines are the same text."""
    text = line.decode("utf-8", "replace")
    if _HINT.search(line) is None:
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return redact(text)
    return json.dumps(mask(document), ensure_ascii=False, separators=(",", ":"))


def mask_text(text: str) -> str:
    """Return a text with what has the shape of a secret masked."""
    return redact(text)
