"""The fixed values in a JavaScript module: objects, lists and texts; nothing of it is run.

What only a run could tell (calls, functions, expressions) is passed over and becomes ``UNKNOWN``.
"""

from __future__ import annotations

import re
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<blank>(?:\s+|//[^\n]*|/\*.*?\*/)+)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)n?)
    |(?P<name>[A-Za-z_$][\w$]*)
    |(?P<sign>=>|\.\.\.|===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|[-+*%&|^]=|\+\+|--|.)""",
    re.VERBOSE | re.DOTALL,
)
_EXPRESSION: Final = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_ESCAPE: Final = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
_DECIMAL: Final = re.compile(r"\d+\.?\d*")
_END: Final = ("end", "")
_OPENING: Final = frozenset("([{")
_CLOSING: Final = frozenset(")]}")
_ENDS: Final = frozenset({",", ";", ")", "]", "}", ""})
_WORDS: Final[dict[str, object]] = {"true": True, "false": False, "null": None, "undefined": None}
_DEEPEST: Final = 60
_MOST_VALUES: Final = 300_000


class Unknown:
    """What only a run of the program could tell."""


UNKNOWN: Final = Unknown()


class JsModule:
    """One module, read once.

    Args:
        text: Its source.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._set: dict[str, int] = self._variables()
        self._known: dict[str, object] = {}
        self._values = 0

    def default_export(self) -> object:
        """Return the value that the module exports as its default; ``UNKNOWN`` when that is none of fixed values."""
        tokens = self._tokens
        for at, (kind, text) in enumerate(tokens):
            if (kind, text) != ("name", "export"):
                continue
            if tokens[at + 1 : at + 2] == [("name", "default")]:
                return self._value(at + 2, 0)[0]
            for place in range(at + 2, min(at + 200, len(tokens) - 2)):
                if tokens[place][1] == "}":
                    break
                if tokens[place + 1 : place + 3] == [("name", "as"), ("name", "default")]:
                    return self._variable(tokens[place][1], 0)
        return UNKNOWN

    def _variables(self) -> dict[str, int]:
        """Return where the value of each variable of the module itself begins."""
        found: dict[str, int] = {}
        depth = 0
        before = ""
        for at, (kind, text) in enumerate(self._tokens):
            if kind == "sign":
                depth += (text in _OPENING) - (text in _CLOSING)
            is_named = kind == "name" and depth == 0 and before in {"var", "let", "const", ","}
            if is_named and self._tokens[at + 1 : at + 2] == [("sign", "=")]:
                found.setdefault(text, at + 2)
            before = text
        return found

    def _variable(self, name: str, depth: int) -> object:
        if name not in self._known:
            # One that is part of itself is not known either.
            self._known[name] = UNKNOWN
            if name in self._set and depth < _DEEPEST:
                self._known[name] = self._value(self._set[name], depth + 1)[0]
        return self._known[name]

    def _value(self, at: int, depth: int) -> tuple[object, int]:
        """Return the value that begins there, and where what is behind it begins."""
        self._values += 1
        if depth > _DEEPEST or self._values > _MOST_VALUES:
            return UNKNOWN, self._end(at)
        found, after = self._primary(at, depth)
        while isinstance(found, str) and self._token(after) == ("sign", "+") and self._token(after + 1)[0] == "text":
            found, after = found + self._token(after + 1)[1], after + 2
        # What goes on is an expression, of which nothing is known.
        return (found, after) if self._is_end(after) else (UNKNOWN, self._end(at))

    def _primary(self, at: int, depth: int) -> tuple[object, int]:
        """Return the first value of an expression, and where what is behind it begins."""
        kind, text = self._token(at)
        match kind, text:
            case "sign", "{":
                return self._object(at + 1, depth)
            case "sign", "[":
                return self._list(at + 1, depth)
            case "text", _:
                return text, at + 1
            case "number", _:
                return (float(text) if _DECIMAL.fullmatch(text) else UNKNOWN), at + 1
            case "sign", "!" if self._token(at + 1)[0] == "number":
                return self._token(at + 1)[1] == "0", at + 2
            case "name", "void":
                return None, at + 2
            case "name", _ if text in _WORDS:
                return _WORDS[text], at + 1
            case "name", _ if self._is_end(at + 1):
                return self._variable(text, depth), at + 1
            case _:
                return UNKNOWN, self._end(at)

    def _object(self, at: int, depth: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        while (token := self._token(at)) not in {("sign", "}"), _END}:
            kind, text = token
            if token in {("sign", ","), ("sign", ")"), ("sign", "]")}:
                at += 1
            elif token == ("sign", "..."):
                spread, at = self._value(at + 1, depth + 1)
                if isinstance(spread, dict):
                    found |= spread
            elif kind in {"name", "text", "number"} and self._token(at + 1) == ("sign", ":"):
                found[text], at = self._value(at + 2, depth + 1)
            elif kind == "name" and self._is_end(at + 1):
                found[text], at = self._variable(text, depth), at + 1
            else:
                # A method, or a name that is worked out.
                at = self._end(at)
        return found, at + 1

    def _list(self, at: int, depth: int) -> tuple[object, int]:
        found: list[object] = []
        while (token := self._token(at)) not in {("sign", "]"), _END}:
            if token in {("sign", ","), ("sign", ")"), ("sign", "}")}:
                at += 1
            elif token == ("sign", "..."):
                spread, at = self._value(at + 1, depth + 1)
                found += spread if isinstance(spread, list) else []
            else:
                member, at = self._value(at, depth + 1)
                found.append(member)
        return found, at + 1

    def _token(self, at: int) -> tuple[str, str]:
        return self._tokens[at] if at < len(self._tokens) else _END

    def _is_end(self, at: int) -> bool:
        """Return whether an expression ends before this token."""
        kind, text = self._token(at)
        return kind != "text" and text in _ENDS

    def _end(self, at: int) -> int:
        """Return where the expression that begins there ends; never there itself, but before what closes around it."""
        depth = 0
        start = at
        while at < len(self._tokens):
            kind, text = self._tokens[at]
            if kind == "sign":
                if depth == 0 and text in _ENDS:
                    break
                depth += (text in _OPENING) - (text in _CLOSING)
            at += 1
        return at if at > start or self._token(at)[1] in {"}", "]", ")"} else at + 1


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        if text[at] == "`":
            kind, read, at = _template(text, at + 1)
            found.append((kind, read))
            continue
        if text[at] == "/" and _may_be_expression(found) and (match := _EXPRESSION.match(text, at)):
            found.append(("expression", match[0]))
            at = match.end()
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            break
        at = match.end()
        match match.lastgroup:
            case "text":
                found.append(("text", _unescaped(match[0][1:-1])))
            case "blank" | None:
                pass
            case kind:
                found.append((kind, match[0]))
    return found


def _may_be_expression(found: list[tuple[str, str]]) -> bool:
    """Return whether a slash here begins a regular expression: behind a value it would divide."""
    if not found:
        return True
    kind, text = found[-1]
    return kind == "sign" and text not in _CLOSING


def _template(text: str, at: int) -> tuple[str, str, int]:
    start = at
    is_fixed = True
    while at < len(text) and text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            is_fixed = False
            at = _hole_end(text, at + 2)
        else:
            at += 1
    read = _unescaped(text[start:at]) if is_fixed else ""
    return ("text" if is_fixed else "expression"), read, at + 1


def _hole_end(text: str, at: int) -> int:
    depth = 1
    while at < len(text) and depth:
        match text[at]:
            case "`":
                at = _template(text, at + 1)[2]
                continue
            case "'" | '"':
                end = re.compile(rf"(?:[^{text[at]}\\]|\\.)*{text[at]}", re.DOTALL).match(text, at + 1)
                at = len(text) if end is None else end.end()
                continue
            case "{":
                depth += 1
            case "}":
                depth -= 1
        at += 1
    return at


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text

    def fill(found: re.Match[str]) -> str:
        code = found[1] or found[2] or found[3]
        if code is not None:
            return chr(min(int(code, 16), 0x10FFFF))
        return _ESCAPES.get(found[4], found[4])

    return _ESCAPE.sub(fill, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
