"""Manual pages in the source form of ``man`` and ``mdoc``, as sections with their tagged paragraphs; nothing is run.

A request that a page defines itself is passed over: what a page is about stands in text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

_CHARACTERS: Final = {
    "aq": "'",
    "cq": "'",
    "oq": "'",
    "dq": '"',
    "lq": '"',
    "rq": '"',
    "em": "-",
    "en": "-",
    "hy": "-",
    "mi": "-",
    "ci": "•",
    "bu": "•",
    "ti": "~",
    "ha": "^",
    "rs": "\\",
    "ga": "`",
    "at": "@",
    "sh": "#",
    "lB": "[",
    "rB": "]",
    "lC": "{",
    "rC": "}",
    "ba": "|",
    "bv": "|",
    "sl": "/",
    "co": "©",
    "mu": "×",
    "->": "→",
    "Aq": "'",
    "Lq": '"',
    "Rq": '"',
    "R": "®",
    "Tm": "™",
}
_ESCAPE: Final = re.compile(
    r"\\(?:"
    r"f(?:\[[^\]]*\]|\(..|.)|F(?:\[[^\]]*\]|\(..|.)|s(?:[+-]?\d{1,2}|\[[^\]]*\]|\([+-]?\d\d)|m(?:\[[^\]]*\]|\(..|.)"
    r"|[hvwlLDoxZXNbRSHYC]'[^']*'|k(?:\[[^\]]*\]|\(..|.)|n[+-]?(?:\[[^\]]*\]|\(..|.)|V(?:\[[^\]]*\]|\(..|.)"
    r"|g(?:\[[^\]]*\]|\(..|.)|[zdur]"
    r"|\*(?:\[(?P<long_string>[^\]]*)\]|\((?P<string>..)|(?P<short_string>.))"
    r"|\[(?P<long>[^\]]*)\]|\((?P<name>..)"
    r"|(?P<kept>.)|$)"
)
_KEPT: Final = {
    "-": "-",
    "e": "\\",
    "E": "\\",
    "\\": "\\",
    " ": " ",
    "~": " ",
    "0": " ",
    "'": "'",
    "`": "`",
    ".": ".",
    "t": " ",
}
_FONTS: Final = frozenset({"B", "I", "R", "BI", "BR", "IB", "IR", "RB", "RI", "SM", "SB", "CW", "C"})
_ALTERNATING: Final = frozenset({"BI", "BR", "IB", "IR", "RB", "RI"})
_WORDS: Final = re.compile(r'"((?:[^"]|"")*)"?|(\S+)')
_REQUEST: Final = re.compile(r"[.'][ \t]*(\\?[A-Za-z%]{1,4}|\\\}|\\\")")
_BEGINNING: Final = frozenset({"SS", "Ss", "PP", "P", "LP", "Pp", "sp", "HP", "TS", "TE", "EX", "nf"})
_BULLETS: Final = frozenset({"•", "o", "*", "-", "·", "+"})
_MDOC_FLAGS: Final = re.compile(r"\s+([,.;:)\]|])")
_MDOC_QUIET: Final = frozenset(
    {"Ar", "Cm", "Ic", "Nm", "Pa", "Sy", "Em", "Li", "Va", "Ev", "Xr", "Dv", "Er", "Fa", "Ft", "Fn", "Ql", "No", "Ux"}
    | {"Tn", "Bx", "At", "St", "An", "Lk", "Mt", "Ad", "Vt", "In", "Cd", "Ms", "Xo", "Xc", "Ox", "Nx", "Fx", "Do", "Dc"}
    | {"Pf", "Ap", "Dl", "D1", "Nd", "Rv", "Ex", "Bf", "Ef", "Bsx", "Ux", "Lb", "Brq", "Bro", "Brc", "Eo", "Ec", "Es"}
)
_MDOC_OPENING: Final = {
    "Op": "[",
    "Oo": "[",
    "Dq": '"',
    "Sq": "'",
    "Pq": "(",
    "Po": "(",
    "Bq": "[",
    "Aq": "<",
    "Ao": "<",
    "Qq": '"',
}
_MDOC_CLOSING: Final = {"Oc": "]", "Pc": ")", "Ac": ">", "Bc": "]"}
_LONGEST_TAG: Final = 400
_MOST_LINES: Final = 60_000


@dataclass(slots=True)
class Paragraph:
    """Some text of a page, under a tag where it has one."""

    section: str
    """The heading, without those of its parts."""
    tag: str = ""
    """What stands at the side of the text, as the options that it is about."""
    text: str = ""
    depth: int = 0
    """How far it is indented, counted in indents."""


@dataclass(slots=True)
class _Reading:
    section: str = ""
    depth: int = 0
    tags_wanted: int = 0
    """How many further lines are tags."""
    skips: int = 0
    """How many braces of conditions that do not hold are open."""
    paragraphs: list[Paragraph] = field(default_factory=list)
    macro_end: str = ""
    """What ends the definition that is passed over."""


class Page:
    """A page that is read line by line."""

    def __init__(self, text: str) -> None:
        self._reading = _Reading()
        self._strings: dict[str, str] = {}
        # An escaped end of a line is none.
        for line in text.replace("\\\n", "").split("\n", _MOST_LINES)[:_MOST_LINES]:
            self._read(line)

    def paragraphs(self) -> list[Paragraph]:
        """Return the paragraphs that have a tag or a text, in the order of the page."""
        for paragraph in self._reading.paragraphs:
            paragraph.text = " ".join(paragraph.text.split())
            paragraph.tag = " ".join(paragraph.tag.split())
        return [paragraph for paragraph in self._reading.paragraphs if paragraph.text or paragraph.tag]

    def _read(self, line: str) -> None:
        reading = self._reading
        if reading.macro_end:
            if line.rstrip() == reading.macro_end:
                reading.macro_end = ""
        elif reading.skips:
            reading.skips += line.count("\\{") - line.count("\\}")
        elif found := _REQUEST.match(line):
            self._read_request(found[1], line[found.end() :].strip())
        elif not line.strip():
            self._finish_paragraph()
        elif not line.startswith((".", "'")):
            self._add(_plain(line, self._strings))

    def _read_request(self, request: str, rest: str) -> None:
        if request == '\\"':
            return
        if request in {"if", "ie", "el"}:
            self._condition(request, rest)
        elif request in {"de", "ig", "am", "dei", "de1"}:
            # Without a name of its own an ignored block ends with two dots.
            self._reading.macro_end = ".."
        elif request == "ds":
            name, _, value = rest.partition(" ")
            self._strings[name] = _plain(value.strip().removeprefix('"'), {})
        else:
            self._request(request, rest.partition('\\"')[0])

    def _condition(self, request: str, rest: str) -> None:
        condition, _, then = ("n", "", rest) if request == "el" else rest.partition(" ")
        holds = condition == "n"
        if "\\{" in then or then.strip() == "\\{\\":
            if not holds or request == "el":
                self._reading.skips += then.count("\\{") - then.count("\\}")
                return
            then = then.replace("\\{\\", "").replace("\\{", "")
        if holds and request != "el" and then.strip():
            self._read(then.strip())

    def _request(self, request: str, rest: str) -> None:
        if request in {"SH", "Sh"}:
            self._reading.section = _plain(" ".join(_words(rest)), self._strings)
            self._reading.depth = 0
            self._begin()
        elif request in _BEGINNING:
            self._begin()
        elif request in {"TP", "TQ", "IP", "It", "OP"}:
            self._tag(request, rest)
        elif request == "RS":
            self._indent()
        elif request == "RE":
            self._reading.depth = max(0, self._reading.depth - 1)
        elif request in {"Fl", "Oc"} or request in _MDOC_OPENING:
            self._add(_mdoc(f"{request} {rest}", self._strings))
        elif request in _FONTS:
            between = "" if request in _ALTERNATING else " "
            self._add(between.join(_plain(word, self._strings) for word in _words(rest)))
        elif request in _MDOC_QUIET:
            self._add(("- " if request == "Nd" else "") + _mdoc(rest, self._strings))

    def _tag(self, request: str, rest: str) -> None:
        """Begin a paragraph with a tag, which stands in the same line or in the next one."""
        if request == "TQ":
            self._reading.tags_wanted = 1
            self._last().tag += ", "
            return
        if request == "IP":
            words = _words(rest)
            tag = _plain(words[0], self._strings).strip() if words else ""
            if not tag:
                # What goes on below the same tag.
                self._finish_paragraph()
                return
            tag = "•" if tag in _BULLETS else tag
        elif request == "It":
            tag = _mdoc(rest, self._strings)
        else:
            tag = " ".join(_plain(word, self._strings) for word in _words(rest)) if request == "OP" else ""
        self._begin()
        self._last().tag = tag
        self._reading.tags_wanted = int(request == "TP")

    def _begin(self) -> None:
        reading = self._reading
        reading.tags_wanted = 0
        reading.paragraphs.append(Paragraph(reading.section, depth=reading.depth))

    def _finish_paragraph(self) -> None:
        if self._reading.paragraphs and self._last().text:
            self._last().text += "\n"

    def _last(self) -> Paragraph:
        if not self._reading.paragraphs:
            self._begin()
        return self._reading.paragraphs[-1]

    def _indent(self) -> None:
        """Go one deeper; a short text before an indent is its tag, as DocBook and Asciidoc write it."""
        last = self._last()
        if last.text and not last.tag and len(last.text) < _LONGEST_TAG and last.depth == self._reading.depth:
            last.tag, last.text = last.text, ""
        self._reading.depth += 1

    def _add(self, text: str) -> None:
        last = self._last()
        if self._reading.tags_wanted:
            self._reading.tags_wanted -= 1
            last.tag += text
        elif last.tag == "•" and not last.text and text.startswith("-"):
            last.tag = text
        else:
            last.text += text + " "


def _words(rest: str) -> list[str]:
    """Return the arguments of a request; blanks stand inside of quotes or behind a backslash."""
    found = _WORDS.findall(rest.replace("\\ ", "\\~"))
    return [(quoted or plain).replace('""', '"') for quoted, plain in found]


def _plain(text: str, strings: dict[str, str]) -> str:
    """Return a text without escapes."""

    def fill(found: re.Match[str]) -> str:
        string = found["long_string"] or found["string"] or found["short_string"]
        if string is not None:
            return strings.get(string, _CHARACTERS.get(string, ""))
        name = found["long"] or found["name"]
        if name is not None:
            return chr(int(name[1:5], 16)) if re.fullmatch(r"u[0-9A-F]{4}", name) else _CHARACTERS.get(name, "")
        return _KEPT.get(found["kept"] or "", "")

    return _ESCAPE.sub(fill, text)


def _mdoc(rest: str, strings: dict[str, str]) -> str:
    """Return a line of ``mdoc`` macros as text: ``Fl o Ar option`` is ``-o option``."""
    parts: list[str] = []
    closing: list[str] = []
    is_flag = is_tight = False
    for raw in _words(rest):
        if raw in {"Fl", "Cm", "Ic"}:
            is_flag = raw == "Fl"
            continue
        if raw == "Ns":
            is_flag, is_tight = False, True
            continue
        if raw in _MDOC_OPENING:
            parts.append(("" if is_tight or not parts else " ") + _MDOC_OPENING[raw])
            if raw in {"Op", "Dq", "Sq", "Pq", "Bq", "Aq", "Qq"}:
                closing.insert(0, {"[": "]", "(": ")", "<": ">"}.get(_MDOC_OPENING[raw], _MDOC_OPENING[raw]))
            is_tight = True
            is_flag = False
            continue
        if raw in _MDOC_CLOSING:
            parts.append(_MDOC_CLOSING[raw])
            continue
        if raw in _MDOC_QUIET:
            is_flag = False
            continue
        word = _plain(raw, strings)
        if is_flag and word not in {",", "|", ".", ")", "]", ":"}:
            word = f"-{word}"
        parts.append(("" if is_tight or not parts else " ") + word)
        is_tight = False
    return _MDOC_FLAGS.sub(r"\1", "".join(parts) + "".join(closing))
