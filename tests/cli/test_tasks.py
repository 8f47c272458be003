from __future__ import annotations

import os
import pty
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine


def test_an_added_task_is_one_document_with_the_names_of_the_data_model(cli: CommandLine) -> None:
    added = cli(
        "task", "add", "Fix the login", "--description", "it fails", "--priority", "1", "--max-retries", "2",
        "--command", "sh -c 'echo \"$HOME\"'", "--env", "MODE=fast", "--env", "PATH", "--json",
    ).document()  # fmt: skip

    assert added["title"] == "Fix the login"
    assert added["status"] == "todo"
    assert added["priority"] == 1
    assert added["created_at"].endswith("Z")
    assert added["input_context"]["args"] == {"argv": ["sh", "-c", 'echo "$HOME"']}
    assert added["input_context"]["env_overrides"] == {"MODE": "fast"}
    assert added["input_context"]["env_passed"] == ["PATH"]
    assert added["input_context"]["max_retries"] == 2


@pytest.mark.parametrize(
    "title",
    ["fix [/] bug", "see [b + x", "regex [a-z]+ [/foo]", "`touch x` $(touch x)", "naïve 漢字 🚀", "שלום", "a;", "it's"],
)
def test_a_title_is_kept_and_shown_letter_for_letter(cli: CommandLine, title: str) -> None:
    number = cli.add(title)

    assert cli("task", "show", number, "--json").document()["title"] == title
    assert title in cli("board").stdout


@pytest.mark.parametrize("title", ["- [ ] do it", "--help", "-v", "-----BEGIN"])
def test_a_title_that_begins_with_a_dash_works_after_two_dashes(cli: CommandLine, title: str) -> None:
    added = cli("task", "add", "--json", "--", title).document()

    assert added["title"] == title


def test_nothing_that_a_terminal_obeys_reaches_it(cli: CommandLine) -> None:
    number = cli.add("red \x1b[31m clip \x1b]52;c;aGk=\x07 c1 \x9b6n bidi \u202e end", "--description", "a\x1bc\nb")

    shown = cli("task", "show", number).stdout + cli("board").stdout + cli("task", "list").stdout
    machine = cli("task", "show", number, "--json").stdout

    assert not {"\x1b", "\x9b", "\x07", "\u202e"} & set(shown + machine)


def test_a_hash_before_the_number_is_accepted(cli: CommandLine) -> None:
    number = cli.add("numbered")

    assert cli("task", "show", f"#{number}", "--json").document()["title"] == "numbered"


def test_an_edit_changes_what_is_named_and_keeps_the_rest(cli: CommandLine) -> None:
    first = cli.add("first")
    number = cli.add("before", "--description", "kept", "--command", "echo a", "--env", "A=1", "--env", "B=2")

    edited = cli(
        "task", "edit", number, "--title", "after", "--priority", "5", "--no-env", "A", "--after", first, "--json"
    ).document()

    shown = cli("task", "show", number, "--json").document()
    assert (edited["title"], edited["priority"], edited["description"]) == ("after", 5, "kept")
    assert edited["input_context"]["args"] == {"argv": ["echo", "a"]}
    assert edited["input_context"]["env_overrides"] == {"B": "2"}
    assert [str(task["number"]) for task in shown["dependencies"]] == [first]


def test_arguments_get_the_types_of_the_schema(cli: CommandLine) -> None:
    options = ("--agent", "make", "--with", "build", "--arg", "jobs=2", "--arg", "targets=a", "--arg", "targets=b")

    added = cli("task", "add", "typed", *options, "--json").document()

    assert added["input_context"]["args"] == {"jobs": 2, "targets": ["a", "b"]}


def test_a_task_moves_between_columns(cli: CommandLine) -> None:
    number = cli.add("moving")

    moved = cli("task", "move", number, "done", "--json").document()

    assert moved["status"] == "done"
    assert number in {str(task["number"]) for task in cli("task", "list", "--status", "done", "--json").document()}


def test_a_deleted_task_comes_back_by_the_line_that_is_printed(cli: CommandLine) -> None:
    number = cli.add("deleted")

    deleted = cli("task", "delete", number)
    gone = cli("task", "show", number)
    restored = cli("task", "restore", number, "--json").document()

    assert f"agentmon task restore {number}" in deleted.stderr
    assert gone.code == 2
    assert restored["title"] == "deleted"


def test_the_history_tells_every_change(cli: CommandLine) -> None:
    number = cli.add("with a history")
    cli("task", "edit", number, "--title", "renamed")
    cli("task", "move", number, "done")

    history = cli("task", "history", number, "--json").document()
    audit = cli("audit", number, "--json").document()

    assert [event["event_type"] for event in history] == ["task_created", "task_edited", "task_moved"]
    assert audit == history
    assert cli("audit", number).stdout.splitlines()[-1].endswith("You       moved it from Todo to Done")


