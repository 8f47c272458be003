"""The settings that the worker works by, all of one reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.settings import (
    ApprovalSettings,
    BoardSettings,
    CostSettings,
    HistorySettings,
    NotificationSettings,
    SandboxSettings,
    SearchSettings,
    VerificationSettings,
    WorkerSettings,
    WorktreeSettings,
    load_settings,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsInForce:
    """One reading of every table of settings that the worker looks at."""

    worker: WorkerSettings
    board: BoardSettings
    approvals: ApprovalSettings
    costs: CostSettings
    history: HistorySettings
    search: SearchSettings
    notifications: NotificationSettings
    worktrees: WorktreeSettings
    sandbox: SandboxSettings
    verification: VerificationSettings


def read_settings(settings_file: Path | None, stored: Mapping[str, object]) -> SettingsInForce:
    """Return all of them, or none: one wrong value leaves the worker to what it had.

    Raises:
        UsageError: A value is not allowed; the message names the key, the value and the rule.
    """
    return SettingsInForce(
        worker=load_settings(WorkerSettings, settings_file, stored),
        board=load_settings(BoardSettings, settings_file, stored),
        approvals=load_settings(ApprovalSettings, settings_file, stored),
        costs=load_settings(CostSettings, settings_file, stored),
        history=load_settings(HistorySettings, settings_file, stored),
        search=load_settings(SearchSettings, settings_file, stored),
        notifications=load_settings(NotificationSettings, settings_file, stored),
        worktrees=load_settings(WorktreeSettings, settings_file, stored),
        sandbox=load_settings(SandboxSettings, settings_file, stored),
        verification=load_settings(VerificationSettings, settings_file, stored),
    )
