from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.approval_rules import RequestedAction, fits, judge, proposed_rule, rule_text, usable_rule
from agentmon.domain.approvals import Approval, ApprovalRule, RuleDecision
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.ids import AgentId, ApprovalId, ApprovalRuleId, ExecutionId, WorkspaceId
from agentmon.domain.operations import OperationType
from agentmon.domain.requested_actions import requested_action

if TYPE_CHECKING:
    from collections.abc import Callable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ALLOW, ASK, DENY = RuleDecision.ALLOW, RuleDecision.ASK, RuleDecision.DENY
OPERATORS = [
    ";",
    "&&",
    "||",
    "|",
    "&",
    "\n",
    "|&",
    "\r\n",
    ">",
    "<",
    ">>",
    "$(",
    "`",
    "(",
    "<(",
    "; ",
    " ;",
    ">(",
    "$'",
]


def a_rule(
    decision: RuleDecision = ALLOW,
    *,
    tool: str = "*",
    path: str | None = None,
    command: str | None = None,
    workspace: str | None = None,
    agent: str | None = None,
    is_enabled: bool = True,
) -> ApprovalRule:
    return ApprovalRule(
        id=ApprovalRuleId(f"{decision.value}-{tool}-{path}-{command}"),
        decision=decision,
        tool=tool,
        path=path,
        command_prefix=command,
        workspace_id=None if workspace is None else WorkspaceId(workspace),
        agent_id=None if agent is None else AgentId(agent),
        is_enabled=is_enabled,
        created_at=NOON,
    )


def an_action(*, tool: str = "Bash", command: str | None = None, paths: tuple[str, ...] = ()) -> RequestedAction:
    return RequestedAction(
        tool=tool,
        command=command,
        paths=paths,
        named_paths=paths,
        workspace_id=WorkspaceId("w"),
        workspace_root="/w",
        agent_id=AgentId("a"),
    )


def an_approval(**fields: object) -> Approval:
    asked: dict[str, object] = {
        "id": ApprovalId("1"),
        "execution_id": ExecutionId("e"),
        "request_id": "r",
        "ask_kind": AskKind.PERMISSION,
        "title": "t",
        "asked_at": NOON,
    }
    return Approval(**(asked | fields))  # type: ignore[arg-type] # named by tests


def action_of(approval: Approval, resolve: Callable[[str], str] = str) -> RequestedAction:
    return requested_action(
        approval,
        working_dir="/w",
        workspace_id=WorkspaceId("w"),
        workspace_root="/w",
        agent_id=AgentId("a"),
        resolve=resolve,
    )


def a_command(command: str, **fields: object) -> Approval:
    asked = {"tool_name": "Bash", "type": OperationType.EXECUTE, "target": command[:1000], "detail": command}
    return an_approval(**(asked | {"tool_input": {"command": command}} | fields))


def test_the_strictest_rule_that_fits_wins() -> None:
    action = an_action(command="git push")
    rules = [a_rule(ALLOW, command="git"), a_rule(ASK, command="git push"), a_rule(DENY, command="git push --force")]

    assert judge(action, rules[:1]).decision is ALLOW
    assert judge(action, rules).decision is ASK
    assert judge(an_action(command="git push --force"), rules).decision is DENY
    assert judge(an_action(command="make"), rules).rule is None
    assert judge(an_action(command="make"), rules).decision is ASK


def test_the_oldest_of_equally_strict_rules_is_named() -> None:
    first, second = a_rule(ALLOW, command="git"), a_rule(ALLOW, command="git status")

    verdict = judge(an_action(command="git status"), [first, second])

    assert verdict.rule is first
    assert verdict.why == "the rule “allow any tool git” fits"


@pytest.mark.parametrize("decision", [ALLOW, DENY])
def test_a_rule_fits_only_its_own_workspace_agent_and_tool(decision: RuleDecision) -> None:
    action = an_action(command="git status")

    assert fits(a_rule(decision, tool="Ba*", workspace="w", agent="a"), action)
    assert not fits(a_rule(decision, workspace="other"), action)
    assert not fits(a_rule(decision, agent="other"), action)
    assert not fits(a_rule(decision, tool="bash"), action)
    assert not fits(a_rule(decision, tool="Ba?"), action)
    assert not fits(a_rule(decision, is_enabled=False), action)


