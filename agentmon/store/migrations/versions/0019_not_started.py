"""The wait of a run that agentmon could not start.

Revision ID: 0019
Revises: 0018
"""

from __future__ import annotations

from alembic import op

from agentmon.store.migrations.rebuilding import make_again

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_CHANGED = {
    "executions": (("'failures', 'scheduled', 'budget')", "'failures', 'not_started', 'scheduled', 'budget')"),)
}


def upgrade() -> None:
    """Add the word."""
    make_again(op.get_bind(), _CHANGED)
