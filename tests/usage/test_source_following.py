from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentmon.usage import following, lines, long_lines
from agentmon.usage.claude import ClaudeReader
from agentmon.usage.following import Cursor, read_source
from agentmon.usage.lines import pieces_of
from agentmon.usage.long_lines import LongLine
from agentmon.usage.sources import find_sources
from tests.usage.histories import History
from tests.usage.transcripts import answered, usage

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.usage.sources import SourceFile

THREAD = "019a0000-0000-7000-8000-000000000009"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path)}


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    path = tmp_path / ".claude" / "projects" / "-p" / "s1.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(answered("m1") + answered("m2"))
    return path


def keys(history: History) -> list[str]:
    return [key for _, key in history.answers]


def only_source(environ: dict[str, str]) -> SourceFile:
    (source,) = find_sources(environ)
    return source


def token_count(total: int) -> bytes:
    info = {"total_token_usage": {"input_tokens": total}, "last_token_usage": {"input_tokens": 10}}
    record = {"type": "event_msg", "payload": {"type": "token_count", "info": info}}
    return json.dumps(record).encode() + b"\n"


def session_meta(thread_id: str, **facts: object) -> bytes:
    record = {"timestamp": "2026-05-02T09:00:00Z", "type": "session_meta", "payload": {"id": thread_id, **facts}}
    return json.dumps(record).encode() + b"\n"


def test_only_what_was_appended_is_read(transcript: Path, environ: dict[str, str]) -> None:
    history = History().look(environ)
    read_to = history.cursors[str(transcript)].offset

    with transcript.open("ab") as appended:
        appended.write(answered("m3"))
    reads = list(read_source(only_source(environ), history.cursors[str(transcript)]))

    assert [[answer.key for answer in read.reading.answers] for read in reads] == [["m3"]]
    assert reads[0].reading.answers[0].offset == read_to


def test_a_last_line_waits_for_its_newline(transcript: Path, environ: dict[str, str]) -> None:
    whole = answered("m3")
    history = History()
    for cut in range(1, len(whole), 97):
        transcript.write_bytes(answered("m1") + answered("m2") + whole[:cut])
        assert keys(history.look(environ)) == ["m1", "m2"]

    transcript.write_bytes(answered("m1") + answered("m2") + whole)

    assert keys(history.look(environ)) == ["m1", "m2", "m3"]
    assert history.problems == []


@pytest.mark.parametrize("behind", [b"", b"\n", b"\0\0"])
def test_a_whole_last_record_without_a_newline_counts_once_also_when_the_file_goes_on(
    transcript: Path, environ: dict[str, str], behind: bytes
) -> None:
    history = History().look(environ)
    written = transcript.read_bytes()
    keys_read_anew = []

    for line in (answered("m3").rstrip(b"\n"), behind + answered("m4").rstrip(b"\n"), b"\n" + answered("m5")):
        written += line
        transcript.write_bytes(written)
        history.look(environ)
        keys_read_anew.append(keys(History().look(environ)))

    assert keys(history) == ["m1", "m2", "m3", "m4", "m5"]
    assert keys_read_anew[0] == ["m1", "m2", "m3"]
    assert keys_read_anew[-1][-1] == "m5"
    assert history.problems == []


def test_a_file_that_only_got_half_a_line_is_not_looked_at_twice(transcript: Path, environ: dict[str, str]) -> None:
    history = History().look(environ)
    with transcript.open("ab") as appended:
        appended.write(b'{"half')

    assert [history.follow(only_source(environ)) for _ in range(2)] == [1, 0]


def test_a_file_that_shrinks_is_read_again_and_nothing_is_lost(transcript: Path, environ: dict[str, str]) -> None:
    history = History().look(environ)

    transcript.write_bytes(answered("m9"))

    assert keys(history.look(environ)) == ["m1", "m2", "m9"]


def test_a_file_that_is_replaced_by_a_longer_one_is_read_again(transcript: Path, environ: dict[str, str]) -> None:
    history = History().look(environ)

    other = transcript.with_suffix(".new")
    other.write_bytes(answered("m7") + answered("m8") + answered("m9"))
    other.rename(transcript)

    assert keys(history.look(environ)) == ["m1", "m2", "m7", "m8", "m9"]


