"""A command is as dangerous behind another one, and its words in a text are as harmless as any text."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentmon.domain.agents import DangerLevel
from agentmon.runners.danger import load_danger_rules
from tests.runners.danger.test_command_tables import DESTRUCTIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAIN = [line for line in DESTRUCTIVE.strip().splitlines() if not set(line) & set("|`$<>&*;#~'\"{}()")]
WORDS = st.lists(st.one_of(st.sampled_from(" ".join(PLAIN).split()), st.text(max_size=12)), max_size=12)


@pytest.mark.parametrize(
    "wrapped",
    [
        "sudo -u root {}",
        "env -u X A=1 {}",
        "nohup nice -n 5 timeout -k 5 10s {}",
        "command {}",
        "ls && {}",
        "ls; {} &",
        "if true; then {}; fi",
        "( cd /x && {} )",
        "echo $( {} )",
        "X=`{}` make",
        'echo "$({})"',
        "cat <( {} )",
        "! {} || true",
        "while sleep 1; do {}; done",
        "{} > /dev/null 2>&1",
        "eval '{}'",
        "bash -euo pipefail -c '{}'",
        "sh -c 'exec {}'",
        "echo '{}' | sh",
        "sh <<'END'\n{}\nEND",
        "sh <<< '{}'",
        "ssh -p 22 host {}",
        "xargs -0 -n 1 {}",
        "find . -name '*.x' -exec {} ;",
        "watch -n 5 '{}'",
        "tmux new-session -d '{}'",
        "\\{}",
        "/usr/bin/{}",
        "xargs -t {}",
        "command -p {}",
        "strace -f {}",
        "setsid -f {}",
        "time -p {}",
        "env -S'{}'",
        "screen -dmS name {}",
        "alias x='{}'",
        "PAGER='{}' git log",
        "export GIT_SSH_COMMAND='{}'",
        "env GIT_EDITOR='{}' git commit",
        "X='{}'; $X",
        "$(echo '{}')",
        "cat <<END\n$({})\nEND",
        "ssh host <<END\n{}\nEND",
        "ssh host 'bash -s' <<END\n{}\nEND",
        "git rebase -x '{}' main",
        "git fetch --upload-pack='{}' origin",
        "tar --to-command='{}' -xf x.tar",
        "rsync -e '{}' a host:b",
    ],
)
def test_what_destroys_things_does_so_behind_another_command(wrapped: str) -> None:
    rules = load_danger_rules()
    calm = [
        line for line in PLAIN if rules.judge_script(wrapped.replace("{}", line)).level is not DangerLevel.DESTRUCTIVE
    ]

    assert calm == []


@pytest.mark.parametrize(
    "text",
    [
        "echo '{}'",
        "grep -r '{}' src",
        "git commit -m '{}'",
        "git log --grep '{}'",
        "claude -p '{}'",
        "printf '%s' '{}' > notes.txt",
        "cat > deploy.md <<'END'\n{}\nEND",
        "echo '{}' | grep x",
        "make # {}",
        "gh pr create --title '{}'",
        "pytest -k '{}'",
    ],
)
def test_its_words_in_a_text_are_no_alarm(text: str) -> None:
    rules = load_danger_rules()
    alarms = [line for line in PLAIN if rules.judge_script(text.replace("{}", line)).level > DangerLevel.CAUTION]

    assert alarms == []


@given(WORDS)
@example(["{", "push"])
@example(["if=/dev/zero", "--force"])
def test_any_words_are_judged_the_same_each_time_and_never_raise(words: Sequence[str]) -> None:
    rules = load_danger_rules()
    line = shlex.join(words)

    assert rules.judge(words) == rules.judge(words)
    rules.judge_script(" ".join(words))
    # As a line the first word with an equals sign would be an assignment.
    if words and "\n" not in line and "=" not in words[0]:
        assert rules.judge_script(line).level >= min(rules.judge(words).level, DangerLevel.CAUTION)
