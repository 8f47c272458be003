"""``agentmon budget``: how much may be spent, how far that is used, and an exit code for scripts."""

from collections.abc import Sequence
from typing import Annotated

import typer

from agentmon.bootstrap import Services
from agentmon.cli import exit_codes
from agentmon.cli.budget_text import budget_form, budget_lines, removed_words, state_words
from agentmon.cli.columns import terminal_width
from agentmon.cli.context import (
    JsonOption,
    current_folder,
    numbered_task,
    with_services,
)
from agentmon.cli.folders import existing_folder
from agentmon.cli.output import say, say_document, tell
from agentmon.cli.registration import register, register_default
from agentmon.domain.budgets import (
    Budget,
    BudgetAction,
    BudgetLevel,
    BudgetPeriod,
    BudgetScope,
    BudgetState,
    BudgetUnit,
)
from agentmon.domain.errors import UsageError
from agentmon.domain.money_text import parse_money, parse_tokens

group = typer.Typer(rich_markup_mode=None)

_EXIT_CODES = {
    BudgetLevel.FINE: exit_codes.DONE,
    BudgetLevel.WARNED: exit_codes.BUDGET_WARNED,
    BudgetLevel.SPENT: exit_codes.BUDGET_SPENT,
}

TaskOption = Annotated[
    str | None, typer.Option("--task", metavar="NUMBER", help="Of all runs of this task, also tried again or resumed.")
]
ExecutionOption = Annotated[
    str | None, typer.Option("--execution", metavar="ID", help="Of this run alone: the start of its id.")
]
PlaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace", "-C", metavar="PATH", help="Of the workspace of this folder; of a task, where to find it."
    ),
]
AgentOption = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Of this agent, such as claude.")]


def budget(context: typer.Context, as_json: JsonOption = False) -> None:
    """List, set, remove and check budgets.

    A person is warned at 50, 80 and 95 %. When a budget is spent nothing more of it starts. An agent that runs is
    interrupted and waits in the inbox: raise the budget, go on once, or stop; it goes on by itself when the budget is
    raised or its period is over. A program that cannot wait is stopped. An answer that is being written when the
    money runs out is still paid, so that a budget may be passed by one answer of each agent that runs. Answers
    without a known price are in no sum.

    Examples:
      agentmon budget set 20
      agentmon budget set 5 --task 12 --per total
      agentmon budget set 50 --agent claude --per week --then block
      agentmon budget check || echo "slow down"
    """
    if context.invoked_subcommand is None:
        list_budgets(as_json=as_json)


def list_budgets(as_json: JsonOption = False) -> None:
    """List all budgets with what is used of them, oldest first.

    Examples:
      agentmon budget list --json
    """

    async def read(services: Services) -> tuple[BudgetState, ...]:
        return await services.budgets.states()

    states = with_services(read)
    if as_json:
        say_document([budget_form(state) for state in states])
    elif states:
        say("\n".join(budget_lines(states, terminal_width())))
    else:
        tell("there is no budget; `agentmon budget set 20` allows 20 dollars, or units of costs.currency, a day in all")


