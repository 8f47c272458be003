from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from agentmon.domain.errors import UsageError
from agentmon.runners.screens.reading import ScreenText, box_rows, box_text, read_dialog, read_screen, read_title
from agentmon.runners.screens.rules import NO_RULES, find_rules

CAPTURES = Path(__file__).parent / "captures"

GEMINI_ERROR = (
    'ended with an error: [API Error: {"error":{"code":400,"message":"mock bad request","status":"INVALID_ARGUMENT"}}]'
)
CODEX_ERROR = (
    'ended with an error: {"error": {"message": "mock bad request", "type": "invalid_request_error", "param": null,'
    ' "code": "invalid_request_error"}}'
)
LONG_WORDS = " ".join(f"word{number}" for number in range(27))

EXPECTED = {
    "claude-00_first_run": None,
    "claude-01_dialog1": ("dialog", "asks whether this folder is to be trusted"),
    "claude-02_dialog2": None,
    "claude-03_dialog3": None,
    "claude-10_idle_start": ("ready", ""),
    "claude-11_permission_bash": ("ready", ""),
    "claude-12_after_exit": None,
    "claude-20_permission_bash": ("permission", "permission: Bash command touch made-by-agent && echo ran"),
    "claude-21_after_allow_idle": ("ready", ""),
    "claude-22_permission_write": ("permission", "permission: Create file hello.txt"),
    "claude-23_after_deny_esc": ("ready", ""),
    "claude-24_running_text": ("working", ""),
    "claude-25_after_interrupt": ("ready", ""),
    "claude-26_api_retry": ("retry", "500 mock internal error · retrying in 1s · attempt 3/10"),
    "claude-27_api_error": ("error", "ended with an error: API Error: 400 mock bad request"),
    "claude-28_ask_question": ("question", "question: Which colour?"),
    "claude-29_after_answer": ("ready", ""),
    "claude-30_after_no": ("ready", ""),
    "claude-31_running_tool": ("working", ""),
    "claude-40_v197_idle": ("ready", ""),
    "claude-41_v197_permission": ("permission", "permission: Bash command touch made-by-agent && echo ran"),
    "claude-42_api_error_tall": ("error", "ended with an error: API Error: 400 mock bad request"),
    "claude-43_permission_edit": ("permission", "permission: Edit file hello.txt"),
    "claude-44_permission_lines": ("permission", "permission: Bash command echo one"),
    "claude-45_permission_fetch": ("permission", "permission: Fetch url: http://127.0.0.1/x"),
    "claude-46_trust_marked": ("dialog", "asks whether this folder is to be trusted"),
    "claude-47_permission_fetch_long": ("permission", f"permission: Fetch url: http://127.0.0.1:1/{'x/' * 46}"),
    "claude-48_permission_fetch_80": ("permission", "permission: Fetch url: http://127.0.0.1:1/x"),
    "claude-49_permission_fetch_cut": ("permission", "permission: Do you want to allow Claude to fetch this content?"),
    "claude-50_permission_read": ("permission", "permission: Read(/etc/hostname)"),
    "codex-00_start": ("ready", ""),
    "codex-01_idle": ("ready", ""),
    "codex-02_running_text": ("ready", ""),
    "codex-03_after_interrupt": ("ready", ""),
    "codex-04_permission_exec": ("permission", "permission: touch escalated && echo ran"),
    "codex-05_after_allow": ("ready", ""),
    "codex-06_running_tool": ("working", ""),
    "codex-07_after_tool_interrupt": ("background", "works in the background: 1 background terminal running"),
    "codex-08_api_retry": ("working", ""),
    "codex-09_api_error": ("working", ""),
    "codex-10_after_quit": None,
    "codex-20_hooks_start": ("ready", ""),
    "codex-21_perm": ("permission", "permission: touch escalated && echo ran"),
    "codex-22_denied": ("ready", ""),
    "codex-23_api_error_tall": ("error", CODEX_ERROR),
    "codex-24_after_error": ("ready", ""),
    "codex-25_permission_lines": ("permission", "permission: echo one"),
    "codex-26_permission_wrapped": ("permission", f"permission: echo {LONG_WORDS} wor…"),
    "codex-27_permission_cut": ("dialog", "shows a dialog of its own"),
    "codex-28_permission_edit": ("permission", "permission: edit /home/dev/lab/works/cx1/proj/hello.txt"),
    "codex-29_permission_edit_80": ("permission", "permission: edit /home/dev/lab/works/cx2/proj/two.txt"),
    "codex-30_permission_edit_cut": ("permission", "permission: make the following edits"),
    "codex-31_permission_edit_files": ("permission", "permission: make the following edits"),
    "codex-32_trust": ("dialog", "asks whether this folder is to be trusted"),
    "codex-33_trust_80": ("dialog", "asks whether this folder is to be trusted"),
    "codex-34_trust_quit_marked": ("dialog", "asks whether this folder is to be trusted"),
    "gemini-00_start": ("ready", ""),
    "gemini-01_idle": ("ready", ""),
    "gemini-02_permission_shell": ("permission", "permission: Shell touch made-by-agent && echo ran"),
    "gemini-03_after_allow": ("ready", ""),
    "gemini-04_permission_write": ("permission", "permission: WriteFile Writing to hello.txt"),
    "gemini-05_after_deny": ("ready", ""),
    "gemini-06_running": ("working", ""),
    "gemini-07_after_interrupt": ("ready", ""),
    "gemini-08_error": ("error", GEMINI_ERROR),
    "gemini-09_running_tool": ("ready", ""),
    "gemini-10_after_tool_interrupt": ("ready", ""),
    "gemini-11_permission_lines": ("permission", "permission: Shell echo one"),
    "gemini-12_permission_edit": ("permission", "permission: Edit hello.txt: hello => bye"),
    "gemini-13_permission_cut": ("permission", "permission: Allow execution of [Shell]?"),
    "gemini-14_trust": ("dialog", "asks whether this folder is to be trusted"),
    "gemini-15_permission_cut_80": ("permission", "permission: Shell Run a command"),
    "gemini-16_permission_fetch": ("permission", "permission: WebFetch read http://127.0.0.1:1/x and say what it is"),
    "gemini-17_permission_fetch_80": (
        "permission",
        "permission: WebFetch read http://127.0.0.1:1/x and say what it is",
    ),
    "gemini-18_permission_fetch_cut": (
        "permission",
        'permission: WebFetch Processing URLs and instructions from prompt: "see http://127.0…',
    ),
    "opencode-00_start": None,
    "opencode-01_idle": ("ready", ""),
    "opencode-02_permission": ("permission", "permission: $ touch made-by-agent && echo ran"),
    "opencode-03_after_allow": ("ready", ""),
    "opencode-04_running": ("working", ""),
    "opencode-05_after_interrupt": ("ready", ""),
    "opencode-06_after_reject": ("ready", ""),
    "opencode-07_permission_sidebar": ("permission", "permission: $ touch made-by-agent && echo ran"),
    "opencode-08_permission_cut": ("permission", "permission: $ cat > /dev/null <<X"),
    "opencode-09_permission_folder": ("permission", "permission: ← Access external directory /etc"),
    "opencode-10_permission_fetch": ("permission", "permission: % WebFetch http://127.0.0.1:1/x"),
    "opencode-11_permission_edit_80": ("permission", "permission: Edit hello.txt"),
    "opencode-12_permission_edit": ("permission", "permission: Edit mid.txt"),
    "opencode-13_permission_edit_sidebar": ("permission", "permission: → Edit hello.txt"),
    "opencode-14_permission_edit_cut": ("permission", "permission: → Edit n8.txt"),
    "opencode-15_permission_edit_seven": ("permission", "permission: → Edit n7.txt"),
    "opencode-16_permission_edit_wrapped": (
        "permission",
        "permission: → Edit deep/er/and/deeper/folders/with/long/names/so/that/it/wraps/",
    ),
}


