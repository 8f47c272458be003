"""Secrets found by their shape and masked, always with the same mask."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

MASK: Final = "[secret]"
_IN_KEY: Final = "]"
"""Replaces each character of a private key while other secrets are looked for; none begins with it."""

# Shapes as their issuers document them: Anthropic, OpenAI, GitHub, GitLab, Slack, AWS, Google, Stripe, npm, PyPI, JWT,
# Hugging Face, Groq, xAI, Replicate, Perplexity, Tavily, NVIDIA, DigitalOcean, Docker, SendGrid, Shopify, Grafana,
# Linear, Figma, age.
# What repeats is bounded or possessive, so that the time grows with the length of the text alone, whatever it holds.
_TOKEN: Final = re.compile(
    r"\b(?:sk-(?:ant-|proj-)?[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}"
    r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,}"
    r"|[rs]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|hf_[A-Za-z0-9]{24,}"
    r"|gsk_[A-Za-z0-9]{30,}|xai-[A-Za-z0-9]{30,}|r8_[A-Za-z0-9]{30,}|pplx-[A-Za-z0-9]{30,}|tvly-[A-Za-z0-9-]{20,}"
    r"|nvapi-[A-Za-z0-9_-]{30,}|do[opr]_v1_[a-f0-9]{40,}|dckr_pat_[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,40}\.[A-Za-z0-9_-]{20,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{24,}|gls?[ac]_[A-Za-z0-9_-]{24,}|lin_api_[A-Za-z0-9]{24,}|figd_[A-Za-z0-9_-]{24,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{40,}"
    r"|eyJ[A-Za-z0-9_-]{10,2000}+\.eyJ[A-Za-z0-9_-]{10,8000}+\.[A-Za-z0-9_-]{5,})",
)
_TOKEN_STARTS: Final = ("eyJ", "AKIA", "ASIA", "AIza", "xox", "k_live_", "k_test_", "lin_api_")
_TOKEN_NAMES: Final = (
    (
        "_",
        (
            *(
                "ghp",
                "gho",
                "ghu",
                "ghs",
                "ghr",
                "pat",
                "npm",
                "hf",
                "gsk",
                "r8",
                "v1",
                "shpat",
                "shpca",
                "shppa",
                "shpss",
            ),
            *("glsa", "glc", "figd"),
        ),
    ),
    ("-", ("sk", "glpat", "xapp", "pypi", "GOCSPX", "xai", "pplx", "tvly", "nvapi", "AGE")),
    (".", ("ya29", "SG")),
)
"""What a token begins with, by the sign behind it: dividing a text is faster than looking for each of these."""
_SECRET_WORDS: Final = (
    *("secret", "token", "passwd", "password", "credential", "apikey", "api_key", "api-key"),
    *("accountkey", "accesskey", "accesssignature"),
)
_MARKS: Final = r"\\{0,4}[\"']?"
"""A quotation mark, also an escaped one."""
_ASSIGNED: Final = re.compile(
    rf"[A-Za-z0-9_.-]{{0,60}}{_MARKS}\s{{0,9}}[=:]\s{{0,9}}{_MARKS}((?:[^\s\"'&;,\\]|\\(?![\"'])){{6}})"
)
"""What follows one of these words when it names a secret, and the beginning of the secret."""
_SECRET_REST: Final = re.compile(r"(?:[^\s\"'&;,\\]|\\(?![\"']))*")
_OPTION: Final = re.compile(
    r"(?<![^\s\"'`(])(--?[A-Za-z0-9_-]{0,60}(?:[Ss]ecret|[Tt]oken|[Pp]asswd|[Pp]assword|[Aa]pi-?[Kk]ey|[Aa]ccess-?[Kk]ey)\s{1,9})"
    r"[\"']?(?![-\[<{$])((?=[a-z]{0,200}[^a-z\s\"'])(?:[^\s\"'\\]|\\(?![\"'])){6,})"
)
"""An option of a command whose next word is a secret: ``--password x``."""
_OPTION_STARTS: Final = (" -", "\n-", "\t-", '"-', "'-", "`-", "(-")
_BEARER: Final = re.compile(r"(?i)\b(bearer\s{1,9})((?=[A-Za-z._~+/=-]{0,200}[0-9])[A-Za-z0-9._~+/=-]{16,})")
_AUTHORIZATION: Final = re.compile(
    rf"(?i)\b((?:proxy-)?authorization{_MARKS}\s{{0,9}}[:=]\s{{0,9}}{_MARKS}(?:bearer|basic|token)?\s{{1,9}})"
    r"(\S{6,})"
)
_URL_PASSWORD: Final = re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://[^\s:/@]*+:)([^\s/@]++)(?=@)")
_ESCAPE: Final = r"(?:\x1b|\\u001[bB]|\\x1[bB]|\\033|\\e)"
_HIDING: Final = re.compile(
    rf"{_ESCAPE}\[[0-?]{{0,40}}[ -/]{{0,4}}[@-~]|\x9b[0-?]{{0,40}}[@-~]"
    rf"|{_ESCAPE}\][^\x07\x1b\\]{{0,400}}(?:\x07|\\u0007|\x1b\\|\\u001[bB]\\)|\x1b[ -/]{{0,4}}[0-~]"
    r"|\\u00(?:0[0-8bBcCeEfF]|1[0-9a-fA-F]|7[fF]|[89][0-9a-fA-F])"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2060\ufeff]"
)
"""What a terminal does not show: control codes, also as JSON and shells write them, and characters without a width."""
_WRITTEN_CODES: Final = ("\\u00", "\\x1", "\\033", "\\e[")
"""How control codes begin that are written in letters."""
KEY_BEGIN: Final = re.compile("-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
KEY_END: Final = re.compile("-----END [A-Z ]{0,40}PRIVATE KEY-----")
_PRIVATE_KEY: Final = re.compile(rf"{KEY_BEGIN.pattern}.*?(?:{KEY_END.pattern}|\Z)", re.DOTALL)
_NAME_END: Final = re.compile(
    rf"(?i)(?:{'|'.join(_SECRET_WORDS)})[a-z0-9_.-]{{0,60}}{_MARKS}\s{{0,9}}(?:[=:]\s{{0,9}}\S?)?\Z"
    rf"|authorization{_MARKS}\s{{0,9}}(?:[=:]\s{{0,9}}{_MARKS}(?:bearer|basic|token)?\s{{0,9}}\S?)?\Z"
    r"|\bbearer\s{1,9}\S?\Z"
)
LONGEST_NAME: Final = 100
"""More characters than the name of a secret has with all that may stand between it and the secret."""
_TO_LAST_BLANK: Final = re.compile(r".*\s", re.DOTALL)


def redact(text: str) -> str:
    """Return the text with every part that has the shape of a secret replaced by ``MASK``.

    It is read as a person sees it, so that no color or other control code hides a secret, or parts it.
    """
    if not _may_hide(text):
        return _masked(text, _secrets_in(text))
    shown, places = _as_shown(text)
    # What is hidden within a secret goes with it.
    spans = [(places[start], places[end - 1] + 1) for start, end in _secrets_in(shown)]
    return _masked(text, [*spans, *_secrets_in(text)])


def _may_hide(text: str) -> bool:
    """Return whether there may be more in a text than a terminal shows; quick, for what has nothing to hide."""
    if "\\" in text and any(one in text for one in _WRITTEN_CODES):
        return True
    return not text.isprintable() and not text.replace("\n", "").replace("\r", "").replace("\t", "").isprintable()


def _as_shown(text: str) -> tuple[str, list[int]]:
    """Return the text as a terminal shows it, and the position of each of its characters in the original."""
    pieces: list[str] = []
    places: list[int] = []
    at = 0
    for hidden in _HIDING.finditer(text):
        pieces.append(text[at : hidden.start()])
        places += range(at, hidden.start())
        at = hidden.end()
    pieces.append(text[at:])
    places += range(at, len(text))
    return "".join(pieces), places


def _secrets_in(text: str) -> list[tuple[int, int]]:
    """Return the spans of the secrets, in any order; they may overlap."""
    # Looking for a plain text is many times as fast as looking for a pattern.
    folded = text.lower()
    spans = []
    if "private key-----" in folded:
        spans += [found.span() for found in _PRIVATE_KEY.finditer(text)]
        # What is beside a key is read without it.
        text = _PRIVATE_KEY.sub(lambda found: _IN_KEY * len(found[0]), text)
        folded = text.lower()
    words = [word for word in _SECRET_WORDS if word in folded]
    if words:
        spans += _assigned_in(text, folded, words)
        if any(sign in text for sign in _OPTION_STARTS) or text.startswith("-"):
            spans += [found.span(2) for found in _OPTION.finditer(text)]
    if "authorization" in folded:
        spans += [found.span(2) for found in _AUTHORIZATION.finditer(text)]
    if "bearer" in folded:
        spans += [found.span(2) for found in _BEARER.finditer(text)]
    if "://" in text and "@" in text:
        spans += [found.span(2) for found in _URL_PASSWORD.finditer(text)]
    if _may_hold_token(text):
        spans += [found.span() for found in _TOKEN.finditer(text)]
    return spans


def _may_hold_token(text: str) -> bool:
    for start in _TOKEN_STARTS:
        if start in text:
            return True
    for sign, names in _TOKEN_NAMES:
        if sign in text:
            for part in text.split(sign):
                if part.endswith(names):
                    return True
    return False


def _masked(text: str, spans: list[tuple[int, int]]) -> str:
    if not spans:
        return text
    pieces, shown = [], 0
    for start, end in sorted(spans):
        if start >= shown:
            pieces += [text[shown:start], MASK]
        shown = max(shown, end)
    return "".join([*pieces, text[shown:]])


def _assigned_in(text: str, folded: str, words: Iterable[str]) -> list[tuple[int, int]]:
    if len(folded) != len(text):  # a few letters are longer in lower case; then ASCII must do
        folded = text.encode("ascii", "replace").decode().lower()
    spans = []
    for word in words:
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
    return spans


def is_named(text: str, at: int) -> bool:
    """Return whether what precedes ``at``, such as ``token:``, makes a secret of the word that begins there."""
    before = text[max(0, at - LONGEST_NAME) : at + 1]
    return _NAME_END.search(_HIDING.sub("", before)) is not None


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
