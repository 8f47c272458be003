"""Commands of clients, handed on to the hosts they are meant for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import StoreError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import CommandType
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionCommand
    from agentmon.domain.ids import CommandId, WorkerId
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.store.activity import ActivityRepository
    from agentmon.store.live_executions import LiveExecutionRepository
    from agentmon.worker.screen_watching import ScreenWatch
    from agentmon.worker.watching import Watch, Watched


_FOR_SCREENS: Final = frozenset(
    {
        CommandType.MESSAGE,
        CommandType.ANSWER,
        CommandType.INTERRUPT,
        CommandType.FINISH,
        CommandType.SET_MODEL,
        CommandType.SET_PERMISSION_MODE,
    }
)
"""What an agent in its own screen is told by keys, or when its screen says that it has nothing left to do."""
_FOR_EVERY_TRY: Final = frozenset({CommandType.STOP, CommandType.KILL, CommandType.PAUSE, CommandType.RESUME})
"""What counts for whichever try reads it; all else was said to the agent of one try."""


class CommandDelivery:
    """Hands the commands of clients on, and notes that: apart, so that no wait for the database holds up a stop.

    Args:
        live: Where the commands of this worker's executions are.
        watch: What this worker runs.
        screens: Agents in their own screens, which take some commands themselves.
        activity: Where it is said what became of a command.
        worker_id: Of this worker.
        clock: Dates what is written.
        complain: Told what cannot be handed on.
    """

    def __init__(
        self,
        *,
        live: LiveExecutionRepository,
        watch: Watch,
        screens: ScreenWatch,
        activity: ActivityRepository,
        worker_id: WorkerId,
        clock: Clock,
        complain: Callable[[str, str], None],
    ) -> None:
        self._live = live
        self._watch = watch
        self._screens = screens
        self._activity = activity
        self._worker_id = worker_id
        self._clock = clock
        self._complain = complain
        self._handed: dict[CommandId, str] = {}
        """What is done with and not noted yet, with why it can never be handed on; empty for what was."""
        self._noted: set[CommandId] = set()
        """What was noted since ``hand_on`` has read last."""
        self.has_unwritten = True
        """Whether there may be a command for a host that could not be written yet."""
        self.has_unsettled = True
        """Whether there may be one that an agent in its own screen has not taken yet."""

    async def hand_on(self) -> None:
        """Write every command that no host has got yet where its host finds it, stops first.

        One that cannot be written at all holds up no other.

        Raises:
            StoreError: The next call hands on the same again, which a host obeys once.
        """
        self._noted.clear()
        self.has_unwritten, is_whole = True, True
        for command, watched in await self._undelivered():
            if watched is None:
                is_whole = False
            elif not _is_for_screen(command, watched) and command.id not in self._noted:
                is_whole &= await self._try(command, partial(_give, command, watched))
        self.has_unwritten = not is_whole

    async def settle(self) -> None:
        """Let agents in their own screens take theirs, and note what was handed on.

        A message counts as handed on when the agent has taken it, an answer when its dialog is gone, an interrupt when
        it is known whether it was heard; its end when it has nothing left to do.

        Raises:
            StoreError: The next call does the rest.
        """
        self.has_unsettled, is_whole = True, True
        for command, watched in await self._undelivered():
            if watched is not None and _is_for_screen(command, watched):
                is_whole &= await self._try(command, partial(self._screens.take, command))
        await self.note()
        self.has_unsettled = not is_whole

    async def note(self) -> None:
        """Note what was handed on, and what can never be.

        Raises:
            StoreError: Not all of it is noted; the next call does that.
        """
        handed = dict(self._handed)
        for command_id, reason in handed.items():
            if reason:
                error = f"it cannot be handed on: {reason}"
                await self._activity.settle_command(command_id, error=error, at=self._clock.now())
        if handed:
            await self._live.mark_delivered(list(handed), at=self._clock.now())
        self._noted |= handed.keys()
        for command_id in handed:
            del self._handed[command_id]

    async def _undelivered(self) -> list[tuple[ExecutionCommand, Watched | None]]:
        commands = await self._live.undelivered_commands(self._worker_id)
        return [(one, self._watch.find(one.execution_id)) for one in commands if one.id not in self._handed]

    async def _try(self, command: ExecutionCommand, handing: Callable[[], Awaitable[bool]]) -> bool:
        """Return whether a command was handed on, or never can be; it is to be noted then."""
        try:
            if not await handing():
                return False
            self._handed[command.id] = ""
        except StoreError:
            raise
        except OSError as error:
            # Its folder was removed, which the looks at the hosts settle, or the disk is full: later, then.
            self._tell(command, str(error))
            return False
        except Exception as error:  # noqa: BLE001 - what one client wrote must not keep the command of another
            self._handed[command.id] = str(error) or type(error).__name__
            self._tell(command, self._handed[command.id])
        return True

    def _tell(self, command: ExecutionCommand, reason: str) -> None:
        text = f"execution {command.execution_id}: a command cannot be handed on: {reason}"
        self._complain(text, command.execution_id)


def _is_for_screen(command: ExecutionCommand, watched: Watched) -> bool:
    return watched.claimed.execution.mode is ExecutionMode.TMUX and command.type in _FOR_SCREENS


async def _give(command: ExecutionCommand, watched: Watched) -> bool:
    line = {**command.payload, "id": command.id, "type": command.type.value}
    if command.type not in _FOR_EVERY_TRY:
        line["attempt"] = watched.claimed.execution.attempt
    await give_to_host(watched.folder, line)
    return True


async def give_to_host(folder: ExecutionFolder, command: Mapping[str, object]) -> None:
    """Hand the host one command, in a thread that nothing else can have taken.

    Raises:
        OSError: It could be handed over in no way.
    """
    await in_daemon_thread(partial(folder.append_command, command), name="command")
