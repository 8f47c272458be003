"""``agentmon rules``: the rules that decide what agents ask without a person, and a dry run of them."""

import os
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli.columns import table, terminal_width
from agentmon.cli.context import JsonOption, WorkspaceOption, with_services, with_workspace
from agentmon.cli.json_form import json_form
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.cli.request_text import rule_row
from agentmon.domain.approval_rules import RuleVerdict, rule_text
from agentmon.domain.approvals import ApprovalListing, ApprovalRule, RuleDecision
from agentmon.domain.errors import UsageError
from agentmon.domain.request_words import wish_words
from agentmon.domain.tasks import Workspace

group = typer.Typer(rich_markup_mode=None)

RuleArgument = Annotated[str, typer.Argument(metavar="RULE", help="The rule: the start or the end of its id.")]
ToolOption = Annotated[str, typer.Option("--tool", metavar="NAME", help="The tool, with * and ?.")]
PathOption = Annotated[
    str | None,
    typer.Option("--path", metavar="GLOB", help="The path it touches; a relative one counts from the workspace."),
]
CommandOption = Annotated[str | None, typer.Option("--command", metavar="WORDS", help="The command it runs.")]
AgentOption = Annotated[str | None, typer.Option("--agent", metavar="SLUG", help="Only of this program.")]


def rules(context: typer.Context, as_json: JsonOption = False) -> None:
    """List, change and try the rules that decide requests.

    Of several rules that fit, the strictest counts: deny, then ask, then allow. A rule that allows a command fits
    a single plain command only; one that denies fits any command of a line, as far as that can be told.

    Examples:
      agentmon rules
      agentmon rules add allow --command "git status"
      agentmon rules add deny --path "**/.env"
      agentmon rules try --command "git status; rm -rf /"
      agentmon rules try --history
    """
    if context.invoked_subcommand is None:
        list_rules(as_json=as_json)


def list_rules(as_json: JsonOption = False) -> None:
    """List the rules, oldest first.

    Examples:
      agentmon rules list --json
    """

    async def read(services: Services) -> tuple[tuple[ApprovalRule, ...], dict[str, str], dict[str, str]]:
        return await services.approvals.rules(), *await _names(services)

    found, workspaces, agents = with_services(read)
    if as_json:
        say_document(json_form(found))
    elif not found:
        tell('there are no rules, so every request waits for you; agentmon rules add allow --command "git status"')
    else:
        rows = [rule_row(rule, workspaces, agents) for rule in found]
        say("\n".join(table(("DECISION", "TOOL", "ABOUT", "WHERE", "ID", "NOTE"), rows, terminal_width())))


