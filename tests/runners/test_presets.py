from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from rich.cells import cell_len

from agentmon.domain.agents import Agent, Capability, DiscoveryMethod, InteractionMode, ToolType
from agentmon.domain.any_command import ANY_COMMAND_KEY, ANY_COMMAND_SLUG
from agentmon.domain.errors import ArgumentsError, UsageError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import ConversationStart
from agentmon.runners.adapters.arguments import check_arguments
from agentmon.runners.adapters.prompt import (
    MODEL_ARGUMENT,
    PERMISSION_MODE_ARGUMENT,
    conversation_command,
    mode_of,
)
from agentmon.runners.adapters.template import render_command
from agentmon.runners.environment import select_environment
from agentmon.runners.presets import PresetAgent, agents_of, find_installed, load_presets
from agentmon.runners.screens.rules import NO_RULES, find_agent_rules

if TYPE_CHECKING:
    from pathlib import Path

PRESETS = load_presets()
AGENTS = agents_of(PRESETS)
CONVERSING = [agent for agent in AGENTS if agent.session_config is not None]
CAPABILITIES = [
    pytest.param(agent, capability, id=f"{agent.slug}-{capability.key}")
    for agent in AGENTS
    for capability in agent.capabilities
]
# What to give where an argument is required and has no default.
SAMPLES: dict[str, object] = {
    "archive": "a.tgz",
    "argv": ["true"],
    "branch": "next",
    "chart": "charts/web",
    "code": "print()",
    "commands": ["true"],
    "container": "web",
    "database": "a.db",
    "end": "1:30",
    "filter": ".",
    "hook": "ruff",
    "message": "Mend it",
    "module": "unittest",
    "name": "web",
    "names": ["web"],
    "number": "12",
    "output": "b.mp4",
    "package": "left-pad",
    "packages": ["left-pad"],
    "path": "a file",
    "paths": ["a file"],
    "pattern": "-x",
    "playbook": "site.yml",
    "prompt": "Mend it",
    "recipe": "build",
    "release": "web",
    "resource": "deploy/web",
    "resources": ["pod/web-1"],
    "revision": "HEAD",
    "rule": "F401",
    "run": "12",
    "script": "build",
    "size": "50%",
    "source": "a/",
    "sql": "select 1",
    "table": "users",
    "tag": "shop:dev",
    "target": "b",
    "thread": "T-1",
    "title": "Mend it",
    "url": "http://127.0.0.1/",
}


def add_program(folder: Path, name: str, *, mode: int = 0o755) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(mode)
    return program


def agent_named(slug: str) -> Agent:
    return next(agent for agent in AGENTS if agent.slug == slug)


def command_of(slug: str, key: str, **args: object) -> tuple[str, ...]:
    agent = agent_named(slug)
    capability = next(capability for capability in agent.capabilities if capability.key == key)
    return render_command(
        capability,
        binary=agent.binary_path,
        base_args=agent.base_args,
        task_title="Title",
        args=check_arguments(capability.args_schema, args),
        prompt_additions="",
    )