def test_a_file_that_is_rewritten_in_place_before_the_cursor_is_read_again(
    transcript: Path, environ: dict[str, str]
) -> None:
    history = History().look(environ)

    with transcript.open("r+b") as rewritten:
        rewritten.seek(len(answered("m1")))
        rewritten.write(answered("m8") + answered("m9"))

    assert keys(history.look(environ)) == ["m1", "m2", "m8", "m9"]


def test_a_file_that_an_older_parser_read_is_read_again(
    transcript: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History().look(environ)
    pieces = history.pieces

    monkeypatch.setattr(ClaudeReader, "parser_version", ClaudeReader.parser_version + 1)
    history.look(environ)

    assert history.pieces == pieces + 1
    assert history.cursors[str(transcript)].parser_version == ClaudeReader.parser_version
    assert keys(history) == ["m1", "m2"]


def test_a_cursor_survives_json_and_a_damaged_one_is_none(transcript: Path, environ: dict[str, str]) -> None:
    cursor = History().look(environ).cursors[str(transcript)]

    assert Cursor.from_json(json.loads(json.dumps(cursor.as_json()))) == cursor
    assert Cursor.from_json({**cursor.as_json(), "offset": "7"}) is None
    assert Cursor.from_json({}) is None


def test_a_cursor_whose_state_is_gone_reads_the_file_again(transcript: Path, environ: dict[str, str]) -> None:
    history = History().look(environ)
    forgotten = replace(history.cursors[str(transcript)], offset=0, size=0, head_hash="", state={})

    (read,) = read_source(only_source(environ), forgotten)

    assert [answer.key for answer in read.reading.answers] == ["m1", "m2"]


def test_a_file_that_cannot_be_opened_is_a_problem_and_no_error(transcript: Path, environ: dict[str, str]) -> None:
    source = only_source(environ)
    transcript.unlink()

    (read,) = read_source(source, None)

    assert read.reading.problems[0].reason == "it cannot be read: no such file or directory"
    assert read.cursor is None


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all files")
def test_a_file_without_permission_is_a_problem(transcript: Path, environ: dict[str, str]) -> None:
    transcript.chmod(0)

    assert History().look(environ).problems == ["it cannot be read: permission denied"]


def test_an_empty_file_is_read_and_then_left_alone(transcript: Path, environ: dict[str, str]) -> None:
    transcript.write_bytes(b"")
    history = History()

    assert [history.follow(only_source(environ)) for _ in range(2)] == [1, 0]
    assert history.problems == []


@pytest.mark.parametrize("ends", ["\\", '"', '\\"', "\u00e9"])
def test_of_a_very_long_line_all_but_its_long_texts_is_read(
    transcript: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1_000_000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 65_537)
    content = [{"type": "text", "text": (ends + "x" * 98) * 30_000 + ends}]
    long_outcome = json.dumps({"type": "user", "toolUseResult": content, "usage": "assistant"}).encode() + b"\n"
    transcript.write_bytes(answered("m1") + long_outcome + answered("m2", content=content) + answered("m3"))
    history = History().look(environ)
    pieces = history.pieces

    with transcript.open("ab") as appended:
        appended.write(answered("m4"))
    history.look(environ)

    assert keys(history) == ["m1", "m2", "m3", "m4"]
    assert history.problems == []
    assert history.answers["claude", "m2"].offset == len(answered("m1")) + len(long_outcome)
    assert history.pieces == pieces + 1


@pytest.mark.parametrize("is_torn", [True, False])
def test_a_very_long_last_line_counts_without_its_newline_once_it_is_whole(
    transcript: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, is_torn: bool
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1_000_000)
    long = answered("m2", content=[{"type": "text", "text": "x" * 3_000_000}]).rstrip(b"\n")
    written = len(long) - (1 if is_torn else 0)
    transcript.write_bytes(answered("m1") + long[:written])
    history = History().look(environ)
    assert keys(history) == (["m1"] if is_torn else ["m1", "m2"])

    with transcript.open("ab") as appended:
        appended.write(long[written:])
    history.look(environ)
    assert keys(history) == ["m1", "m2"]
    with transcript.open("ab") as appended:
        appended.write(b"\n" + answered("m3"))
    history.look(environ)

    assert keys(history) == ["m1", "m2", "m3"]
    assert history.problems == []
    assert history.answers["claude", "m3"].offset == len(answered("m1")) + len(long) + 1


def test_a_very_long_line_of_which_too_much_is_left_is_passed_over_and_counted_once(
    transcript: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 1_000_000)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 65_536)
    monkeypatch.setattr(long_lines, "MAX_KEPT_BYTES", 100_000)
    long = json.dumps({"type": "user", "toolUseResult": list(range(300_000))}).encode()
    transcript.write_bytes(answered("m1") + long)
    history = History().look(environ)

    with transcript.open("ab") as appended:
        appended.write(b"\n" + answered("m2"))
    history.look(environ)
    with transcript.open("ab") as appended:
        appended.write(answered("m3"))
    history.look(environ)

    assert keys(history) == ["m1", "m2", "m3"]
    assert history.problems == ["a line that is too long"]
    assert history.answers["claude", "m2"].offset == len(answered("m1")) + len(long) + 1


