"""Which rules fit a request, and what they decide together: pure matching, without a database or a file system.

Of the rules that fit, the strictest counts: deny, then ask, then allow. A rule that allows has to fit all that the
request does, and nothing that is unclear fits it; one that denies or asks fits as soon as a part does, which for a
command line is best effort.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from agentmon.domain.approvals import ApprovalRule, RuleDecision
from agentmon.domain.command_words import SHELLS, command_segments, leads_to_any, plain_words
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.globs import Glob
from agentmon.domain.plain_text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from agentmon.domain.ids import AgentId, ApprovalRuleId, WorkspaceId

_STRICTEST_FIRST: Final = (RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW)
_RUNS_OTHERS: Final = SHELLS | {
    *("sudo", "doas", "su", "env", "xargs", "nohup", "timeout", "eval", "exec", "command", "time", "nice", "setsid"),
    *("find", "ssh", "python", "python3", "node", "perl", "ruby", "php", "deno", "bun", "awk", "docker", "podman"),
}
"""Their first words say nothing of what is run."""
_SHELL_TOOLS: Final = frozenset({"bash", "shell", "local_shell", "run_shell_command", "exec_command", "terminal"})
"""Tools that run any command: without its words no rule is proposed for them."""

_MOST_CHARACTERS: Final = {"tool": 200, "path": 4_096, "command": 4_096, "note": 1_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedAction:
    """What an agent wants to do, as far as rules look at it."""

    tool: str
    paths: tuple[str, ...] = ()
    """Absolute, without ``..``, with symbolic links followed: all that it touches."""
    named_paths: tuple[str, ...] = ()
    """The same as the agent wrote them, absolute and without ``..``, but with links as they are."""
    command: str | None = None
    is_known_whole: bool = True
    """False when the request wants more than its path or command says, or only a piece of it is known: then no rule
    allows it."""
    writes_unnamed: bool = False
    """Whether it writes to several files, or to files that the request does not name."""
    workspace_id: WorkspaceId
    workspace_root: str
    """Absolute, with symbolic links followed."""
    agent_id: AgentId


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleVerdict:
    """What the rules say to a request."""

    decision: RuleDecision
    """``ask`` also when no rule fits."""
    rule: ApprovalRule | None
    """The rule that decides; None when none fits."""
    why: str


def judge(action: RequestedAction, rules: Iterable[ApprovalRule]) -> RuleVerdict:
    """Return what the rules decide: the strictest of those that fit, the oldest of several that are equally strict."""
    fitting = [rule for rule in rules if fits(rule, action)]
    for decision in _STRICTEST_FIRST:
        for rule in fitting:
            if rule.decision is decision:
                return RuleVerdict(decision=decision, rule=rule, why=f"the rule “{rule_text(rule)}” fits")
    return RuleVerdict(decision=RuleDecision.ASK, rule=None, why="no rule fits")


def fits(rule: ApprovalRule, action: RequestedAction) -> bool:
    """Return whether the rule is switched on and all that it names fits the action."""
    allows = rule.decision is RuleDecision.ALLOW
    return (
        rule.is_enabled
        and (action.is_known_whole or not allows)
        and rule.workspace_id in {None, action.workspace_id}
        and rule.agent_id in {None, action.agent_id}
        and _glob(rule.tool, is_path=False).fits(action.tool)
        and (rule.path is None or _path_fits(rule.path, action, allows=allows))
        and (rule.command_prefix is None or _command_fits(rule.command_prefix, action.command, allows=allows))
    )


def names_whole(rule: ApprovalRule, action: RequestedAction) -> bool:
    """Return whether a rule says all that the action does, or is about everything: it goes on with no other words."""
    return rule.command_prefix is None or plain_words(rule.command_prefix) == plain_words(action.command or "")


def rule_text(rule: ApprovalRule) -> str:
    """Return the rule in a line: ``allow Bash git status``."""
    parts = [rule.decision.value, "any tool" if rule.tool == "*" else rule.tool]
    parts += [part for part in (rule.path, rule.command_prefix) if part is not None]
    return " ".join(parts)


def usable_rule(rule: ApprovalRule) -> ApprovalRule:
    """Return the rule as a database and a path can hold it; refuse one that could never fit, or that is too long.

    Raises:
        UsageError: Its tool or path is empty, its command is not plain words, or a part has too many characters.
    """
    require_short(tool=rule.tool, path=rule.path, command=rule.command_prefix, note=rule.note)
    if not rule.tool.strip():
        raise UsageError("the rule names no tool", hint="`*` means every tool")
    if rule.path is not None and not rule.path.strip():
        raise UsageError("the path of the rule is empty", hint="leave it out, or write `**` for every path")
    if rule.path is not None and rule.command_prefix is not None:
        raise UsageError("a rule names a path or a command, not both", hint="add two rules")
    if rule.command_prefix is not None and not plain_words(rule.command_prefix):
        raise UsageError(
            f"the command {rule.command_prefix!r} is not the beginning of one plain command",
            hint="give its first words, such as: git status",
        )
    return replace(
        rule,
        tool=storable(rule.tool),
        path=None if rule.path is None else storable(rule.path),
        command_prefix=None if rule.command_prefix is None else storable(rule.command_prefix),
        note=storable(rule.note),
    )


def require_short(**parts: str | None) -> None:
    """Refuse what is too long to be compared with requests in no time.

    Raises:
        UsageError: A part has too many characters.
    """
    for name, text in parts.items():
        most = _MOST_CHARACTERS[name]
        if text is not None and len(text) > most:
            raise UsageError(f"the {name} has {len(text):,} characters; {most:,} are the most")


def proposed_rule(action: RequestedAction, *, rule_id: ApprovalRuleId, at: datetime) -> ApprovalRule:
    """Return the rule that would allow this action and its like: by command, by the exact file, else by tool.

    Raises:
        ConflictError: No rule can allow it: it is more than one plain command, or not known whole.
    """
    is_wordless = action.command is None and action.tool.casefold() in _SHELL_TOOLS
    if not action.is_known_whole or not action.tool or is_wordless:
        raise ConflictError(
            "no rule can allow this: it asks for more than its command or path says", hint="allow it once"
        )
    prefix = path = None
    if action.command is not None:
        words = plain_words(action.command)
        if not words:
            raise ConflictError("no rule can allow more than one plain command", hint="allow it once")
        prefix = shlex.join(_telling_words(words))
    elif action.writes_unnamed or len(action.paths) > 1:
        raise ConflictError("no rule can be made of several files at once", hint="allow it once")
    elif action.paths:
        path = escaped_glob(_from_root(action.paths[0], action.workspace_root))
    return ApprovalRule(
        id=rule_id,
        decision=RuleDecision.ALLOW,
        tool=escaped_glob(action.tool),
        path=path,
        command_prefix=prefix,
        workspace_id=action.workspace_id,
        agent_id=action.agent_id,
        created_at=at,
    )


def _from_root(path: str, root: str) -> str:
    """Return the path as people write it in the workspace; one that lies elsewhere stays as it is."""
    below = path.removeprefix(root.rstrip("/") + "/")
    return path if not root or not below else below


def escaped_glob(text: str) -> str:
    """Return the glob that fits this text alone."""
    return re.sub(r"([*?\\])", r"\\\1", text)


def _telling_words(words: tuple[str, ...]) -> tuple[str, ...]:
    if words[0].rpartition("/")[2] in _RUNS_OTHERS:
        return words
    is_two = len(words) > 1 and words[1] and not words[1].startswith(("-", ".", "~")) and "/" not in words[1]
    return words[: 2 if is_two else 1]


def _path_fits(glob: str, action: RequestedAction, *, allows: bool) -> bool:
    absolute = posixpath.normpath(posixpath.join(escaped_glob(action.workspace_root), glob))
    if glob.endswith("/"):
        absolute += "/**"
    pattern = _glob(absolute, is_path=True)
    if allows:
        return bool(action.paths) and all(_is_inside(pattern, path) for path in action.paths)
    return any(_is_inside(pattern, path) for path in (*action.paths, *action.named_paths))


def _is_inside(pattern: Glob, path: str) -> bool:
    return path.startswith("/") and ".." not in path.split("/") and pattern.fits(path)


def _command_fits(prefix: str, command: str | None, *, allows: bool) -> bool:
    wanted = plain_words(prefix)
    if command is None or not wanted:
        return False
    if allows:
        words = plain_words(command)
        return words == wanted or (words[: len(wanted)] == wanted and not leads_to_any(wanted))
    return any(
        first[1:] == wanted[1:] and wanted[0] in {first[0], first[0].rpartition("/")[2]}
        for first in (segment[: len(wanted)] for segment in command_segments(command))
    )


@lru_cache(maxsize=512)
def _glob(glob: str, *, is_path: bool) -> Glob:
    return Glob(glob, is_path=is_path)