def output_of(words: tuple[str, ...], folder: Path) -> str:
    done = subprocess.run(
        words,
        cwd=folder,
        env=select_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.stdout + done.stderr


def properties_of(capability: Capability) -> dict[str, dict[str, object]]:
    properties = capability.args_schema["properties"]
    assert isinstance(properties, dict)
    return properties


def test_any_command_comes_first_and_takes_a_list_of_words() -> None:
    first = AGENTS[0]

    assert (first.slug, first.binary_path, first.capabilities[0].key) == (ANY_COMMAND_SLUG, "", ANY_COMMAND_KEY)
    assert command_of(ANY_COMMAND_SLUG, ANY_COMMAND_KEY, argv=["echo", "a b"]) == ("echo", "a b")


@pytest.mark.parametrize(("agent", "capability"), CAPABILITIES)
def test_each_capability_has_a_form_that_works(agent: Agent, capability: Capability) -> None:
    properties = properties_of(capability)
    required = capability.args_schema["required"]
    assert isinstance(required, list)
    Draft202012Validator.check_schema(capability.args_schema)

    checked = check_arguments(capability.args_schema, {name: SAMPLES[name] for name in required})
    words = render_command(
        capability,
        binary=agent.binary_path,
        base_args=agent.base_args,
        task_title="",
        args=checked,
        prompt_additions="",
    )

    assert words
    used = set(re.findall(r"\{\{(?:\S+ )?args\.(\w+)\}\}", " ".join(capability.command_tokens)))
    if capability.interaction_mode is InteractionMode.PROMPT:
        used |= {MODEL_ARGUMENT, PERMISSION_MODE_ARGUMENT} & set(properties)
    assert used == set(properties)
    assert all(described["title"] and described["type"] for described in properties.values())
    assert capability.label[0].isupper()


@pytest.mark.parametrize("agent", CONVERSING, ids=lambda agent: agent.slug)
def test_each_agent_that_converses_can_be_started_in_every_mode_it_offers(agent: Agent) -> None:
    config = agent.session_config
    assert config is not None
    prompted = [part for part in agent.capabilities if part.interaction_mode is InteractionMode.PROMPT]
    for capability in prompted:
        mode = mode_of(agent, capability)
        properties = properties_of(capability)
        offered = properties.get(PERMISSION_MODE_ARGUMENT, {}).get("enum", [])
        assert isinstance(offered, list)
        assert set(offered) <= set(config.permission_modes)
        for permission_mode in offered or [None]:
            words = conversation_command(
                agent,
                capability,
                mode,
                task_title="",
                args={MODEL_ARGUMENT: "m-1", PERMISSION_MODE_ARGUMENT: permission_mode, "argv": ["an-agent", "--acp"]},
                session_id="0191e4a0-0000-7000-8000-000000000000",
                start=ConversationStart.FRESH,
                resumed_ref=None,
            )
            assert words[0] == (agent.binary_path or "an-agent")
            assert ("m-1" in words) == (mode in {ExecutionMode.STREAM_JSON, ExecutionMode.TMUX})
            assert not [word for word in words if "{{" in word]
    # Without rules for its screen nothing could tell when an agent takes its prompt.
    has_rules = find_agent_rules(agent.slug, agent.binary_path) is not NO_RULES
    modes = [mode_of(agent, part) for part in prompted]
    assert modes == [config.bidirectional_protocol, *([ExecutionMode.TMUX] if has_rules else [])]


def test_agents_and_tools_of_all_sorts_are_there() -> None:
    slugs = {agent.slug for agent in AGENTS}

    assert slugs >= {
        *("acp", "aider", "amp", "claude", "cline", "codex", "copilot", "crush", "cursor"),
        *("droid", "gemini", "goose", "kimi", "opencode", "qwen"),
    }
    assert sum(agent.tool_type is ToolType.AI_AGENT for agent in AGENTS) == 15
    assert sum(agent.tool_type is ToolType.CLI_TOOL for agent in AGENTS) >= 40
    assert {part.danger_level for agent in AGENTS for part in agent.capabilities} == {0, 1, 2, 3}


def test_agents_of_which_no_program_is_known_wait_for_a_person_to_turn_them_on() -> None:
    (acp,) = [agent for agent in AGENTS if agent.slug == "acp"]

    assert (acp.is_active, acp.discovery_method) == (False, DiscoveryMethod.MANUAL)
    assert [agent.slug for agent in AGENTS if not agent.is_active] == ["acp"]


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_each_preset_says_what_it_was_tried_with(preset: PresetAgent) -> None:
    assert preset.checked_with or preset.unchecked or preset.slug == ANY_COMMAND_SLUG
    if preset.tool_type is ToolType.AI_AGENT and preset.binary:
        assert preset.login is not None
        assert preset.login.hint
        assert preset.version_pattern is not None


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.slug)
def test_each_agent_can_be_shown_and_has_a_usable_environment(agent: Agent) -> None:
    assert cell_len(agent.icon) == 1
    assert agent.name
    assert agent.description
    assert agent.max_concurrent == 0
    assert select_environment({"PATH": "/bin"}, allowlist=agent.env_allowlist) == {"PATH": "/bin"}


