"""How an agent fares: what can be told of it without running it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from agentmon.domain.execution_status import ExecutionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentHealth:
    """What is known of one agent now."""

    found_path: str | None = None
    """Where its program is; None when it is not there, and for the agent that runs any command."""
    missing_note: str = ""
    """Why it cannot be started, such as a link to nowhere; empty when it can."""
    is_logged_in: bool | None = None
    """None where the agent cannot tell without a network, or knows no login."""
    login_note: str = ""
    """What tells the login, or what to do to log in."""
    running: int = 0
    """How many of its executions run now."""
    last_status: ExecutionStatus | None = None
    """How its newest execution that is over ended."""
    last_ended_at: datetime | None = None
    cost_week_nano: int | None = None
    """What it cost in the last seven days, today with them; None when it used nothing, or nothing of that is known."""
    is_cost_known: bool = True
    """Whether every answer of those days has a price."""