@pytest.mark.parametrize(
    ("prefix", "command", "is_allowed"),
    [
        ("git status", "git status", True),
        ("git status", "git status --short", True),
        ("git status", "git stash", False),
        ("git status", "git statuses", False),
        ("git status", "git", False),
        ("git status", "git status; rm -rf /", False),
        ("git status", "git status\nrm -rf /", False),
        ("git status", "FOO=1 git status", False),
        ("git status", "/tmp/git status", False),
        ("git status", "sudo git status", False),
        ("git status", "bash -lc 'git status'", True),
        ("git status", "bash -lc 'git status; rm -rf /'", False),
        ("bash", "bash -lc 'rm -rf /'", False),
        ("bash", "bash x.sh", False),
        ("env", "env rm -rf x", False),
        ("env", "env", True),
        ("sudo -n", "sudo -n rm x", False),
        ("timeout 5", "timeout 5 rm x", False),
        ("timeout 5 make", "timeout 5 make -j", True),
        ("git status", "bash -norc 'git status'", False),
        ("git status", "./bash -c 'git status'", False),
        ("echo", "echo $(rm -rf /)", False),
    ],
)
def test_a_command_is_allowed_by_its_first_words_when_it_is_alone(prefix: str, command: str, is_allowed: bool) -> None:
    assert fits(a_rule(command=prefix), an_action(command=command)) is is_allowed


@given(
    st.lists(st.sampled_from(["git", "status", "make", "'a b'"]), min_size=1, max_size=4),
    st.sampled_from(OPERATORS),
    st.text(max_size=20),
    st.integers(1, 4),
)
def test_no_rule_for_a_command_ever_allows_a_compound_one(
    before: list[str], operator: str, after: str, taken: int
) -> None:
    line = " ".join(before)
    rule = a_rule(command=" ".join(before[:taken]))

    assert fits(rule, an_action(command=line))
    assert not fits(rule, an_action(command=line + operator + after))
    assert not fits(rule, an_action(command=f"bash -lc '{line.replace(chr(39), '')}{operator}rm'"))


@given(st.text(max_size=60), st.lists(st.text(max_size=8), max_size=4), st.sampled_from(OPERATORS))
def test_what_a_rule_allows_stays_allowed_as_one_command_only(prefix: str, rest: list[str], operator: str) -> None:
    command = " ".join([prefix, *rest])
    if fits(a_rule(command=prefix), an_action(command=command)):
        assert not fits(a_rule(command=prefix), an_action(command=f"{command}{operator}rm -rf /"))


@pytest.mark.parametrize(
    "command", ["rm -rf x", "git status; rm -rf x", "sudo rm x", "A=1 rm x", "ls | xargs rm", "/bin/rm x", "$(rm x)"]
)
def test_a_command_is_denied_wherever_it_stands_in_a_line(command: str) -> None:
    assert fits(a_rule(DENY, command="rm"), an_action(command=command))
    assert fits(a_rule(ASK, command="rm"), an_action(command=command))
    assert judge(an_action(command=command), [a_rule(), a_rule(DENY, command="rm")]).decision is DENY


@pytest.mark.parametrize(
    ("glob", "path", "is_fitting"),
    [
        ("src/**", "/w/src/a/b.py", True),
        ("src/", "/w/src/a/b.py", True),
        ("src/*", "/w/src/a/b.py", False),
        ("src/*.py", "/w/src/b.py", True),
        ("**/*.py", "/w/b.py", True),
        ("**/*.py", "/w/a/b/c.py", True),
        ("**", "/w/a", True),
        ("**", "/etc/passwd", False),
        ("/etc/*", "/etc/passwd", True),
        ("*", "/w/a/b", False),
        ("a?c", "/w/abc", True),
        ("a?c", "/w/a/c", False),
        ("[id].tsx", "/w/[id].tsx", True),
        ("[id].tsx", "/w/i.tsx", False),
        ("\\*.py", "/w/*.py", True),
        ("\\*.py", "/w/a.py", False),
        ("../v/a", "/v/a", True),
        ("src/**", "/w/src/../../etc/passwd", False),
        ("src/**", "src/a", False),
    ],
)
def test_a_path_fits_a_glob(glob: str, path: str, is_fitting: bool) -> None:
    action = an_action(tool="Edit", paths=(path,))

    assert fits(a_rule(path=glob), action) is is_fitting
    assert fits(a_rule(DENY, path=glob), action) is is_fitting


