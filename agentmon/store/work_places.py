"""Where runs of the queue work, as SQL over ``q`` (the execution), ``t`` (task), ``a`` (agent) and ``w`` (workspace).

It must not import SQLAlchemy: the board is read with the standard library's sqlite3 too.
"""

from __future__ import annotations

from typing import Final

DEFAULT_PER_FOLDER: Final = 1
"""Two AI agents that work in one folder edit over each other."""


def tree(folder: str) -> str:
    """Return an expression for a folder as the beginning of all paths in it."""
    return f"(rtrim({folder}, '/') || '/')"


def overlap(one: str, other: str) -> str:
    """Return the condition that two trees are one, or that one lies in the other."""
    return f"(substr({one}, 1, length({other})) = {other} OR substr({other}, 1, length({one})) = {one})"


FOLDER: Final = (
    "coalesce(nullif(json_extract(t.input_context, '$.working_dir'), ''), nullif(a.working_dir, ''), w.root_path)"
)
# Its own, that of the conversation that goes on, or that of an earlier run of the task; NULL for none of them.
KEPT_WORKTREE: Final = """coalesce(
    (SELECT k.id FROM worktrees k WHERE k.id = q.worktree_id AND k.status <> 'removed'),
    (SELECT k.id FROM executions p JOIN worktrees k ON k.id = p.worktree_id AND k.status <> 'removed'
     WHERE p.id = q.parent_execution_id),
    (SELECT k.id FROM worktrees k INDEXED BY ix_worktrees_task_id
     WHERE k.task_id = t.id AND k.status <> 'removed' ORDER BY k.id DESC LIMIT 1))"""
# An agent finds a conversation again only in the folder in which it was; a worktree that was removed is made again.
_GOES_ON_IN: Final = """EXISTS (
    SELECT 1 FROM executions p
    WHERE p.id = q.parent_execution_id AND p.session_id = q.session_id AND p.worktree_id IS {worktree})"""
_ISOLATION: Final = "coalesce(q.isolation, json_extract(t.input_context, '$.isolation'), a.isolation, w.isolation)"
# Where a run of the queue works: in the folder, in a worktree that there is or that is new, or in the folder unless
# another AI agent is at work there (`either`).
PLACE: Final = f"""CASE
    WHEN {_ISOLATION} = 'folder' OR {_ISOLATION} = 'auto' AND {_GOES_ON_IN.format(worktree="NULL")} THEN 'folder'
    WHEN {KEPT_WORKTREE} IS NOT NULL THEN 'kept'
    WHEN {_ISOLATION} = 'worktree' OR {_GOES_ON_IN.format(worktree="NOT NULL")} THEN 'new'
    WHEN a.tool_type = 'ai-agent' AND q.repository IS NOT NULL THEN 'either'
    ELSE 'folder' END"""
FOLDER_HOLDERS: Final = f"""
SELECT t.id AS task_id, holding.number AS number
FROM executions q CROSS JOIN tasks t ON t.id = q.task_id
CROSS JOIN (
    SELECT b.id, b.tool_type, b.working_dir, json_extract(b.metadata, '$.isolation') AS isolation FROM agents b
) a ON a.id = q.agent_id AND a.tool_type = 'ai-agent'
CROSS JOIN (
    SELECT v.id, v.root_path, coalesce(json_extract(v.settings, '$.isolation'), 'auto') AS isolation,
        coalesce(json_extract(v.settings, '$.max_per_folder'), {DEFAULT_PER_FOLDER}) AS max_per_folder
    FROM workspaces v
) w ON w.id = t.workspace_id AND w.max_per_folder > 0
CROSS JOIN agents o ON o.tool_type = 'ai-agent'
CROSS JOIN executions e INDEXED BY ix_executions_agent_id_status
    ON e.agent_id = o.id AND e.status IN ('cancelling', 'finalizing', 'running') AND e.worktree_id IS NULL
CROSS JOIN tasks holding ON holding.id = e.task_id
WHERE q.task_id IN ({{ids}}) AND q.status = 'queued' AND e.working_dir IS NOT NULL
  AND {overlap(tree("e.working_dir"), tree(FOLDER))} AND {PLACE} = 'folder'
ORDER BY holding.number
"""
"""Which AI agents' runs hold the folder that a queued one would work in, for the ids of tasks in ``{{ids}}``."""
