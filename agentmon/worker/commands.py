"""Commands of clients, handed on to the hosts they are meant for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import StoreError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import CommandType
from agentmon.threads import in_daemon_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionCommand
    from agentmon.domain.ids import WorkerId
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


async def hand_on_commands(
    live: LiveExecutionRepository,
    watch: Watch,
    screens: ScreenWatch,
    activity: ActivityRepository,
    worker_id: WorkerId,
    clock: Clock,
    complain: Callable[[str, str], None],
) -> bool:
    """Write every command that no host has got yet where its host finds it, stops first; return whether all were.

    A message for an agent in its own screen counts as handed on when the agent has taken it, an answer when its dialog
    is gone, an interrupt when it is known whether it was heard; its end when it has nothing left to do. A command that
    cannot be written at all says why, and holds up no other.

    Raises:
        StoreError: The next call hands on the same again, which a host obeys once.
    """
    delivered = []
    commands = await live.undelivered_commands(worker_id)
    for command in commands:
        watched = watch.find(command.execution_id)
        if watched is None:
            continue
        try:
            is_handed_on = await _hand_on(command, watched, screens)
        except StoreError:
            raise
        except OSError as error:
            # Its folder was removed, which the looks at the hosts settle, or the disk is full: later, then.
            complain(f"execution {command.execution_id}: a command cannot be handed on: {error}", command.execution_id)
        except Exception as error:  # noqa: BLE001 - what one client wrote must not keep the command of another
            reason = str(error) or type(error).__name__
            complain(f"execution {command.execution_id}: a command cannot be handed on: {reason}", command.execution_id)
            await activity.settle_command(command.id, error=f"it cannot be handed on: {reason}", at=clock.now())
            delivered.append(command.id)
        else:
            if is_handed_on:
                delivered.append(command.id)
    if delivered:
        await live.mark_delivered(delivered, at=clock.now())
    return len(delivered) == len(commands)


async def _hand_on(command: ExecutionCommand, watched: Watched, screens: ScreenWatch) -> bool:
    if watched.claimed.execution.mode is ExecutionMode.TMUX and command.type in _FOR_SCREENS:
        return await screens.take(command)
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
