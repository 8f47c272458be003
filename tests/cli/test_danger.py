from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.command_lines import CommandLine


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["git fetch && git push --force"], "level 3, destroys things: it waits for you when an agent starts it, and"),
        (["--", "git", "push", "--force-with-lease"], "level 2, dangerous: it waits for you when an agent starts it\n"),
        (["echo 'rm -rf /'"], "level 0, harmless: it starts at once\n"),
    ],
)
def test_a_command_line_is_judged_and_not_run(cli: CommandLine, words: list[str], told: str) -> None:
    judged = cli("danger", *words)

    assert (judged.code, judged.stderr) == (0, "")
    assert told in judged.stdout


def test_the_document_has_level_and_reasons_and_a_wrong_file_is_told(cli: CommandLine) -> None:
    document = cli("danger", "rm -rf build && make", "--json").document()
    own = cli.paths.danger_rules_file
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('[[rule]]\nprograms = ["make"]\nlevel = 3\nreason = "builds the rocket"\n')
    raised = cli("danger", "make", "--json").document()
    own.write_text("level = 3\n")
    broken = cli("danger", "make")
    own.unlink()

    assert document == {
        "level": 1,
        "waits_when_started_by_agent": False,
        "asks_for_name": False,
        "reasons": [
            {"level": 1, "command": "rm", "text": "deletes what is made anew"},
            {"level": 1, "command": "make", "text": "runs what the project says"},
        ],
    }
    assert (raised["level"], raised["reasons"][0]["text"]) == (3, "builds the rocket")
    assert (broken.code, str(own) in broken.stderr) == (2, True)
