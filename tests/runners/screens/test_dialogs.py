"""Which dialogs of agents are known whole, what is typed for each decision, and which only attaching answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskDecision
from agentmon.runners.screens.reading import Dialog, ScreenText, read_dialog
from agentmon.runners.screens.rules import find_rules
from agentmon.worker.screen_answer import SeenDialog

HERE = Path(__file__).parent
ALLOW, SESSION, DENY = AskDecision.ALLOW, AskDecision.ALLOW_FOR_SESSION, AskDecision.DENY
TOUCH = ("touch made-by-agent && echo ran",)
FETCHED = ("read http://127.0.0.1:1/x and say what it is", "", "URLs to fetch:", "- http://127.0.0.1:1/x")
LINES = ("echo one", "echo two", "cat <<X", "three", "X")


def slug_of(name: str) -> str:
    return name.split("-", maxsplit=1)[0]


def shown(name: str) -> ScreenText:
    return ScreenText.of("", (HERE / "captures" / f"{name}.txt").read_text().split("\n"))


def dialog_of(name: str, screen: ScreenText | None = None) -> Dialog | None:
    return read_dialog(find_rules(slug_of(name)), shown(name) if screen is None else screen)


KNOWN = {
    "claude-20_permission_bash": ({ALLOW: "1", DENY: "4"}, TOUCH),
    "claude-22_permission_write": ({ALLOW: "1", SESSION: "2", DENY: "3"}, ("1 hello",)),
    "claude-43_permission_edit": ({ALLOW: "1", SESSION: "2", DENY: "3"}, ("1 -hello", "1 +bye", "2  world")),
    "claude-44_permission_lines": ({ALLOW: "1", DENY: "3"}, LINES),
    "claude-01_dialog1": ({ALLOW: "↓ ⏎", DENY: "esc"}, ()),
    "claude-46_trust_marked": ({ALLOW: "⏎", DENY: "esc"}, ()),
    "claude-45_permission_fetch": ({ALLOW: "1", DENY: "3"}, ("url: http://127.0.0.1/x", "prompt: what")),
    "claude-48_permission_fetch_80": ({ALLOW: "1", DENY: "3"}, ("url: http://127.0.0.1:1/x", "prompt: what is it")),
    "claude-50_permission_read": ({ALLOW: "1", DENY: "3"}, ()),
    "codex-04_permission_exec": ({ALLOW: "1", DENY: "3"}, ("touch escalated && echo ran",)),
    "codex-21_perm": ({ALLOW: "1", DENY: "3"}, ("touch escalated && echo ran",)),
    "codex-25_permission_lines": ({ALLOW: "1", DENY: "2"}, LINES),
    "codex-28_permission_edit": ({ALLOW: "1", DENY: "3"}, ("1 -hello", "1 +again")),
    "codex-29_permission_edit_80": ({ALLOW: "1", DENY: "3"}, ("1 +uno", "2 +due")),
    "codex-32_trust": ({ALLOW: "⏎", DENY: "esc"}, ("/home/dev/lab/works/cxt4/proj",)),
    "codex-33_trust_80": ({ALLOW: "⏎", DENY: "esc"}, ("/home/dev/lab/works/cxt3/proj",)),
    "codex-34_trust_quit_marked": ({ALLOW: "1 ⏎", DENY: "esc"}, ("/home/dev/lab/works/cxt8/proj",)),
    "gemini-02_permission_shell": ({ALLOW: "1", SESSION: "2", DENY: "3"}, TOUCH),
    "gemini-04_permission_write": ({ALLOW: "1", SESSION: "2", DENY: "4"}, ("1 hello",)),
    "gemini-11_permission_lines": ({ALLOW: "1", SESSION: "2", DENY: "3"}, LINES),
    "gemini-12_permission_edit": ({ALLOW: "1", SESSION: "2", DENY: "4"}, ("1 - hello", "1 + bye", "2   world")),
    "gemini-14_trust": ({ALLOW: "1", DENY: "3"}, ()),
    "gemini-16_permission_fetch": ({ALLOW: "1", SESSION: "2", DENY: "3"}, FETCHED),
    "gemini-17_permission_fetch_80": ({ALLOW: "1", SESSION: "2", DENY: "3"}, FETCHED),
    "opencode-02_permission": ({ALLOW: "⏎", DENY: "esc"}, TOUCH),
    "opencode-07_permission_sidebar": ({ALLOW: "⏎", DENY: "esc"}, TOUCH),
    "opencode-10_permission_fetch": ({ALLOW: "⏎", DENY: "esc"}, ("http://127.0.0.1:1/x",)),
    "opencode-11_permission_edit_80": ({ALLOW: "⏎", DENY: "esc"}, ("1 - hello", "1 + again", "2   world")),
    "opencode-12_permission_edit": ({ALLOW: "⏎", DENY: "esc"}, tuple(f"{at + 1} + line {at}" for at in range(6))),
    "opencode-13_permission_edit_sidebar": (
        {ALLOW: "⏎", DENY: "esc"},
        (f"1 - hello{'1 + again':>55}", f"2   world{'2   world':>55}"),
    ),
}
OF_SO_MANY_ROWS = {
    "codex-28_permission_edit",
    "codex-29_permission_edit_80",
    "opencode-11_permission_edit_80",
    "opencode-12_permission_edit",
    "opencode-13_permission_edit_sidebar",
}
WRAPPED = {"codex-26_permission_wrapped": 3, "claude-47_permission_fetch_long": 5}


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_dialog_that_is_known_whole_says_what_is_typed(name: str) -> None:
    dialog = dialog_of(name)

    assert dialog is not None
    keys, command = KNOWN[name]
    assert {decision: answer.keys_text for decision, answer in dialog.answers.items()} == keys
    assert dialog.command == command


def test_every_other_capture_is_answered_by_attaching_alone() -> None:
    names = {path.stem for path in (HERE / "captures").glob("*.txt")} - set(KNOWN) - set(WRAPPED)

    assert [name for name in sorted(names) if dialog_of(name) is not None] == []


@pytest.mark.parametrize("name", sorted(WRAPPED))
def test_a_command_that_is_wrapped_keeps_its_rows_apart(name: str) -> None:
    dialog = dialog_of(name)

    assert dialog is not None
    assert len(dialog.command) == WRAPPED[name]


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_dialog_with_anything_below_it_is_not_known(name: str) -> None:
    screen = shown(name)

    assert dialog_of(name, ScreenText.of("", (*screen.lines, "something else"))) is None


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_a_dialog_that_is_quoted_above_its_end_is_not_taken_for_the_question(name: str) -> None:
    free = shown(
        {"claude": "claude-21_after_allow_idle", "codex": "codex-05_after_allow"}.get(
            slug_of(name), f"{slug_of(name)}-01_idle"
        )
    )

    assert dialog_of(name, ScreenText.of("", (*shown(name).lines, "", *free.lines))) is None


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_the_digest_is_that_of_the_words_and_not_of_how_they_are_drawn(name: str) -> None:
    screen, before = shown(name), dialog_of(name)
    assert before is not None
    narrower = [re.sub(r"([─╌▄▀])\1{30,}", lambda rule: rule[0][:-10], line) for line in screen.lines]
    others = {"hello": "hullo", "touch": "tuoch", "echo": "ehco", "127.0": "127.9", "/etc": "/ect", "line": "lime"}
    other = [re.sub("|".join(others), lambda word: others[word[0]], line) for line in screen.lines]
    other = [
        re.sub(r"/home/\S+|\(proj\)", lambda place: place[0].replace("proj", "more").replace("lab", "bal"), line)
        for line in other
    ]

    same, changed = dialog_of(name, ScreenText.of("", narrower)), dialog_of(name, ScreenText.of("", other))

    assert same is not None
    assert same.digest == before.digest
    assert changed is not None
    assert changed.digest != before.digest


@pytest.mark.parametrize("name", sorted(name for name, (_, command) in KNOWN.items() if command))
@pytest.mark.parametrize("other", [r"\1 \2", r"\1  \2", "\\1{right}\n{left}\\2"])
def test_a_blank_more_or_another_line_makes_it_another_dialog(name: str, other: str) -> None:
    screen, before = shown(name), dialog_of(name)
    assert before is not None
    command = KNOWN[name][1][0]
    begin, row = command[:3], [row for row in before.text.split("\n") if command in row][-1]
    left, right = row[: row.index(begin)].replace("$", " "), row[len(row.rstrip(" │")) :]
    at = max(place for place, line in enumerate(screen.lines) if row in line)
    changed = re.sub(f"({re.escape(begin)})(.*)", other.format(left=left, right=right), screen.lines[at])

    dialog = dialog_of(name, ScreenText.of("", [*screen.lines[:at], *changed.split("\n"), *screen.lines[at + 1 :]]))

    assert (dialog is None) is (name in OF_SO_MANY_ROWS and "\n" in changed)
    assert dialog is None or dialog.digest != before.digest


def test_a_blank_in_the_path_makes_it_another_dialog() -> None:
    screen, before = shown("claude-43_permission_edit"), dialog_of("claude-43_permission_edit")
    assert before is not None

    dialog = dialog_of(
        "claude-43_permission_edit", ScreenText.of("", [re.sub("^ hello", " he llo", line) for line in screen.lines])
    )

    assert dialog is not None
    assert dialog.digest != before.digest


def test_the_mark_of_choice_changes_what_is_typed_and_not_the_dialog() -> None:
    unmarked, marked = dialog_of("claude-01_dialog1"), dialog_of("claude-46_trust_marked")

    assert unmarked is not None
    assert marked is not None
    assert (unmarked.answers[ALLOW].moves, marked.answers[ALLOW].moves) == ("\x1b[B", "")


@pytest.mark.parametrize(
    ("name", "is_marked"), [("opencode-once", True), ("opencode-wide", True), ("opencode-always", False)]
)
def test_a_return_key_allows_only_while_the_colours_mark_that_option(name: str, is_marked: bool) -> None:
    dialog = dialog_of("opencode-02_permission")
    coloured = (HERE / "coloured" / f"{name}.txt").read_text().split("\n")

    assert dialog is not None
    assert dialog.answers[ALLOW].is_marked(coloured) is is_marked
    assert dialog.answers[DENY].is_marked(coloured)


def test_options_that_a_command_imitates_are_not_chosen() -> None:
    fake = (" Do you want to proceed?", " ❯ 1. Yes", "   2. No", "", " Esc to cancel · Tab to amend")
    lines = list(shown("claude-20_permission_bash").lines)
    at = next(place for place, line in enumerate(lines) if line == " touch made-by-agent && echo ran")

    dialog = dialog_of("claude-20_permission_bash", ScreenText.of("", [*lines[: at + 1], *fake, *lines[at + 1 :]]))

    assert dialog is not None
    assert dialog.answers[DENY].keys == "4"
    assert len(dialog.command) == 1 + len(fake)


@pytest.mark.parametrize(
    ("name", "edge", "head"),
    [
        ("opencode-02_permission", "  ┃  ", ("△ Permission required", "  # Shell command", "", "$ ls")),
        ("codex-04_permission_exec", "  ", ("Would you like to run the following command?", "", "$ ls")),
        ("claude-20_permission_bash", " ", ("Bash command", "╌" * 60, "ls", "╌" * 60)),
        ("gemini-02_permission_shell", "│ │ ", ("│ ? Shell  ls │", "│ ╭─╮ │", "│ │ ls │ │")),
        (
            "claude-48_permission_fetch_80",
            " ",
            ("Fetch", "Claude wants to fetch content from 127.0.0.1", "╌" * 60, "url: http://other", "╌" * 60),
        ),
        ("gemini-17_permission_fetch_80", "│ ", ("╭────╮", "Action Required", "", "?  WebFetch ls", "", "ls")),
        ("opencode-10_permission_fetch", "  ┃  ", ("△ Permission required", "  % WebFetch ls", "", "URL: ls")),
    ],
)
def test_a_head_that_a_command_imitates_counts_for_nothing_when_the_true_one_is_out_of_sight(
    name: str, edge: str, head: tuple[str, ...]
) -> None:
    lines = list(shown(name).lines)
    at = max(place for place, line in enumerate(lines) if KNOWN[name][1][0] in line)
    end = lines[at][len(lines[at].rstrip(" │")) :]
    more = [f"{edge}{line}{end}" for line in (*(f"filler {number}" for number in range(70)), *head)]
    whole = [*lines[: at + 1], *more, *lines[at + 1 :]]

    for height in range(len(whole) - at - 1, 10, -1):
        assert dialog_of(name, ScreenText.of("", whole[-height:])) is None
    seen_whole = dialog_of(name, ScreenText.of("", whole))
    assert seen_whole is None or KNOWN[name][1][0] in seen_whole.command[0]


@pytest.mark.parametrize(
    ("name", "drawn", "otherwise"),
    [
        ("codex-28_permission_edit", "hello.txt (+1 -1)", "hello.txt (+2 -1)"),
        ("codex-28_permission_edit", "hello.txt (+1 -1)", "hello.txt (+1 -0)\n    1 +hello"),
        ("codex-28_permission_edit", "Edited hello.txt", "Edited other.txt"),
        ("codex-28_permission_edit", "    + Show details", "      more\n    + Show details"),
        ("codex-28_permission_edit", "proj/hello.txt\n", "proj/hello.txt\n  Destination: /etc/hosts\n"),
        ("opencode-12_permission_edit", "1 + line 0", "1 + line 0           █"),
        ("opencode-12_permission_edit", "6 + line 5\n  ┃", "6 + line 5\n  ┃  7 + line 6"),
        ("gemini-16_permission_fetch", "│ URLs", "│ ... first 1 line hidden (Ctrl+O to show) ...\n│ URLs"),
        ("gemini-16_permission_fetch", "│ Action Required", "│ More"),
    ],
)
def test_what_may_go_on_out_of_sight_is_answered_by_attaching_alone(name: str, drawn: str, otherwise: str) -> None:
    text = "\n".join(shown(name).lines)
    at = text.rindex(drawn)

    changed = text[:at] + otherwise + text[at + len(drawn) :]

    assert dialog_of(name, ScreenText.of("", changed.split("\n"))) is None


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        ("codex-04_permission_exec", "codex-05_after_allow", ApprovalStatus.ALLOWED),
        ("codex-21_perm", "codex-22_denied", ApprovalStatus.ANSWERED),
        ("claude-20_permission_bash", "claude-21_after_allow_idle", ApprovalStatus.ANSWERED),
        ("claude-20_permission_bash", "claude-30_after_no", ApprovalStatus.DENIED),
        ("gemini-02_permission_shell", "gemini-03_after_allow", ApprovalStatus.ALLOWED),
        ("gemini-04_permission_write", "gemini-05_after_deny", ApprovalStatus.DENIED),
        ("opencode-02_permission", "opencode-03_after_allow", ApprovalStatus.ANSWERED),
    ],
)
def test_what_was_chosen_in_the_terminal_is_said_where_the_screen_shows_it(
    before: str, after: str, outcome: ApprovalStatus
) -> None:
    rules, dialog = find_rules(slug_of(before)), dialog_of(before)
    assert dialog is not None

    assert SeenDialog.of(dialog, rules, shown(before), at=0.0).outcome(rules, shown(after)) is outcome
