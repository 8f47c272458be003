"""The loop that holds one program from its start to the end of everything it started."""

from __future__ import annotations

import os
import select
import time

from agentmon.runners.host import agent as agents
from agentmon.runners.host import ending as endings
from agentmon.runners.host.attachment import Attachment
from agentmon.runners.host.control import ControlChannel
from agentmon.runners.host.ending import Ending
from agentmon.runners.host.family import Family, become_subreaper
from agentmon.runners.host.last_word import wait_until_written
from agentmon.runners.host.lean import signal
from agentmon.runners.host.pane import Pane
from agentmon.runners.host.pausing import Pause
from agentmon.runners.host.process_table import is_in_debugger
from agentmon.runners.host.progress import Progress
from agentmon.runners.host.pump import Pump
from agentmon.runners.host.report_pace import ReportPace
from agentmon.runners.host.signals import STOP_SIGNALS, SignalInbox
from agentmon.runners.host.spec import MARKER_VARIABLE
from agentmon.runners.host.terminal_question import TerminalQuestion
from agentmon.runners.host.time_limit import DEBUGGER, TimeLimit
from agentmon.runners.host.typed_keys import TypedKeys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.host.calls import Calls
    from agentmon.runners.host.control import Command
    from agentmon.runners.host.conversation import Conversation
    from agentmon.runners.host.journal import Journal
    from agentmon.runners.host.output_log import OutputLog
    from agentmon.runners.host.spec import Spec

_LINE_COMMANDS = {"message", "answer", "interrupt", "finish", "set_model", "set_permission_mode", "type"}
_LOOK_INTERVAL_S = 1.0
"""How long a command whose wake-up was missed waits at most."""
_STORAGE_RETRY_INTERVAL_S = 0.5
_STORAGE_PATIENCE_S = 10.0
"""How long a full disk is waited for once the program is gone."""
_SIGN_OF_LIFE_INTERVAL_S = 10.0
_KILL_INTERVAL_S = 0.05
_LAST_ECHO_S = 5.0
_LAST_ECHO_PAUSE_S = 1.0
_MAX_ANSWER_BYTES = 64 * 1024
_MAX_LAST_READS = 16
_MAX_CLIENT_CHARACTERS = 200
_MAX_JOURNALED_ARGUMENT = 1000
_MAX_JOURNALED_ARGUMENTS = 200


