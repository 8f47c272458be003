"""The values of presets: what a data file says of a program."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re
    from collections.abc import Mapping
    from pathlib import Path

    from agentmon.domain.agents import DangerLevel, InteractionMode, SessionConfig, ToolType
    from agentmon.domain.execution_mode import ExecutionMode


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetCapability:
    """One thing that a preset's program can be asked to do; the fields mean what they mean in ``Capability``."""

    key: str
    label: str
    description: str
    interaction_mode: InteractionMode
    command_tokens: tuple[str, ...]
    prompt_template: str
    mode: ExecutionMode | None
    args_schema: Mapping[str, object]
    requires_approval: bool
    danger_level: DangerLevel
    timeout_s: int
    max_output_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetLogin:
    """How one can tell, without a network, whether somebody is logged in with a program; any of the three says yes."""

    environment: tuple[str, ...] = ()
    """Variables that hold a key: one that is set and not empty is enough."""
    files: tuple[str, ...] = ()
    """Files that the program writes when one logs in, with ``~`` for the home folder: one that is there is enough."""
    command: tuple[str, ...] = ()
    """Words after the program that make it say so; asked only with a test run. Exit code 0 is a yes."""
    pattern: re.Pattern[str] | None = None
    """What the command's output has to hold as well; None where the exit code is enough."""
    may_be_elsewhere: bool = False
    """Whether a login may also be kept where nothing here looks, as in the system's key store, so that finding none
    means nothing."""
    hint: str = ""
    """What to do to log in: ``run `codex login```."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetAgent:
    """A program as its preset describes it; the fields mean what they mean in ``Agent``."""

    slug: str
    name: str
    description: str
    tool_type: ToolType
    binary: str
    """The name to look for on PATH; empty for the agent that runs any command."""
    base_args: tuple[str, ...]
    env_allowlist: tuple[str, ...]
    max_concurrent: int
    icon: str
    homepage: str
    session_config: SessionConfig | None
    capabilities: tuple[PresetCapability, ...]
    also_known_as: tuple[str, ...] = ()
    """Other names of the same program, looked for when ``binary`` is not there: ``batcat`` for ``bat``."""
    packages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The packages that bring it, by manager as in ``Program.package_manager``; to tell it from a namesake."""
    version_args: tuple[str, ...] = ("--version",)
    """Words after the program that make it tell its version."""
    version_pattern: re.Pattern[str] | None = None
    """Where the version stands in its answer: the first group. No match means another program of the same name."""
    is_active: bool = True
    """Whether the agent is on at once when its program is found; otherwise it waits for a person to turn it on."""
    login: PresetLogin | None = None
    """None for a program without a login, or one that cannot tell."""
    role: str | None = None
    color: str = ""
    """Such as ``#d97757``; empty for none."""
    checked_with: str = ""
    """The version of the program that all words of the preset were tried with."""
    unchecked: str = ""
    """A sentence on what could not be tried; empty when all was."""
    path: Path | None = None
    """The file that it was read from."""
    is_own: bool = False
    """Whether that file is the person's."""
    binary_path: str = ""
    """Where ``find_installed`` saw the program; empty before that, and for the agent that runs any command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetProblem:
    """Why a file of a person, or one agent of it, cannot be used."""

    path: Path
    message: str
    """Names the file, the agent and the entry."""
    hint: str

    def __str__(self) -> str:
        """Return what is wrong and what to do, as one line."""
        return f"{self.message}; {self.hint}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetLibrary:
    """All presets that can be used, and what is wrong with the others."""

    presets: tuple[PresetAgent, ...]
    """Those that need no program first, then by slug."""
    problems: tuple[PresetProblem, ...] = ()
