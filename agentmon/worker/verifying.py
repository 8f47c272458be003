"""Verifying the work of a run: the command that has to pass before it counts, and what its agent is told when not."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.agents import ToolType
from agentmon.domain.errors import AgentmonError, ConflictError, RunnerError, StoreError
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.plain_text import plain_line
from agentmon.domain.redaction import redact
from agentmon.domain.sandboxes import Sandbox
from agentmon.domain.verifications import VerificationStatus
from agentmon.logs.line_text import plain_text
from agentmon.runners.execution_folder import ExecutionFolder, open_at_once, open_descriptor
from agentmon.runners.locks import is_locked
from agentmon.runners.sandbox.plan import plan_sandbox
from agentmon.threads import in_daemon_thread
from agentmon.worker.file_trust import read_trusted_verification, require_trusted
from agentmon.worker.finalizing import EndStep
from agentmon.worker.preparation import environment_of, working_dir_of
from agentmon.worker.project_commands import STRAYS_GRACE_S, CommandLog, run_project_command
from agentmon.worker.strays import end_strays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentmon.domain.agents import Agent
    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ExecutionEnding
    from agentmon.domain.ids import ExecutionId
    from agentmon.domain.verifications import Verification
    from agentmon.paths import Paths
    from agentmon.store.agent_files import AgentFileRepository
    from agentmon.store.verifications import VerificationRepository, WantedVerification
    from agentmon.worker.settings_in_force import SettingsInForce
    from agentmon.worker.watching import Watched
    from agentmon.worker.worktree_making import WorktreeMaker

_log = logging.getLogger(__name__)

_TOLD_BYTES: Final = 8_000
_TOLD_LINES: Final = 120
"""Of the end of the output, which is what an agent is told."""
_MAX_REASON_CHARACTERS: Final = 300
_SENDS_BACK: Final = frozenset({VerificationStatus.FAILED, VerificationStatus.TIMED_OUT})


class Complaint(NamedTuple):
    """What an agent is told whose work did not pass."""

    text: str
    verify_retry: int
    """How often in a row it was sent back, with this one."""
    verify_retries: int
    """How often it is at most."""


class Verifier:
    """Verifies the work of this worker's runs.

    Args:
        verifications: Where they are written down.
        agent_files: What is trusted of the files of projects.
        worktrees: Knows the variables of a run in a worktree.
        settings: Returns what is in force.
        paths: Of agentmon, from which what is verified may be kept.
        clock: Dates what is written.
    """

    def __init__(
        self,
        *,
        verifications: VerificationRepository,
        agent_files: AgentFileRepository,
        worktrees: WorktreeMaker,
        settings: Callable[[], SettingsInForce],
        paths: Paths,
        clock: Clock,
    ) -> None:
        self._verifications = verifications
        self._agent_files = agent_files
        self._worktrees = worktrees
        self._settings = settings
        self._paths = paths
        self._clock = clock

    @property
    def end_step(self) -> EndStep:
        """The last step of the end of a run that succeeded: only with a pass it counts as that."""
        return EndStep("its verification", _may_be_verified, self._verify, limit_s=None)

    async def _verify(self, watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        try:
            verification = await self._verified(watched)
        except StoreError:
            raise
        except (AgentmonError, OSError) as error:
            return _unverified(ending, f"its work could not be verified: {error}")
        except Exception as error:  # noqa: BLE001 - of whatever kind it is: nothing succeeds without a pass
            _log.exception("execution %s: its work could not be verified", watched.id)
            return _unverified(ending, f"its work could not be verified: {error!r}")
        if verification is None or verification.status is VerificationStatus.PASSED:
            return ending
        if verification.status is VerificationStatus.STOPPED:
            return replace(ending, status=ExecutionStatus.CANCELLED, reason=EndReason.STOPPED)
        return _unverified(ending, verification.failure)

    async def _verified(self, watched: Watched) -> Verification | None:
        """Return how the verification of a run ended, which is run now, and again after a kill; None: nobody wants one.

        Raises:
            AgentmonError: It cannot be run.
            OSError: As above: its folder is gone, or its log cannot be written.
        """
        known = await self._verifications.newest(watched.id)
        if known is not None and known.status is not VerificationStatus.RUNNING:
            return known
        claimed = watched.claimed
        wanted = await self._verifications.wanted(watched.id)
        command = await command_of(wanted, claimed.agent, self._agent_files) if known is None else known.command
        if not command:
            return None
        chosen = await in_daemon_thread(partial(environment_of, claimed, watched.folder), name="environment")
        environment = {**chosen, **await self._worktrees.variables(claimed)}
        layout = partial(
            plan_sandbox,
            claimed.execution.sandbox or Sandbox.OFF,
            paths=self._paths,
            environ=os.environ,
            working_dir=working_dir_of(claimed),
            program=claimed.agent.binary_path,
            settings=self._settings().sandbox,
            folder=None,
        )
        return await verify(
            self._verifications,
            watched.id,
            command,
            folder=watched.folder,
            working_dir=working_dir_of(claimed),
            environment=environment,
            layout=await in_daemon_thread(layout, name="sandbox"),
            timeout_s=self._settings().verification.timeout_s,
            is_stopped=lambda: watched.folder.has_stop,
            clock=self._clock,
        )

    async def complaint(self, watched: Watched) -> Complaint | None:
        """Return what the agent of a run that did not pass is told; None when it was sent back often enough.

        None also when it cannot be spoken to, or could do nothing about it.

        Raises:
            StoreError: It is not known.
            OSError: The output cannot be read.
        """
        wanted, known = await self._verifications.wanted(watched.id), await self._verifications.newest(watched.id)
        retries = self._settings().verification.verify_retries if wanted.retries is None else wanted.retries
        # That of an own screen may have been found at its very end.
        found_ref = None if watched.ending is None else watched.ending.session_ref
        can_be_told = wanted.session_ref is not None or found_ref is not None
        if known is None or known.status not in _SENDS_BACK or not can_be_told or wanted.verify_retry >= retries:
            return None
        text = await in_daemon_thread(partial(_message, known), name="verification")
        return Complaint(text, verify_retry=wanted.verify_retry + 1, verify_retries=retries)

    async def settle(self) -> None:
        """End what a kill cut off of verifications that somebody asked for after the end of a run."""
        for one in await self._verifications.running_of_ended():
            if not await in_daemon_thread(partial(is_locked, _folder(one).verification_lock), name="verification"):
                await end_strays(one.execution_id, grace_s=STRAYS_GRACE_S)
                at = self._clock.now()
                await self._verifications.end(one, VerificationStatus.STOPPED, exit_code=None, at=at)


async def command_of(wanted: WantedVerification, agent: Agent, agent_files: AgentFileRepository) -> str:
    """Return the command that the work of a run has to pass; empty for none.

    Raises:
        UsageError: It comes from a project's file that is not as it was trusted.
    """
    root, of_file = wanted.workspace_root, ""
    if wanted.is_from_agent:
        await require_trusted(agent_files, agent, root)
    elif wanted.may_be_of_file:
        of_file = await read_trusted_verification(agent_files, wanted.workspace_id, root)
    return wanted.command(of_file)


async def verify(
    verifications: VerificationRepository,
    execution_id: ExecutionId,
    command: str,
    *,
    folder: ExecutionFolder,
    working_dir: str,
    environment: Mapping[str, str],
    layout: Mapping[str, object] | None,
    timeout_s: float,
    is_stopped: Callable[[], bool],
    on_output: Callable[[bytes], None] | None = None,
    clock: Clock,
) -> Verification:
    """Run what the work of a run has to pass, and return how it ended; everything that it started is ended with it.

    Raises:
        ConflictError: Somebody verifies it already.
        RunnerError: What an earlier one started cannot be ended.
        OSError: It cannot be run, or its log cannot be written; it has failed then.
    """
    with _held(folder):
        # What an earlier one left that was cut off would write into the same folder.
        if left := await end_strays(execution_id, grace_s=STRAYS_GRACE_S):
            raise RunnerError(f"what an earlier one started lives on: pid {', '.join(map(str, left))}")
        verification = await verifications.begin(
            execution_id, command, log_path=folder.verification_log, at=clock.now()
        )
        try:
            log = CommandLog(Path(verification.log_path), on_output=on_output)
            try:
                if log.is_continued:
                    log.say("cut off; it is run again")
                end = await run_project_command(
                    command,
                    working_dir=working_dir,
                    environment=environment,
                    layout=layout,
                    execution_id=execution_id,
                    log=log,
                    timeout_s=timeout_s,
                    is_stopped=is_stopped,
                )
                if end.is_timed_out:
                    log.say(f"ended after {timeout_s:g} s; `agentmon settings verification.timeout_s` gives it more")
            finally:
                log.close()
        except OSError:
            await verifications.end(verification, VerificationStatus.FAILED, exit_code=None, at=clock.now())
            raise
        finally:
            await end_strays(execution_id, grace_s=STRAYS_GRACE_S)
        if end.is_stopped or end.is_timed_out:
            status = VerificationStatus.STOPPED if end.is_stopped else VerificationStatus.TIMED_OUT
            return await verifications.end(verification, status, exit_code=None, at=clock.now())
        status = VerificationStatus.FAILED if end.exit_code else VerificationStatus.PASSED
        return await verifications.end(verification, status, exit_code=end.exit_code, at=clock.now())


@contextlib.contextmanager
def _held(folder: ExecutionFolder) -> Iterator[None]:
    """Hold the lock of the verification of a run.

    Raises:
        ConflictError: Somebody else holds it.
        OSError: There is no folder.
    """
    lock = open_descriptor(folder.verification_lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ConflictError("it is being verified already", hint="`agentmon stop` ends that of a run") from error
    finally:
        os.close(lock)


def _folder(verification: Verification) -> ExecutionFolder:
    return ExecutionFolder(Path(verification.log_path).parent)


def _may_be_verified(watched: Watched, ending: ExecutionEnding) -> bool:
    """Return whether a run may have to pass something, as far as that is known without a look at database and files."""
    claimed = watched.claimed
    is_named = bool(claimed.task.input_context.verify or claimed.agent.verify)
    return ending.status is ExecutionStatus.SUCCEEDED and (is_named or claimed.agent.tool_type is ToolType.AI_AGENT)


def _unverified(ending: ExecutionEnding, reason: str) -> ExecutionEnding:
    error = plain_line(redact(reason), max_characters=_MAX_REASON_CHARACTERS)
    return replace(ending, status=ExecutionStatus.FAILED, reason=EndReason.UNVERIFIED, error=error, may_retry=False)


def _message(verification: Verification) -> str:
    """Return what an agent is told whose work did not pass."""
    end = last_lines(verification)
    told = f" The end of its output:\n\n```\n{end}\n```\n" if end else " It printed nothing.\n"
    return (
        f"Your work is verified with `{verification.command}`, and {verification.failure}.{told}\n"
        "Mend the cause, not the check. It is verified again when you are done."
    )


def last_lines(verification: Verification) -> str:
    """Return the end of what a verification said, safe to show and without secrets.

    Raises:
        OSError: Its log cannot be read.
    """
    with open_at_once(Path(verification.log_path)) as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TOLD_BYTES))
        lines = file.read(_TOLD_BYTES).split(b"\n")
    if size > _TOLD_BYTES:
        # Half a line says little.
        lines = lines[1:]
    return redact("\n".join(plain_text(line) for line in lines[-_TOLD_LINES:])).strip("\n")
