"""What a task asks of its agent, as a request for the queue: the same for a person's run and for a schedule's."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from agentmon.domain.conversation import AskKind, AskNews
from agentmon.domain.executions import ConversationRequest, ConversationStart, ExecutionRequest
from agentmon.domain.handover import with_history
from agentmon.domain.operations import OperationType
from agentmon.domain.start_danger import start_danger
from agentmon.runners.adapters.prompt import (
    MODEL_ARGUMENT,
    PERMISSION_MODE_ARGUMENT,
    asked_text,
    fork_obstacle,
    mode_of,
    model_of,
    permission_mode_of,
    render_prompt,
    with_instructions,
)
from agentmon.runners.adapters.template import check_arguments, render_command
from agentmon.runners.execution_folder import open_at_once

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.agents import Agent, Capability
    from agentmon.domain.danger import DangerRules
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.tasks import Task

START_REQUEST_ID: Final = "start"
NO_VARIABLES: Final = MappingProxyType[str, str]({})
_NOT_WIDER: Final = frozenset(
    {
        *("agent", "approve", "ask", "build", "chat", "default", "manual", "normal", "plan", "read-only"),
        *("smart_approve", "spec", "untrusted"),
    }
)
"""Permission modes of the presets in which an agent may do no more than where none is chosen."""
_TARGET_MAX_CHARACTERS: Final = 1000
_DETAIL_MAX_CHARACTERS: Final = 40_000
_MOST_WORDS: Final = 200
_LARGEST_FILE_BYTES: Final = 4 * 1024 * 1024
"""Of a file that a command names, how much is part of what is allowed."""


def build_request(
    task: Task,
    agent: Agent,
    capability: Capability,
    *,
    args: Mapping[str, object],
    working_dir: str,
    danger_rules: DangerRules,
    is_typed: bool,
    held_for: str = "",
    known_mode: object = None,
    variables: Mapping[str, str] = NO_VARIABLES,
    search_path: str | None = None,
    project: str = "",
    message: str | None = None,
    history: str = "",
    start: ConversationStart = ConversationStart.FRESH,
    parent_execution_id: ExecutionId | None = None,
    own_screen: bool = False,
    repository: str | None = None,
) -> ExecutionRequest:
    """Return the request for one execution of a task.

    Args:
        task: What is worked on.
        agent: Who works.
        capability: What the agent is asked to do.
        args: The capability's arguments.
        working_dir: Absolute path of the folder it works in.
        danger_rules: The rules about dangerous command lines.
        is_typed: Whether a person gave what it works with, and no agent.
        held_for: Why it waits for a person whatever it would do; empty for no reason.
        known_mode: The permission mode that a person has chosen, or in which its conversation has run before.
        variables: The environment that it gets from who asks for it, and that nobody has judged.
        search_path: Where its program is looked up, when that is kept until it starts.
        project: The repository around that folder; empty when nobody has looked for one.
        message: What the agent is told instead of the task's own text.
        history: What was said and done in a conversation that this one goes on from, told before the message.
        start: How the conversation begins.
        parent_execution_id: The execution whose conversation goes on.
        own_screen: Whether the agent shows its own screen instead of speaking its protocol.
        repository: The working tree around that folder; None for a folder in no repository.

    Raises:
        ArgumentsError: The prompt is empty, or a placeholder of it is unknown.
        RunnerError: Nothing says how the agent is given a prompt.
    """
    mode = mode_of(agent, capability, own_screen=own_screen)
    conversation = None
    if mode.is_conversation:
        asked = asked_text(capability, task=task, args=args) if message is None else message
        conversation = ConversationRequest(
            prompt=with_history(history, _prompt(task, agent, capability, args=args, message=message, start=start)),
            asked=asked,
            is_message=message is not None,
            working_dir=working_dir,
            project=project,
            start=start,
            parent_execution_id=parent_execution_id,
            model=model_of(agent, args),
            permission_mode=permission_mode_of(agent, args),
            cannot_fork=fork_obstacle(agent, mode),
        )
    return ExecutionRequest(
        task_id=task.id,
        agent_id=agent.id,
        capability_id=capability.id,
        mode=mode,
        args=args,
        conversation=conversation,
        start_approval=_start_approval(
            task,
            agent,
            capability,
            args=args,
            working_dir=working_dir,
            conversation=conversation,
            rules=danger_rules,
            is_typed=is_typed,
            held_for=held_for,
            known_mode=known_mode,
            variables=variables,
            search_path=search_path,
        ),
        max_retries=task.input_context.max_retries,
        repository=repository if mode.is_conversation else None,
    )


def _prompt(
    task: Task,
    agent: Agent,
    capability: Capability,
    *,
    args: Mapping[str, object],
    message: str | None,
    start: ConversationStart,
) -> str:
    if message is None:
        return render_prompt(capability, agent=agent, task=task, args=args)
    return with_instructions(agent, message) if start is ConversationStart.FRESH else message


def _start_approval(
    task: Task,
    agent: Agent,
    capability: Capability,
    *,
    args: Mapping[str, object],
    working_dir: str,
    conversation: ConversationRequest | None,
    rules: DangerRules,
    is_typed: bool,
    held_for: str,
    known_mode: object,
    variables: Mapping[str, str],
    search_path: str | None,
) -> AskNews | None:
    """Return what a person has to allow before a dangerous start; None for one that may start."""
    if conversation is None:
        words = render_command(
            capability,
            binary=agent.binary_path,
            base_args=agent.base_args,
            task_title=task.title,
            args=check_arguments(capability.args_schema, args),
            prompt_additions=task.input_context.prompt_additions,
        )
        files = words
        detail = shlex.join((*environment_words(task.input_context.env_overrides, danger_rules=rules), *words))
    else:
        files = ()
        chosen = args.get(PERMISSION_MODE_ARGUMENT)
        words = (agent.slug, *([f"--permission-mode={chosen}"] if chosen else []))
        if chosen and chosen != known_mode and chosen not in _NOT_WIDER and not is_typed:
            held_for = held_for or f"an agent chose the permission mode {chosen}"
        detail = conversation.prompt
    words = (*environment_words({**variables, **task.input_context.env_overrides}, danger_rules=rules), *words)
    danger = start_danger(agent, capability, rules.judge(words), is_typed=is_typed, held_for=held_for)
    if not danger.waits:
        return None
    return AskNews(
        request_id=START_REQUEST_ID,
        ask_kind=AskKind.START,
        tool_name=f"{agent.slug}.{capability.key}",
        type=OperationType.EXECUTE,
        target=detail[:_TARGET_MAX_CHARACTERS],
        title=f"{agent.name}: {capability.label}",
        detail=detail[:_DETAIL_MAX_CHARACTERS],
        danger_level=danger.level,
        danger_name=danger.name,
        danger_reason=danger.reason,
        input_digest=start_digest(detail, working_dir, files, search_path=search_path),
    )


def environment_words(variables: Mapping[str, str], *, danger_rules: DangerRules) -> tuple[str, ...]:
    """Return the variables that decide what programs do, as words in front of a command: ``env A=b``."""
    told = [f"{name}={text}" for name, text in variables.items() if danger_rules.decides(name)]
    return ("env", *told) if told else ()


def start_digest(detail: str, working_dir: str, words: Sequence[str] = (), *, search_path: str | None = None) -> str:
    """Return the digest of what is allowed to start, and where: SHA-256 in hexadecimal digits.

    Args:
        detail: What a person is shown.
        working_dir: Absolute.
        words: Those of a command, of which the files that it names count with what is in them, such as its script.
        search_path: Where its program is looked up, which counts as well; None where that is not known yet.
    """
    digest = hashlib.sha256(f"{detail}\0{working_dir}".encode("utf-8", "surrogateescape"))
    program = shutil.which(words[0], path=search_path) if words and search_path and "/" not in words[0] else None
    named = [] if program is None else [Path(program).resolve()]
    named += [Path(working_dir, word.rpartition("=")[2]) for word in words[:_MOST_WORDS] if "\0" not in word]
    for file in named:
        with contextlib.suppress(OSError, ValueError), open_at_once(file) as opened:
            content = opened.read(_LARGEST_FILE_BYTES)
            digest.update(b"\0" + os.fsencode(file) + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def with_choices(args: Mapping[str, object], *, model: str | None, permission_mode: str | None) -> Mapping[str, object]:
    """Return the arguments with another model or permission mode; None keeps what they say."""
    choices = {MODEL_ARGUMENT: model, PERMISSION_MODE_ARGUMENT: permission_mode}
    return dict(args) | {name: choice for name, choice in choices.items() if choice is not None}
