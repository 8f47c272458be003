from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_a_task_becomes_a_template_and_the_template_a_task(cli: CommandLine) -> None:
    number = cli.add(
        *("Fix [/] it", "--description", "# What\n\nabout {{title}}", "--command", "echo 'a b' {{title}}"),
        *("--priority", "2", "--label", "bug", "--env", "MODE=fast", "--env", "API_KEY", "--max-retries", "3"),
        *("--dir", str(cli.workspace), "--schedule", "@daily", "--zone", "UTC", "--prompt", "Be short."),
        *("--isolation", "worktree", "--base", "main", "--verify", "make test", "--verify-retries", "0"),
    )

    saved = cli("template", "save", "my bug", "--from", number, "--json").document()
    assert (cli.home / "templates" / "my bug.toml").stat().st_mode & 0o777 == 0o600
    assert saved["file"] == str(cli.home / "templates" / "my bug.toml")
    made = cli("task", "add", "--template", "my bug", "login", "--label", "web", "--json").document()
    old = cli("task", "show", number, "--json").document()

    assert made["title"] == "login"
    assert made["description"] == "# What\n\nabout login"
    assert made["input_context"] == {**old["input_context"], "args": {"argv": ["echo", "a b", "login"]}}
    assert (made["priority"], made["labels"], made["schedule"]) == (2, ["bug", "web"], old["schedule"])

    assert (made["input_context"]["isolation"], made["input_context"]["base"]) == ("worktree", "main")
    assert (made["input_context"]["verify"], made["input_context"]["verify_retries"]) == ("make test", 0)
    cli("task", "edit", number, "--verify", "")
    cli("template", "save", "unverified", "--from", number)
    unverified = cli("task", "add", "--template", "unverified", "x", "--json").document()
    assert unverified["input_context"]["verify"] == ""
    cli("template", "remove", "unverified")

    assert cli("template", "save", "my bug", "--from", number).code == 1
    assert cli("template", "save", "my bug", "--from", number, "--force").code == 0
    assert "echo" in cli("template", "list").stdout
    assert "description:" in cli("template", "show", "my bug").stdout
    assert cli("template", "show", "my bug", "--json").document()["environment"] == ["API_KEY", "MODE=fast"]
    assert cli("template", "remove", "my bug").code == 0
    assert cli("template", "remove", "my bug").code == 2
    assert "no templates" in cli("template", "list").stderr
    assert cli("template", "save", "../x", "--from", number).code == 2


def test_a_template_of_the_project_fills_in_words_and_nothing_that_runs(cli: CommandLine) -> None:
    folder = cli.workspace / ".agentmon" / "templates"
    folder.mkdir(parents=True)
    (folder / "bug.toml").write_text(
        'title = "Bug: {{title}}"\nlabels = ["bug"]\ndue = "in 2 days"\nprogram = "nowhere"\n'
        'environment = ["LD_PRELOAD=/x.so"]\nschedule = "* * * * *"\nfolder = "/"\n'
        'verify = "touch /tmp/x"\n[args]\nmodel = "x"\n'
    )
    (folder / "command.toml").write_text('command = ["sh", "-c", "touch /tmp/x"]\n')

    added = cli("task", "add", "--template", "bug", "login", "--json")
    for key in ("environment", "schedule", "args", "folder", "verify", "no program nowhere"):
        assert key in added.stderr
    made = added.document()
    assert (made["title"], made["labels"], made["schedule"]) == ("Bug: login", ["bug"], None)
    assert made["due_at"]
    assert made["input_context"]["env_overrides"] == {}
    assert made["input_context"]["verify"] is None
    assert made["assignee_agent_id"] is None
    refused = cli("task", "add", "--template", "command", "x", "--run")
    assert "a task without a program cannot run" in refused.stderr


def test_a_broken_file_is_told_with_its_line_and_the_rest_stays_usable(cli: CommandLine) -> None:
    folder = cli.home / "templates"
    folder.mkdir(exist_ok=True)
    for name, text in (
        ("good", 'title = "x"\n'),
        ("syntax", 'title = "x"\nlabels = [\n'),
        ("unknown", 'title = "x"\n\nlables = ["a"]\n'),
        ("kind", 'title = "x"\npriority = "high"\n'),
        ("range", "priority = 9\n"),
        ("label", 'labels = ["two words"]\n'),
    ):
        (folder / f"{name}.toml").write_text(text)
    (folder / "bytes.toml").write_bytes(b"title = '\xff'\n")
    (cli.workspace / ".agentmon" / "templates" / "linked.toml").symlink_to(folder / "good.toml")

    document = cli("template", "list", "--json").document()

    reasons = {one["name"]: one["reason"] for one in document["problems"]}
    assert "good" in [one["name"] for one in document["templates"]]
    assert reasons["syntax"].startswith(("line ", "end of document"))
    assert reasons["unknown"].startswith("line 3: 'lables' is not known")
    assert reasons["kind"] == "line 2: priority has to be a number"
    assert reasons["range"] == "line 1: priority has to be 1 to 5"
    assert reasons["label"].startswith("line 1: a label cannot have")
    assert reasons["bytes"] == "it is not UTF-8 text (line 1)"
    assert "cannot be a link" in reasons["linked"]
    refused = cli("task", "add", "--template", "kind", "x")
    assert (refused.code, "line 2: priority" in refused.stderr) == (2, True)
    assert "there are: " in cli("task", "add", "--template", "other", "x").stderr


def test_an_agent_cannot_bring_in_what_a_template_of_the_project_may_not_say(cli: CommandLine) -> None:
    number = cli.add("Fix it", "--command", "true")
    cli("run", number, "--wait")
    inside = {"AGENTMON_EXECUTION_ID": cli("executions", "--json").document()[0]["id"]}
    elsewhere = cli.home / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "behind.toml").write_text('title = "x"\n')
    folder = cli.home / "project" / ".agentmon"
    folder.mkdir(parents=True)
    (folder / "templates").symlink_to(elsewhere)

    tried = [
        cli("template", "save", "mine", "--from", number, environ=inside),
        cli("template", "remove", "mine", environ=inside),
    ]
    linked = cli("template", "list", "--json", "-C", str(folder.parent)).document()["problems"]

    assert [one.code for one in tried] == [1, 1]
    assert all("an agent may not change a person's templates" in one.stderr for one in tried)
    assert "behind one" in next(one["reason"] for one in linked if one["name"] == "behind")


def test_a_template_may_have_the_whole_title_and_otherwise_the_error_asks_for_one(cli: CommandLine) -> None:
    folder = cli.workspace / ".agentmon" / "templates"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "chore.toml").write_text('title = "Update all [/] packages"\n')
    (folder / "fix.toml").write_text('title = "Fix: {{title}}"\n')

    made = cli("task", "add", "--template", "chore", "--json").document()
    opened, missing = cli("task", "add", "--template", "fix"), cli("task", "add")

    assert made["title"] == "Update all [/] packages"
    assert (opened.code, missing.code) == (2, 2)
    assert "the template fix leaves the title open" in opened.stderr
    assert "a task needs a title" in missing.stderr