def test_the_board_is_text_for_people_and_a_document_for_programs(cli: CommandLine) -> None:
    number = cli.add("on the board")

    page = cli("board", "--json").document()
    lines = cli("board", environ={"COLUMNS": "60"}).stdout.splitlines()

    columns = {column["status"]: column for column in page["columns"]}
    assert number in {str(card["number"]) for card in columns["todo"]["cards"]}
    assert page["workspace_name"] == "project"
    assert any(line.startswith(f"  #{number} P3 on the board") for line in lines)


def test_without_a_terminal_the_app_is_the_board_as_text(cli: CommandLine) -> None:
    number = cli.add("seen without a terminal")

    here = cli()
    named = cli(str(cli.workspace), folder=cli.folder)

    assert f"#{number}" in here.stdout
    assert here.stdout == named.stdout
    assert (here.code, named.code) == (0, 0)
    assert "no terminal" in here.stderr


@pytest.mark.proof
def test_a_terminal_that_cannot_draw_gets_the_board_as_text(cli: CommandLine) -> None:
    number = cli.add("seen on a dumb terminal")
    controller, terminal = pty.openpty()

    ended = subprocess.run(
        [sys.executable, "-P", "-m", "agentmon"],
        cwd=cli.workspace,
        env={**cli.environ, "TERM": "dumb"},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        check=False,
        timeout=60,
    )

    shown = os.read(controller, 65536)
    os.close(terminal)
    os.close(controller)
    assert ended.returncode == 0
    assert f"#{number}".encode() in shown
    assert b"TERM is dumb" in shown
    assert b"\x1b" not in shown


@pytest.mark.parametrize("url", ["postgresql://ada:secret-word@host/db", "nonsense"])
def test_a_database_url_that_cannot_be_used_is_a_matter_of_configuration(cli: CommandLine, url: str) -> None:
    ended = [cli(*words, environ={"AGENTMON_DATABASE_URL": url}) for words in (["status"], ["task", "list"], [])]

    assert [one.code for one in ended] == [2, 2, 2]
    assert all(one.stderr.startswith("error: ") and "secret-word" not in one.stderr for one in ended)


@pytest.mark.parametrize("name", ["My Project", "it's", "ü-漢", "-dash", "trailing ", "new\nline", "#{pane_id}"])
def test_a_folder_of_any_name_is_a_workspace(cli: CommandLine, name: str) -> None:
    folder = cli.folder / "folders" / name
    folder.mkdir(parents=True)

    added = cli("task", "add", "inside", "-C", str(folder), "--dir", str(folder), "--json").document()

    assert added["number"] == 1
    assert added["input_context"]["working_dir"] == str(folder)
    assert cli("board", "--json", folder=folder).document()["workspace_name"] == name


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("task", "show", "99"), "there is no task #99 in project"),
        (("task", "show", "abc"), "'abc' is not the number of a task"),
        (("task", "show", "0"), "is not the number"),
        (("task", "show", "9" * 30), "is not the number"),
        (("run", "99"), "there is no task #99"),
        (("stop", "99"), "there is no task #99"),
        (("log", "99"), "there is no task #99"),
        (("attach", "99"), "there is no task #99"),
        (("task", "add", ""), "needs a title"),
        (("task", "add", "x" * 10_001), "10,001 characters"),
        (("task", "add", "x", "--priority", "9"), "--priority"),
        (("task", "add", "x", "--priority", "high"), "--priority"),
        (("task", "add", "x", "--max-retries", "-1"), "--max-retries"),
        (("task", "add", "x", "--command", "sh 'open"), "is not closed"),
        (("task", "add", "x", "--command", " "), "the command is empty"),
        (("task", "add", "x", "--command", "true", "--agent", "git"), "exclude each other"),
        (("task", "add", "x", "--agent", "nobody"), "nobody"),
        (("task", "add", "x", "--agent", "git", "--with", "nothing"), "no capability nothing"),
        (("task", "add", "x", "--agent", "git", "--arg", "count"), "not KEY=VALUE"),
        (("task", "add", "x", "--arg", "a=b"), "need a program"),
        (("task", "add", "x", "--env", "1A=b"), "not the name of a variable"),
        (("task", "add", "x", "--dir", "nowhere"), "there is no folder 'nowhere'"),
        (("task", "add", "x", "--after", "99"), "#99"),
        (("task", "add", "x", "--run"), "without a program"),
        (("task", "move", "1", "later"), "later"),
        (("task", "edit", "1"), "nothing to change"),
        (("task", "list", "-C", "/nonexistent/folder"), "there is no folder"),
        (("./nowhere",), "there is no folder"),
        (("nonsense",), "nonsense"),
        (("status", "--bogus"), "--bogus"),
        (("settings", "worker.nothing"), "worker.nothing"),
        (("settings", "worker.max_running", "many"), "worker.max_running"),
        (("settings", "worker.max_running", "-1"), "a whole number from 1"),
        (("settings", "--josn"), "there is no setting --josn"),
        (("worker", "--stop", "--status"), "exclude each other"),
    ],
)
def test_wrong_usage_is_told_and_ends_with_2(cli: CommandLine, words: tuple[str, ...], sentence: str) -> None:
    ended = cli(*words)

    assert ended.code == 2
    assert sentence in ended.stderr
    assert ended.stdout == ""


