from __future__ import annotations

from dataclasses import replace

import pytest

from agentmon.domain.agents import DangerLevel
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.conversation import AskKind
from agentmon.domain.operations import OperationType
from agentmon.runners.danger import load_danger_rules
from tests.conversing import a_wish


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tool_input": {"cmd": "rm -rf ~"}},
        {"tool_input": {"command": ["bash", "-lc", "rm -rf ~"]}},
        {"tool_input": {}},
        {"tool_input": {}, "detail": ""},
    ],
)
def test_the_command_of_a_request_is_judged_wherever_the_agent_names_it(fields: dict[str, object]) -> None:
    asked = with_danger(replace(a_wish("rm -rf ~"), **fields), load_danger_rules())  # type: ignore[arg-type] # rows

    assert (asked.danger_level, asked.danger_name) == (DangerLevel.DESTRUCTIVE, "rm")
    assert asked.danger_reason == "rm: deletes a whole folder of the system, the home or the project"
    assert not asked.can_allow_for_session


@pytest.mark.parametrize(
    ("command", "fields"),
    [
        ("pytest -q", {}),
        ("rm build/x.o", {}),
        ("rm -rf ~", {"ask_kind": AskKind.QUESTION}),
        ("rm -rf ~", {"tool_input": {"file_path": "x"}, "type": OperationType.WRITE}),
    ],
)
def test_what_does_no_harm_is_as_it_was(command: str, fields: dict[str, object]) -> None:
    wish = replace(a_wish(command), **fields)  # type: ignore[arg-type] # named by the rows

    assert with_danger(wish, load_danger_rules()) is wish


def test_what_is_only_dangerous_may_be_allowed_for_the_session() -> None:
    asked = with_danger(a_wish("git reset --hard"), load_danger_rules())

    assert (asked.danger_level, asked.can_allow_for_session) == (DangerLevel.DANGEROUS, True)


def test_a_command_of_which_only_the_beginning_is_known_is_dangerous() -> None:
    wish = a_wish("echo a", detail="echo " + "a" * 39_994 + "…", tool_input={})

    asked = with_danger(wish, load_danger_rules())

    assert (asked.danger_level, asked.danger_name) == (DangerLevel.DANGEROUS, "sh")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git stash", "git stash"),
        ("cd sub && git -c a.b=c checkout -- .", "git checkout"),
        ("git switch main", "git switch"),
        ("git reset --hard HEAD~1", "git reset"),
    ],
)
def test_what_moves_head_in_a_folder_of_others_is_dangerous_and_names_them(command: str, name: str) -> None:
    rules = load_danger_rules()
    alone = with_danger(a_wish(command), rules)
    beside = with_danger(a_wish(command), rules, beside=[12, 14])

    assert "#12" not in alone.danger_reason
    assert beside.danger_level >= max(alone.danger_level, DangerLevel.DANGEROUS)
    assert beside.danger_name == name
    assert "#12, #14" in beside.danger_reason


@pytest.mark.parametrize("command", ["git status", "git log --oneline", "echo checkout", "git commit -m 'a stash'"])
def test_what_leaves_head_where_it_is_is_as_safe_beside_others(command: str) -> None:
    rules = load_danger_rules()

    assert with_danger(a_wish(command), rules, beside=[12]) == with_danger(a_wish(command), rules)