def test_all_paths_have_to_be_allowed_and_one_is_enough_to_deny() -> None:
    action = an_action(tool="patch", paths=("/w/src/a", "/etc/passwd"))

    assert not fits(a_rule(path="src/**"), action)
    assert fits(a_rule(DENY, path="/etc/**"), action)
    assert not fits(a_rule(path="**"), an_action(tool="patch"))


def test_links_count_where_they_lead_and_deny_also_where_they_lie() -> None:
    edit = an_approval(tool_name="Edit", type=OperationType.WRITE, tool_input={"file_path": "src/../src/link"})
    action = action_of(edit, resolve=lambda path: path.replace("/w/src/link", "/etc/passwd"))

    assert action.paths == ("/etc/passwd",)
    assert not fits(a_rule(path="src/**"), action)
    assert fits(a_rule(DENY, path="src/**"), action)
    assert fits(a_rule(DENY, path="/etc/*"), action)


@pytest.mark.parametrize(
    ("tool_input", "is_allowed"),
    [
        ({"path": "a"}, True),
        ({"path": "a", "content": "text of /etc/passwd"}, True),
        ({"path": "a", "destination": "/etc/passwd"}, False),
        ({"path": "a", "paths": ["/w/b", "/etc/passwd"]}, False),
        ({"path": "a", "paths": ["/w/b"]}, True),
        ({"path": "~/.ssh/config"}, False),
        ({"path": "a", "to": "b/../../etc/passwd"}, False),
        ({"path": "x/[secret]"}, False),
        ({"path": "a", "edits": [{"target": {"file": "/etc/passwd"}}]}, False),
        ({"path": "a", "edits": [{"path": "../v/x"}]}, False),
        ({"edits": [{"path": "a"}, {"path": "b/c"}]}, True),
        ({"path": "a", "uri": "file:///etc/passwd"}, False),
        ({"uri": "file:///w/a%20b"}, True),
        ({"uri": "FILE:///w/../etc/passwd"}, False),
        ({"path": "a", "old_string": "x/y", "new_string": "see /w"}, True),
        ({"path": "a", "whatever": "link/etc"}, True),
        ({"path": "a", "deep": [[[[[[{"b": ["/etc/passwd"]}]]]]]]}, False),
        ({"path": "a", "many": ["x"] * 30_000}, False),
        ({"source": "a"}, False),
    ],
)
def test_every_path_that_is_named_has_to_be_allowed(tool_input: dict[str, object], is_allowed: bool) -> None:
    move = an_approval(tool_name="move", type=OperationType.WRITE, tool_input=tool_input)

    assert fits(a_rule(path="**"), action_of(move)) is is_allowed


def test_a_rule_for_a_path_says_nothing_of_commands_and_the_other_way_round() -> None:
    assert not fits(a_rule(path="**"), an_action(command="cat /w/a"))
    assert not fits(a_rule(command="cat"), an_action(tool="Edit", paths=("/w/a",)))


@pytest.mark.parametrize(
    ("approval", "is_allowed"),
    [
        (a_command("git status"), True),
        (a_command("git status", tool_input={"command": "git status", "description": "look", "timeout": 5}), True),
        (
            a_command("git status", tool_input={"command": "git status", "cwd": "/w/a"}, detail="git status\nIn /w/a"),
            True,
        ),
        (
            a_command("git status", tool_input={"command": "git status", "cwd": "/etc"}, detail="git status\nIn /etc"),
            False,
        ),
        (a_command("git status", detail="git status\nWith more permissions: {}"), False),
        (a_command("git status", tool_input={"command": "git status", "dangerouslyDisableSandbox": True}), False),
        (a_command("git status password=[secret] -rf /"), False),
        (a_command("git status", tool_input={}), True),
        (a_command("git status", tool_input={}, detail="git status\nrm -rf /"), False),
        (a_command("git status " + "x" * 1000, tool_input={}), False),
        (a_command("git status", tool_input={"command": "git status", "kind": "writeStdin"}), False),
        (a_command("git status", ask_kind=AskKind.QUESTION), False),
        (a_command("git status", ask_kind=AskKind.PLAN), False),
        (a_command("git status", ask_kind=AskKind.START), False),
    ],
)
def test_only_a_command_that_is_known_whole_is_allowed(approval: Approval, is_allowed: bool) -> None:
    assert fits(a_rule(command="git status"), action_of(approval)) is is_allowed
    assert fits(a_rule(), action_of(approval)) is is_allowed


