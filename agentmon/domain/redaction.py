"""Secrets found by their shape and masked, always with the same mask."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "[secret]"

# Shapes as their issuers document them: Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, Stripe, npm, PyPI, JWT.
_TOKEN: Final = re.compile(
    r"\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,})",
)
_ASSIGNMENT: Final = re.compile(
    r"(?i)\b([A-Z0-9_.-]*(?:api[_-]?key|secret|token|passw(?:or)?d|credential)[A-Z0-9_.-]*[\"']?\s*[=:]\s*[\"']?)"
    r"([^\s\"'&;,]{6,})",
)
_AUTHORIZATION: Final = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)?\s+)(\S{6,})"
)
_URL_PASSWORD: Final = re.compile(r"\b([a-z][a-z0-9+.-]*://[^\s:/@]*:)([^\s/@]+)(@)")
_PRIVATE_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.DOTALL,
)


def redact(text: str) -> str:
    """Return the text with every part that has the shape of a secret replaced by ``MASK``."""
    text = _PRIVATE_KEY.sub(MASK, text)
    text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
    text = _ASSIGNMENT.sub(rf"\1{MASK}", text)
    text = _URL_PASSWORD.sub(rf"\1{MASK}\3", text)
    return _TOKEN.sub(MASK, text)


def has_secret(text: str) -> bool:
    """Whether some part of the text has the shape of a secret."""
    return redact(text) != text
