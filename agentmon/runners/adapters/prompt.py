"""Agents that are given a prompt: what they are told first, and the command that starts them in their mode."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import ROLE_MARK, InteractionMode
from agentmon.domain.errors import ArgumentsError, RunnerError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.runners.adapters.template import fill_text, render_command, render_tokens
from agentmon.runners.protocols.acp.opening import NO_FORK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Agent, Capability, SessionConfig
    from agentmon.domain.tasks import Task

DEFAULT_PROMPT_TEMPLATE: Final = "{{task_title}}\n\n{{task_description}}\n\n{{input_context.prompt_additions}}"
MODEL_ARGUMENT: Final = "model"
PERMISSION_MODE_ARGUMENT: Final = "permission_mode"
CHOSEN_LATER: Final = "ID"
"""Stands for the id that the conversation of a run gets."""
_MODES_WITH_FLAGS: Final = frozenset({ExecutionMode.STREAM_JSON, ExecutionMode.TMUX})
"""In the others the model, the permission mode and the conversation to resume are told in the protocol."""


def mode_of(agent: Agent, capability: Capability, *, own_screen: bool = False) -> ExecutionMode:
    """Return how the agent is spoken to for this capability.

    Raises:
        RunnerError: The capability takes a prompt, and nothing says how this agent is given one.
    """
    if capability.interaction_mode is InteractionMode.TEMPLATE:
        return ExecutionMode.TEMPLATE
    if own_screen:
        return ExecutionMode.TMUX
    if capability.mode is not None:
        return capability.mode
    if agent.session_config is None:
        raise RunnerError(f"nothing says how {agent.slug} is given a prompt", hint="its preset lacks session_config")
    return agent.session_config.bidirectional_protocol


def render_prompt(capability: Capability, *, agent: Agent, task: Task, args: Mapping[str, object]) -> str:
    """Return the first message of a conversation: role and instructions, then what ``asked_text`` returns.

    Raises:
        ArgumentsError: Nothing is left to say, or a placeholder is unknown.
    """
    return with_instructions(agent, asked_text(capability, task=task, args=args))


def asked_text(capability: Capability, *, task: Task, args: Mapping[str, object]) -> str:
    """Return what a task asks of an agent: the capability's text filled in.

    Placeholders without a value vanish, and so do the blank lines that they leave.

    Raises:
        ArgumentsError: Nothing is left to say, or a placeholder is unknown.
    """
    text = fill_text(
        capability.prompt_template or DEFAULT_PROMPT_TEMPLATE,
        task_title=task.title,
        task_description=task.description,
        args=args,
        capability=capability,
        prompt_additions=task.input_context.prompt_additions,
    )
    if not text:
        raise ArgumentsError("the prompt is empty", hint="give the task a title or a description")
    return text


def with_instructions(agent: Agent, text: str) -> str:
    """Return what begins a conversation: the role and the instructions that a person gave the agent, then the text."""
    role = f"{ROLE_MARK}{agent.told_role}" if agent.told_role else ""
    return "\n\n".join(part for part in (role, (agent.instructions or "").strip(), text) if part)


def start_command(
    agent: Agent,
    capability: Capability,
    mode: ExecutionMode,
    *,
    task_title: str,
    args: Mapping[str, object],
    prompt_additions: str = "",
    session_id: str | None = CHOSEN_LATER,
    start: ConversationStart = ConversationStart.FRESH,
    resumed_ref: str | None = None,
) -> tuple[str, ...]:
    """Return the words of the command that a run of the capability starts, the program first.

    What is shown before a run is made comes from here too; its conversation has no id yet.

    Raises:
        AgentmonError: They cannot be put together; see ``conversation_command`` and ``render_command``.
    """
    if not mode.is_conversation:
        return render_command(
            capability,
            binary=agent.binary_path,
            base_args=agent.base_args,
            task_title=task_title,
            args=args,
            prompt_additions=prompt_additions,
        )
    return conversation_command(
        agent,
        capability,
        mode,
        task_title=task_title,
        args=args,
        session_id=session_id,
        start=start,
        resumed_ref=resumed_ref,
    )


def command_before_arguments(agent: Agent, capability: Capability) -> tuple[str, ...]:
    """Return the words that a run of the capability starts with the agent's own choices, then its placeholders.

    Raises:
        AgentmonError: They cannot be put together.
    """
    if capability.interaction_mode is InteractionMode.TEMPLATE:
        words = (agent.binary_path, *agent.base_args)
    else:
        bare = replace(capability, command_tokens=())
        words = start_command(agent, bare, mode_of(agent, capability), task_title="", args={})
    return (*(word for word in words if word), *capability.command_tokens)


def conversation_command(
    agent: Agent,
    capability: Capability,
    mode: ExecutionMode,
    *,
    task_title: str,
    args: Mapping[str, object],
    session_id: str | None,
    start: ConversationStart,
    resumed_ref: str | None,
) -> tuple[str, ...]:
    """Return the complete argument list that starts the agent in this mode; the prompt is never part of it.

    Args:
        agent: What is started.
        capability: What it is asked to do; its ``command_tokens`` are further arguments.
        mode: A protocol, or the agent's own screen.
        task_title: For placeholders.
        args: Those that ``check_arguments`` returned.
        session_id: The id that a new conversation is to have, where the agent lets it be chosen.
        start: How the conversation begins.
        resumed_ref: The agent's own id of the conversation to go on with.

    Raises:
        RunnerError: Nothing says how the agent is started, or it cannot go on with a conversation in this mode.
        ArgumentsError: A placeholder is unknown.
    """
    config = agent.session_config
    if config is None:
        raise RunnerError(f"nothing says how {agent.slug} is given a prompt", hint="its preset lacks session_config")
    # Without a program of its own, the capability's first word names it.
    words = [agent.binary_path] if agent.binary_path else []
    words += agent.base_args
    own = config.own_args(mode)
    if mode in _MODES_WITH_FLAGS:
        # A word that resumes may be a command of the agent, which has to come first.
        words += _start_flags(agent, config, session_id=session_id, start=start, resumed_ref=resumed_ref)
        words += own
        words += _choice_flags(config, MODEL_ARGUMENT, model_of(agent, args))
        words += _choice_flags(config, PERMISSION_MODE_ARGUMENT, permission_mode_of(agent, args))
        words += _tool_flags(agent, config)
    else:
        words += own
    words += _choice_flags(config, "temperature", temperature_text(agent))
    words += render_tokens(capability, task_title=task_title, args=args, prompt_additions="")
    return tuple(words)


def fork_obstacle(agent: Agent, mode: ExecutionMode) -> str:
    """Return why the agent cannot fork a conversation in this mode; empty if it can, or if its protocol tells."""
    can_fork = agent.session_config is not None and "fork" in agent.session_config.flags
    return NO_FORK if mode in _MODES_WITH_FLAGS and not can_fork else ""


def own_environment(agent: Agent, args: Mapping[str, object]) -> dict[str, str]:
    """Return the variables that the agent always gets; one with a placeholder that has no value is left out."""
    config = agent.session_config
    values = {"{{model}}": model_of(agent, args), "{{temperature}}": temperature_text(agent)}
    filled: dict[str, str] = {}
    for name, text in ({} if config is None else config.environment).items():
        named = {mark: value for mark, value in values.items() if mark in text}
        if all(value is not None for value in named.values()):
            for mark, value in named.items():
                text = text.replace(mark, value or "")  # noqa: PLW2901 - filled in step by step
            filled[name] = text
    return filled


def temperature_text(agent: Agent) -> str | None:
    """Return the temperature as agents take it; None means the agent's own."""
    return None if agent.temperature is None else f"{agent.temperature:g}"


