"""What a conversation looks like, and what is taken out of it before it is shown or recorded."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentmon.domain.redaction import redact
from agentmon.runners.host.masking import StreamMask, mask, mask_lines
from agentmon.runners.host.protocol_log import ProtocolLog
from agentmon.runners.host.rendering import Rendering, clean

if TYPE_CHECKING:
    from pathlib import Path

_SECRET = "sk-ant-" + "api03-abcdefghijklmnopqrst"
_STYLE = re.compile(r"\x1b\[[0-9;]*m")


def _shown(*events: dict[str, object]) -> str:
    rendering = Rendering("/w")
    return _STYLE.sub("", "".join([rendering.render(event) for event in events]))


def test_a_streamed_message_is_shown_once() -> None:
    shown = _shown(
        {"kind": "delta", "message_ref": "m", "text": "one "},
        {"kind": "delta", "message_ref": "m", "text": "two"},
        {"kind": "message", "message_ref": "m", "role": "assistant", "text": "one two"},
        {"kind": "message", "message_ref": "n", "role": "assistant", "text": "three"},
    )

    assert shown == "one two\nthree\n"


def test_a_message_that_another_interrupts_goes_on_in_a_line_of_its_own() -> None:
    shown = _shown(
        {"kind": "delta", "message_ref": "m", "text": "one"},
        {"kind": "delta", "message_ref": "n", "text": "other"},
        {"kind": "delta", "message_ref": "m", "text": "more"},
        {"kind": "notice", "level": "warn", "text": "retry"},
    )

    assert shown == "one\nother\nmore\nretry\n"


def test_a_call_is_one_line_and_a_long_result_is_folded() -> None:
    started: dict[str, object] = {"kind": "tool_started", "tool_ref": "t", "tool_name": "Read", "target": "/w/a.py"}
    result = "\n".join(f"line {number}" for number in range(100))
    shown = _shown(
        started,
        {**started, "target": "a.py"},
        {"kind": "tool_finished", "tool_ref": "t", "status": "success", "output_summary": result},
    )

    lines = shown.splitlines()
    assert lines[:2] == ["● Read  a.py", "  ✓ line 0"]
    assert lines[-1].strip() == "… 94 more lines"
    assert len(lines) == 8


def test_a_call_is_shown_once_it_is_known_what_it_is_aimed_at() -> None:
    vague: dict[str, object] = {"kind": "tool_started", "tool_ref": "t", "tool_name": "bash", "target": "bash"}
    finished: dict[str, object] = {"kind": "tool_finished", "tool_ref": "t", "status": "success"}

    assert _shown(vague, {**vague, "target": "ls"}, finished) == "● bash  ls\n  ✓ success\n"
    assert _shown(vague, finished) == "● bash  bash\n  ✓ success\n"


def test_a_request_says_that_it_needs_a_person_and_where_to_answer() -> None:
    shown = _shown({"kind": "ask", "request_id": "r", "ask_kind": "permission", "title": "Run ls", "detail": "ls"})

    assert shown == "\n◆ needs you: Run ls\n  ls\n  answer in agentmon: inbox (6), or y on the card\n"


def test_a_difference_that_the_request_showed_is_not_shown_again() -> None:
    asked: dict[str, object] = {"kind": "ask", "tool_ref": "t", "title": "Edit a", "detail": "@@ -1 +1 @@\n-one\n+two"}
    done: dict[str, object] = {"kind": "diff", "tool_ref": "t", "path": "a", "added_lines": 1, "removed_lines": 1}

    same = _shown(asked, {**done, "diff": "@@ -7,2 +7,2 @@\n zero\n-one\n+two\n"})
    other = _shown(asked, {**done, "diff": "@@ -7,2 +7,2 @@\n zero\n-one\n+three\n"})

    assert same.count("+two") == 1
    assert same.endswith("  a +1 -1\n")
    assert "+three" in other


def test_a_plan_is_a_list_to_be_ticked_off() -> None:
    steps = [{"text": "a", "status": "completed"}, {"text": "b", "status": "in_progress"}]

    assert _shown({"kind": "plan", "steps": steps}, {"kind": "plan", "steps": steps}) == "  ✓ a\n  ▸ b\n"


@given(text=st.text())
def test_cleaned_text_moves_no_cursor_and_turns_nothing_round(text: str) -> None:
    cleaned = clean(text + "\x1b[31m\x1b]8;;http://x\x1b\\\x9b2J\u202e")

    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", cleaned) is None


_NAMES = ("password", "api_key", "GITHUB_TOKEN", "Authorization", "authorization: Bearer", "proxy-authorization: basic")
_BLANK = st.text("\n \t\r", max_size=4)
_WORD = st.text("abcXYZ09_-.:=/@\"',;é好", min_size=1, max_size=12)
_LONG = st.builds(
    lambda start, letters, count: start + letters * (count // len(letters)),
    st.sampled_from(["secret=", "eyJ", "ghp_", "sk-ant-", "https://me:", "https://", "", "好:", "token:"]),
    st.sampled_from(["abcXYZ09", "ghp_", "pw:"]),
    st.integers(3_000, 9_000),
)
_PEM = st.builds(
    lambda kind, words, blank, end: f"-----BEGIN {kind}PRIVATE KEY-----{blank}{blank.join(words)}{blank}{end}",
    st.sampled_from(["", "RSA ", "ENCRYPTED "]),
    st.lists(st.text("abcXYZ09+/", min_size=6, max_size=64), min_size=1, max_size=40),
    st.sampled_from([" ", "\n", "\\n", "\r\n"]),
    st.sampled_from(["-----END PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "-----END CERTIFICATE-----", ""]),
)
_SAID = st.one_of(
    st.tuples(st.sampled_from(_NAMES), _BLANK, st.sampled_from(["", ":", "=", '": "', "='"]), _BLANK, _WORD).map(
        "".join
    ),
    st.sampled_from([_SECRET, "-----", "-----BEGIN ", "PRIVATE KEY-----", "-----END PRIVATE KEY-----"]),
    _BLANK,
    _WORD,
    _PEM,
    _LONG,
)


def _streamed(text: str, cuts: list[int]) -> str:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    stream = StreamMask()
    return "".join([stream.feed(text[start:end]) for start, end in itertools.pairwise(places)]) + stream.flush()


def _parts(text: str) -> set[str]:
    return {text[at : at + 6] for at in range(len(text) - 5)}


def test_a_name_behind_a_letter_of_another_script_is_none_in_pieces_either() -> None:
    text = "passwordéAuthorization: 0proxy-authorization: basic0"

    assert _streamed(text, list(range(len(text)))) == redact(text)


@settings(deadline=None)
@given(said=st.lists(_SAID, max_size=12), cuts=st.lists(st.integers(0, 20_000), max_size=20), step=st.integers(1, 400))
def test_of_a_text_cut_anywhere_nothing_is_shown_that_is_masked_in_the_whole(
    said: list[str], cuts: list[int], step: int
) -> None:
    text = "".join(said)
    shown = _streamed(text, [*cuts, *range(0, len(text), step)])

    assert _parts(shown) & _parts(text) <= _parts(redact(text))


@settings(deadline=None)
@given(
    said=st.lists(st.one_of(_PEM, _SAID.filter(lambda part: len(part) < 100 and part.isascii())), max_size=12),
    cuts=st.lists(st.integers(0, 1_000), max_size=20),
)
def test_a_text_cut_anywhere_is_masked_as_the_whole(said: list[str], cuts: list[int]) -> None:
    text = "".join(said)

    assert _streamed(text, cuts) == redact(text)


@settings(deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=20))
def test_a_secret_in_a_script_without_blanks_is_never_shown(cuts: list[int]) -> None:
    text = f"钥匙 {_SECRET}好的\n密码在这里password=密码密码密码密码好\nhttps://人:密码密码@例子\n再见"

    assert _streamed(text, cuts) == redact(text)


def test_a_script_without_blanks_is_shown_as_it_comes() -> None:
    stream = StreamMask()

    assert [stream.feed(piece) for piece in ("我先看", "看文", "件a", "b。")] == ["我先看", "看文", "件", "ab。"]


@pytest.mark.parametrize(
    "text",
    [
        "before\n-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\ndef\n-----END RSA PRIVATE KEY-----\nafter\n",
        f"here: -----BEGIN PRIVATE KEY----- {'MIIEabcdefgh ' * 200}-----END PRIVATE KEY----- after",
        f"here: -----BEGIN PRIVATE KEY----- {'MIIEabcdefgh ' * 200}",
        "password:\nhunter2hunter2 after",
        "Authorization:\n Bearer\n abcdefgh after",
        "Authorization: Bearer abc after",
    ],
)
def test_a_secret_that_is_no_single_word_is_masked(text: str) -> None:
    assert _streamed(text, list(range(len(text)))) == redact(text)


@pytest.mark.parametrize("start", ["secret=", "eyJabcdefghijkl.eyJ", "https://me:", ""])
def test_a_word_too_long_to_be_held_is_left_out(start: str) -> None:
    text = f"one {start}{'abc0' * 2_500}token:\n abcdefgh two "

    assert _streamed(text, list(range(0, len(text), 7))) == "one … two "


@pytest.mark.proof
def test_a_very_long_line_is_shown_while_it_comes() -> None:
    stream = StreamMask()

    shown = "".join([stream.feed("word ") for _ in range(20_000)])

    assert shown == "word " * 20_000


@pytest.mark.parametrize("text", ["x", " ", "-", "token: ", "token", "-----BEGIN ", "-----END ", "好=", "a://b:"])
def test_what_is_held_of_a_text_is_bounded_whatever_comes(text: str) -> None:
    stream = StreamMask()

    stream.feed("-----BEGIN PRIVATE KEY-----" if "END" in text else "")
    for _ in range(0, 200_000, 1_000):
        stream.feed(text * (1_000 // len(text)))

        assert len(stream._held) + len(stream._marker) < 5_000


@pytest.mark.parametrize(
    "line",
    [
        '{"usage": {"input_tokens": 123456789, "output_tokens": 1}}',
        '{"n":1.50,  "b" : "task-list"}',
        "no JSON at all",
        "",
    ],
)
def test_a_line_without_a_secret_is_recorded_as_it_came(line: str) -> None:
    assert mask_lines(line) == [line]


@pytest.mark.parametrize(
    "document",
    [
        {"a": _SECRET},
        {"env": {"api_key": "hunter2hunter2"}},
        {"text": 'he wrote "api_key": "hunter2hunter2"'},
        {"delta": json.dumps({"token": "hunter2hunter2"})},
        {"text": f"line\n{_SECRET}"},
        {"header": "Authorization: Bearer hunter2hunter2"},
    ],
)
def test_a_secret_in_a_line_is_masked_and_the_line_stays_json(document: dict[str, object]) -> None:
    usage = {"usage": {"input_tokens": 123456789}}
    line = mask_lines(json.dumps({**document, **usage}))[0]

    assert "hunter2" not in line
    assert _SECRET not in line
    assert json.loads(line) == {**json.loads(json.dumps(mask(document))), **usage}


def test_the_record_of_a_protocol_stops_at_its_cap(tmp_path: Path) -> None:
    log = ProtocolLog(str(tmp_path / "protocol.jsonl"), cap_bytes=2000)
    log.add_start(1)
    for number in range(100):
        log.add_from_agent(b'{"number": %d}\n' % number, number)
    log.add_end(100)

    entries = [json.loads(line) for line in (tmp_path / "protocol.jsonl").read_text().splitlines()]
    assert log.is_full
    assert (tmp_path / "protocol.jsonl").stat().st_size <= 2000
    assert [entry["line"] for entry in entries[1:]] == [f'{{"number": {number}}}' for number in range(len(entries) - 1)]


def test_a_line_is_recorded_once_it_is_whole(tmp_path: Path) -> None:
    log = ProtocolLog(str(tmp_path / "protocol.jsonl"))
    log.add_from_agent(b'{"a', 1)
    log.add_from_agent(b'": 1}\n{"b": 2}\nre', 2)
    log.add_from_agent(b"st \xff", 3)
    log.add_end(4)

    entries = [json.loads(line) for line in (tmp_path / "protocol.jsonl").read_text().splitlines()]
    assert [(entry["at_ms"], entry["dir"], entry["line"]) for entry in entries] == [
        (2, "out", '{"a": 1}'),
        (2, "out", '{"b": 2}'),
        (4, "out", "rest �"),
        (4, "end", ""),
    ]