class Supervisor:
    """Runs the program of one specification, once."""

    def __init__(self, spec: Spec, folder: str, lock_file: int, journal: Journal, output: OutputLog) -> None:
        self._spec = spec
        self._folder = folder
        self._lock_file = lock_file
        self._journal = journal
        self._output = output
        self._signals = SignalInbox()
        self._control = ControlChannel(folder)
        self._family = Family(f"{MARKER_VARIABLE}={spec.execution_id}", is_subreaper=become_subreaper())
        self._ending = Ending(self._family, journal, grace_s=spec.grace_s, interrupt=spec.interrupt)
        self._time_limit = TimeLimit(spec.timeout_s)
        self._pause = Pause(self._family, journal, self._time_limit)
        self._attachment = Attachment(self._family.outsiders.add)
        self._calls: Calls | None = None
        """What a program in a sandbox calls agentmon by."""
        now = time.monotonic()
        self._pane = Pane(self._attachment, now)
        self._typed_keys = TypedKeys(journal, keeps_text=spec.keeps_typed_text)
        self._progress = Progress()
        self._progress.byte_count = output.first_bytes
        self._line: Pump | Conversation | None = None
        """What is said to the program and by it; ``None`` before it was started."""
        self._early_commands: list[Command] = []
        self._started_at = now
        self._error: str | None = None
        self._reported = (0, 0)
        self._report_pace = ReportPace(now)
        self._next_look = now
        self._next_sign_of_life = now + _SIGN_OF_LIFE_INTERVAL_S
        self._next_storage_retry = float("inf")
        self._storage_deadline = float("inf")
        self._has_noted_program_end = False

    def run(self, environment: dict[str, str]) -> None:
        """Run the program and return when nothing of it is alive and all of it is recorded."""
        try:
            self._obey_commands()
            self._hold_start()
            if not self._ending.has_begun:
                self._start(environment)
            if self._line is not None:
                self._supervise(self._line)
        finally:
            try:
                if self._family.agent_pid is not None and not self._ending.is_over:
                    self._end_after_failure()
            finally:
                self._finish()

    def _hold_start(self) -> None:
        """Wait until a pause that was asked before the start is over, or the run is."""
        while self._pause.is_on and not self._ending.has_begun:
            files = [file for file in (self._signals.waker, self._control.wake_file) if file is not None]
            select.select(files, (), (), max(0.0, self._find_next_step() - time.monotonic()))
            now = time.monotonic()
            self._take_signals(now)
            self._control.clear_wake()
            self._next_look = now
            self._do_what_is_due(now)

    def _end_after_failure(self) -> None:
        """Leave nothing alive when this process itself failed: nobody would watch over it any more."""
        self._ending.outcome = endings.TERMINATED
        self._error = "the host failed; what it said stands in its pane"
        deadline = time.monotonic() + _STORAGE_PATIENCE_S
        while (members := self._family.find_members()) and time.monotonic() < deadline:
            self._family.send(signal.SIGKILL, members)
            time.sleep(_KILL_INTERVAL_S)
            self._family.reap()
        self._family.reap()

    def _start(self, environment: dict[str, str]) -> None:
        variables = dict(environment)
        variables[MARKER_VARIABLE] = self._spec.execution_id
        # The pane draws what the program writes, so the program has to speak the pane's language.
        variables["TERM"] = os.environ.get("TERM") or environment.get("TERM") or "xterm-256color"
        try:
            self._listen_for_calls()
            self._line = self._connect(variables)
        except agents.StartError as error:
            self._error = str(error)
            self._ending.outcome = endings.START_FAILED
            self._journal.add("start_failed", error=self._error, errno=error.number)
            self._pane.note(self._error)
            return
        self._started_at = time.monotonic()
        self._time_limit.begin(self._started_at)
        argv = [argument[:_MAX_JOURNALED_ARGUMENT] for argument in self._spec.argv[:_MAX_JOURNALED_ARGUMENTS]]
        self._journal.add("agent_started", pid=self._family.agent_pid, argv=argv)
        self._line.begin()
        while self._early_commands:
            self._line.obey(self._early_commands.pop(0))

    def _listen_for_calls(self) -> None:
        if self._spec.sandbox is None:
            return
        from agentmon.runners.host.calls import Calls  # noqa: PLC0415 - a run without a sandbox needs none of it

        try:
            self._calls = Calls(self._spec, self._folder, self._family)
        except OSError as error:
            message = f"agentmon could not be called from its sandbox: {error.strerror}"
            raise agents.StartError(message, error.errno) from error

    def _connect(self, variables: dict[str, str]) -> Pump | Conversation:
        """Start the program in a terminal, or with pipes when it is spoken to in a protocol."""
        if self._spec.is_protocol:
            from agentmon.runners.host.conversation import Conversation  # noqa: PLC0415 - a terminal needs none of it

            try:
                conversation = Conversation(
                    self._spec,
                    self._folder,
                    self._journal,
                    self._output,
                    self._pane,
                    self._progress,
                    self._time_limit,
                )
            except (AttributeError, ImportError, OSError, ValueError) as error:
                message = f"the agent cannot be spoken to: {error}"
                raise agents.StartError(message, getattr(error, "errno", None)) from error
            self._note_start(conversation.start(variables))
            return conversation
        window_size = self._pane.find_window_size() or (self._spec.rows, self._spec.columns)
        agent = agents.start(self._spec, variables, window_size)
        self._note_start(agent.pid)
        is_read_by_rules = self._spec.mode == "tmux"
        question = None if is_read_by_rules else TerminalQuestion(agent, self._journal, self._progress)
        return Pump(agent, self._journal, self._output, self._progress, self._pane, self._typed_keys, question)

    def _note_start(self, pid: int) -> None:
        self._family.agent_pid = pid
        self._family.has_children = True

    def _supervise(self, line: Pump | Conversation) -> None:
        self._family.reap()  # a program that ended before the first wait
        for _ in range(2):  # what was held back to the end has to be written too
            while not self._is_over(line):
                self._wait(line)
            if self._is_storage_blocked:
                self._leave_out_what_waits(line)
            line.finish()

    def _leave_out_what_waits(self, line: Pump | Conversation) -> None:
        left_out_bytes = self._output.left_out_bytes
        self._output.give_up()
        line.throw_away()
        if self._output.left_out_bytes > left_out_bytes:
            self._error = self._error or "the disk was full: the end of the output is missing"

    @property
    def _is_storage_blocked(self) -> bool:
        return self._output.is_blocked or (self._line is not None and self._line.is_blocked)

    def _is_over(self, line: Pump | Conversation) -> bool:
        if self._family.agent_status is not None and not self._has_noted_program_end:
            self._note_program_end(self._family.agent_status)
        now = time.monotonic()
        self._ending.advance(now)
        if not self._ending.is_over:
            return False
        # Nothing is alive to write any more, except what could not be ended: hence the bound.
        for _ in range(_MAX_LAST_READS):
            if self._is_storage_blocked or not line.move_rest(now):
                break
        return not self._is_storage_blocked or now >= self._storage_deadline

    def _wait(self, line: Pump | Conversation) -> None:
        now = time.monotonic()
        reads, writes = self._find_interests(line, now)
        timeout_s = max(0.0, self._find_next_step() - now)
        try:
            readable, writable, _ = select.select(reads, writes, (), timeout_s)
        except (OSError, ValueError):  # the pane's files are gone
            self._pane.has_input = self._pane.has_output = False
            return
        meant, now = now + timeout_s, time.monotonic()
        self._time_limit.note_wait(meant, now)
        if self._signals.waker in readable:
            self._take_signals(now)
        if line.move(readable, writable, now):
            self._report_pace.note_output(now)
        if self._calls is not None:
            self._calls.move(readable)
        if 0 in readable:
            keys = self._pane.read_keys()
            # A pane's answer to what a program asked last would be echoed into its log when nobody reads it any more.
            if self._family.agent_status is None:
                self._typed_keys.take(keys, now, is_hidden=line.hides_typing)
                line.type(keys)
        if 1 in writable:
            self._pane.write(now)
        if self._attachment.reader in readable:
            self._attachment.read_answer()
        if self._control.wake_file in readable:
            self._control.clear_wake()
            self._next_look = now
        self._do_what_is_due(now)

    def _find_interests(self, line: Pump | Conversation, now: float) -> tuple[list[int], list[int]]:
        reads = [self._signals.waker]
        writes = []
        if self._control.wake_file is not None:
            reads.append(self._control.wake_file)
        if not self._is_storage_blocked and not self._pane.holds_program_up(now):
            reads += line.reads
        if self._calls is not None:
            reads += self._calls.reads
        if self._pane.has_input and line.takes_keys and not self._pause.is_on:
            reads.append(0)
        if self._attachment.reader is not None:
            reads.append(self._attachment.reader)
        if self._pane.wants_to_write:
            writes.append(1)
        if not self._pause.is_on:
            writes += line.writes
        return reads, writes

    def _find_next_step(self) -> float:
        step = min(
            self._next_look,
            self._next_storage_retry,
            self._next_sign_of_life,
            self._ending.next_step,
            self._pane.next_step,
            self._pause.next_step,
            self._time_limit_at,
            self._next_line_step,
            self._typed_keys.next_step,
        )
        return min(step, self._report_pace.next_report) if self._has_to_report else step

    @property
    def _next_line_step(self) -> float:
        """When there is something to do for the program itself; never while it is paused or ends."""
        if self._line is None or self._ending.has_begun or self._pause.is_on:
            return float("inf")
        return self._line.next_step

    @property
    def _time_limit_at(self) -> float:
        """When it will have run for as long as it may; never once it ends."""
        return float("inf") if self._ending.has_begun else self._time_limit.reached_at

    def _do_what_is_due(self, now: float) -> None:
        # Also before the line does its part: a message that is on its way is heard before the agent's input closes.
        if now >= min(self._next_look, self._next_line_step):
            self._next_look = now + _LOOK_INTERVAL_S
            self._obey_commands()
            self._look_for_debugger(now)
        if now >= self._time_limit_at:
            self._journal.add("time_limit_reached", timeout_s=self._spec.timeout_s)
            self._error = f"the time limit of {self._spec.timeout_s:g} s was reached"
            self._ending.stop(endings.TIMED_OUT)
        self._pause.advance(now)
        if self._line is not None and now >= self._next_line_step:
            self._line.advance(now)
            if self._line.is_overdue(now):
                self._ending.stop(endings.FINISHED)
        self._watch_storage(now)
        if self._has_to_report and now >= self._report_pace.next_report:
            self._report_output(now)
        if now >= self._next_sign_of_life:
            self._next_sign_of_life = now + _SIGN_OF_LIFE_INTERVAL_S
            try:
                os.utime(self._lock_file)
            except OSError:
                pass  # a disk that takes no time takes it later
        self._pane.advance(now)
        self._typed_keys.advance(now)

    def _look_for_debugger(self, now: float) -> None:
        pid = self._family.agent_pid
        if self._time_limit_at < float("inf") or self._time_limit.is_held_by(DEBUGGER):
            is_held = pid is not None and is_in_debugger(pid)
            note = self._time_limit.hold if is_held else self._time_limit.let_go
            note(DEBUGGER, now)

    def _take_signals(self, now: float) -> None:
        for number in self._signals.take():
            if number == signal.SIGCHLD:
                self._family.reap()
            elif number == signal.SIGWINCH:
                window_size = self._pane.find_window_size()
                if window_size is not None and self._line is not None:
                    self._line.resize(window_size)
            elif number in STOP_SIGNALS:
                self._pause.forget(now)
                if self._ending.has_begun:
                    self._ending.kill(now, endings.TERMINATED)
                else:
                    self._error = f"the host was asked to end by signal {number}"
                    self._ending.stop(endings.TERMINATED)

    def _obey_commands(self) -> None:
        commands = self._control.read_commands()
        for position, command in enumerate(commands):
            if command.kind in {"stop", "kill"}:
                self._obey_stop(command)
            elif command.kind == "resume":
                self._obey_resume(command)
            # A pause that is over before it is obeyed never was: the next try of a run reads those of the earlier ones.
            elif command.kind == "pause" and not any(later.kind == "resume" for later in commands[position + 1 :]):
                self._obey_pause(command)
            elif command.kind in {"attached", "detached"}:
                self._note_client(command)
            elif command.kind != "pause" and command.document.get("attempt", self._spec.attempt) == self._spec.attempt:
                self._obey_line(command)

    def _obey_line(self, command: Command) -> None:
        """Hand on what is meant for the program itself; before its start it waits."""
        if command.kind == "finish" and not self._spec.is_protocol:
            self._tell(command, None)
            self._pause.forget(time.monotonic())
            self._ending.stop(endings.FINISHED)
        elif self._line is not None:
            self._line.obey(command)
        elif command.kind in _LINE_COMMANDS:
            self._early_commands.append(command)

    def _note_client(self, command: Command) -> None:
        """Record that tmux let a client look at the pane, or that one left; what was typed until then stands before."""
        self._typed_keys.record()
        client = command.document.get("client")
        told = {"client": client[:_MAX_CLIENT_CHARACTERS] if isinstance(client, str) else ""}
        if command.kind == "attached":
            self._journal.add("attached", **told, is_read_only=command.document.get("read_only") == "1")
        else:
            self._journal.add("detached", **told)

    def _tell(self, command: Command, error: str | None) -> None:
        """Record what became of a command that the program never sees."""
        event = {"kind": "command", "command_id": command.command_id, "was_obeyed": error is None, "error": error}
        self._journal.add("agent_event", event=event)

    def _obey_stop(self, command: Command) -> None:
        now = time.monotonic()
        self._journal.add("stop_requested", command_id=command.command_id, kind=command.kind)
        self._pause.forget(now)
        if command.kind == "kill":
            self._ending.kill(now, endings.STOPPED)
        else:
            self._ending.stop(endings.STOPPED)

    def _obey_pause(self, command: Command) -> None:
        if not self._pause.is_on and not self._ending.has_begun:
            now = time.monotonic()
            self._pause.begin(now, command.command_id)
            self._pane.note("paused; what is typed now waits until the run goes on")
            self._pane.write(now)

    def _obey_resume(self, command: Command) -> None:
        if self._pause.is_on:
            now = time.monotonic()
            self._pane.note("resumed")
            self._pane.write(now)
            if self._line is not None:
                self._line.renew_patience(now)
            self._pause.end(command.command_id)

    def _note_program_end(self, status: int) -> None:
        self._has_noted_program_end = True
        self._attachment.cancel()
        code = os.waitstatus_to_exitcode(status)
        self._journal.add("exited", exit_code=code if code >= 0 else None, signal=-code if code < 0 else None)
        # What outlives the program may finish its work within the usual time.
        self._pause.end()
        self._ending.note_program_end(time.monotonic())

    # Storage

    def _watch_storage(self, now: float) -> None:
        if self._next_storage_retry == float("inf"):
            if self._is_storage_blocked or self._journal.is_behind:
                self._next_storage_retry = now + _STORAGE_RETRY_INTERVAL_S
                self._journal.add("storage_full")
                self._pane.note("the disk is full; the program waits until there is space")
        elif now >= self._next_storage_retry:
            self._retry_storage(now)

    def _retry_storage(self, now: float) -> None:
        self._next_storage_retry = now + _STORAGE_RETRY_INTERVAL_S
        if self._ending.is_over and self._storage_deadline == float("inf"):
            self._storage_deadline = now + _STORAGE_PATIENCE_S
        self._journal.retry()
        # The journal's reserve comes first: without it the end of the run might not be recorded.
        has_space = self._journal.reserve.fill() and self._output.retry()
        if has_space and (self._line is None or self._line.retry_storage()):
            self._next_storage_retry = float("inf")
            self._storage_deadline = float("inf")
            self._journal.add("storage_ok")
            self._report_output(now)
            self._pane.note("there is space again")

    # Reports

    @property
    def _has_news(self) -> bool:
        return self._reported != (self._progress.byte_count, self._output.left_out_bytes)

    @property
    def _has_to_report(self) -> bool:
        """Whether something is to be reported; on a full disk that waits, as it would only take the place of more."""
        return self._has_news and self._next_storage_retry == float("inf")

    def _report_output(self, now: float) -> None:
        self._report_pace.note_report(now)
        self._reported = (self._progress.byte_count, self._output.left_out_bytes)
        self._journal.add(
            "output",
            bytes=self._progress.byte_count,
            lines=self._progress.line_count,
            left_out_bytes=self._output.left_out_bytes,
            last_line=self._progress.last_line(),
        )

    def _finish(self) -> None:
        now = time.monotonic()
        if self._calls is not None:
            self._calls.close()
        if self._has_news:
            self._report_output(now)
        self._typed_keys.record()
        for command in self._early_commands:
            self._tell(command, "the program was not started")
        status = self._family.agent_status
        code = None if status is None else os.waitstatus_to_exitcode(status)
        self._journal.add(
            "ended",
            outcome=self._ending.outcome or endings.TERMINATED,
            exit_code=code if code is None or code >= 0 else 128 - code,
            signal=None if code is None or code >= 0 else -code,
            output_bytes=self._progress.byte_count,
            output_lines=self._progress.line_count,
            left_out_bytes=self._output.left_out_bytes,
            duration_ms=0 if self._line is None else int((now - self._started_at) * 1000),
            error=self._error,
            agent_outcome=None if self._line is None else self._agent_outcome(self._line),
            agent_error=None if self._line is None else self._line.error,
        )
        if self._journal.is_behind:
            self._pane.note("disk full: the result is saved as soon as there is space")
            self._pane.write(now)
            # Of one that was told to end enough is known: it is cancelled, whatever its host says.
            is_stopped = self._ending.outcome == endings.STOPPED
            is_known = is_stopped or self._ending.outcome == endings.TERMINATED
            wait_until_written(
                self._journal,
                self._control,
                self._folder,
                until=now + _STORAGE_PATIENCE_S if is_known else float("inf"),
                signals=self._signals,
                is_stopped=is_stopped,
            )
            now = time.monotonic()
        self._pane.finish(now)
        self._show_rest(now + _LAST_ECHO_S)
        self._control.close()
        self._journal.reserve.drop()
        self._pane.close()

    def _agent_outcome(self, line: Pump | Conversation) -> str | None:
        is_ended_screen = self._ending.outcome == endings.FINISHED and not self._spec.is_protocol
        return "completed" if is_ended_screen else line.outcome

    def _show_rest(self, deadline: float) -> None:
        """Let the pane take and draw what waits, unless it does nothing for a second."""
        while self._pane.wants_to_write and time.monotonic() < deadline:
            if not select.select((), (1,), (), _LAST_ECHO_PAUSE_S)[1]:
                return
            self._pane.write(time.monotonic())
        if not self._pane.ask_whether_drawn():
            return
        answer = b""
        while not self._pane.is_drawn(answer) and self._pane.has_input and len(answer) < _MAX_ANSWER_BYTES:
            if not select.select((0,), (), (), _LAST_ECHO_PAUSE_S)[0]:
                return
            answer += self._pane.read_keys()