def test_only_programs_on_path_that_can_be_executed_are_found(tmp_path: Path) -> None:
    git = add_program(tmp_path / "first", "git")
    add_program(tmp_path / "second", "git")
    add_program(tmp_path / "first", "make", mode=0o644)
    (tmp_path / "first" / "npm").mkdir()
    (tmp_path / "first" / "cargo").symlink_to(tmp_path / "gone")

    installed = find_installed({"PATH": f"{tmp_path}/first:{tmp_path}/second"})

    assert [(preset.slug, preset.binary_path) for preset in installed] == [
        ("command", ""),
        ("acp", ""),
        ("git", str(git)),
    ]


def test_relative_folders_of_path_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_program(tmp_path, "git")
    monkeypatch.chdir(tmp_path)

    for path in (".", "", ":.:"):
        assert [preset.slug for preset in find_installed({"PATH": path})] == ["command", "acp"]


def test_agents_keep_the_name_of_their_program_and_their_order(tmp_path: Path) -> None:
    add_program(tmp_path, "git")

    command, _, git = agents_of(find_installed({"PATH": str(tmp_path)}))

    assert git.binary_path == "git"
    assert (command.discovery_method, git.discovery_method) == (DiscoveryMethod.PRESET, DiscoveryMethod.PATH_SCAN)
    assert [part.key for part in git.capabilities][:4] == ["status", "log", "diff", "fetch"]
    ids = [command.id, *(part.id for part in command.capabilities), git.id, *(part.id for part in git.capabilities)]
    assert ids == sorted(set(ids))
    assert {capability.agent_id for capability in git.capabilities} == {git.id}


def test_git_takes_hostile_text_for_names_and_needs_no_pager(tmp_path: Path) -> None:
    output_of(("git", "init", "-q"), tmp_path)

    assert command_of("git", "log")[:2] == ("git", "--no-pager")
    assert output_of(command_of("git", "status"), tmp_path).startswith("## No commits yet")
    assert "--output=stolen" in output_of(command_of("git", "log", revision="--output=stolen"), tmp_path)
    assert "--output=stolen" in output_of(command_of("git", "diff", revision="--output=stolen"), tmp_path)
    assert not (tmp_path / "stolen").exists()


def test_git_takes_the_words_of_each_of_its_commands(tmp_path: Path) -> None:
    repository, remote = tmp_path / "repository", tmp_path / "remote.git"
    for words in (
        ("git", "init", "-q", "-b", "main", str(repository)),
        ("git", "init", "-q", "--bare", str(remote)),
        ("git", "-C", str(repository), "remote", "add", "origin", str(remote)),
        ("git", "-C", str(repository), "config", "user.name", "A"),
        ("git", "-C", str(repository), "config", "user.email", "a@example.org"),
    ):
        assert output_of(words, tmp_path) == ""

    def run(key: str, **args: object) -> str:
        return output_of(command_of("git", key, **args), repository)

    (repository / "a").write_text("one\n")
    assert run("add", paths=["a"]) == ""
    assert "1 file changed" in run("commit", message="--amend")
    assert "new branch" in run("push")
    assert "--amend" in run("show")
    assert "one" in run("blame", path="a", lines="1,+1")
    assert run("grep", pattern="o.e", paths=["a"]) == "a:1:one\n"
    assert "remotes/origin/main" in run("branches")
    assert "[main]" in run("worktrees")
    assert "next" in run("new-branch", branch="next", start="HEAD")
    assert "main" in run("switch", branch="main")
    assert "up to date" in run("pull")
    assert "fatal" not in run("fetch")
    (repository / "b").write_text("two\n")
    assert "Saved" in run("stash", message="for later")
    (repository / "a").write_text("changed\n")
    (repository / "c").write_text("new\n")
    assert "changed" in run("diff")
    assert "is now at" in run("reset")
    assert "Removing c" in run("clean")
    assert (repository / "a").read_text() == "one\n"
    assert "invalid" in run("switch", branch="gone")


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_a_query_of_sqlite_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "databases"
    folder.mkdir()
    assert output_of(("sqlite3", "a.db", "create table t(a); insert into t values (7);"), folder) == ""

    assert "7" in output_of(command_of("sqlite3", "query", database="a.db", sql="select a from t"), folder)
    for hostile in ("delete from t", "attach 'b.db' as b; create table b.t(a)", "vacuum into 'b.db'"):
        assert output_of(command_of("sqlite3", "query", database="a.db", sql=hostile), folder) != ""
    for command in (".trace file", ".shell touch file", "-cmd"):
        with pytest.raises(ArgumentsError):
            command_of("sqlite3", "query", database="a.db", sql=command)
    assert "7" in output_of(command_of("sqlite3", "query", database="a.db", sql="select a from t"), folder)
    assert [path.name for path in folder.iterdir()] == ["a.db"]


