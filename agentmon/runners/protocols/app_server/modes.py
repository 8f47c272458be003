"""Codex's permission modes, as agentmon offers them, in the words of the app-server protocol."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_MODE = "ask"

MODES = {
    "read-only": ("read-only", "on-request"),
    "plan": ("read-only", "on-request"),
    "ask": ("workspace-write", "on-request"),
    "untrusted": ("workspace-write", "untrusted"),
    "full-access": ("danger-full-access", "never"),
}
"""Mode to the sandbox and the approval policy of ``thread/start``."""

_POLICY_TYPES = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
}


def thread_settings(mode: str) -> dict[str, object]:
    """Return the fields of ``thread/start``, ``thread/resume`` and ``thread/fork`` for the mode."""
    sandbox, approval_policy = MODES[mode]
    return {"sandbox": sandbox, "approvalPolicy": approval_policy}


def turn_settings(mode: str, known_policy: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of ``turn/start`` for the mode.

    Args:
        mode: One of ``MODES``.
        known_policy: The sandbox policy the thread began with: taken over where it is of the wanted type, since it
            holds what the user's own settings add, such as writable folders.
    """
    sandbox, approval_policy = MODES[mode]
    policy_type = _POLICY_TYPES[sandbox]
    policy = dict(known_policy) if known_policy.get("type") == policy_type else {"type": policy_type}
    return {"sandboxPolicy": policy, "approvalPolicy": approval_policy}


def collaboration_mode(mode: str, model: str, reasoning_effort: object) -> dict[str, object]:
    """Return the field ``collaborationMode`` of ``turn/start``: Codex's own plan mode, or its usual one."""
    return {
        "mode": "plan" if mode == "plan" else "default",
        "settings": {
            "model": model,
            "reasoning_effort": reasoning_effort if isinstance(reasoning_effort, str) else None,
        },
    }
