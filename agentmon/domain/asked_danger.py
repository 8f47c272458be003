"""How dangerous it is what an agent asks leave for."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import DangerLevel
from agentmon.domain.conversation import AskKind
from agentmon.domain.danger import TOO_MUCH, DangerFinding, DangerReason
from agentmon.domain.operations import OperationType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.conversation import AskNews
    from agentmon.domain.danger import DangerRules

_COMMAND_KEYS: Final = ("command", "cmd", "script")
_MOST_TOLD: Final = 3
_MOVES_HEAD: Final = re.compile(
    r"\bgit(?:\s+-[cC]\s+\S+|\s+--?[\w-]+(?:=\S+)?)*\s+(checkout|switch|stash|reset|restore|clean|rebase|pull)\b"
)
_CUT: Final = "…"


def with_danger(ask: AskNews, rules: DangerRules, *, beside: Sequence[int] = ()) -> AskNews:
    """Return the request with its danger: that of the command it names; what names none is as it was.

    What destroys things is asked each time: no leave for a session reaches it.

    Args:
        ask: The request.
        rules: By which commands are judged.
        beside: Numbers of the tasks whose agents work in the same folder: what moves its HEAD takes their edits.
    """
    command = _command(ask)
    if not command:
        return ask
    finding = rules.judge_script(command)
    moving = _MOVES_HEAD.search(command) if beside else None
    if moving is not None:
        who = ", ".join(f"#{number}" for number in beside)
        text = f"takes the edits of {who} too, which {'works' if len(beside) == 1 else 'work'} in this folder"
        reason = DangerReason(level=DangerLevel.DANGEROUS, text=text, command=f"git {moving[1]}")
        level = max(finding.level, DangerLevel.DANGEROUS)
        finding = DangerFinding(level=level, reasons=(replace(reason, level=level), *finding.reasons))
    if _is_cut(ask, command) and finding.level < DangerLevel.DANGEROUS:
        unread = DangerReason(level=DangerLevel.DANGEROUS, text=TOO_MUCH, command="sh")
        finding = DangerFinding(level=DangerLevel.DANGEROUS, reasons=(unread,))
    if finding.level < DangerLevel.DANGEROUS:
        return ask
    told = [f"{one.command}: {one.text}" for one in finding.reasons if one.level is finding.level][:_MOST_TOLD]
    return replace(
        ask,
        danger_level=finding.level,
        danger_name=finding.reasons[0].command,
        danger_reason="; ".join(told),
        can_allow_for_session=ask.can_allow_for_session and finding.level < DangerLevel.DESTRUCTIVE,
    )


def _is_cut(ask: AskNews, command: str) -> bool:
    """Return whether only the beginning of the command is known, which an input that was too long leaves."""
    return not ask.tool_input and command.endswith(_CUT)


def _command(ask: AskNews) -> str:
    if ask.ask_kind is not AskKind.PERMISSION:
        return ""
    for key in _COMMAND_KEYS:
        given = ask.tool_input.get(key)
        if isinstance(given, str) and given:
            return given
        if isinstance(given, list | tuple) and given:
            return shlex.join(str(word) for word in given)
    return (ask.detail or ask.target) if ask.type is OperationType.EXECUTE else ""