def test_make_and_the_shell_take_hostile_text_for_names(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n\t@echo made\n")
    (tmp_path / "-s").write_text('echo "file $1"\n')

    assert output_of(command_of("make", "build"), tmp_path) == "made\n"
    assert "-n" in output_of(command_of("make", "build", targets=["-n"]), tmp_path)
    assert "echo made" not in output_of(command_of("make", "build", targets=["-n"]), tmp_path)
    assert output_of(command_of("sh", "script", script="echo a | tr a b"), tmp_path) == "b\n"
    assert "not found" in output_of(command_of("sh", "script", script="-x"), tmp_path)
    assert output_of(command_of("sh", "file", path="./-s", arguments=["-x"]), tmp_path) == "file -x\n"


AGENT = '[[agent]]\nslug = "x"\nname = "X"\nbinary = "x"\n'
CAPABILITY = AGENT + '[[agent.capability]]\nkey = "k"\nlabel = "K"\ncommand_tokens = ["a"]\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[agent", "the preset file x.preset.toml cannot be read"),
        ("", "x.preset.toml: agent is missing"),
        ("agent = 3", "x.preset.toml: agent must be a list"),
        ("agent = [3]", "x.preset.toml: agent must be tables"),
        ("colour = 3", "x.preset.toml: unknown entry colour; known are agent"),
        (AGENT, "x.preset.toml, agent x: capability is missing"),
        (CAPABILITY.replace('slug = "x"', 'slug = "X y"'), "x.preset.toml: slug 'X y' may have lower-case"),
        (CAPABILITY.replace('name = "X"', 'name = ""'), "x.preset.toml, agent x: name is empty"),
        (CAPABILITY.replace('binary = "x"\n', ""), "x.preset.toml, agent x: binary is missing"),
        (CAPABILITY.replace('binary = "x"', "binary = true"), "agent x: binary must be a string"),
        (CAPABILITY.replace('binary = "x"', 'binary = "x"\ntool_type = "pet"'), "agent x: pet is none of cli-tool"),
        (
            CAPABILITY.replace('binary = "x"', 'binary = "x"\nmax_concurrent = -1'),
            "max_concurrent must not be negative",
        ),
        (CAPABILITY.replace('command_tokens = ["a"]\n', ""), "agent x, capability k: command_tokens is missing"),
        (CAPABILITY.replace('["a"]', '["a", 1]'), "command_tokens must be a list of strings"),
        (CAPABILITY + "danger_level = 7\n", "agent x, capability k: 7 is none of 0, 1, 2, 3"),
        (CAPABILITY + "timeout_s = true\n", "timeout_s must be a whole number"),
        (CAPABILITY + "timeout = 3\n", "unknown entry timeout; known are"),
        (CAPABILITY + 'required = ["a"]\n', "required names a, which args does not describe"),
        (CAPABILITY + "args = { a = 3 }\n", "args must hold one table for each argument"),
        (CAPABILITY + '[[agent.capability]]\nkey = "k"\nlabel = "K"\ncommand_tokens = []\n', "have the same key"),
        (CAPABILITY + CAPABILITY, "two presets are called x"),
    ],
)
def test_a_broken_preset_file_is_named_with_its_fault(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "x.preset.toml").write_text(text)

    with pytest.raises(UsageError) as caught:
        load_presets(tmp_path)

    assert message in str(caught.value)


def test_an_entry_that_is_left_out_has_its_default(tmp_path: Path) -> None:
    (tmp_path / "x.preset.toml").write_text(CAPABILITY)

    (preset,) = load_presets(tmp_path)

    assert isinstance(preset, PresetAgent)
    assert (preset.capabilities[0].timeout_s, preset.capabilities[0].max_output_bytes) == (300, 10 * 1024 * 1024)
    assert (preset.max_concurrent, preset.base_args, preset.capabilities[0].requires_approval) == (0, (), False)
