from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.presets import PRESETS_DIR, agents_of, find_installed, load_library, load_presets
from agentmon.runners.presets.library import names_in

if TYPE_CHECKING:
    from pathlib import Path

AGENT = '[[agent]]\nslug = "mine"\nname = "Mine"\nbinary = "mine"\n'
CAPABILITY = '[[agent.capability]]\nkey = "k"\nlabel = "K"\ncommand_tokens = ["a"]\n'
MINE = AGENT + CAPABILITY


def add_program(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_bad_files_of_a_person_are_told_by_name_and_hide_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(MINE + AGENT.replace("mine", "bad") + AGENT.replace("mine", "also") + CAPABILITY)
    (tmp_path / "b.toml").write_text("[[agent")
    (tmp_path / "c.toml").write_bytes(b"# caf\xe9\n" + MINE.encode())
    (tmp_path / "d.toml").mkdir()
    os.mkfifo(tmp_path / "e.toml")
    (tmp_path / "f.toml").symlink_to(tmp_path / "gone")
    (tmp_path / "g.toml").write_text("#" * (1024 * 1024 + 1))
    (tmp_path / "h.toml").write_text(MINE)
    (tmp_path / "i.toml").write_text("a = [" + "[" * 5000)
    (tmp_path / ".j.toml").write_text("[[half an editor's file")
    (tmp_path / "notes.txt").write_text("no preset")
    (tmp_path / "k.preset.toml").write_text(MINE.replace("mine", "last"))

    library = load_library(tmp_path)

    own = [preset for preset in library.presets if preset.is_own]
    assert [preset.slug for preset in own] == ["also", "last", "mine"]
    assert [preset.slug for preset in library.presets if not preset.is_own] == [
        preset.slug for preset in load_presets()
    ]
    assert [(problem.path.name, problem.message.replace(f"{tmp_path}/", "")) for problem in library.problems] == [
        ("a.toml", "a.toml, agent bad: capability is missing"),
        ("b.toml", library.problems[1].message.replace(f"{tmp_path}/", "")),
        ("c.toml", "the preset file c.toml cannot be read: it is not UTF-8 text (line 1)"),
        ("d.toml", "the preset file d.toml cannot be read: it is not a file"),
        ("e.toml", "the preset file e.toml cannot be read: it is not a file"),
        ("f.toml", "the preset file f.toml cannot be read: no such file or directory"),
        ("g.toml", "the preset file g.toml cannot be read: it is larger than 1 MiB"),
        ("h.toml", "h.toml: the agent mine is described in a.toml already, which counts"),
        ("i.toml", library.problems[8].message.replace(f"{tmp_path}/", "")),
    ]
    assert library.problems[1].message.startswith(f"the preset file {tmp_path}/b.toml cannot be read: Expected")
    assert library.problems[8].message.startswith(f"the preset file {tmp_path}/i.toml cannot be read: ")
    assert str(library.problems[3]).endswith(
        "it is not a file; mend that file, or move it out of the folder; all other presets are used meanwhile"
    )


def test_a_folder_of_presets_need_not_be_there_and_one_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert load_library(tmp_path / "missing").problems == ()
    assert load_library(None).presets == load_presets()
    (problem,) = load_library(tmp_path / "file").problems
    assert problem.message == f"the folder of presets {tmp_path}/file cannot be read: not a directory"


def test_an_own_preset_replaces_that_of_agentmon_and_is_found_on_path(tmp_path: Path) -> None:
    own = tmp_path / "presets"
    own.mkdir()
    (own / "git.toml").write_text(MINE.replace('slug = "mine"', 'slug = "git"'))
    program = add_program(tmp_path / "bin", "mine")
    add_program(tmp_path / "bin", "git")

    found = find_installed({"PATH": str(tmp_path / "bin")}, own_folder=own)

    assert [(preset.slug, preset.binary_path) for preset in found] == [
        ("command", ""),
        ("acp", ""),
        ("git", str(program)),
    ]
    assert [agent.capabilities[0].key for agent in agents_of(found)] == ["run", "work", "k"]


def test_a_program_is_found_by_its_other_names_and_kept_under_that_one(tmp_path: Path) -> None:
    own = tmp_path / "presets"
    own.mkdir()
    (own / "mine.toml").write_text(AGENT + 'also_known_as = ["mine3", "mein"]\n' + CAPABILITY)
    other = add_program(tmp_path / "bin", "mein")

    *_, found = find_installed({"PATH": str(tmp_path / "bin")}, own_folder=own)
    add_program(tmp_path / "bin", "mine")
    *_, again = find_installed({"PATH": str(tmp_path / "bin")}, own_folder=own)

    assert (found.binary, found.binary_path) == ("mein", str(other))
    assert agents_of([found])[0].binary_path == "mein"
    assert again.binary == "mine"


EVERYTHING = (
    """
[[agent]]
slug = "mine"
name = "Mine"
binary = "mine"
role = "writes tests"
color = "#d97757"
version_args = ["version", "--short"]
version_pattern = "^v([0-9.]+)"
checked_with = "1.2"
unchecked = "the screen"
packages = { npm = ["@me/mine"], brew = ["mine"] }

[agent.login]
environment = ["MINE_KEY"]
files = ["~/.mine/auth.json"]
command = ["auth", "status"]
pattern = "logged in"
hint = "run `mine login`"

"""
    + CAPABILITY
)


def test_every_entry_of_a_preset_arrives(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(EVERYTHING)

    preset = next(preset for preset in load_library(tmp_path).presets if preset.slug == "mine")

    assert (preset.role, preset.color, preset.checked_with, preset.unchecked) == (
        "writes tests",
        "#d97757",
        "1.2",
        "the screen",
    )
    assert preset.version_args == ("version", "--short")
    assert preset.version_pattern is not None
    assert preset.version_pattern.findall("mine\nv1.2.3\n") == ["1.2.3"]
    assert preset.packages == {"npm": ("@me/mine",), "brew": ("mine",)}
    assert preset.login is not None
    assert (preset.login.environment, preset.login.files) == (("MINE_KEY",), ("~/.mine/auth.json",))
    assert (preset.login.command, preset.login.hint) == (("auth", "status"), "run `mine login`")
    assert preset.login.pattern is not None
    assert (preset.path, preset.is_own) == (tmp_path / "mine.toml", True)
    (agent,) = agents_of([preset])
    assert (agent.role, agent.color) == ("writes tests", "#d97757")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"#d97757"', '"orange"', "agent mine: color 'orange' must be written like #d97757, in small letters"),
        ('"^v([0-9.]+)"', '"("', "agent mine: version_pattern is not a regular expression: "),
        ('"^v([0-9.]+)"', '"v"', "agent mine: version_pattern must have a group, in parentheses, around what"),
        ("npm =", "apt =", "agent mine, packages: unknown entry apt; known are brew, cargo, dpkg"),
        ('["@me/mine"]', '"@me/mine"', "agent mine, packages: npm must be a list"),
        ('"~/.mine/auth.json"', '"auth.json"', "agent mine, login: the file auth.json must begin with ~/ or /"),
        ("files", "file", "agent mine, login: unknown entry file; known are command, environment"),
        ('binary = "mine"', 'binary = "bin/mine"', "agent mine: 'bin/mine' must be the name of a program as it stands"),
        ('["a"]', '["{{args.a}}"]', "agent mine, capability k: the placeholder {{args.a}} is unknown"),
        ('["a"]\n', '["a"]\nargs = { a = { title = "A" } }\n', "k, argument a: type must be one of array, boolean"),
        (
            '["a"]\n',
            '["a"]\nargs = { a = { type = "string", pattern = "(" } }\n',
            "argument a: pattern is not a regular expression",
        ),
        (
            'environment = ["MINE_KEY"]\nfiles = ["~/.mine/auth.json"]\ncommand = ["auth", "status"]\n',
            "",
            "agent mine, login: one of environment, files and command has to say",
        ),
    ],
)
def test_a_fault_in_an_own_preset_is_told_with_its_place(tmp_path: Path, before: str, after: str, message: str) -> None:
    assert before in EVERYTHING
    (tmp_path / "mine.toml").write_text(EVERYTHING.replace(before, after, 1))

    (problem,) = load_library(tmp_path).problems

    assert message in problem.message
    assert problem.message.startswith(f"{tmp_path}/mine.toml, agent mine")


def test_the_names_that_are_told_without_reading_a_file_are_those_in_it() -> None:
    for path in sorted(PRESETS_DIR.glob("*.preset.toml")):
        names = names_in(path.read_text(encoding="utf-8"))
        presets = [preset for preset in load_presets() if preset.path == path]

        read = {name for preset in presets for name in (preset.slug, preset.binary, *preset.also_known_as)}
        assert names == read, path.name


def test_only_files_of_programs_that_are_asked_for_are_read() -> None:
    read = {preset.path.name for preset in load_presets(of_programs={"git"}) if preset.path is not None}

    assert read == {"acp.preset.toml", "git.preset.toml", "shell.preset.toml"}
