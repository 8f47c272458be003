"""The words of presets beside the programs that this machine has: what each one's own help says of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.agents import InteractionMode
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.runners.presets import PresetAgent, PresetCapability, find_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

HELP_WORDS: Final = {
    "curl": ("--help", "all"),
    "ffmpeg": ("-h", "full"),
    "imagemagick": ("-help",),
    "python": ("--help-all",),
    "sqlite3": ("-help",),
    "terraform": ("-help",),
}
"""What makes a program tell its options, where it is not ``--help``."""
FURTHER_HELP: Final = {
    "cmake": (("--build",),),
    "go": (("help", "testflag"), ("help", "list")),
    "jq": (("-h",),),
    "kubectl": (("options",),),
    "make": (("--help",),),
    "terraform": (("apply", "-help"),),
}
"""Further pages of help, for options that belong to several commands."""
UNTOLD: Final = {
    *(("claude", flag) for flag in ("--max-turns", "--permission-prompt-tool")),
    ("ffmpeg", "-nostdin"),
    *(("jq", flag) for flag in ("--raw-output", "--compact-output")),
    *(("sqlite3", flag) for flag in ("-header", "-table")),
}
"""Options that are there and that no page of help tells: each was tried by hand."""
NAMESAKES: Final = frozenset({"copilot", "cursor", "goose", "imagemagick", "kimi", "yq"})
"""Programs whose name another one has too; nothing is asked of such a one."""
RUN_INSTEAD: Final = frozenset({"git", "sh"})
"""Programs without a page of all options: their words are run, see ``test_presets`` and below."""
PLUGINS: Final = {"docker": "compose"}
"""Commands that a plugin brings, which need not be there."""
TOOLCHAINS: Final = {
    name: os.environ.get(name) or str(Path.home() / folder)
    for name, folder in (("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup"), ("PYENV_ROOT", ".pyenv"))
}
"""Where shims find the programs that they stand for; the home folder of a test holds none."""
DEADLINE_S: Final = 60
QUICK: Final = frozenset({"cmake", "curl", "docker", "jq", "make", "ninja", "node", "psql", "python", "sqlite3", "tar"})
INSTALLED: Final = [
    pytest.param(preset, id=preset.slug, marks=() if preset.slug in QUICK else pytest.mark.proof)
    for preset in find_installed(os.environ)
    if preset.binary and preset.slug not in RUN_INSTEAD
]


def ask(preset: PresetAgent, *words: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    return subprocess.run(
        (preset.binary_path, *words),
        cwd=home,
        env=environment
        | TOOLCHAINS
        | {"HOME": str(home), "COLUMNS": "500", "NO_COLOR": "1", "CHECKPOINT_DISABLE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=DEADLINE_S,
        check=False,
    )


def words_of(preset: PresetAgent, capability: PresetCapability) -> list[str]:
    """Return the words that stand before a placeholder's value or in front of ``--``, options in braces too."""
    words = list(preset.base_args)
    config = preset.session_config
    if capability.interaction_mode is InteractionMode.PROMPT and config is not None:
        words += config.screen_args if capability.mode is ExecutionMode.TMUX else config.protocol_args
        if capability.mode is ExecutionMode.TMUX:
            words += [word for flags in config.flags.values() for word in flags]
            words += config.resume_flags
    return [*words, *capability.command_tokens]


def options_in(words: list[str]) -> Iterator[str]:
    for word in words:
        if word == "--":
            return
        bare = re.sub(r"^\{\{(\S+) args\.\w+\}\}$", r"\1", word)
        if bare.startswith("-") and bare != "-":
            option = re.split(r"[=*+:]|\{\{", bare)[0]
            yield option if option.startswith("--") else re.sub(r"^(-D)[A-Z_]+$", r"\1", option)


def commands_in(preset: PresetAgent, capability: PresetCapability) -> tuple[str, ...]:
    """Return the commands below the program, such as ``pr list``: what stands before the first option."""
    words = []
    for word in words_of(preset, capability)[len(preset.base_args) :]:
        if word.startswith(("-", "{{", ".", "\\")):
            break
        words.append(word)
    return tuple(words)


@pytest.mark.parametrize("preset", INSTALLED)
def test_each_option_of_a_preset_is_one_that_the_program_tells(preset: PresetAgent, tmp_path: Path) -> None:
    version = ask(preset, *preset.version_args, home=tmp_path)
    told = preset.version_pattern.search(version.stdout) if preset.version_pattern is not None else None
    if version.returncode != 0 and told is None:
        pytest.skip(f"{preset.binary_path} cannot be started here")
    if told is None and preset.slug in NAMESAKES:
        pytest.skip(f"{preset.binary_path} is another program")
    assert told is not None, version.stdout

    help_words = HELP_WORDS.get(preset.slug, ("--help",))
    pages: dict[tuple[str, ...], str] = {}
    for words in ((*help_words,), *FURTHER_HELP.get(preset.slug, ())):
        pages[words] = ask(preset, *words, home=tmp_path).stdout
    general = "\n".join(pages.values())
    plugin = PLUGINS.get(preset.slug)
    missing = {plugin} if plugin and ask(preset, plugin, "version", home=tmp_path).returncode else set()
    unknown = []
    for capability in preset.capabilities:
        commands = commands_in(preset, capability)
        if not missing.isdisjoint(commands):
            continue
        options = [
            option
            for option in options_in(words_of(preset, capability))
            if (preset.slug, option) not in UNTOLD and option not in preset.version_args
        ]
        page = ""
        if commands and options:
            words = (*commands, *help_words)
            if words not in pages:
                pages[words] = ask(preset, *words, home=tmp_path).stdout
            page = pages[words]
        unknown += [
            f"{capability.key}: {option}"
            for option in options
            if not re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", f"{page}\n{general}")
        ]
    assert unknown == []