def set_budget(
    amount: Annotated[
        str,
        typer.Argument(
            metavar="AMOUNT", help="Money in the setting costs.currency, such as 20 or 2.50; with --tokens, 5M."
        ),
    ],
    *,
    task: TaskOption = None,
    execution: ExecutionOption = None,
    agent: AgentOption = None,
    folder: PlaceOption = None,
    period: Annotated[
        BudgetPeriod | None, typer.Option("--per", help="For how long; a day, and total for a task or a run.")
    ] = None,
    action: Annotated[
        BudgetAction,
        typer.Option("--then", help="What happens when it is spent; stop also blocks, and all of them warn."),
    ] = BudgetAction.STOP,
    is_in_tokens: Annotated[bool, typer.Option("--tokens", help="Count tokens instead of money.")] = False,
    is_cached_left_out: Annotated[
        bool, typer.Option("--without-cached", help="Leave out tokens that were read from a cache.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Set a budget, of everything unless you name a task, a run, an agent, or a workspace by -C.

    One of the same kind is replaced, and what it held back goes on. Of a total all counts that is known, also what was
    spent before. Tools are held back only by a budget of their own, unless their command is an agent's. Money is kept
    in US dollars: an amount in another currency is converted by costs.exchange_rate once, and both are told.

    Examples:
      agentmon budget set 20
      agentmon budget set 5 --task 12
      agentmon budget set 200 -C ~/projects/shop --per month --then block
      agentmon budget set 5M --tokens --without-cached --agent codex
    """
    if is_cached_left_out and not is_in_tokens:
        raise UsageError("--without-cached says something of tokens only", hint="add --tokens")

    async def work(services: Services) -> BudgetState:
        limit = parse_tokens(amount) if is_in_tokens else parse_money(amount, await services.settings.money())
        scope, scope_id = await _find_scope(
            services, task=task, execution=execution, agent=agent, folder=folder, registers=True
        )
        is_of_work = scope in {BudgetScope.TASK, BudgetScope.EXECUTION}
        return await services.budgets.set(
            scope=scope,
            scope_id=scope_id,
            period=period or (BudgetPeriod.TOTAL if is_of_work else BudgetPeriod.DAY),
            limit=limit,
            unit=BudgetUnit.TOKENS if is_in_tokens else BudgetUnit.MONEY,
            counts_cached=not is_cached_left_out,
            action=action,
            actor=services.actor,
        )

    state = with_services(work)
    if as_json:
        say_document(budget_form(state))
    else:
        say(f"set: {state_words(state)}")


def remove(
    names: Annotated[list[str], typer.Argument(metavar="BUDGET...", help="The start or the end of their ids.")],
    as_json: JsonOption = False,
) -> None:
    """Remove budgets; what they held back goes on.

    Examples:
      agentmon budget rm 019bf3a2
    """

    async def work(services: Services) -> list[Budget]:
        found = [await services.budgets.find(name) for name in names]
        return [await services.budgets.remove(state.budget.id, actor=services.actor) for state in found]

    removed = with_services(work)
    if as_json:
        say_document([{"id": one.id, "about": one.about} for one in removed])
    else:
        say("\n".join(removed_words(one) for one in removed))


def check(
    name: Annotated[str | None, typer.Argument(metavar="[BUDGET]", help="Only this one: the start of its id.")] = None,
    *,
    task: TaskOption = None,
    execution: ExecutionOption = None,
    agent: AgentOption = None,
    folder: PlaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell by the exit code how far budgets are used: 0 fine, 10 from 50 % on, 11 spent.

    All are looked at unless you name one, or what they are about.

    Examples:
      agentmon budget check
      agentmon budget check --agent claude || exit 1
    """

    async def read(services: Services) -> list[BudgetState]:
        if name is not None:
            return [await services.budgets.find(name)]
        states = await services.budgets.states()
        if task is None and execution is None and agent is None and folder is None:
            return list(states)
        wanted = await _find_scope(services, task=task, execution=execution, agent=agent, folder=folder)
        return [state for state in states if (state.budget.scope, state.budget.scope_id) == wanted]

    states = with_services(read)
    level = _worst(states)
    if as_json:
        say_document({"level": level.value, "budgets": [budget_form(state) for state in states]})
    elif states:
        say("\n".join(f"{state.level.value}: {state_words(state)}" for state in states))
    else:
        tell("there is no such budget; `agentmon budget` lists those that are set")
    if level is not BudgetLevel.FINE:
        raise typer.Exit(_EXIT_CODES[level])


def _worst(states: Sequence[BudgetState]) -> BudgetLevel:
    levels = list(BudgetLevel)
    return max((state.level for state in states), key=levels.index, default=BudgetLevel.FINE)


async def _find_scope(
    services: Services,
    *,
    task: str | None,
    execution: str | None,
    agent: str | None,
    folder: str | None,
    registers: bool = False,
) -> tuple[BudgetScope, str]:
    if sum(one is not None for one in (task, execution, agent)) > 1:
        raise UsageError("--task, --execution and --agent exclude each other", hint="set a budget for each")
    if execution is not None:
        return BudgetScope.EXECUTION, (await services.budgets.find_execution(execution)).id
    if agent is not None:
        return BudgetScope.AGENT, (await services.agents.by_slug(agent)).id
    if task is None and folder is None:
        return BudgetScope.ALL, ""
    place = existing_folder(folder) if folder is not None else current_folder()
    is_about_place = registers and task is None
    find = services.workspaces.find_for if is_about_place else services.workspaces.look_at
    workspace = await find(place)
    if task is None:
        return BudgetScope.WORKSPACE, workspace.id
    return BudgetScope.TASK, (await numbered_task(services, workspace, task)).id


register_default(group, budget)
register(group, "list", list_budgets)
register(group, "set", set_budget)
register(group, "rm", remove)
register(group, "check", check)
