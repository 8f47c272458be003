"""Which of the presets this machine has."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.runners.presets.library import load_library

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.runners.presets.preset import PresetAgent


def find_installed(
    environ: Mapping[str, str], presets: Sequence[PresetAgent] | None = None, *, own_folder: Path | None = None
) -> tuple[PresetAgent, ...]:
    """Return the presets whose program is on the PATH of this environment, each with the path where it was found.

    Only absolute folders of PATH are searched: what a relative one means differs from folder to folder. The agent that
    runs any command is always among them. A program that is there under another name of its preset has that as its
    ``binary``.

    Args:
        environ: Its PATH counts.
        presets: Those to look for; None for agentmon's own and those of a person. Then only the files that matter are
            read.
        own_folder: Where a person's presets lie; what is wrong with them is told by ``load_library``.
    """
    folders = [folder for folder in environ.get("PATH", os.defpath).split(os.pathsep) if Path(folder).is_absolute()]
    if presets is None:
        presets = load_library(own_folder, of_programs=_names_on(folders)).presets
    search_path = os.pathsep.join(folders)
    installed = []
    for preset in presets:
        if not preset.binary:
            installed.append(replace(preset, binary_path=""))
            continue
        for name in (preset.binary, *preset.also_known_as):
            found = shutil.which(name, path=search_path) if search_path else None
            if found is not None:
                installed.append(replace(preset, binary=name, binary_path=found))
                break
    return tuple(installed)


def _names_on(folders: Sequence[str]) -> frozenset[str]:
    names: set[str] = set()
    for folder in folders:
        try:
            names.update(os.listdir(folder))  # noqa: PTH208 - ten thousand paths are made slowly
        except OSError:
            continue
    return frozenset(names)
