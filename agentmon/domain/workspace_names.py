"""Short names of workspaces, each different from the others."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def short_names(names: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return a short name for each workspace: its own where no other has it, else with folders before it.

    Args:
        names: Name and root path of each workspace, by its id.
    """
    taken: dict[str, list[str]] = {}
    for workspace_id, (name, _) in names.items():
        taken.setdefault(name, []).append(workspace_id)
    short: dict[str, str] = {}
    for name, ids in taken.items():
        if len(ids) == 1:
            short[ids[0]] = name
        else:
            short |= _told_apart({workspace_id: names[workspace_id][1] for workspace_id in ids})
    return short


def _told_apart(root_paths: Mapping[str, str]) -> dict[str, str]:
    """Return the ends of the paths, as long as it takes to tell them apart; whole paths are different."""
    parts = {workspace_id: PurePath(path).parts for workspace_id, path in root_paths.items()}
    for count in range(2, max(map(len, parts.values())) + 1):
        ends = {workspace_id: "/".join(path[-count:]) for workspace_id, path in parts.items()}
        if len(set(ends.values())) == len(ends):
            return ends
    return dict(root_paths)
