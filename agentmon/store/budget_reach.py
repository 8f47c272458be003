"""Which executions a budget is about, in the words of SQL that claims, waits and stops share."""

from __future__ import annotations

from typing import Final

_FIRST_WORD: Final = "json_extract(q.args, '$.argv[0]')"
_RUNS_AN_AGENT: Final = (
    "EXISTS (SELECT 1 FROM agents s WHERE s.tool_type = 'ai-agent' AND ("
    f"{_FIRST_WORD} IN (s.slug, s.binary_path)"
    f" OR substr({_FIRST_WORD}, -length(s.slug) - 1) = '/' || s.slug))"
)
"""Whether the command begins with the name of an agent, or with the path of one."""
COVERS: Final = (
    "(b.scope = 'task' AND b.scope_id = q.task_id"
    " OR b.scope = 'execution' AND b.scope_id = q.id"
    " OR b.scope = 'agent' AND b.scope_id = q.agent_id"
    " OR (b.scope = 'all' OR b.scope = 'workspace' AND b.scope_id = t.workspace_id)"
    f" AND (a.tool_type = 'ai-agent' OR {_RUNS_AN_AGENT}))"
)
"""Whether the budget ``b`` is about the execution ``q`` of the agent ``a`` and the task ``t``.

A tool spends nothing, so that a budget of all or of a workspace leaves it alone, unless its command is an agent's.
"""
HOLDS_BACK: Final = f"b.action <> 'warn' AND b.spent_until > :at AND {COVERS}"
"""Whether the budget lets the execution not start; ``:at`` is the time now."""
