from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.agents import DangerLevel
from agentmon.domain.errors import UsageError
from agentmon.runners.danger import RULES_FILE, load_danger_rules, read_danger_rules
from tests.call_counts import calls_of

if TYPE_CHECKING:
    from pathlib import Path


def test_the_reason_names_the_command_and_the_most_dangerous_one_comes_first() -> None:
    finding = load_danger_rules().judge(["sh", "-c", "rm a; git -C x push --force; make"])

    assert finding.level is DangerLevel.DESTRUCTIVE
    assert [(one.command, one.text) for one in finding.reasons] == [
        ("git push", "replaces what others have pushed"),
        ("rm", "deletes files"),
        ("make", "runs what the project says"),
    ]


@pytest.mark.parametrize(
    "words",
    [
        ["sh", "-c", "echo a; " * 50_000],
        ["sh", "-c", "$(" * 100],
        ["sudo"] * 200 + ["ls"],
        ["sh", "-c", "a|" * 100_000],
        ["env"] * 60_000,
        ["psql", "-c", "alter table " * 20_000 + "t drop"],
        ["git", *(["push"] * 60_000), "-f"],
    ],
    ids=["many", "deep", "wrapped", "pipes", "long", "repeated", "operands"],
)
def test_what_cannot_be_read_whole_is_dangerous_and_costs_little(words: list[str]) -> None:
    rules = load_danger_rules()

    started = time.process_time()
    finding = rules.judge(words)

    assert finding.level >= DangerLevel.DANGEROUS
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "piece", ["find . -exec ", "find -name a -exec {} ", "docker -x a ", "echo a | sh | ", "env A=b "]
)
def test_commands_inside_commands_are_read_with_bounded_work(piece: str) -> None:
    rules = load_danger_rules()

    # What grows with the square of the length calls a hundred times as many functions.
    assert calls_of(lambda: rules.judge_script(piece * (24_000 // len(piece)))) < 3_000_000


@pytest.mark.parametrize(
    "words", [[], [""], ["--"], ["-"], ["sudo"], ["sh", "-c"], ["git", ""], ["find", "-exec"], ["\udcff"]]
)
def test_strange_words_are_judged_too(words: list[str]) -> None:
    load_danger_rules().judge(words)


def test_a_person_raises_what_is_harmless_elsewhere(tmp_path: Path) -> None:
    own = tmp_path / "danger.toml"
    own.write_text(
        '[[rule]]\nprograms = ["pytest"]\noptions = ["--live"]\nlevel = 3\nreason = "talks to the real bank"\n'
    )
    rules = load_danger_rules(own)

    finding = rules.judge(["env", "A=1", "pytest", "--live"])

    assert (finding.level, finding.reasons[0].text) == (DangerLevel.DESTRUCTIVE, "talks to the real bank")
    assert rules.judge(["pytest"]).level is DangerLevel.SAFE


@pytest.mark.parametrize(("line", "level"), [("", DangerLevel.DESTRUCTIVE), ("lowers = true\n", DangerLevel.CAUTION)])
def test_a_rule_of_a_person_lowers_only_where_it_says_so(tmp_path: Path, line: str, level: DangerLevel) -> None:
    own = tmp_path / "danger.toml"
    own.write_text(
        '[[rule]]\nprograms = ["terraform"]\ncommand = ["apply"]\nlevel = 1\nreason = "a playground"\n' + line
    )
    rules = load_danger_rules(own)

    assert rules.judge(["terraform", "apply"]).level is level
    assert rules.judge(["terraform", "destroy"]).level is DangerLevel.DESTRUCTIVE


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    own = tmp_path / "danger.toml"
    before = load_danger_rules(own).judge(["pytest"])
    own.write_text('[[rule]]\nprograms = ["pytest"]\nlevel = 2\nreason = "slow"\n')
    added = load_danger_rules(own).judge(["pytest"])
    own.write_text('[[rule]]\nprograms = ["pytest"]\nlevel = 3\nreason = "slow"\n')
    os.utime(own, (1, 1))

    assert (before.level, added.level) == (DangerLevel.SAFE, DangerLevel.DANGEROUS)
    assert load_danger_rules(own).judge(["pytest"]).level is DangerLevel.DESTRUCTIVE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[[rule]]\nlevel = 1", "the entry 'programs' is missing"),
        ('[[rule]]\nprograms = ["x"]\nlevel = 4', "rule 1: level 4 is none of 0, 1, 2, 3"),
        ('[[rule]]\nprograms = ["x"]\nlevel = true', "level True is none of"),
        ('[[rule]]\nprograms = "x"\nlevel = 1', "rule 1: 'x' is no list of texts"),
        ('[[rule]]\nprograms = []\nlevel = 1', "rule 1: it names no program"),
        ('[[rule]]\nprograms = ["x"]\nlevel = 1\ntext = "("', "rule 1: '(' is no pattern"),
        ('[[rule]]\nprograms = ["x"]\nlevel = 1\noperand = "@nothing"', "there is no pattern @nothing"),
        ('[[rule]]\nprograms = ["x"]\nlevel = 1\nlowers = 1', "1 is neither true nor false"),
        ('[[rule]]\nprograms = ["x"]\nlevel = 1\nloud = 1', "rule 1: unknown entry loud"),
        ('[sets]\nshells = []', "the file: unknown entry sets"),
        ("rule = 3", "rule is written"),
        ("[[rule", "end of an array"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_told_with_its_entry(tmp_path: Path, content: str, words: str) -> None:
    own = tmp_path / "danger.toml"
    own.write_text(content)

    with pytest.raises(UsageError) as caught:
        load_danger_rules(own)

    assert words in str(caught.value)
    assert str(own) in str(caught.value)


def test_each_rule_that_came_with_agentmon_says_why() -> None:
    rules = read_danger_rules(RULES_FILE)

    assert [rule for rule in rules.rules if rule.level and not rule.reason] == []
    assert not any(rule.lowers for rule in rules.rules)


@pytest.mark.parametrize("line", ["rm${IFS%" + "x" * 70 + "}-rf${IFS%x}~", "rm " + "a " * 62_000 + "-rf ~"])
def test_no_length_hides_what_destroys_things(line: str) -> None:
    assert load_danger_rules().judge_script(line).level is DangerLevel.DESTRUCTIVE
