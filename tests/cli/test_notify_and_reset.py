from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.command_lines import CommandLine


@pytest.fixture(autouse=True)
def _as_before(cli: CommandLine) -> Iterator[None]:
    yield
    cli("settings", "notifications.done", "toast")
    cli("settings", "notifications.command", "")


def test_a_trial_says_what_came_of_each_channel(cli: CommandLine) -> None:
    cli("settings", "notifications.done", "bell toast command")
    without = cli("notify", "done")
    cli("settings", "notifications.command", "cat > /dev/null")
    told = cli("notify", "done", "--json")

    assert without.code == 1
    assert without.stdout.splitlines() == [
        "toast     an open app tells it",
        "bell      an open app tells it",
        "command   no command is set; `agentmon settings notifications.command COMMAND` sets one",
    ]
    assert told.code == 0
    assert [(one["channel"], one["problem"]) for one in told.document()] == [
        ("toast", None),
        ("bell", None),
        ("command", None),
    ]


def test_what_is_not_told_of_names_the_setting(cli: CommandLine) -> None:
    cli("settings", "notifications.done", "none")

    refused = cli("notify", "done")

    assert refused.code == 1
    assert refused.stderr.startswith("error: nothing is told of done\nhint: `agentmon settings notifications.done")


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        (
            "notifications.done",
            "pigeon",
            "'pigeon' is no channel; channels are: toast, bell, desktop, command, webhook",
        ),
        ("notifications.quiet_hours", "always", "write it like 22:00-07:00"),
        ("notifications.webhook", "ftp://example.org", "an address such as https://example.org/hook is expected"),
    ],
)
def test_a_wrong_setting_says_what_is_right(cli: CommandLine, key: str, value: str, why: str) -> None:
    refused = cli("settings", key, value)

    assert refused.code == 2
    assert why in refused.stderr


def test_a_setting_is_reset_by_its_name_alone(cli: CommandLine) -> None:
    cli("settings", "notifications.done", "bell")

    wrong = cli("settings", "notifications.done", "toast", "--reset")
    reset = cli("settings", "notifications.done", "--reset", "--json").document()

    assert wrong.code == 2
    assert wrong.stderr.startswith("error: --reset takes a setting and no value\nhint: agentmon settings")
    assert (reset["value"], reset["origin"]) == ("toast", "default")