def screen_of(name: str) -> ScreenText:
    return ScreenText.of("", (CAPTURES / f"{name}.txt").read_text().split("\n"))


def test_every_capture_is_judged() -> None:
    assert {path.stem for path in CAPTURES.glob("*.txt")} == set(EXPECTED)


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_captured_screen_is_read_as_what_it_was(name: str) -> None:
    finding = read_screen(find_rules(name.split("-", maxsplit=1)[0]), screen_of(name))

    assert (None if finding is None else (finding.state.value, finding.note)) == EXPECTED[name]


@pytest.mark.parametrize(
    ("agent", "lines"),
    [
        ("claude", [" Bash command", "╌" * 200] * 60),
        ("claude", [" Edit file", " /x", "╌" * 200, " a"] * 15),
        ("codex", ["• x", *["  Would you like to run the following command?", "  $ x"] * 100]),
        ("gemini", ["│ ? Shell  " + " " * 180 + "│"] * 60),
        ("gemini", ["│ ? Shell  Allow execution of x? 1. Allow"] * 60),
        ("opencode", ["  ┃", "  ┃  △ Permission required", "  ┃  # Shell command"] + ["  ┃ " * 47] * 36),
    ],
)
def test_no_screen_holds_up_whoever_reads_it(agent: str, lines: list[str]) -> None:
    rules, screen, begun = find_rules(agent), ScreenText.of("", lines), process_time()

    read_screen(rules, screen)
    read_dialog(rules, screen)

    assert process_time() - begun < 2