def add(
    decision: Annotated[RuleDecision, typer.Argument(help="What it does with a request that fits.")],
    folder: WorkspaceOption = None,
    tool: ToolOption = "*",
    path: PathOption = None,
    command: Annotated[
        str | None, typer.Option("--command", metavar="WORDS", help="The first words of the command it runs.")
    ] = None,
    agent: AgentOption = None,
    is_everywhere: Annotated[bool, typer.Option("--everywhere", help="In every workspace, not only this one.")] = False,
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="Why there is this rule.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Add a rule; it also decides what waits already.

    Examples:
      agentmon rules add allow --command "git status"
      agentmon rules add allow --tool Read --path "src/**"
      agentmon rules add deny --command "rm" --everywhere --note "nothing is removed"
    """

    async def work(services: Services, workspace: Workspace) -> ApprovalRule:
        return await services.approvals.add_rule(
            decision=decision,
            tool=tool,
            path=_expanded(path),
            command_prefix=command,
            workspace_id=None if is_everywhere else workspace.id,
            agent_id=None if agent is None else (await services.agents.by_slug(agent)).id,
            note=note,
            actor=services.actor,
        )

    added = with_workspace(folder, work, registers=not is_everywhere)
    _tell_rule(added, "", as_json=as_json)


def remove(rule: RuleArgument, as_json: JsonOption = False) -> None:
    """Take a rule away; what it decided stays decided.

    Examples:
      agentmon rules remove 019bf3a2
    """

    async def work(services: Services) -> ApprovalRule:
        found = await services.approvals.find_rule(rule)
        await services.approvals.remove_rule(found.id, actor=services.actor)
        return found

    _tell_rule(with_services(work), "removed: ", as_json=as_json)


def enable(rule: RuleArgument, as_json: JsonOption = False) -> None:
    """Switch a rule on.

    Examples:
      agentmon rules enable 019bf3a2
    """
    _tell_rule(_switch(rule, is_enabled=True), "on: ", as_json=as_json)


def disable(rule: RuleArgument, as_json: JsonOption = False) -> None:
    """Switch a rule off; it stays in the list.

    Examples:
      agentmon rules disable 019bf3a2
    """
    _tell_rule(_switch(rule, is_enabled=False), "off: ", as_json=as_json)


def try_out(
    folder: WorkspaceOption = None,
    tool: ToolOption = "",
    path: PathOption = None,
    command: CommandOption = None,
    agent: AgentOption = None,
    is_history: Annotated[
        bool, typer.Option("--history", help="What the rules would have done with past requests.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Tell what the rules would do with a request; nothing is changed.

    Examples:
      agentmon rules try --command "git status; rm -rf /"
      agentmon rules try --tool Edit --path src/cart.py
      agentmon rules try --history
    """
    if is_history:
        if tool or path or command:
            raise UsageError("--history and a request exclude each other")
        _try_history(folder, as_json=as_json)
        return
    if not tool and path is None and command is None:
        raise UsageError("which request?", hint="give --tool, --path or --command, or --history")

    async def work(services: Services, workspace: Workspace) -> RuleVerdict:
        agents = await services.agents.list(active_only=False)
        chosen = await services.agents.by_slug(agent) if agent is not None else agents[0]
        return await services.approvals.try_rules(
            tool=tool or ("Bash" if command is not None else "Edit"),
            path=path,
            command=command,
            workspace_id=workspace.id,
            agent_id=chosen.id,
        )

    verdict = with_workspace(folder, work)
    if as_json:
        say_document(json_form(verdict))
    else:
        say(f"{verdict.decision.value}: {verdict.why}")


def _try_history(folder: str | None, *, as_json: bool) -> None:
    async def work(services: Services, workspace: Workspace) -> tuple[tuple[ApprovalListing, RuleVerdict], ...]:
        return await services.approvals.try_rules_on_history(workspace.id)

    tried = with_workspace(folder, work)
    if as_json:
        say_document([{"request": json_form(listing), "verdict": json_form(verdict)} for listing, verdict in tried])
    elif not tried:
        tell("no agent has asked for a permission yet")
    else:
        rows = [
            (
                verdict.decision.value,
                listing.approval.status.value,
                f"#{listing.task_number}",
                wish_words(listing.approval),
            )
            for listing, verdict in tried
        ]
        say("\n".join(table(("RULES", "WAS", "TASK", "WHAT"), rows, terminal_width())))


def _switch(rule: str, *, is_enabled: bool) -> ApprovalRule:
    async def work(services: Services) -> ApprovalRule:
        found = await services.approvals.find_rule(rule)
        await services.approvals.set_rule_enabled(found.id, is_enabled, actor=services.actor)
        return await services.approvals.find_rule(found.id)

    return with_services(work)


def _tell_rule(rule: ApprovalRule, words: str, *, as_json: bool) -> None:
    if as_json:
        say_document(json_form(rule))
    else:
        say(f"{words}{rule_text(rule)}  {rule.id}")


def _expanded(path: str | None) -> str | None:
    return os.path.expanduser(path) if path is not None and path.startswith("~") else path  # noqa: PTH111 - a glob


async def _names(services: Services) -> tuple[dict[str, str], dict[str, str]]:
    workspaces = {str(workspace.id): workspace.name for workspace in await services.workspaces.list()}
    agents = {str(agent.id): agent.slug for agent in await services.agents.list(active_only=False)}
    return workspaces, agents


register_default(group, rules)
register(group, "list", list_rules)
register(group, "add", add)
register(group, "remove", remove)
register(group, "enable", enable)
register(group, "disable", disable)
register(group, "try", try_out)
