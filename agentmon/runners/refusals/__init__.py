"""Refusals: what a vendor's words at the end of a failed run mean, so that a used-up quota is no failure of the task.

The words are data (``vendors.rules.toml``). What a model, a tool or a test says about limits is none of a vendor's.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.domain.refusals import Refusal, RefusalKind
from agentmon.runners.refusals.output_lines import output_lines
from agentmon.runners.refusals.reset_times import find_reset
from agentmon.runners.refusals.rules import load_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime, tzinfo

    from agentmon.runners.refusals.output_lines import OutputLine
    from agentmon.runners.refusals.rules import Rule

TEXT_MAX_CHARACTERS: Final = 200
SHORT_WAIT_MAX: Final = timedelta(hours=1)
"""A rate limit that lasts longer is a used-up quota."""

_LONG_WAIT_ADVICE: Final = "wait until the limit resets, then start it again"
_MARK: Final = re.compile(r"\s{0,8}[⎿■✕✖✗×❌⚠]\ufe0f?\s{1,3}|\s{0,3}")
# What may stand before the words of a refusal in a plain line: times, levels, names of errors and of programs.
_LEADS: Final = (
    re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:[\d.,]+(?:Z|[+-]\d\d:?\d\d)?\]?[:\s]\s*(?:- )?"),
    re.compile(r"\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s+(?:- )?"),
    re.compile(r"\[?(?i:error|fatal|fatal error|warn(?:ing)?|critical)\]?(?:[:!]\s*|\s+)(?:- )?"),
    re.compile(r"npm (?:ERR!|error)\s+(?:code )?"),
    re.compile(
        r"(?!Assertion)(?:[A-Za-z_]\w{0,40}\.){0,6}[A-Z]\w{0,60}(?:Error|Exception|Exhausted|Requests|Limit)"
        r"(?::\s+| - )",
    ),
    re.compile(r"(?:Error response from daemon|API Error|Internal error|Request failed|\w{2,20} (?:failed|error)):\s+"),
    re.compile(r"(?:curl|wget|gh|git|docker|pip|fatal|remote): (?:\(\d+\) )?"),
)
_MAX_LEADS: Final = 4


def find_refusal(
    output_tail: bytes,
    *,
    program: str,
    is_agent: bool,
    exit_code: int | None,
    now: datetime,
    zone: tzinfo,
    may_wrap_agent: bool = False,
) -> Refusal | None:
    """Return the refusal that a failed run's output tells of, or None when it failed for reasons of its own.

    Any bytes will do: escapes, carriage returns, broken UTF-8, JSON lines, a cut first line. Lines are read alike for
    every program, rules count by program: for one that is no agent only a limit with a readable reset, and what stands
    in the last five lines in so many words.

    Args:
        output_tail: The last 16 KiB of the log; earlier bytes are not looked at.
        program: The name or path of the program that ran, such as ``claude``.
        is_agent: Whether it is a coding agent.
        exit_code: What the program returned; None when a signal ended it or nobody knows.
        now: When the run ended, aware: a bare clock time is the next one after it.
        zone: The zone of times that name none.
        may_wrap_agent: Whether the program may have called an agent, as a shell or a script can: then the words of
            every vendor count, though not their exit codes.
    """
    lines = output_lines(output_tail)
    name = PurePath(program).name
    for rule in load_rules():
        if not _concerns(rule, name, is_agent=is_agent, may_wrap_agent=may_wrap_agent, exit_code=exit_code):
            continue
        window = lines[_first_of_last(lines, rule.last_lines) :]
        trusts_records = is_agent or bool(rule.programs)
        for text, index in _matches(rule, window, trusts_records=trusts_records):
            until = _find_reset(rule, window, index, now, zone)
            if until is not None or not rule.needs_reset:
                return _refusal(rule, text, until, now)
    return None


def _concerns(rule: Rule, name: str, *, is_agent: bool, may_wrap_agent: bool, exit_code: int | None) -> bool:
    if rule.exit_codes and exit_code not in rule.exit_codes:
        return False
    if rule.programs:
        return name in rule.programs or (may_wrap_agent and not rule.exit_codes)
    return is_agent or not rule.is_for_agents


def _first_of_last(lines: Sequence[OutputLine], count: int) -> int:
    if not lines:
        return 0
    first_number = lines[-1].number - count + 1
    return next(index for index, line in enumerate(lines) if line.number >= first_number)


def _matches(rule: Rule, window: Sequence[OutputLine], *, trusts_records: bool) -> Iterator[tuple[str, int]]:
    """Yield what a rule fits and its place in the window; earlier patterns come first, then later lines."""
    for pattern, kind in _kinds(rule):
        for index in range(len(window) - 1, -1, -1):
            line = window[index]
            if line.is_record and trusts_records:
                if pattern.search(line.text):
                    yield line.text, index
                elif line.facts and pattern.search(f"{line.text} {line.facts}"):
                    yield f"{line.text} {line.facts}".strip(), index
            elif line.text and kind != "record":
                starts = list(_starts(line.text))[kind == "led" :]
                if any(pattern.match(line.text, start) for start in starts):
                    yield line.text, index


def _kinds(rule: Rule) -> Iterator[tuple[re.Pattern[str], str]]:
    yield from ((pattern, "plain") for pattern in rule.patterns)
    yield from ((pattern, "led") for pattern in rule.patterns_after_lead)
    yield from ((pattern, "record") for pattern in rule.record_patterns)


def _starts(text: str) -> Iterator[int]:
    """Yield the places where the words of a plain line may begin: after its mark, and after each lead behind that."""
    mark = _MARK.match(text)
    start = mark.end() if mark else 0
    yield start
    for _ in range(_MAX_LEADS):
        ends = [lead.end() for lead in (pattern.match(text, start) for pattern in _LEADS) if lead is not None]
        if not ends:
            return
        start = max(ends)
        yield start


def _find_reset(rule: Rule, window: Sequence[OutputLine], index: int, now: datetime, zone: tzinfo) -> datetime | None:
    """Return the reset that stands in the line, in its record, or in a line near it: the later ones first."""
    near = window[index + 1 : index + 1 + rule.reset_within_lines]
    before = window[max(0, index - rule.reset_within_lines) : index]
    same = [line for line in window if line.number == window[index].number]
    for line in (window[index], *same, *near, *reversed(before)):
        for text in (line.text, line.record if line.text or line.facts else ""):
            reset = find_reset(text, words=rule.reset_words, seconds_words=rule.seconds_words, now=now, zone=zone)
            if reset is not None:
                return reset
    return None


def _refusal(rule: Rule, text: str, until: datetime | None, now: datetime) -> Refusal:
    is_long = rule.kind is RefusalKind.RATE_LIMIT and until is not None and until - now > SHORT_WAIT_MAX
    return Refusal(
        kind=RefusalKind.USAGE_LIMIT if is_long else rule.kind,
        text=plain_line(redact(plain_line(text)).strip(), max_characters=TEXT_MAX_CHARACTERS),
        until=until,
        advice=_LONG_WAIT_ADVICE if is_long else rule.advice,
    )