@pytest.mark.parametrize(
    ("agent", "title", "state"),
    [
        ("codex", "⠙ ci | project", "working"),
        ("codex", "[ ! ] Action Required | ci | project", "permission"),
        ("codex", "[ . ] Action Required | ci | project", "permission"),
        ("codex", "ci | project", "ready"),
        ("codex", "Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA", None),
        ("gemini", "◇  Ready (project)                 ", "ready"),
        ("gemini", "✦  Working… (project)", "working"),
        ("gemini", "✋  Action Required (project)", "permission"),
        ("opencode", "OC | a title", None),
        ("claude", "✳ Claude Code", None),
    ],
)
def test_a_title_tells_the_state_where_the_agent_puts_it_there(agent: str, title: str, state: str | None) -> None:
    finding = read_title(find_rules(agent), ScreenText.of(title, []))

    assert (None if finding is None else finding.state.value) == state


@pytest.mark.parametrize(
    ("name", "inside"),
    [
        ("claude-10_idle_start", ""),
        ("codex-01_idle", ""),
        ("gemini-01_idle", ""),
        ("opencode-01_idle", ""),
        ("opencode-03_after_allow", ""),
    ],
)
def test_an_empty_input_box_is_seen_as_empty(name: str, inside: str) -> None:
    assert box_text(find_rules(name.split("-", maxsplit=1)[0]), screen_of(name)) == inside


def test_what_stands_in_an_input_box_is_read() -> None:
    lines = [
        "  ┃",
        "  ┃  first line",
        "  ┃  second line",
        "  ┃",
        "  ┃  Build · mock-model mock",
        "  ╹▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
    ]

    assert box_text(find_rules("opencode"), ScreenText.of("", lines)) == "first line\nsecond line"


def test_a_program_without_rules_has_none() -> None:
    assert find_rules("/usr/bin/some-agent") is NO_RULES


def test_a_person_s_rules_are_asked_before_those_of_the_package(tmp_path: Path) -> None:
    own = tmp_path / "claude.toml"
    own.write_text(
        'agent = "claude"\n\n[[rule]]\nname = "mine"\nstate = "working"\npattern = "Churned"\nlast_lines = 40\n'
    )

    rules = find_rules("/opt/bin/claude", own_folder=tmp_path)
    finding = read_screen(rules, screen_of("claude-21_after_allow_idle"))
    untouched = read_screen(rules, screen_of("claude-10_idle_start"))

    assert finding is not None
    assert (finding.source, finding.where) == ("rule claude/mine", f"{own}:3")
    assert untouched is not None
    assert untouched.state == "ready"
    assert rules.signal == "claude"


def test_a_person_s_rules_for_another_agent_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "aider.toml").write_text('agent = "aider"\nbox = "^> (.*)$"\n')

    assert find_rules("aider", own_folder=tmp_path).box is not None
    assert find_rules("aider") is NO_RULES


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agent = ", "mine.toml"),
        ('agent = "a"\nboxes = "x"\n', "unknown entry boxes"),
        ('agent = "a"\n[[rule]]\nname = "n"\nstate = "odd"\npattern = "x"\n', "'odd'"),
        ('agent = "a"\n[[rule]]\nname = "n"\nstate = "ready"\npattern = "("\n', "mine.toml"),
        ('agent = "a"\nready_s = 600\n', "600"),
    ],
)
def test_rules_that_cannot_be_used_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "mine.toml").write_text(text)

    with pytest.raises(UsageError, match=complaint):
        find_rules("a", own_folder=tmp_path)


