"""Secrets found by their shape and masked, always with the same mask."""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "[secret]"

# Shapes as their issuers document them: Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, Stripe, npm, PyPI, JWT.
# What repeats is bounded or possessive, so that the time grows with the length of the text alone, whatever it holds.
_TOKEN: Final = re.compile(
    r"\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,8000}+\.[A-Za-z0-9_-]{5,})",
)
_TOKEN_STARTS: Final = (
    "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AKIA", "ASIA", "AIza",
    "k_live_", "k_test_", "npm_", "pypi-", "eyJ",
)  # fmt: skip
_SECRET_WORDS: Final = ("secret", "token", "passwd", "password", "credential", "apikey", "api_key", "api-key")
_ASSIGNED: Final = re.compile(r"[A-Za-z0-9_.-]{0,60}[\"']?\s{0,9}[=:]\s{0,9}[\"']?([^\s\"'&;,]{6})")
"""What follows one of these words when it names a secret, and the beginning of the secret."""
_SECRET_REST: Final = re.compile(r"[^\s\"'&;,]*")
_AUTHORIZATION: Final = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?:bearer|basic|token)?\s{1,9})(\S{6,})"
)
_URL_PASSWORD: Final = re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://[^\s:/@]*+:)([^\s/@]++)(@)")
KEY_BEGIN: Final = re.compile("-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
KEY_END: Final = re.compile("-----END [A-Z ]{0,40}PRIVATE KEY-----")
_PRIVATE_KEY: Final = re.compile(rf"{KEY_BEGIN.pattern}.*?(?:{KEY_END.pattern}|\Z)", re.DOTALL)
_NAME_END: Final = re.compile(
    rf"(?i)(?:{'|'.join(_SECRET_WORDS)})[a-z0-9_.-]{{0,60}}[\"']?\s{{0,9}}(?:[=:]\s{{0,9}}\S?)?\Z"
    r"|authorization[\"']?\s{0,9}(?:[=:]\s{0,9}[\"']?(?:bearer|basic|token)?\s{0,9}\S?)?\Z"
)
LONGEST_NAME: Final = 100
"""More characters than the name of a secret has with all that may stand between it and the secret."""
_TO_LAST_BLANK: Final = re.compile(r".*\s", re.DOTALL)


def redact(text: str) -> str:
    """Return the text with every part that has the shape of a secret replaced by ``MASK``."""
    # Looking for a plain text is many times as fast as looking for a pattern.
    folded = text.lower()
    if "private key-----" in folded:
        text = _PRIVATE_KEY.sub(MASK, text)
    if "authorization" in folded:
        text = _AUTHORIZATION.sub(rf"\1{MASK}", text)
    text = _redact_assignments(text)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(rf"\1{MASK}\3", text)
    if any(start in text for start in _TOKEN_STARTS):
        text = _TOKEN.sub(MASK, text)
    return text


def _redact_assignments(text: str) -> str:
    folded = text.lower()
    if len(folded) != len(text):  # a few letters are longer in lower case; then ASCII must do
        folded = text.encode("ascii", "replace").decode().lower()
    spans = []
    for word in _SECRET_WORDS:
        ends = 0
        position = folded.find(word)
        while position >= 0:
            position += len(word)
            found = _ASSIGNED.match(text, position)
            # What begins within a secret ends with it, and so nothing is read twice.
            if found and found.start(1) >= ends:
                rest = _SECRET_REST.match(text, found.end())
                ends = rest.end() if rest else found.end()
                spans.append((found.start(1), ends))
            position = folded.find(word, position)
    pieces, shown = [], 0
    for start, end in sorted(spans):
        if start >= shown:
            pieces += [text[shown:start], MASK]
        shown = max(shown, end)
    return "".join([*pieces, text[shown:]])


def is_named(text: str, at: int) -> bool:
    """Return whether what precedes ``at``, such as ``token:``, makes a secret of the word that begins there."""
    return _NAME_END.search(text, max(0, at - LONGEST_NAME), at + 1) is not None


def last_gap(text: str, start: int = 0) -> int:
    """Return the end of the last blank, from ``start`` on, at which no secret can be cut in two; 0 if there is none."""
    at = len(text)
    while blank := _TO_LAST_BLANK.match(text, max(0, start - 1), at):
        if not is_named(text, blank.end()):
            return blank.end()
        at = blank.end() - 1
    return 0


def has_secret(text: str) -> bool:
    """Whether some part of the text has the shape of a secret."""
    return redact(text) != text