def test_a_long_answer_still_counts(transcript: Path, environ: dict[str, str]) -> None:
    content = [{"type": "text", "text": "word " * 1_000_000}]
    transcript.write_bytes(answered("m1", content=content) + answered("m2"))

    assert keys(History().look(environ)) == ["m1", "m2"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    written=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ")), max_size=12),
    block_bytes=st.integers(min_value=1, max_value=30),
    max_line_bytes=st.integers(min_value=5, max_value=60),
)
def test_pieces_are_all_whole_lines_in_order(
    tmp_path: Path, written: list[bytes], block_bytes: int, max_line_bytes: int
) -> None:
    whole = b"".join(line + b"\n" for line in written)
    path = tmp_path / "any"
    path.write_bytes(whole + b"rest")
    found, offset = b"", 0
    with pytest.MonkeyPatch.context() as patch, path.open("rb", buffering=0) as opened:
        patch.setattr(lines, "BLOCK_BYTES", block_bytes)
        patch.setattr(lines, "MAX_LINE_BYTES", max_line_bytes)
        for piece in pieces_of(opened, 0):
            if isinstance(piece, LongLine):
                assert piece.offset == offset
                passed = whole[offset : piece.end]
                assert passed.count(b"\n") == 1
                assert (piece.head, piece.tail) == (passed[: len(piece.head)], passed[-len(piece.tail) :])
                found += passed
                offset = piece.end
            else:
                assert piece[0] == offset
                assert piece[1].endswith(b"\n")
                found += piece[1]
                offset += len(piece[1])

    assert found == whole


@settings(deadline=None)
@given(
    texts=st.lists(st.text(alphabet='ab"\\\u00e9\n', max_size=30), max_size=6),
    cuts=st.lists(st.integers(min_value=0, max_value=300), max_size=8),
)
def test_a_shortened_line_has_the_same_form_and_its_short_texts(texts: list[str], cuts: list[int]) -> None:
    whole = json.dumps({"list": texts, "end": 1}, ensure_ascii=False).encode() + b"\n"
    line = LongLine(7)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(long_lines, "MAX_TEXT_BYTES", 10)
        for begin, end in pairwise(sorted({0, len(whole), *(min(cut, len(whole)) for cut in cuts)})):
            line.add(whole[begin:end])

    written = [json.dumps(text, ensure_ascii=False).encode()[1:-1] for text in texts]
    expected = [text if len(raw) <= 10 else "" for text, raw in zip(texts, written, strict=True)]
    assert json.loads(line.shortened()) == {"list": expected, "end": 1}
    assert line.end == 7 + len(whole)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(cuts=st.lists(st.integers(min_value=0, max_value=4_000), max_size=6))
def test_any_split_of_the_bytes_into_appends_gives_the_same(
    transcript: Path, environ: dict[str, str], cuts: list[int]
) -> None:
    whole = b"".join(answered(f"m{number // 2}", counts=usage(output_tokens=number + 1)) for number in range(8))
    history = History()
    transcript.unlink(missing_ok=True)
    for cut in [*sorted(cuts), len(whole)]:
        with transcript.open("ab") as appended:
            appended.write(whole[transcript.stat().st_size : cut])
        history.look(environ)

    assert [answer.response_tokens for answer in history.answers.values()] == [2, 4, 6, 8]
    assert history.problems == []


