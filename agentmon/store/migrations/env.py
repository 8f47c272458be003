"""What Alembic runs to reach the revisions: on the connection it is given, inside that connection's transaction."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from agentmon.store.migrations import MigrationError

connection = context.config.attributes.get("connection")
if not isinstance(connection, Connection):
    raise MigrationError("migrations run inside agentmon, which hands them its connection")
context.configure(connection=connection, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
