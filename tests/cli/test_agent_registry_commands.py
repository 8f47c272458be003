"""The registry from the command line: agents made, changed, shared and trusted, and a capability run by its name."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


def test_an_agent_is_made_of_a_program_changed_switched_and_removed(cli: CommandLine) -> None:
    made = cli("agents", "add", "touch", "--as", "maker", "--json").document()
    changed = cli("agents", "edit", "maker", "--limit", "2", "--role", "makes", "--env", "A_*", "--dir", "~")
    shown = cli("agents", "show", "maker")
    off = cli("agents", "disable", "maker")
    listed = [cli("agents", *words).stdout for words in ((), ("list", "--all"))]
    cli("agents", "duplicate", "maker", "twin")
    cli("agents", "remove", "maker", "twin")
    removed = cli("agents", "list", "--removed", "--json").document()
    back = cli("agents", "restore", "maker", "--json").document()

    assert (made["slug"], made["kind"], made["binary_path"]) == ("maker", "custom", "touch")
    assert changed.stdout == "changed maker\n"
    facts = dict(line.split(maxsplit=1) for line in shown.stdout.splitlines() if "  " in line)
    assert (facts["limit"], facts["role"], facts["environment"]) == ("2 at one time", "makes", "A_*")
    assert "1 changes files" in shown.stdout
    assert facts["folder"] == str(cli.folder)
    assert off.stdout == "maker: off\n"
    assert ["maker" in text for text in listed] == [False, True]
    assert {one["slug"] for one in removed} == {"maker", "twin"}
    assert (back["removed_at"], back["is_active"]) == (None, False)


def test_a_capability_is_described_run_by_its_whole_name_and_taken_away(cli: CommandLine) -> None:
    added = cli(
        *("agents", "capability", "add", "sh", "say", "--words", "-c 'echo {{args.what}} $0 $1' {{--n args.n}}"),
        *("--argument", "what:string!", "--argument", "n:integer=3", "--timeout", "1m", "--json"),
    ).document()
    number = cli.add("a task without a program")

    ran = cli("run", number, "--with", "sh.say", "--arg", "what=hello", "--wait")
    other = cli("run", number, "--agent", "git", "--with", "sh.say")
    gone = cli("agents", "capability", "remove", "sh", "say")

    assert added["command_tokens"] == ["-c", "echo {{args.what}} $0 $1", "{{--n args.n}}"]
    assert (added["timeout_s"], added["args_schema"]["required"]) == (60, ["what"])
    assert (ran.code, cli("log", number).stdout) == (0, "hello --n 3\n")
    assert (other.code, "name two programs" in other.stderr) == (2, True)
    assert gone.stdout == "sh.say: removed\n"


def test_a_file_is_exported_imported_shown_and_trusted_by_what_it_is(cli: CommandLine) -> None:
    file = cli.workspace / ".agentmon" / "agents.toml"
    cli("agents", "add", "true", "--as", "calm")
    exported = cli("agents", "export", "calm", "-o", str(file))
    imported = cli("agents", "import", str(file), "--json").document()
    missing = cli("agents", "import", str(file.with_name("gone.toml")))
    git_log = cli("agents", "capability", "show", "git", "log").stdout
    file.write_text(file.read_text().replace("calm", "here"))

    listed = cli("agents")
    asked = cli("agents", "trust")
    state = cli("agents", "trust", "--json").document()
    wrong = cli("agents", "trust", "--digest", "0" * 64)
    trusted = cli("agents", "trust", "--digest", state["digest"], "--json").document()
    elsewhere = cli("agents", folder=cli.folder)
    again = cli("agents", "untrust")

    assert (missing.code, "hint: name a file that `agentmon agents export` wrote" in missing.stderr) == (2, True)
    assert "max: a whole number, at least 1, at most 100000; default 20" in git_log
    assert exported.stdout.endswith(": calm\n")
    assert tomllib.loads(file.read_text())["agent"][0]["binary"] == "true"
    assert [one["verdict"] for one in imported] == ["same"]
    assert "not trusted" in listed.stderr
    assert "true '{{args.words}}'" in asked.stdout
    assert (asked.code, state["digest"] in asked.stderr) == (2, True)
    assert [one["command_line"] for one in state["commands"]] == ["true '{{args.words}}'"]
    assert (wrong.code, trusted["trust"], "here " in elsewhere.stdout) == (1, "trusted", False)
    assert again.stdout.endswith("is not trusted any more\n")


@pytest.mark.proof
def test_a_test_tells_by_its_exit_code_what_is_in_the_way(cli: CommandLine) -> None:
    cli("agents", "add", "cat")
    fine = cli("agents", "test", "cat", "--json").document()
    cli("agents", "edit", "cat", "--program", "no-such-cat")
    bad = cli("agents", "test", "cat")
    silent = cli.folder / "silent"
    silent.write_text("#!/bin/sh\n", encoding="utf-8")
    silent.chmod(0o755)
    cli("agents", "add", str(silent))

    assert fine["problems"] == []
    assert cli("agents", "test", "silent").stdout == f"silent: {silent}, tells no version\n"
    assert cli("agents", "test", "command").stdout == "command: needs no program\n"
    assert (bad.code, bad.stderr) == (1, "✗ no-such-cat is not on the PATH\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("edit", "git"), "what is to be changed?"),
        (("edit", "git", "--model", "opus"), "takes no model"),
        (("edit", "git", "--temperature", "warm"), "is no number"),
        (("edit", "git", "--no-env", "NOT_THERE"), "is not passed on"),
        (("edit", "git", "--permission-mode", "plan"), "has no permission mode plan"),
        (("add", "no-such-program"), "is not on the PATH"),
        (("remove", "command"), "is always there"),
        (("restore", "git"), "is there already"),
        (("capability", "add", "git", "x", "--words", "{{args.open"), "is not closed"),
        (("capability", "add", "git", "x", "--argument", "path"), "describes no argument"),
        (("capability", "edit", "git", "log"), "what is to be changed?"),
        (("import", "no-such-file"), "cannot be read"),
        (("untrust",), "is trusted here"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_reason(
    cli: CommandLine, words: tuple[str, ...], sentence: str
) -> None:
    refused = cli("agents", *words)

    assert refused.code in {1, 2}
    assert sentence in refused.stderr
    assert refused.stdout == ""


def test_a_run_that_waits_for_a_person_says_so(cli: CommandLine) -> None:
    cli("agents", "add", "echo")
    off, held = cli.add("of one that is off", "--with", "echo.run"), cli.add("of a dangerous one", "--with", "echo.run")
    cli("pause")
    cli("run", off)
    cli("agents", "disable", "echo")

    shown = cli("task", "show", off).stdout
    refused = cli("run", held)
    cli("agents", "enable", "echo")
    cli("agents", "capability", "edit", "echo", "run", "--ask-first")
    waits = cli("run", held)
    cli("resume")

    assert "◌ queued, echo is switched off; queue is paused" in shown
    assert (refused.code, "`agentmon agents enable echo`" in refused.stderr) == (2, True)
    assert waits.stdout == f"{held} ◆ needs you, it starts when you allow it: agentmon inbox; queue is paused\n"