def test_a_rollout_is_the_same_while_it_is_compressed_and_unpacked_again(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    folder = tmp_path / ".codex" / "sessions" / "2026" / "04" / "20"
    folder.mkdir(parents=True)
    plain, packed = (folder / f"rollout-2026-04-20T10-00-00-{THREAD}.jsonl{end}" for end in ("", ".zst"))
    written = session_meta(THREAD) + token_count(10) + token_count(20)
    plain.write_bytes(written)
    history = History().look(environ)
    first = only_source(environ).thread_key

    packed.write_bytes(zstd.compress(written[:200]) + zstd.compress(written[200:]))
    assert only_source(environ).path == str(plain)
    plain.unlink()
    assert only_source(environ).thread_key == first
    history.look(environ)
    plain.write_bytes(written + token_count(30))
    packed.unlink()
    history.look(environ)

    assert [answer.prompt_tokens for answer in history.answers.values()] == [10, 10, 10]
    assert {answer.session_ref for answer in history.answers.values()} == {THREAD}


@pytest.mark.parametrize("damage", [lambda packed: packed[:-20], lambda packed: packed[:40] + b"xx" + packed[42:]])
def test_damaged_compressed_bytes_are_a_problem_that_is_told_once(
    tmp_path: Path,
    environ: dict[str, str],
    damage: object,
) -> None:
    folder = tmp_path / ".codex" / "archived_sessions"
    folder.mkdir(parents=True)
    packed = zstd.compress(session_meta(THREAD, text=Random(7).randbytes(200).hex()) + token_count(10))
    assert callable(damage)
    (folder / f"rollout-2026-04-20T10-00-00-{THREAD}.jsonl.zst").write_bytes(damage(packed))
    history = History()

    assert [history.follow(only_source(environ)) for _ in range(2)][1] == 0
    assert history.problems == ["its compressed bytes are damaged or cut off"]


@pytest.mark.parametrize("place", ["sessions/2026/05/01", "archived_sessions"])
@pytest.mark.parametrize("end", ["", ".zst"])
def test_an_older_fork_knows_its_copied_history_by_the_rollout_of_its_parent(
    tmp_path: Path, environ: dict[str, str], place: str, end: str
) -> None:
    parent_id, fork_id = (THREAD[:-1] + digit for digit in "12")
    old, new = tmp_path / ".codex" / place, tmp_path / ".codex" / "sessions" / "2026" / "05" / "02"
    for folder in (old, new):
        folder.mkdir(parents=True, exist_ok=True)
    parent = session_meta(parent_id) + token_count(10) + token_count(20) + token_count(30)
    (old / f"rollout-2026-05-01T10-00-00-{parent_id}.jsonl{end}").write_bytes(zstd.compress(parent) if end else parent)
    fork = session_meta(fork_id, forked_from_id=parent_id) + session_meta(parent_id)
    fork += token_count(10) + token_count(20) + token_count(25)
    (new / f"rollout-2026-05-02T09-00-00-{fork_id}.jsonl").write_bytes(fork)

    history = History().look(environ)

    spent = [(answer.session_ref[-1], answer.prompt_tokens) for answer in history.answers.values()]
    assert sorted(spent) == [("1", 10), ("1", 10), ("1", 10), ("2", 10)]


def test_a_chat_that_is_one_document_is_read_again_when_it_changed(tmp_path: Path, environ: dict[str, str]) -> None:
    chats = tmp_path / ".gemini" / "tmp" / "shop" / "chats"
    chats.mkdir(parents=True)
    (chats.parent / ".project_root").write_text("/home/dev/shop")
    chat = chats / "session-2025-11-01T09-00-abcd.json"
    messages = [{"id": "u1", "type": "user"}]
    history = History()
    for number in (1, 2):
        messages.append({"id": f"m{number}", "type": "gemini", "tokens": {"input": number}})  # type: ignore[dict-item]
        chat.write_text(json.dumps({"sessionId": "s1", "messages": messages}, indent=2))
        history.look(environ)

    assert [(answer.key, answer.cwd) for answer in history.answers.values()] == [
        ("m1", "/home/dev/shop"),
        ("m2", "/home/dev/shop"),
    ]
    assert history.follow(only_source(environ)) == 0


def test_a_long_file_is_told_in_parts_and_each_goes_on_where_the_one_before_ended(
    transcript: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 1_000)
    monkeypatch.setattr(following, "READ_BYTES", 2_500)
    transcript.write_bytes(b"".join(answered(f"m{number}") for number in range(40)))
    source = only_source(environ)
    history, cursor, parts = History(), None, 0

    while reads := list(read_source(source, cursor))[:1]:
        history.keep("claude", reads[0].reading)
        cursor, parts = reads[0].cursor, parts + 1

    assert keys(history) == [f"m{number}" for number in range(40)]
    assert parts > 3