def model_of(agent: Agent, args: Mapping[str, object]) -> str | None:
    """Return the model that is asked for; None means the agent's own default."""
    chosen = args.get(MODEL_ARGUMENT)
    return chosen if isinstance(chosen, str) and chosen else agent.model


def permission_mode_of(agent: Agent, args: Mapping[str, object]) -> str | None:
    """Return the permission mode that is asked for; the first of the agent's when none is."""
    chosen = args.get(PERMISSION_MODE_ARGUMENT)
    if isinstance(chosen, str) and chosen:
        return chosen
    modes = agent.session_config.permission_modes if agent.session_config is not None else ()
    return modes[0] if modes else None


def _start_flags(
    agent: Agent, config: SessionConfig, *, session_id: str | None, start: ConversationStart, resumed_ref: str | None
) -> list[str]:
    if start is ConversationStart.FRESH:
        return _filled(config.flags.get("session_id", ()), session_id)
    if not config.resume_flags or resumed_ref is None:
        raise RunnerError(
            f"{agent.slug} cannot go on with an earlier conversation this way", hint="run the task afresh"
        )
    if start is ConversationStart.RESUME:
        return _filled(config.resume_flags, resumed_ref)
    if "fork" not in config.flags:
        raise RunnerError(
            f"{agent.slug} cannot copy a conversation this way", hint="go on with it, or run the task afresh"
        )
    own = config.flags["fork"]
    flags = [] if "{{value}}" in own else _filled(config.resume_flags, resumed_ref)
    return [*flags, *_filled(own, resumed_ref), *_filled(config.flags.get("session_id", ()), session_id)]


def _choice_flags(config: SessionConfig, purpose: str, chosen: str | None) -> list[str]:
    """Return the flags for one choice: those of this very value before those of any."""
    return _filled(config.flags.get(f"{purpose}:{chosen}", config.flags.get(purpose, ())), chosen)


def _tool_flags(agent: Agent, config: SessionConfig) -> list[str]:
    words = []
    for tool, is_enabled in sorted(agent.tools.items()):
        words += _filled(config.flags.get("allow_tool" if is_enabled else "deny_tool", ()), tool)
    return words


def _filled(flags: tuple[str, ...], value: str | None) -> list[str]:
    """Return the flags with the value, which is a word that the agent or a person chose and must not be an option.

    Raises:
        RunnerError: It would be read as one, as the name of a conversation that is ``--help``.
    """
    if value is None:
        return []
    if "{{value}}" in flags and (value.startswith("-") or not value.isprintable()):
        raise RunnerError(
            f"{value!r} cannot be passed to the agent: it would be taken for an option", hint="run the task afresh"
        )
    return [flag.replace("{{value}}", value) for flag in flags]
