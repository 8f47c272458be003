"""What destroys things is allowed by a person who types its name, one time each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import ApprovalScope
from agentmon.domain.errors import ConflictError, UsageError
from agentmon.domain.events import ActorType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.approvals import Approval
    from agentmon.domain.events import Actor


def require_named(
    approval: Approval,
    *,
    scope: ApprovalScope,
    actor: Actor,
    typed_name: str | None,
    tool_input: Mapping[str, object] | None,
) -> None:
    """Refuse to allow what destroys things without its name, for longer than once, or by an agent.

    Another input that the person has written instead needs no name.

    Raises:
        UsageError: Its name was not typed, or it would be allowed for longer than once.
        ConflictError: The actor is no person.
    """
    if approval.danger_level is not DangerLevel.DESTRUCTIVE:
        return
    if actor.type is not ActorType.USER:
        raise ConflictError("what destroys things is allowed by a person only", hint="deny it, or leave it undecided")
    if scope is not ApprovalScope.ONCE:
        raise UsageError("what destroys things is allowed once at a time", hint="allow it once")
    is_rewritten = tool_input is not None and dict(tool_input) != dict(approval.tool_input)
    name = approval.name_to_type
    if not is_rewritten and (typed_name or "").strip() != name:
        raise UsageError(
            f"this destroys things, so its name has to be typed: {name}",
            hint=f"`agentmon approve {approval.id} --name '{name}'`; in the inbox the key asks for it",
        )
