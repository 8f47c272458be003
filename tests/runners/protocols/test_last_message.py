from __future__ import annotations

import time

import pytest

from agentmon.runners.protocols.last_message import gives_up, open_question

HOLDS_UP = [
    "SQLite or Postgres? Tell me before I go on.",
    "I looked at the schema.\n\nShould I use SQLite or Postgres?",
    "Which database do you want?\n\n1. SQLite\n2. Postgres",
    "Which one?\n- a: SQLite\n- b: Postgres\n\nPlease choose.",
    "**Which database should I use?**",
    "Two things are open.\n\nShould the job delete old rows, or keep them? I'd recommend keeping them.",
    "The plan is ready. Shall I proceed?",
    "Would you like me to go ahead with the migration?",
    "Do you want me to proceed?",
    "Please confirm which branch I should push to.",
    "I need to know:\n\n1. Which region is it?\n2. Which account pays?",
    "There are two files named config.\n\nTell me which one to change.",
    "I'm waiting for your decision.",
    "Soll ich SQLite oder Postgres nehmen?",
    "```python\nx = 1\n```\n\nWhich value is right?",
    "Before I delete the table: is there a backup?",
    "**Which database?**\n\n- **A)** SQLite\n- **B)** Postgres\n\nReply with A or B.",
    "Which database should I use?\n\n| name | size |\n|---|---|\n| SQLite | small |\n| Postgres | large |",
    "SQLite or Postgres? I'll continue once you answer. 🙂",
    "Which one should I use?🙂",
    "Where is the password? I can't continue without it.",
    "Which database should I use?!",
    "Please provide the API key.",
    "Awaiting your decision.",
    "I'm blocked until you give me access to the DB.",
    "I can’t proceed without your approval.",
    "SQLite oder Postgres? Sag mir Bescheid…",
    "Which database?\n\n---\n\nTell me, please.",
]
HOLDS_NOTHING_UP = [
    "",
    "Done.",
    "All tests pass. Anything else I can help with?",
    "Done! Let me know if you need anything else.",
    "Done. Let me know if you'd like me to change the colours.",
    "I fixed it. Do you have any questions?",
    "I fixed it. Would you like me to also add tests?",
    "I fixed it. Want me to write a changelog entry?",
    "Why did it fail? The cache was stale. I cleared it.",
    "What did I change? The parser and its tests.",
    'The dialog now asks "Do you really want to leave?"',
    "The code asks `Continue?`",
    "It prints:\n\n```\nContinue? [y/N]\n```",
    "It prints:\n\n```\nContinue with the installation?",
    "> Which database?\n\nI chose SQLite.",
    "See https://example.org/search?q=sqlite?",
    "I answered the question which database to use: SQLite?\n\nSQLite it is.",
    "Is there anything else?",
    "Does that make sense?",
    "Kann ich sonst noch etwas tun?",
    "?",
    "Hm?",
    "The flag is called `--what?`.",
    "All tests pass.\n\nPlease review the changes.",
    "Done.\n\nPlease provide feedback if anything is off.",
    "Done. Please share any questions.",
    "Which database did I choose? SQLite. I'll continue with the tests when it is merged.",
    "The tests:\n\n| name | passes |\n|---|---|\n| why? | yes |\n\nAll pass.",
    "Done 🎉\n\nAnything else I can help with? 🙂",
    "Is it fast? Yes.\n\n| name | time |\n|---|---|\n| a | 1 s |",
]


@pytest.mark.parametrize("text", HOLDS_UP)
def test_a_question_that_the_work_waits_for_is_found(text: str) -> None:
    question = open_question(text)

    assert question
    assert "\n" not in question


@pytest.mark.parametrize("text", HOLDS_NOTHING_UP)
def test_what_only_looks_like_a_question_holds_nothing_up(text: str) -> None:
    assert open_question(text) == ""


def test_the_question_is_told_and_not_what_follows_it() -> None:
    assert open_question("I read it.\n\nSQLite or Postgres? Tell me before I go on.") == "SQLite or Postgres?"
    assert len(open_question(f"Which {'very ' * 500}long one?")) <= 200


@pytest.mark.parametrize(
    "piece", ["?", "a? ", "`", '"', "```\n", "- a?\n", "please ", "\n\n", "> ", "would you like ", "1. "]
)
def test_any_text_takes_little_time(piece: str) -> None:
    began = time.thread_time()
    open_question(piece * 100_000)
    gives_up(piece * 100_000)

    assert time.thread_time() - began < 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I couldn't write the file, since the request was denied.", True),
        ("I can’t go on without your permission.", True),
        ("Understood. I won't run the command.", True),
        ("Okay, skipping this.", True),
        ("I leave the file as it is.", False),
        ("Done another way: all tests pass.", False),
        ("It prints:\n\n```\npermission denied\n```\n\nI fixed that.", False),
    ],
)
def test_giving_up_is_told_from_going_another_way(text: str, expected: bool) -> None:
    assert gives_up(text) is expected
