"""Which executions a budget is about, in the words of SQL that claims, waits and stops share."""

from __future__ import annotations

from typing import Final

COVERS: Final = (
    "(b.scope = 'task' AND b.scope_id = q.task_id"
    " OR b.scope = 'execution' AND b.scope_id = q.id"
    " OR b.scope = 'agent' AND b.scope_id = q.agent_id"
    " OR a.tool_type = 'ai-agent' AND (b.scope = 'all' OR b.scope = 'workspace' AND b.scope_id = t.workspace_id))"
)
"""Whether the budget ``b`` is about the execution ``q`` of the agent ``a`` and the task ``t``.

A tool spends nothing, so that a budget of all or of a workspace leaves it alone.
"""
HOLDS_BACK: Final = f"b.action <> 'warn' AND b.spent_until > :at AND {COVERS}"
"""Whether the budget lets the execution not start; ``:at`` is the time now."""