def test_an_error_leaves_standard_output_empty_for_programs_too(cli: CommandLine) -> None:
    ended = cli("task", "show", "99", "--json")

    assert (ended.code, ended.stdout) == (2, "")
    assert "hint: agentmon task list shows them" in ended.stderr


def test_a_secret_is_refused_and_stored_nowhere(cli: CommandLine) -> None:
    secret = "sk-ant-" + "abcdefgh" * 3

    refused = cli("task", "add", "with a secret", "--env", f"A={secret}")

    assert refused.code == 2
    assert "--env A" in refused.stderr
    assert secret not in refused.stderr
    assert secret.encode() not in _all_bytes(cli.home)


def test_a_name_that_looks_like_a_secret_is_warned_of(cli: CommandLine) -> None:
    stored = cli("task", "add", "a", "--env", "MY_TOKEN=abc", "--json")
    passed = cli("task", "add", "b", "--env", "MY_TOKEN", "--json", environ={"MY_TOKEN": "Value-of-the-token"})

    assert "warning: MY_TOKEN" in stored.stderr
    assert passed.stderr == ""
    assert passed.document()["input_context"]["env_passed"] == ["MY_TOKEN"]
    assert b"Value-of-the-token" not in _all_bytes(cli.home)


def test_an_illegal_move_is_a_failure_and_names_both_states(cli: CommandLine) -> None:
    number = cli.add("done")
    cli("task", "move", number, "done")

    ended = cli("task", "move", number, "cancelled")

    assert ended.code == 1
    assert "done" in ended.stderr
    assert "cancelled" in ended.stderr


def test_a_ring_of_dependencies_is_refused(cli: CommandLine) -> None:
    first = cli.add("first of a ring")
    second = cli.add("second of a ring", "--after", first)

    ended = cli("task", "edit", first, "--after", second)

    assert ended.code == 1
    assert f"#{second}" in ended.stderr


def test_agents_settings_and_doctor_are_documents(cli: CommandLine) -> None:
    agents = cli("agents", "--json").document()
    settings = cli("settings", "--json").document()
    changed = cli("settings", "worker.max_running", "3", "--json").document()
    findings = cli("doctor", "--json").document()

    assert {"command", "sh"} <= {agent["slug"] for agent in agents}
    assert "worker.max_running" in {setting["key"] for setting in settings}
    assert changed["value"] == 3
    assert {"tmux", "database"} <= {finding["name"] for finding in findings}
    assert "command" in cli("agents").stdout
    assert "worker.max_running = 3" in cli("settings", "worker.max_running").stdout


def test_the_doctor_fails_without_tmux(cli: CommandLine) -> None:
    bare = cli.folder / "bare"
    bare.mkdir()
    (bare / "sh").symlink_to("/bin/sh")

    ended = cli("doctor", environ={"PATH": str(bare)})

    assert ended.code == 1
    assert "tmux" in ended.stdout


@pytest.mark.proof
def test_an_unforeseen_error_is_one_line_and_a_file(cli: CommandLine) -> None:
    cli.add("there is a database")
    script = cli.folder / "sitecustomize.py"
    script.write_text("import agentmon.cli.board as b\nb.read_page = None\n")

    ended = cli.run_alone("board", environ={"PYTHONPATH": str(cli.folder), "PYTHONSAFEPATH": ""})

    script.unlink()
    log_file = cli.paths.logs_dir / "app.log"
    assert ended.code == 1
    assert ended.stderr.startswith("error: unexpected TypeError")
    assert str(log_file) in ended.stderr
    assert "Traceback" in log_file.read_text()
    assert "Traceback" not in ended.stderr


def test_a_newer_database_is_refused_untouched(cli: CommandLine, tmp_path: Path) -> None:
    environ = {"AGENTMON_HOME": str(tmp_path / "home")}
    cli("task", "list", environ=environ)
    database = tmp_path / "home" / "agentmon.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_from_tomorrow'")

    ended = cli("task", "list", "--json", environ=environ)

    assert (ended.code, ended.stdout) == (1, "")
    assert ended.stderr.startswith("error: ")


@pytest.mark.proof
def test_a_reader_that_goes_away_is_no_error(cli: CommandLine) -> None:
    for index in range(3):
        cli.add(f"long {index} " + "x" * 9000)
    process = cli.start_alone("task", "list", "--json")
    assert process.stdout is not None
    assert process.stderr is not None

    process.stdout.close()
    code = process.wait(30)

    assert (code, process.stderr.read()) == (0, b"")
    process.stderr.close()


def _all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("command", "line"),
    [("ls | wc -l", "sh -c 'ls | wc -l'"), ("make && ls", "sh -c 'make && ls'"), ("echo $(id)", "sh -c 'echo $(id)'")],
)
def test_a_command_that_needs_a_shell_is_refused_with_the_line_that_works(
    cli: CommandLine, command: str, line: str
) -> None:
    refused = cli("task", "add", "x", "--command", command)

    assert refused.code == 2
    assert line in refused.stderr
