"""Every error that agentmon raises on purpose; each says what failed and carries the next step as a hint."""

from __future__ import annotations


class AgentmonError(Exception):
    """The root of all errors that are shown to a person.

    Attributes:
        hint: The next step for the person; empty when the message says it already.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(AgentmonError):
    """Something that a person typed or configured cannot be used; exit code 2."""


class FieldError(UsageError):
    """The value of one named field cannot be used; exit code 2.

    Attributes:
        field: The field as the domain calls it, such as ``max_concurrent``; a form tells the error there.
    """

    def __init__(self, field: str, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.field = field


class NotFoundError(UsageError):
    """The named thing does not exist; exit code 2."""


class ConflictError(AgentmonError):
    """The change contradicts what is there now: a second run, a stale edit, an open dependency."""


class WaitsForTasksError(ConflictError):
    """A task cannot run yet, because tasks that it depends on are open."""


class IllegalMoveError(ConflictError):
    """A state machine has no such move.

    Attributes:
        life_cycle: The name of the life cycle, such as ``execution``.
        source: The word of the present state.
        target: The word of the state that was asked for.
    """

    def __init__(self, *, life_cycle: str, source: str, target: str) -> None:
        super().__init__(f"a {life_cycle} cannot go from {source} to {target}")
        self.life_cycle = life_cycle
        self.source = source
        self.target = target


class ArgumentsError(UsageError):
    """Arguments do not fit a capability's schema, or a placeholder has no value."""


class StoreError(AgentmonError):
    """The database cannot be used."""


class DatabaseBusyError(StoreError):
    """Another process held the database for longer than the busy timeout; trying again is safe."""


class DatabaseFullError(StoreError):
    """The disk that holds the database is full; nothing of the transaction was written."""


class DatabaseDamagedError(StoreError):
    """The file is not a usable database; it was set aside or left untouched, and the message says where."""


class DatabaseMovedError(StoreError):
    """The file that was opened is missing, or another one is in its place."""


class DatabaseTooNewError(StoreError):
    """A later release made this database; it was left untouched."""


class RunnerError(AgentmonError):
    """A program could not be started, reached or stopped."""


class UndeliveredError(RunnerError):
    """What was asked for is recorded, but nobody carries it out yet; the next worker will."""


class TmuxUnavailableError(RunnerError):
    """tmux is missing, too old, or did not answer; nothing follows about its sessions."""


class AgentNotInstalledError(RunnerError):
    """The program of an agent is not on this machine or cannot be executed."""


class SnapshotError(AgentmonError):
    """The state of a folder could not be kept, compared or brought back."""


class NoRoomError(SnapshotError):
    """The disk takes no more; it may go well when somebody has made room."""


class GitError(SnapshotError):
    """git is missing, too old, took too long or failed."""
