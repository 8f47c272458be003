"""The source ``scan_completion``: files from which bash, zsh and fish complete what is typed; read, never sourced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.runners.capability_scanners.bash_completion import read_bash
from agentmon.runners.capability_scanners.fish_completion import read_fish
from agentmon.runners.capability_scanners.merging import merge
from agentmon.runners.capability_scanners.text_files import read_text
from agentmon.runners.capability_scanners.zsh_completion import read_zsh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from agentmon.runners.capability_scanners.program_place import ProgramPlace
    from agentmon.runners.capability_scanners.scanned import ScannedCapability


def scan_completion(place: ProgramPlace) -> tuple[ScannedCapability, ...]:
    """Return what the completion files of a program tell; of each shell the first file that tells anything.

    Files of zsh and fish say more of each option than those of bash, so that their words count first.
    """
    told = [
        _first_telling(paths, read, place.name)
        for paths, read in (
            (_zsh_files(place), read_zsh),
            (_fish_files(place), read_fish),
            (_bash_files(place), read_bash),
        )
    ]
    return tuple(merged.scanned for merged in merge(told, adds_any_words=False))


def _first_telling(
    paths: Iterable[Path], read: Callable[[str, str], tuple[ScannedCapability, ...]], name: str
) -> tuple[ScannedCapability, ...]:
    for path in paths:
        text = read_text(path)
        if text and (told := read(text, name)):
            return told
    return ()


def _bash_files(place: ProgramPlace) -> Iterable[Path]:
    for folder in place.data_dirs:
        for name in (place.name, f"{place.name}.bash", f"_{place.name}"):
            yield folder / "bash-completion" / "completions" / name
    for prefix in place.prefixes:
        folders = [prefix / "etc/bash_completion.d", prefix / "completions"]
        for folder in folders if prefix.name != "usr" else [prefix.parent / "etc/bash_completion.d"]:
            for name in (place.name, f"{place.name}.bash", f"{place.name}-completion.bash"):
                yield folder / name


def _zsh_files(place: ProgramPlace) -> Iterable[Path]:
    for folder in place.data_dirs:
        for part in ("site-functions", "vendor-completions"):
            yield folder / "zsh" / part / f"_{place.name}"
        yield from sorted((folder / "zsh").glob(f"[0-9]*/functions/_{place.name}"))
        for part in ("Unix", "Linux", "Debian", "Darwin"):
            yield folder / "zsh/functions/Completion" / part / f"_{place.name}"


def _fish_files(place: ProgramPlace) -> Iterable[Path]:
    yield place.config_dir / "fish/completions" / f"{place.name}.fish"
    for folder in place.data_dirs:
        for part in ("vendor_completions.d", "completions"):
            yield folder / "fish" / part / f"{place.name}.fish"
    for prefix in place.prefixes:
        yield prefix / "completions" / f"{place.name}.fish"
