"""What an agent is told first, and the command that starts it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from agentmon.domain.agents import Agent, Capability, InteractionMode, SessionConfig
from agentmon.domain.errors import ArgumentsError, RunnerError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.domain.ids import AgentId, CapabilityId, TaskId, WorkspaceId
from agentmon.domain.tasks import InputContext, Task
from agentmon.runners.adapters.prompt import (
    CHOSEN_LATER,
    command_before_arguments,
    conversation_command,
    fork_obstacle,
    mode_of,
    model_of,
    own_environment,
    permission_mode_of,
    render_prompt,
)

NOW = datetime(2026, 11, 28, tzinfo=UTC)
TASK = Task(
    id=TaskId("t"),
    number=1,
    workspace_id=WorkspaceId("w"),
    title="Fix it",
    description="The login\n\n  fails",
    created_at=NOW,
    updated_at=NOW,
)
WORK = Capability(
    id=CapabilityId("c"),
    agent_id=AgentId("a"),
    key="work",
    label="Work",
    interaction_mode=InteractionMode.PROMPT,
    command_tokens=("--max-turns={{args.max_turns}}",),
    args_schema={"type": "object", "properties": {"max_turns": {"type": "integer"}}},
)
CONFIG = SessionConfig(
    bidirectional_protocol=ExecutionMode.STREAM_JSON,
    protocol_args=("-p",),
    screen_args=("--tui",),
    resume_flags=("--resume", "{{value}}"),
    flags={
        "session_id": ("--session-id", "{{value}}"),
        "fork": ("--fork",),
        "model": ("--model", "{{value}}"),
        "permission_mode": ("--mode", "{{value}}"),
        "permission_mode:free": ("--yolo",),
        "allow_tool": ("--allow={{value}}",),
        "deny_tool": ("--deny={{value}}",),
    },
    permission_modes=("ask", "free"),
)
AGENT = Agent(
    id=AgentId("a"), slug="bot", name="Bot", binary_path="bot", base_args=("--quiet",), session_config=CONFIG,
    capabilities=(WORK,),
)  # fmt: skip


def command(
    agent: Agent = AGENT,
    mode: ExecutionMode = ExecutionMode.STREAM_JSON,
    start: ConversationStart = ConversationStart.FRESH,
    resumed_ref: str | None = None,
    **args: object,
) -> tuple[str, ...]:
    return conversation_command(
        agent, WORK, mode, task_title="", args=args, session_id="s-1", start=start, resumed_ref=resumed_ref
    )


def test_a_prompt_is_the_title_the_description_and_what_the_task_adds() -> None:
    task = replace(TASK, input_context=InputContext(prompt_additions="Be brief."))

    assert render_prompt(WORK, agent=AGENT, task=task, args={}) == "Fix it\n\nThe login\n\n  fails\n\nBe brief."


def test_what_a_task_does_not_say_leaves_no_gap() -> None:
    assert render_prompt(WORK, agent=AGENT, task=replace(TASK, description=""), args={}) == "Fix it"


def test_what_people_wrote_is_never_taken_for_a_placeholder() -> None:
    task = replace(TASK, description="use {{args.max_turns}} and {{nothing}}; $(touch X) `id`")

    assert render_prompt(WORK, agent=AGENT, task=task, args={"max_turns": 3}).endswith(task.description)


def test_an_agents_instructions_come_first() -> None:
    told = render_prompt(WORK, agent=replace(AGENT, instructions="Speak plainly.\n"), task=TASK, args={})

    assert told.startswith("Speak plainly.\n\nFix it")


def test_a_role_is_told_when_a_person_gave_it() -> None:
    of_preset = replace(AGENT, role="coding agent")
    of_person = replace(AGENT, role="reviewer", edited_fields=("role",))

    assert render_prompt(WORK, agent=of_preset, task=TASK, args={}).startswith("Fix it")
    assert render_prompt(WORK, agent=of_person, task=TASK, args={}).startswith("Your role: reviewer\n\nFix it")


def test_a_temperature_and_a_model_are_told_by_flag_and_by_variable() -> None:
    flags = {"temperature": ("--temperature", "{{value}}")}
    environment = {"PLAIN": "1", "BOT_TEMPERATURE": "{{temperature}}", "BOT_MODEL": "x/{{model}}"}
    agent = replace(AGENT, session_config=replace(CONFIG, flags=flags, environment=environment), temperature=0.5)

    assert command(agent, mode=ExecutionMode.ACP)[-2:] == ("--temperature", "0.5")
    assert own_environment(agent, {}) == {"PLAIN": "1", "BOT_TEMPERATURE": "0.5"}
    assert own_environment(replace(agent, temperature=None, model="m"), {}) == {"PLAIN": "1", "BOT_MODEL": "x/m"}


def test_a_template_that_says_nothing_is_refused() -> None:
    silent = replace(WORK, prompt_template="{{input_context.prompt_additions}}")

    with pytest.raises(ArgumentsError, match="prompt is empty"):
        render_prompt(silent, agent=AGENT, task=TASK, args={})


def test_an_unknown_placeholder_is_refused_by_name() -> None:
    with pytest.raises(ArgumentsError, match="nothing"):
        render_prompt(replace(WORK, prompt_template="{{nothing}}"), agent=AGENT, task=TASK, args={})


def test_the_prompt_is_no_part_of_the_command_and_the_choices_are() -> None:
    words = command(model="big", permission_mode="ask", max_turns=3)

    assert words == (
        *("bot", "--quiet", "--session-id", "s-1", "-p", "--model", "big", "--mode", "ask", "--max-turns=3"),
    )


def test_a_permission_mode_may_have_flags_of_its_own_and_the_first_is_the_default() -> None:
    assert "--yolo" in command(permission_mode="free")
    assert command()[-2:] == ("--mode", "ask")


def test_its_own_screen_takes_the_arguments_of_the_screen() -> None:
    words = command(mode=ExecutionMode.TMUX)

    assert "--tui" in words
    assert "-p" not in words


def test_in_a_protocol_that_tells_them_itself_no_choice_is_an_argument() -> None:
    assert command(mode=ExecutionMode.ACP, model="big", permission_mode="free") == ("bot", "--quiet", "-p")


def test_a_conversation_is_resumed_by_its_own_id_and_copied_under_a_new_one() -> None:
    resumed = command(start=ConversationStart.RESUME, resumed_ref="old")
    forked = command(start=ConversationStart.FORK, resumed_ref="old")

    assert resumed[2:4] == ("--resume", "old")
    assert "--session-id" not in resumed
    assert forked[2:7] == ("--resume", "old", "--fork", "--session-id", "s-1")


def test_a_copy_that_names_its_conversation_needs_no_word_that_resumes() -> None:
    config = replace(CONFIG, flags={"fork": ("fork", "{{value}}")})
    forked = command(replace(AGENT, session_config=config), start=ConversationStart.FORK, resumed_ref="old")

    assert forked[2:4] == ("fork", "old")
    assert "--resume" not in forked


def test_what_its_own_screen_cannot_copy_is_known_before_it_begins() -> None:
    bare = replace(AGENT, session_config=replace(CONFIG, flags={}))

    assert fork_obstacle(bare, ExecutionMode.TMUX)
    assert not fork_obstacle(AGENT, ExecutionMode.TMUX)
    assert not fork_obstacle(bare, ExecutionMode.ACP)


def test_what_cannot_be_resumed_says_so() -> None:
    bare = replace(AGENT, session_config=replace(CONFIG, resume_flags=(), flags={}))

    with pytest.raises(RunnerError, match="earlier conversation"):
        command(bare, start=ConversationStart.RESUME, resumed_ref="old")
    with pytest.raises(RunnerError, match="cannot copy"):
        command(
            replace(AGENT, session_config=replace(CONFIG, flags={})), start=ConversationStart.FORK, resumed_ref="old"
        )


@pytest.mark.parametrize("name", ["--help", "-p", "--dangerously-skip-permissions", "a\nb", "a\x1bb"])
def test_the_name_of_a_conversation_is_never_an_option(name: str) -> None:
    with pytest.raises(RunnerError, match="taken for an option"):
        command(start=ConversationStart.RESUME, resumed_ref=name)
    with pytest.raises(RunnerError, match="taken for an option"):
        command(model=name)


def test_tools_that_are_allowed_or_taken_away_become_flags() -> None:
    words = command(replace(AGENT, tools={"Bash": False, "Read": True, "WebFetch": False}))

    assert [word for word in words if "=" in word] == ["--deny=Bash", "--allow=Read", "--deny=WebFetch"]


def test_the_mode_is_the_capabilitys_the_agents_or_the_one_that_is_asked_for() -> None:
    screen = replace(WORK, mode=ExecutionMode.TMUX)

    assert mode_of(AGENT, WORK) is ExecutionMode.STREAM_JSON
    assert mode_of(AGENT, screen) is ExecutionMode.TMUX
    assert mode_of(AGENT, WORK, own_screen=True) is ExecutionMode.TMUX
    assert mode_of(AGENT, replace(WORK, interaction_mode=InteractionMode.TEMPLATE)) is ExecutionMode.TEMPLATE
    with pytest.raises(RunnerError, match="given a prompt"):
        mode_of(replace(AGENT, session_config=None), WORK)


def test_a_choice_of_the_run_counts_before_that_of_the_agent() -> None:
    agent = replace(AGENT, model="its-own")

    assert (model_of(agent, {}), model_of(agent, {"model": "other"})) == ("its-own", "other")
    assert (permission_mode_of(agent, {}), permission_mode_of(agent, {"permission_mode": "free"})) == ("ask", "free")


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        (ExecutionMode.TMUX, ("--session-id", CHOSEN_LATER, "--tui", "--mode", "ask")),
        (None, ("--session-id", CHOSEN_LATER, "-p", "--mode", "ask")),
    ],
)
def test_a_command_is_shown_in_its_mode_with_the_placeholders_of_its_arguments(
    mode: ExecutionMode | None, words: tuple[str, ...]
) -> None:
    shown = command_before_arguments(replace(AGENT, model=None, tools={}), replace(WORK, mode=mode))

    head = tuple(word for word in (AGENT.binary_path, *AGENT.base_args) if word)
    assert shown == (*head, *words, "--max-turns={{args.max_turns}}")
