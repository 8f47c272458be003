from __future__ import annotations

import difflib
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.diffs import ChangeKind, Diff, word_changes
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from pathlib import Path

    from agentmon.domain.diffs import FileDiff, HunkRows, Pair


class Repository:
    """A real repository with one commit; git reads no settings but its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "-q", "-b", "main")

    def git(self, *words: str, given: bytes | None = None, codes: tuple[int, ...] = (0,)) -> bytes:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false")
        ended = subprocess.run(
            ["git", *who, *words], cwd=self.folder, env=environment, input=given, capture_output=True, check=False
        )
        assert ended.returncode in codes, ended.stderr
        return ended.stdout

    def write(self, path: str, content: bytes) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_bytes(content)

    def read(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "state")

    def numstat(self) -> list[str]:
        return self.git("diff", "--cached", "--text", "--numstat").decode().splitlines()

    def diff(self, *words: str) -> Diff:
        self.git("add", "-A")
        return Diff(self.git("diff", "--cached", "-M", "--no-color", "--no-ext-diff", *words))


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repository")


def numbered(count: int) -> list[str]:
    return [f"line {number}\n" for number in range(1, count + 1)]


def patch_of(old: list[str], new: list[str], path: str = "f.txt") -> str:
    lines = difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def changed(count: int, *edits: int, path: str = "f.txt") -> Diff:
    """Return the difference of a file in which some lines, counted from 1, were edited."""
    new = [f"edited {number}\n" if number in edits else f"line {number}\n" for number in range(1, count + 1)]
    return Diff(patch_of(numbered(count), new, path))


def test_every_kind_of_change_is_told_as_git_tells_it(repository: Repository) -> None:
    repository.write("changed.py", b"one\ntwo\nthree\n")
    repository.write("gone.txt", b"a\nb\n")
    repository.write("old name.txt", "".join(numbered(30)).encode())
    repository.write("moved.bin", bytes(range(256)))
    repository.write("image.png", b"\x89PNG\0old")
    repository.write("run.sh", b"#!/bin/sh\n")
    repository.write("ends", b"no end")
    repository.commit()
    repository.write("changed.py", b"one\nzwei\nthree\nfour\n")
    (repository.folder / "gone.txt").unlink()
    (repository.folder / "old name.txt").rename(repository.folder / 'new "name"\tä\n.txt')
    repository.write('new "name"\tä\n.txt', "".join([*numbered(30)[:29], "last\n"]).encode())
    (repository.folder / "moved.bin").rename(repository.folder / "there.bin")
    repository.write("image.png", b"\x89PNG\0new")
    (repository.folder / "run.sh").chmod(0o755)
    repository.write("ends", b"with an end\n")
    repository.write("empty", b"")
    repository.write("b/with b/blanks b/x", b"x\n")
    (repository.folder / "link").symlink_to("changed.py")

    files = {file.path: file for file in repository.diff().files}

    def told(path: str) -> tuple[ChangeKind, str, int, int, bool]:
        file = files.pop(path)
        return file.kind, file.old_path, file.added, file.removed, file.is_binary

    assert (files["run.sh"].old_mode, files["run.sh"].new_mode) == ("100644", "100755")
    assert files["link"].new_mode == "120000"
    assert told("changed.py") == (ChangeKind.MODIFIED, "changed.py", 2, 1, False)
    assert told("gone.txt") == (ChangeKind.DELETED, "gone.txt", 0, 2, False)
    assert told('new "name"\tä\n.txt') == (ChangeKind.RENAMED, "old name.txt", 1, 1, False)
    assert told("there.bin") == (ChangeKind.RENAMED, "moved.bin", 0, 0, False)
    assert told("image.png") == (ChangeKind.MODIFIED, "image.png", 0, 0, True)
    assert told("run.sh") == (ChangeKind.MODIFIED, "run.sh", 0, 0, False)
    assert told("ends") == (ChangeKind.MODIFIED, "ends", 1, 1, False)
    assert told("empty") == (ChangeKind.ADDED, "empty", 0, 0, False)
    assert told("b/with b/blanks b/x") == (ChangeKind.ADDED, "b/with b/blanks b/x", 1, 0, False)
    assert told("link") == (ChangeKind.ADDED, "link", 1, 0, False)
    assert not files


def test_content_that_looks_like_heads_is_content(repository: Repository) -> None:
    hostile = b"-- a/f\n++ b/f\n@@ -1 +1 @@\ndiff --git a/x b/x\n\\ No newline at end of file\n\n"
    repository.write("f", hostile * 2 + b"end\n" * 20)
    repository.write("g", b"one\n")
    repository.commit()
    repository.write("f", b"end\n" * 20 + hostile + b"\r\n\x0bhidden")
    repository.write("g", hostile)

    diff = repository.diff("--text")

    counts = {path: (int(a), int(r)) for a, r, path in map(str.split, repository.numstat())}
    assert {file.path: (file.added, file.removed) for file in diff.files} == counts


def test_each_hunk_is_taken_back_alone_by_git(repository: Repository) -> None:
    before = "".join(numbered(60)).encode()
    path = 'odd "name" ä\\.txt'
    repository.write("from.txt", before)
    repository.write("gone.txt", b"a\nb")
    repository.commit()
    after = before.replace(b"line 10\n", b"ten\nten and a half\n").replace(b"line 30\n", b"")
    after = after.replace(b"line 60\n", b"no end")
    (repository.folder / "from.txt").rename(repository.folder / path)
    (repository.folder / path).chmod(0o755)
    repository.write(path, after)
    repository.write("new.txt", b"all of it is new\n")
    (repository.folder / "gone.txt").unlink()
    diff = repository.diff()
    files = {file.path: file for file in diff.files}
    moved = files[path]
    assert len(moved.hunks) == 3

    for at in (1, 0, 2):
        repository.git("apply", "-R", given=diff.hunk_patch(moved, moved.hunks[at]))
        if at == 1:
            assert repository.read(path) == after.replace(b"line 29\n", b"line 29\nline 30\n")

    assert repository.read(path) == before
    assert (repository.folder / path).stat().st_mode & 0o100
    for name in ("new.txt", "gone.txt"):
        repository.git("apply", "-R", given=diff.hunk_patch(files[name], files[name].hunks[0]))
    assert not (repository.folder / "new.txt").exists()
    assert repository.read("gone.txt") == b"a\nb"


def test_a_hunk_of_a_path_with_blanks_is_taken_back(repository: Repository) -> None:
    path = "a b/c 2026-01-01 10:00:00.000000000 +0000"
    repository.write(path, b"one\n")
    repository.commit()
    repository.write(path, b"two\n")
    diff = repository.diff()

    repository.git("apply", "-R", given=diff.hunk_patch(diff.files[0], diff.files[0].hunks[0]))

    assert repository.read(path) == b"one\n"


def test_a_conflict_is_read_with_the_signs_of_both_sides(repository: Repository) -> None:
    repository.write("f", b"one\ntwo\nthree\n")
    repository.commit()
    repository.git("switch", "-q", "-c", "other")
    repository.write("f", b"one\nother\nthree\n")
    repository.commit()
    repository.git("switch", "-q", "main")
    repository.write("f", b"one\nmine\nthree\n")
    repository.commit()
    repository.git("merge", "other", codes=(1,))

    (file,) = Diff(repository.git("diff")).files

    assert file.kind is ChangeKind.UNMERGED
    assert (file.path, file.hunks[0].parents, file.added, file.removed) == ("f", 2, 5, 0)


def test_a_digest_follows_from_the_lines_and_not_from_where_they_are() -> None:
    first = changed(60, 10, 40)
    moved = Diff(patch_of(numbered(60), [*(f"new {n}\n" for n in range(9)), *patched(60, 10, 40)]))
    other = changed(60, 10, 41)

    def names(diff: Diff) -> tuple[str, ...]:
        return diff.hunk_digests(diff.files[0])

    assert names(first) == names(changed(60, 10, 40))
    assert names(first)[1] == names(moved)[-1]
    assert names(first)[0] == names(other)[0]
    assert names(first)[1] != names(other)[1]
    assert first.file_digest(first.files[0]) != other.file_digest(other.files[0])
    assert not set(names(first)) & set(names(changed(60, 10, 40, path="other.txt")))


def patched(count: int, *edits: int) -> list[str]:
    return [f"edited {number}\n" if number in edits else f"line {number}\n" for number in range(1, count + 1)]


def test_hunks_with_the_same_lines_have_names_of_their_own() -> None:
    same = ["a\n", "b\n", "c\n", "x\n", "d\n", "e\n", "f\n"]
    old = same + ["\n"] * 20 + same
    diff = Diff(patch_of(old, [line.replace("x", "y") for line in old]))

    names = diff.hunk_digests(diff.files[0])

    assert len(set(names)) == len(names) == 2


def test_a_changed_line_stands_beside_what_it_was() -> None:
    old = ["def f(a):\n", "    return compute(a, 1)\n"]
    new = ["import os\n", "\n", "def f(a, b):\n", "    return compute(a, b)\n"]
    diff = Diff(patch_of(old, new))
    lines = diff.lines(diff.files[0].hunks[0])

    pairs = [
        tuple("" if line is None else lines.text(line) for line in row) for row in listed(lines.rows(side_by_side=True))
    ]

    assert pairs == [
        ("", "import os"),
        ("", ""),
        ("def f(a):", "def f(a, b):"),
        ("    return compute(a, 1)", "    return compute(a, b)"),
    ]


def test_lines_that_differ_in_blanks_alone_share_a_row_when_blanks_are_ignored() -> None:
    old = ["if a:\n", "  b()\n", "  c()\n"]
    new = ["if a:\n", "    b()\n", "    d()\n", "    c( )\n"]
    diff = Diff(patch_of(old, new))
    lines = diff.lines(diff.files[0].hunks[0])

    rows = listed(lines.rows(ignores_blanks=True))

    shown = [(old is not None, new is not None, lines.text(new if new is not None else old or 0)) for old, new in rows]
    assert shown == [
        (True, True, "if a:"),
        (True, True, "    b()"),
        (False, True, "    d()"),
        (True, True, "    c( )"),
    ]


def test_words_that_changed_are_named_and_lines_that_have_nothing_in_common_are_not() -> None:
    old, new = "return compute(first, 1)", "return compute(second, 1, more)"

    old_spans, new_spans = word_changes(old, new)

    assert [old[start:end] for start, end in old_spans] == ["first"]
    assert [new[start:end] for start, end in new_spans] == ["second", ", more"]
    assert word_changes("one two three", "entirely other words") == ((), ())
    assert word_changes("same", "same") == ((), ())


def test_comparing_lines_is_bounded_whatever_stands_in_them() -> None:
    hostile = ["a b " * 450, "a " * 900, "b a " * 450, "ab" * 1000, "x" * 200_000]

    calls = max(calls_of(lambda one=one, two=two: word_changes(one, two)) for one in hostile for two in hostile)  # type: ignore[misc]

    assert calls < 20_000


def test_a_hundred_thousand_lines_are_indexed_without_a_look_at_each() -> None:
    hunk = "@@ -1,20 +1,20 @@ def f():\n" + " same\n-old\n+new\n same\n" * 50
    patch = "".join(f"diff --git a/f{n} b/f{n}\n--- a/f{n}\n+++ b/f{n}\n" + hunk * 5 for n in range(100)).encode()
    assert patch.count(b"\n") > 100_000

    assert calls_of(lambda: Diff(patch)) < 20_000


def test_ten_thousand_hunks_and_lines_of_200_kb_are_read() -> None:
    hunks = "".join(f"@@ -{n * 9},1 +{n * 9},1 @@\n-old\n+new\n" for n in range(1, 10_001))
    long = "@@ -1 +1 @@\n-" + "a\t" * 100_000 + "\n+" + "\0\x1b[31m" * 50_000 + "\n"
    head = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n"

    diff = Diff(head.format("many") + hunks + head.format("long") + long)

    assert [len(file.hunks) for file in diff.files] == [10_000, 1]
    assert len(set(diff.hunk_digests(diff.files[0]))) == 10_000
    assert diff.files[0].added == diff.files[0].removed == 10_000
    lines = diff.lines(diff.files[1].hunks[0])
    assert lines.text(0, max_bytes=50) == "a\t" * 25
    assert len(lines.text(0)) == 200_000


def test_lines_are_numbered_and_their_ends_known() -> None:
    head = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -5,3 +7,3 @@\n"
    body = " same\r\n-old\r\n\\ No newline at end of file\n+new\n+\xe9\n"
    diff = Diff((head + body).encode("latin-1"))
    lines = diff.lines(diff.files[0].hunks[0])

    assert [lines.text(at) for at in range(len(lines))] == ["same", "old", "new", r"\xe9"]
    assert [lines.numbers(at) for at in range(len(lines))] == [(5, 7), (6, 8), (7, 8), (7, 9)]
    assert lines.unended == {1}
    assert lines.has_mixed_ends
    assert [lines.has_carriage_return(at) for at in range(len(lines))] == [True, True, False, False]


TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "  a\n", "c d\n", "c e\n", "-- x\n", "++ x\n", "\n"]), max_size=30)


@given(TEXTS, TEXTS)
def test_every_form_has_each_line_once_and_both_texts_come_back(old: list[str], new: list[str]) -> None:
    diff = Diff(patch_of(old, new))
    for file in diff.files:
        for hunk in file.hunks:
            lines = diff.lines(hunk)
            assert (lines.signs.count(b"+"), lines.signs.count(b"-")) == (hunk.added, hunk.removed)
            assert len(lines) == hunk.line_count
            for form in ({}, {"side_by_side": True}, {"ignores_blanks": True}):
                found = lines.rows(**form)
                rows = listed(found)
                for line in range(len(lines)):
                    assert line in rows[found.row_of(line)]
                assert [at for at, _ in rows if at is not None] == sides(lines.signs, b"+")
                assert [at for _, at in rows if at is not None] == sides(lines.signs, b"-")
            old_lines = [lines.text(at) + "\n" for at in sides(lines.signs, b"+")]
            assert old_lines == old[hunk.old_start - bool(hunk.old_count) :][: hunk.old_count]


def listed(rows: HunkRows) -> list[Pair]:
    return [rows[at] for at in range(len(rows))]


def sides(signs: bytes, skipped: bytes) -> list[int]:
    return [at for at in range(len(signs)) if signs[at : at + 1] != skipped]


@given(st.lists(st.sampled_from([*b'\n\n\n+-@ \\"\r\0', *b"diff --git a/ b/", 0x80])), st.binary(max_size=40))
def test_what_is_no_patch_is_read_without_an_error(noise: list[int], more: bytes) -> None:
    head = b"diff --git a/f b/f\n@@ -1,9 +1,9 @@"
    for patch in (bytes(noise) + more, head + bytes(noise) + b"\n" + more, head + b"\n" + bytes(noise), more + head):
        diff = Diff(patch)
        for file in diff.files:
            walk(diff, file)


def walk(diff: Diff, file: FileDiff) -> None:
    assert diff.file_digest(file)
    assert diff.file_patch(file)
    for hunk in file.hunks:
        lines = diff.lines(hunk)
        assert hunk.start < hunk.body <= hunk.end
        assert len(lines.rows()) == len(lines)
        lines.rows(side_by_side=True, ignores_blanks=True)
        diff.heading(hunk)
        for line in range(len(lines)):
            lines.text(line, max_bytes=3)
            lines.numbers(line)
            lines.partner(line)