def test_a_command_that_is_known_in_part_is_still_denied() -> None:
    command = "rm -rf / " + "x" * 2000

    assert fits(a_rule(DENY, command="rm"), action_of(a_command(command, tool_input={})))
    assert fits(a_rule(DENY, command="rm"), action_of(a_command("rm x", detail="rm x\nNetwork: https evil")))


def test_a_patch_of_one_named_file_has_a_path_and_one_of_several_has_none() -> None:
    one = an_approval(tool_name="apply_patch", type=OperationType.WRITE, target="/w/a.py", detail="update /w/a.py")
    several = replace(one, target="/w/a.py, /w/b.py")
    below = replace(one, detail="Write below /w\nupdate /w/a.py")

    assert fits(a_rule(path="*.py"), action_of(one))
    assert not fits(a_rule(path="*.py"), action_of(several))
    assert not fits(a_rule(path="*.py"), action_of(below))
    assert fits(a_rule(tool="apply_patch"), action_of(several))
    with pytest.raises(ConflictError, match="several files"):
        proposed_rule(action_of(several), rule_id=ApprovalRuleId("r"), at=NOON)


@pytest.mark.parametrize(
    ("approval", "text"),
    [
        (a_command("git status --short"), "allow Bash git status"),
        (a_command("ls -la /tmp"), "allow Bash ls"),
        (a_command("cat src/a.py"), "allow Bash cat"),
        (a_command("pytest"), "allow Bash pytest"),
        (a_command("npm 'run it'"), "allow Bash npm 'run it'"),
        (a_command("sudo make install"), "allow Bash sudo make install"),
        (a_command("python3 -c 'print(1)'"), "allow Bash python3 -c 'print(1)'"),
        (a_command("bash -lc 'git status -s'"), "allow Bash git status"),
        (
            an_approval(tool_name="Edit", type=OperationType.WRITE, tool_input={"file_path": "a*.py"}),
            "allow Edit a\\*.py",
        ),
        (
            an_approval(tool_name="Edit", type=OperationType.WRITE, tool_input={"file_path": "/other/a.py"}),
            "allow Edit /other/a.py",
        ),
        (an_approval(tool_name="WebSearch", type=OperationType.QUERY, target="weather"), "allow WebSearch"),
        (an_approval(tool_name="mcp__a*b", target="x"), "allow mcp__a\\*b"),
    ],
)
def test_the_proposed_rule_is_narrow_and_fits_what_it_was_made_of(approval: Approval, text: str) -> None:
    action = action_of(approval)

    rule = proposed_rule(action, rule_id=ApprovalRuleId("r"), at=NOON)

    assert rule_text(rule) == text
    assert (rule.workspace_id, rule.agent_id) == ("w", "a")
    assert fits(rule, action)
    usable_rule(rule)


@pytest.mark.parametrize(
    "approval",
    [
        a_command("git status; rm x"),
        a_command("A=1 make"),
        a_command("make", detail="make\nNetwork: x"),
        an_approval(),
        an_approval(tool_name="shell", type=OperationType.QUERY, target="example.org"),
    ],
)
def test_no_rule_is_proposed_for_what_no_rule_allows(approval: Approval) -> None:
    with pytest.raises(ConflictError):
        proposed_rule(action_of(approval), rule_id=ApprovalRuleId("r"), at=NOON)


@given(st.text(min_size=1, max_size=40))
def test_a_proposed_rule_always_fits_its_own_request(command: str) -> None:
    action = action_of(a_command(command))
    try:
        rule = proposed_rule(action, rule_id=ApprovalRuleId("r"), at=NOON)
    except ConflictError:
        return
    assert fits(rule, action)


@pytest.mark.parametrize(
    "rule",
    [
        a_rule(tool=" "),
        a_rule(path=""),
        a_rule(command=""),
        a_rule(command="a; b"),
        a_rule(command="rm *; x"),
        a_rule(path="a", command="b"),
        a_rule(tool="x" * 201),
        a_rule(path="x" * 4_097),
        a_rule(command="x" * 4_097),
    ],
)
def test_a_rule_that_could_never_fit_or_is_too_long_is_refused(rule: ApprovalRule) -> None:
    with pytest.raises(UsageError):
        usable_rule(rule)