def test_a_note_holds_no_secret() -> None:
    line = " Bash command\n\n   curl -H 'Authorization: Bearer sk-ant-REDACTED'\n\n"
    screen = ScreenText.of("", (line + " Do you want to proceed?\n ❯ 1. Yes\n   2. No").split("\n"))

    finding = read_screen(find_rules("claude"), screen)

    assert finding is not None
    assert finding.state == "permission"
    assert "sk-ant" not in finding.note + finding.evidence


def test_gemini_without_true_colours_has_no_bars_and_is_read_all_the_same() -> None:
    lines = [
        " > bad",
        "",
        '✕ [API Error: {"error":{"code":400}}]',
        "",
        "ℹ This request failed.",
        "",
        "─" * 40,
        " Shift+Tab to accept edits",
        "",
        " >   Type your message or @path/to/file",
        "",
        " workspace (/directory)",
        " /srv/project",
    ]
    rules = find_rules("gemini")

    failed = read_screen(rules, ScreenText.of("", lines))
    ready = read_screen(rules, ScreenText.of("", lines[6:]))

    assert failed is not None
    assert (failed.state, failed.note) == ("error", 'ended with an error: [API Error: {"error":{"code":400}}]')
    assert ready is not None
    assert ready.state == "ready"


def test_codex_s_question_about_a_folder_is_a_dialog_and_no_ready_box() -> None:
    lines = ["  Folder access", "  /srv/x", "", "  Trust this folder? Codex can read files here.", ""]
    lines += ["› 1. Trust and continue", "  2. Back to Agent Command Center", "", "  enter continue · esc back"]

    finding = read_screen(find_rules("codex"), ScreenText.of("vm", lines))

    assert finding is not None
    assert finding.source == "rule codex/trust"


def test_a_trust_dialog_of_gemini_that_was_answered_asks_nothing_any_more() -> None:
    dialog = [" │ Do you trust the files in this folder?", " │ ● 1. Trust folder (project)", " ╰──────"]
    restart = [" Gemini CLI is restarting to apply the trust changes...", ""]
    box = ["─" * 60, " Shift+Tab to accept edits", "", " >   Type your message or @path/to/file", "", " /tmp/project"]

    def state_of(lines: list[str]) -> str | None:
        finding = read_screen(find_rules("gemini"), ScreenText.of("", lines))
        return None if finding is None else finding.state.value

    assert state_of(dialog) == "dialog"
    assert state_of([*dialog, *restart]) is None
    assert state_of([*dialog, *restart, *box]) == "ready"


QUOTED = {
    "claude": (
        "claude-21_after_allow_idle",
        "● It says:|  Select login method:| Do you want to proceed?| ❯ 1. Yes|",
    ),
    "codex": ("codex-05_after_allow", "• It prints Sign in with ChatGPT|  Would you like to run it?|› 1. Yes|"),
    "gemini": ("gemini-03_after_allow", "✦ Do you trust this folder?|Select Theme|How would you like to authenticate|"),
    "opencode": (
        "opencode-03_after_allow",
        "     Connect a provider|  △ Permission required|  # x|  Update available|",
    ),
}


@pytest.mark.parametrize("agent", QUOTED)
def test_what_an_agent_says_is_not_what_its_screen_asks(agent: str) -> None:
    name, words = QUOTED[agent]
    lines = screen_of(name).lines
    rules = find_rules(agent)
    box_line_count = len(box_rows(rules, screen_of(name)))
    at = next(at for at in range(len(lines) - box_line_count - 1, 0, -1) if not lines[at].strip(" ▄┃"))

    found = read_screen(rules, ScreenText.of("", [*lines[:at], *words.split("|"), *lines[at:]]))

    assert found is not None
    assert found.state.is_free, found


def test_a_logout_above_the_box_asks_and_one_that_is_quoted_does_not() -> None:
    lines = screen_of("claude-21_after_allow_idle").lines
    box = len(lines) - len(box_rows(find_rules("claude"), screen_of("claude-21_after_allow_idle"))) - 1

    def state_of(*words: str) -> str:
        found = read_screen(find_rules("claude"), ScreenText.of("", [*lines[:box], *words, "", *lines[box:]]))
        return "" if found is None else found.state.value

    assert state_of("● Invalid API key · Please run /login") == "dialog"
    assert state_of("● It says: Invalid API key · Please run /login") == "ready"
    assert state_of("● Invalid API key · Please run /login", "● All is well again.") == "ready"
