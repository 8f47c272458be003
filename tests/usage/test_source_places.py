from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.usage.sources import find_sources, list_places
from tests.usage.histories import History
from tests.usage.transcripts import answered

if TYPE_CHECKING:
    from agentmon.usage.reading import ReadingProblem

THREAD = "019a0000-0000-7000-8000-000000000001"


def write(path: Path, written: bytes = b"x\n", *, at_s: int = 1_000) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(written)
    os.utime(path, (at_s, at_s))
    return path


def names(environ: dict[str, str]) -> list[str]:
    return [Path(source.path).name for source in find_sources(environ)]


def test_both_homes_of_claude_code_are_looked_into(tmp_path: Path) -> None:
    write(tmp_path / ".claude/projects/-p/a.jsonl")
    write(tmp_path / ".config/claude/projects/-p/b.jsonl")
    write(tmp_path / "xdg/claude/projects/-p/c.jsonl")

    assert names({"HOME": str(tmp_path)}) == ["a.jsonl", "b.jsonl"]
    assert names({"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "xdg")}) == ["a.jsonl", "c.jsonl"]


def test_the_folders_that_variables_name_are_the_only_ones(tmp_path: Path) -> None:
    write(tmp_path / ".claude/projects/-p/a.jsonl")
    for name in ("one", "two"):
        write(tmp_path / name / "projects/-p" / f"{name}.jsonl")
    write(tmp_path / f"codex/sessions/rollout-2026-05-01T10-00-00-{THREAD}.jsonl")
    write(tmp_path / "gem/.gemini/tmp/p/chats/session-1.json")
    write(tmp_path / "gem/.gemini/tmp/p/logs.json")
    write(tmp_path / "gem/.gemini/tmp/p/chats/parent/sub.jsonl")
    environ = {
        "HOME": str(tmp_path),
        "CLAUDE_CONFIG_DIR": f"~/one, {tmp_path / 'two' / 'projects'},",
        "CODEX_HOME": str(tmp_path / "codex"),
        "GEMINI_CLI_HOME": str(tmp_path / "gem"),
    }

    assert sorted(names(environ)) == [
        "one.jsonl",
        f"rollout-2026-05-01T10-00-00-{THREAD}.jsonl",
        "session-1.json",
        "sub.jsonl",
        "two.jsonl",
    ]


def test_a_file_is_found_once_however_many_ways_lead_to_it(tmp_path: Path) -> None:
    written = write(tmp_path / ".claude/projects/-p/a.jsonl")
    (tmp_path / ".config").mkdir()
    (tmp_path / ".config/claude").symlink_to(tmp_path / ".claude")
    (written.parent / "loop").symlink_to(written.parent)
    (written.parent / "gone.jsonl").symlink_to(tmp_path / "nowhere")
    (written.parent / "b.jsonl").hardlink_to(written)

    assert len(names({"HOME": str(tmp_path)})) == 1


def test_copies_of_a_file_under_two_roots_count_once(tmp_path: Path) -> None:
    for root in (".claude", ".config/claude"):
        write(tmp_path / root / "projects/-p/s1.jsonl", answered("m1"))

    assert len(History().look({"HOME": str(tmp_path)}).answers) == 1


def test_of_two_files_with_the_same_unmarked_history_the_one_that_ended_earlier_is_read_first(tmp_path: Path) -> None:
    copied = answered("m1", session=None, at="2025-09-20T10:00:00.000Z")
    own = answered("m2", session=None, at="2025-09-21T10:00:00.000Z")
    write(tmp_path / ".claude/projects/-p/a.jsonl", copied + own, at_s=1_000)
    write(tmp_path / ".claude/projects/-p/b.jsonl", copied, at_s=2_000)

    history = History().look({"HOME": str(tmp_path)})

    assert names({"HOME": str(tmp_path)}) == ["b.jsonl", "a.jsonl"]
    assert [answer.session_ref for answer in history.answers.values()] == ["b", "a"]


def test_a_thread_has_one_file_in_its_folder_and_one_in_the_archive(tmp_path: Path) -> None:
    name = f"rollout-2026-05-01T10-00-00-{THREAD}.jsonl"
    write(tmp_path / ".codex/sessions/2026/05/01" / name)
    write(tmp_path / ".codex/sessions/2026/05/01" / f"{name}.zst")
    write(tmp_path / ".codex/archived_sessions" / name)
    write(tmp_path / ".codex/sessions/2026/05/01/notes.jsonl")

    found = find_sources({"HOME": str(tmp_path)})

    assert sorted(source.thread_key for source in found) == [THREAD, f"archived/{THREAD}"]
    assert all(source.path.endswith(".jsonl") for source in found)


def test_a_thread_that_went_on_in_a_file_of_another_day_is_read_from_both(tmp_path: Path) -> None:
    for day in ("01", "02"):
        write(tmp_path / f".codex/sessions/2026/05/{day}/rollout-2026-05-{day}T10-00-00-{THREAD}.jsonl")

    found = find_sources({"HOME": str(tmp_path)})

    assert [source.thread_key for source in found] == [THREAD, THREAD]


@pytest.mark.parametrize("told", ["root", "name", "hash", "nothing"])
def test_the_project_of_a_chat_is_told_by_its_place(tmp_path: Path, told: str) -> None:
    folder = sha256(b"/home/dev/shop").hexdigest() if told == "hash" else "shop"
    write(tmp_path / ".gemini/tmp" / folder / "chats/session-1.jsonl")
    if told == "root":
        write(tmp_path / ".gemini/tmp" / folder / ".project_root", b"/home/dev/shop\n")
    elif told != "nothing":
        write(tmp_path / ".gemini/projects.json", json.dumps({"projects": {"/home/dev/shop": "shop"}}).encode())
    else:
        write(tmp_path / ".gemini/projects.json", b'["damaged"')

    (source,) = find_sources({"HOME": str(tmp_path)})

    assert source.project_hint == ("" if told == "nothing" else "/home/dev/shop")


def test_the_hash_of_a_folder_is_looked_up_among_those_that_are_known(tmp_path: Path) -> None:
    folders = [sha256(path.encode()).hexdigest() for path in ("/home/dev/shop", "/home/dev/other")]
    for folder in (*folders, "named"):
        write(tmp_path / ".gemini/tmp" / folder / "chats/session-1.jsonl")
    asked = []

    def find_folders() -> list[str]:
        asked.append(1)
        return ["/home/dev", "/home/dev/shop"]

    found = find_sources({"HOME": str(tmp_path)}, find_folders=find_folders)

    assert {Path(one.path).parts[-3]: one.project_hint for one in found} == {
        folders[0]: "/home/dev/shop",
        folders[1]: "",
        "named": "",
    }
    assert len(asked) == 1


def test_places_are_listed_with_what_is_wrong_with_them(tmp_path: Path) -> None:
    (tmp_path / ".claude/projects").mkdir(parents=True)
    write(tmp_path / ".codex/sessions")

    problems = {
        place.path.removeprefix(f"{tmp_path}/"): place.problem for place in list_places({"HOME": str(tmp_path)})
    }

    assert problems == {
        ".config/claude/projects": "no such file or directory",
        ".claude/projects": "",
        ".codex/sessions": "not a directory",
        ".codex/archived_sessions": "no such file or directory",
        ".gemini/tmp": "no such file or directory",
        ".local/share/opencode": "no such file or directory",
        ".qwen/projects": "no such file or directory",
        ".copilot/session-state": "no such file or directory",
        ".local/share/amp/threads": "no such file or directory",
    }


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read all folders")
def test_a_folder_without_permission_is_reported(tmp_path: Path) -> None:
    closed = write(tmp_path / ".claude/projects/-p/a.jsonl").parent
    closed.chmod(0)
    problems: list[ReadingProblem] = []

    found = find_sources({"HOME": str(tmp_path)}, problems=problems)
    closed.chmod(0o700)

    assert found == []
    assert [problem.reason for problem in problems] == [f"{closed}: Permission denied"]
