"""Agents in their own screens: looked at through one tmux call for all, judged, and given their texts."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from agentmon.domain.activity import DELIVERY_SOURCE, Activity
from agentmon.domain.agents import ToolType
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.errors import AgentmonError, StoreError, TmuxUnavailableError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.execution_status import EndReason, ExecutionStatus
from agentmon.domain.executions import CommandType, ConversationStart
from agentmon.domain.ids import CommandId
from agentmon.runners.danger.rule_files import danger_rules_in_force
from agentmon.runners.screens.judging import OUTPUT_SOURCE, Look, ScreenJudge
from agentmon.runners.screens.reading import ScreenText, box_rows, read_dialog
from agentmon.runners.screens.rules import find_agent_rules
from agentmon.runners.tmux.pane_looks import PaneLooks
from agentmon.threads import in_daemon_thread
from agentmon.worker.commands import give_to_host
from agentmon.worker.conversation_finding import (
    ScreenRun,
    choose_conversations,
    find_begun_anew,
    find_fitting,
    keeps_no_record,
    screen_run_of,
)
from agentmon.worker.journal_reading import NO_RESULT
from agentmon.worker.preparation import given_conversation, session_name
from agentmon.worker.prompt_delivery import (
    PROMPT_KEY,
    Delivery,
    DeliveryStep,
    DeliverySteps,
    command_id,
    is_still_due,
    is_waiting_for_text,
    next_step,
    signs_of,
)
from agentmon.worker.refusal_reading import last_line_of
from agentmon.worker.screen_answer import LISTENS_AFTER_S, ScreenAnswer, SeenDialog, gone_outcome
from agentmon.worker.screen_files import ScreenFiles
from agentmon.worker.screen_interrupt import Interrupt
from agentmon.worker.screen_news import ask_of, evidence_of, news_of
from agentmon.worker.screen_pace import RESTING_TICK_S, LookPace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from agentmon.domain.clock import Clock
    from agentmon.domain.executions import ClaimedExecution, ExecutionCommand, ExecutionEnding
    from agentmon.domain.ids import ExecutionId
    from agentmon.paths import Paths
    from agentmon.runners.execution_folder import ExecutionFolder
    from agentmon.runners.screens.judging import Verdict
    from agentmon.runners.screens.reading import Dialog
    from agentmon.runners.screens.rules import ScreenRules
    from agentmon.runners.screens.states import ScreenState
    from agentmon.runners.tmux import Tmux
    from agentmon.store.activity import ActivityRepository
    from agentmon.worker.screen_files import FileNews
    from agentmon.worker.watching import Watch, Watched

_log = logging.getLogger(__name__)

_STARTING_FOR_S: Final = 20.0
"""How long a screen that no rule knows counts as that of a program which starts."""
_DRAWN_WITHIN_S: Final = 1.0
"""After this a request is listed although the screen does not show what it is about."""
_BEGUN_WITHIN_S: Final = 20.0
"""After this a person is told that the files of an agent do not answer; they are small."""
_FILES_WITHIN_S: Final = 3.0
"""How long the looks at all others wait for files that do not answer; once."""
_ASSUMING_SOURCES: Final = frozenset({DELIVERY_SOURCE, OUTPUT_SOURCE})
_LAST_WORDS_WITHIN_S: Final = 10.0
"""How long after the end of an agent its file may still tell something."""
_REST_PER_SEARCH: Final = 20
"""How often as long as it took a search for conversations rests: it opens all that an agent wrote of late."""
_LONGEST_SEARCH_REST_S: Final = 2.0
_LEAST_REST_S: Final = 0.01
_SUBMITTED_HOLD_S: Final = 1.0
"""How long an agent that has taken a text may take to show that it works."""


class _Published(NamedTuple):
    """What the execution's row says of the agent."""

    activity: Activity
    note: str
    is_request: bool
    is_assumed: bool
    """Whether it follows from a delivery or from output, and the agent has not said it in its own words yet."""
    digest: str = ""
    """Of the dialog that it asks; empty when it asks none that is known whole."""

    def says(self, told: _Published) -> bool:
        """Return whether nothing is to be written for what is told now; the agent's own words stay its own."""
        is_same = (told[:3], told.digest) == (self[:3], self.digest)
        return is_same and (told.is_assumed or not self.is_assumed)


@dataclass(slots=True, kw_only=True)
class _Screen:
    """What is known of one agent in its own screen."""

    claimed: ClaimedExecution
    folder: ExecutionFolder
    rules: ScreenRules
    judge: ScreenJudge
    files: ScreenFiles
    steps: DeliverySteps
    begun_at: float
    first_look_at: float | None = None
    pane_id: str | None = None
    pace: LookPace = field(default_factory=LookPace)
    deliveries: list[Delivery] = field(default_factory=list)
    handed: set[tuple[str, DeliveryStep]] = field(default_factory=set)
    has_worked: bool = False
    worked_at: float = float("-inf")
    """When its own signal or its titles last told of work; monotonic."""
    submitted_at: float = float("-inf")
    """When the newest text was submitted; monotonic."""
    held_until: float = float("-inf")
    asks_since: float | None = None
    shows: tuple[str, float] = ("", float("-inf"))
    """The digest of the dialog that it shows now, empty when it shows none that is known whole, and since when."""
    seen: SeenDialog | None = None
    """The dialog that it shows, where that is known whole; the last one after that is gone."""
    answer: ScreenAnswer | None = None
    """The decision that is on its way now."""
    answered: set[CommandId] = field(default_factory=set)
    """The commands of decisions that are through, which an older list may still name."""
    interrupt: Interrupt | None = None
    """Keys whose effect is still to be seen."""
    interrupted_at: float = float("-inf")
    """When keys were last pressed to interrupt it; monotonic."""
    interrupted_by: set[CommandId] = field(default_factory=set)
    """The commands whose keys were pressed."""
    finish: CommandId | None = None
    """The command that lets it end once it has nothing left to do."""
    published: _Published | None = None
    is_being_read: bool = False
    """Whether a thread reads its files now, which may hang."""
    session_ref: str | None = None
    """The agent's own id of its conversation, as its execution has it."""

    @property
    def id(self) -> ExecutionId:
        return self.claimed.execution.id

    @property
    def looks_for_conversation(self) -> bool:
        """Whether only the agent's files can tell which conversation it has."""
        is_new = self.claimed.start is not ConversationStart.RESUME
        return self.session_ref is None and is_new and self.claimed.execution.session_id is not None

    @property
    def pending(self) -> Delivery | None:
        """The text that is on its way now."""
        return next((one for one in self.deliveries if one.step is not DeliveryStep.DONE), None)

    @property
    def is_resting(self) -> bool:
        """Whether its agent does nothing by itself, as far as the looks told."""
        is_told = self.published is not None and self.published.activity is not Activity.WORKING
        return is_told and self.judge.settles_at == float("inf") and self.interrupt is None

    @property
    def next_look_at(self) -> float:
        """When the screen is to be looked at next; monotonic."""
        at, pending = self.pace.looked_at, self.pending
        quiet_since = max(self.judge.lines_since, self.judge.grown_at)
        drawn_at = self.shows[1] + self.rules.settled_s
        asks_due = float("-inf") if self.asks_since is None else self.asks_since + _DRAWN_WITHIN_S
        dues = (
            self.judge.settles_at,
            asks_due if asks_due > at else float("inf"),
            self.held_until if self.held_until > at else float("inf"),
            self.interrupt.due_at if self.interrupt is not None else float("inf"),
            pending.due_at(self.rules, quiet_since=quiet_since, at=at) if pending is not None else float("inf"),
            self._answer_due_at(at),
            drawn_at if drawn_at > at else float("inf"),
        )
        is_inside = pending is not None and pending.is_inside
        is_urgent = at < self.held_until or is_inside or self.answer is not None
        return self.pace.next_look_at(min(dues), is_resting=self.is_resting, is_urgent=is_urgent)

    def _answer_due_at(self, at: float) -> float:
        if self.answer is None:
            return float("inf")
        due = self.answer.due_at(self.seen.since if self.seen is not None else at, self.rules.settled_s)
        return due if due > at else at + self.rules.settled_s


class ScreenWatch:
    """Looks at the screens of all agents of this worker that have one."""

    def __init__(self, *, tmux: Tmux, watch: Watch, activity: ActivityRepository, paths: Paths, clock: Clock) -> None:
        self._tmux = tmux
        self._watch = watch
        self._activity = activity
        self._paths = paths
        self._clock = clock
        self._screens: dict[ExecutionId, _Screen] = {}
        self._has_screens = asyncio.Event()
        self._in_use_until = float("-inf")
        self._next_search_at = float("-inf")
        self._has_named = False
        self._written_by: set[str] = set()
        self.on_state: Callable[[ExecutionId, ScreenState | None], None] = lambda *_: None
        """Called with what each look says that an agent does; None when that is not known."""

    @property
    def is_in_use(self) -> bool:
        """Whether an agent has a screen of its own, or had one just now."""
        return bool(self._screens) or time.monotonic() < self._in_use_until

    async def find_conversations(self) -> None:
        """Look in the files of agents for the conversations of those that have not told their own ids.

        Raises:
            StoreError: An id could not be written; the next look finds it again.
        """
        written_by, self._written_by = self._written_by, set()
        try:
            await self._find_begun_anew(written_by)
        except StoreError:
            self._written_by |= written_by
            raise
        unnamed = {screen.id: screen for screen in self._screens.values() if screen.looks_for_conversation}
        runs = [run for screen in unnamed.values() if (run := _run_of(screen)) is not None]
        begun_at = time.monotonic()
        if not runs or begun_at < self._next_search_at:
            return
        found = await self._search(runs)
        ended_at = time.monotonic()
        self._next_search_at = ended_at + min(_LONGEST_SEARCH_REST_S, _REST_PER_SEARCH * (ended_at - begun_at))
        for execution_id, ref in found.items():
            if await self._activity.name_found_conversation(execution_id, ref):
                unnamed[execution_id].session_ref = ref
                self._has_named = True

    def note_written(self, agent_slugs: Collection[str]) -> None:
        """Take it that these agents wrote something down, which may be a conversation that is begun anew."""
        self._written_by.update(agent_slugs)

    async def _find_begun_anew(self, written_by: Collection[str]) -> None:
        for screen in list(self._screens.values()):
            is_told = screen.files.signal is not None and screen.files.signal.session_ref
            if screen.session_ref is None or is_told or screen.claimed.agent.slug not in written_by:
                continue
            run = _run_of(screen)
            refs = [] if run is None else await asyncio.to_thread(find_begun_anew, run)
            known = await self._activity.refs_of_runs(refs) if refs else ()
            for ref in refs:
                if ref not in known and await self._activity.name_found_conversation(screen.id, ref):
                    screen.session_ref = ref
                    self._has_named = True

    async def _search(self, runs: Sequence[ScreenRun]) -> dict[ExecutionId, str]:
        fitting = await asyncio.to_thread(find_fitting, runs)
        refs = {one.session_ref for fits in fitting.values() for one in fits}
        if not refs:
            return {}
        known = await self._activity.refs_of_runs(refs)
        rivals = await self._activity.unnamed_beside([run.execution_id for run in runs])
        return await asyncio.to_thread(choose_conversations, runs, fitting, known=known, rivals=rivals)

    def lacks_conversation(self, watched: Watched, _: ExecutionEnding) -> bool:
        """Return whether nobody knows yet which conversation an execution has that is ending."""
        screen = self._screens.get(watched.id)
        return screen is not None and screen.looks_for_conversation

    async def look_for_last_time(self, watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        """Return the ending with the agent's own id of the conversation, which a short run may just have written.

        Others that look for theirs are looked at as well: what fits two is nobody's.
        """
        screens = [one for one in self._screens.values() if one.looks_for_conversation]
        runs = [run for screen in screens if (run := _run_of(screen, has_ended=screen.id == watched.id)) is not None]
        return replace(ending, session_ref=(await self._search(runs)).get(watched.id))

    def lacks_result(self, watched: Watched, ending: ExecutionEnding) -> bool:
        """Return whether only its exit code says that all went well, which of an agent is no result."""
        is_by_code = ending.status is ExecutionStatus.SUCCEEDED and ending.reason is EndReason.EXITED
        screen = self._screens.get(watched.id)
        return is_by_code and screen is not None and screen.claimed.agent.tool_type is ToolType.AI_AGENT

    async def look_for_result(self, watched: Watched, ending: ExecutionEnding) -> ExecutionEnding:
        """Return the ending as failed when nothing was said in this try as far as anybody knows."""
        screen = self._screens[watched.id]
        since = screen.claimed.execution.started_at
        if ending.session_ref or (since is not None and await self._activity.has_said(watched.id, since=since)):
            return ending
        if await asyncio.to_thread(_has_been_told, screen):
            return ending
        last_line = await asyncio.to_thread(last_line_of, watched.folder)
        error = f"{NO_RESULT}: {last_line}" if last_line else NO_RESULT
        return replace(ending, status=ExecutionStatus.FAILED, error=error)

    def take_named(self) -> bool:
        """Return whether a conversation got its name since this was asked for the last time."""
        has_named, self._has_named = self._has_named, False
        return has_named

    async def rest(self) -> None:
        """Wait until ``look`` may have something to see; for ever while there is nothing to look at."""
        await self._has_screens.wait()
        now = time.monotonic()
        started = [screen for screen in self._screens.values() if screen.files.pid is not None]
        ticks = [screen.pace.tick_s(now, is_resting=screen.is_resting) for screen in self._screens.values()]
        dues = [max(screen.next_look_at - now, _LEAST_REST_S) for screen in started if not screen.pace.has_grown]
        await asyncio.sleep(min([*ticks, *dues], default=RESTING_TICK_S))

    async def add(self, claimed: ClaimedExecution) -> None:
        """Look at the execution from now on, when its agent has a screen of its own."""
        if claimed.execution.mode is not ExecutionMode.TMUX:
            return
        watched = self._watch.find(claimed.execution.id)
        if watched is None:
            return
        try:
            rules = find_agent_rules(
                claimed.agent.slug, claimed.agent.binary_path, own_folder=self._paths.config_dir / "screens"
            )
        except AgentmonError as error:
            _log.warning("execution %s: %s", watched.id, error)
            rules = find_agent_rules(claimed.agent.slug, claimed.agent.binary_path)
        begin = partial(_begin, claimed, watched.folder, rules)
        try:
            async with asyncio.timeout(_BEGUN_WITHIN_S):
                screen = await in_daemon_thread(begin, name="begin a screen")
        except TimeoutError:
            problem = f"its own screen is not looked at: its files in {watched.folder.path} do not answer"
            await self._watch.note_problem(watched.id, problem)
            return
        if self._watch.find(watched.id) is watched:
            self._screens[watched.id] = screen
            self._has_screens.set()

    async def look(self) -> None:
        """Look once at whatever is due, and act on it.

        Raises:
            StoreError: Something could not be written; the next look writes it.
        """
        for execution_id in [one for one in self._screens if one not in self._watch]:
            del self._screens[execution_id]
            # What its end told counts by now.
            self._has_named = True
            self._in_use_until = time.monotonic() + _LAST_WORDS_WITHIN_S
        if not self._screens:
            self._has_screens.clear()
            return
        screens = list(self._screens.values())
        now = time.monotonic()
        moving = [screen for screen in screens if not screen.is_resting or screen.files.may_have_changed(now)]
        changed = await self._look_at_files(moving) if moving else set()
        now = time.monotonic()
        started = [screen for screen in screens if screen.files.pid is not None]
        due = [screen for screen in started if screen.id in changed or screen.next_look_at <= now]
        if not due:
            return
        looks = await self._look_at_panes(due)
        failure = None
        for screen in due:
            try:
                await self._act(screen, looks)
            except StoreError as error:
                failure = error
        if failure is not None:
            raise failure

    async def _look_at_files(self, screens: Sequence[_Screen]) -> set[ExecutionId]:
        """Read what needs no tmux; a file that does not answer holds up the looks at its own screen alone."""
        look = _FilesLook([screen for screen in screens if not screen.is_being_read])
        try:
            async with asyncio.timeout(_FILES_WITHIN_S):
                await in_daemon_thread(look.run, name="files of screens")
        except TimeoutError:
            look.is_given_up = True
            _log.warning("files of an agent in its own screen do not answer: %s", look.at)
        return set(look.changed)

    async def take(self, command: ExecutionCommand) -> bool:
        """Return whether a command for an agent in its own screen needs nothing more from who hands commands on.

        Raises:
            OSError: Its execution's folder cannot be written.
            StoreError: It could not be noted that the command is settled.
        """
        screen = self._screens.get(command.execution_id)
        if screen is None:
            return False
        match command.type:
            case CommandType.MESSAGE:
                return await self._take_message(screen, command)
            case CommandType.ANSWER:
                return await self._take_answer(screen, command)
            case CommandType.INTERRUPT:
                return await self._take_interrupt(screen, command)
            case CommandType.FINISH:
                if screen.finish != command.id:
                    screen.finish = command.id
                    screen.pace.look_at_once()
                return False
            case _:
                error = "only the agent's own screen takes this: attach to it"
                await self._activity.settle_command(command.id, error=error, at=self._clock.now())
                return True

    async def _take_message(self, screen: _Screen, command: ExecutionCommand) -> bool:
        delivery = next((one for one in screen.deliveries if one.key == command.id), None)
        if delivery is None:
            text = command.payload.get("text")
            delivery = await _resumed(screen, command.id, text if isinstance(text, str) else "")
            screen.deliveries.append(delivery)
            screen.pace.look_at_once()
        if delivery.step is not DeliveryStep.DONE:
            return False
        # Whoever saw it taken may have died, or not have had the database, before it could say so.
        await self._activity.settle_command(command.id, at=self._clock.now())
        return True

    async def _take_answer(self, screen: _Screen, command: ExecutionCommand) -> bool:
        """Let the next looks type it; it is settled by them. A reason of a denial is a message that follows."""
        if any(one.key == command.id for one in screen.deliveries):
            return await self._take_message(screen, command)
        if command.id in screen.answered:
            return True
        if screen.answer is None:
            has_keys = await in_daemon_thread(partial(screen.folder.has_command, command.id), name="answer")
            now = time.monotonic()
            screen.answer = ScreenAnswer.of(command.id, command.payload, is_typed=has_keys, at=now)
            screen.pace.look_at_once()
        return False

    async def _take_interrupt(self, screen: _Screen, command: ExecutionCommand) -> bool:
        """Press the keys; it is through when they had an effect, or were pressed once more."""
        if command.id not in screen.interrupted_by:
            await _press_interrupt(screen, command.id)
            screen.interrupted_by.add(command.id)
            screen.interrupted_at = time.monotonic()
            screen.interrupt = Interrupt(command_id=command.id, pressed_at=screen.interrupted_at)
        return screen.interrupt is None or screen.interrupt.command_id != command.id

    async def _look_at_panes(self, due: Sequence[_Screen]) -> PaneLooks | None:
        """Return what the panes show; None when tmux cannot tell."""
        try:
            looks = await self._tmux.look_at_panes([one.pane_id for one in due if one.pane_id is not None])
            fresh = []
            for screen in due:
                pane = looks.panes.get(session_name(screen.claimed.execution))
                if screen.pane_id is None and pane is not None:
                    screen.pane_id = pane.pane_id
                    fresh.append(pane.pane_id)
            if fresh:
                later = await self._tmux.look_at_panes(fresh)
                looks = PaneLooks(panes=later.panes, screens={**looks.screens, **later.screens})
        except TmuxUnavailableError as error:
            _log.info("the screens cannot be seen: %s", error)
            return None
        return looks

    async def _act(self, screen: _Screen, looks: PaneLooks | None) -> None:
        now = time.monotonic()
        pane = looks.panes.get(session_name(screen.claimed.execution)) if looks is not None else None
        lines = looks.screens.get(pane.pane_id) if looks is not None and pane is not None else None
        shown = ScreenText.of(pane.title, lines) if pane is not None and lines is not None else None
        if pane is not None:
            screen.pane_id = pane.pane_id
        verdict = screen.judge.judge(
            Look(
                at=now,
                screen=shown,
                signal=screen.files.signal,
                has_grown=screen.pace.has_grown,
                is_halted=screen.files.is_halted,
            )
        )
        screen.first_look_at = now if screen.first_look_at is None else screen.first_look_at
        screen.pace.note_look(now, is_new=screen.judge.same_since == now)
        self._note_work(screen, verdict)
        self.on_state(screen.id, verdict.state)
        dialog = read_dialog(screen.rules, shown) if shown is not None else None
        if shown is not None:
            digest = dialog.digest if dialog is not None else ""
            if screen.shows[0] != digest:
                screen.shows = (digest, now)
                # What comes again, with the same words, is another one.
                screen.seen = SeenDialog.of(dialog, screen.rules, shown, at=now) if dialog is not None else screen.seen
            await self._answer(screen, shown, dialog, verdict, now)
            await self._deliver(screen, shown, verdict, now)
            await self._finish_when_free(screen, shown, verdict, now)
        await self._interrupt_again(screen, verdict, now)
        await self._publish(screen, shown, dialog, verdict, now)
        await self._name_conversation(screen)

    async def _answer(
        self, screen: _Screen, shown: ScreenText, dialog: Dialog | None, verdict: Verdict, now: float
    ) -> None:
        """Type the decision that is on its way into the dialog that it is about, and see what becomes of it."""
        answer = screen.answer
        if answer is None or screen.files.is_halted:
            return
        if dialog is None or dialog.digest != answer.digest:
            answer.gone_since = now if answer.gone_since is None else answer.gone_since
            if now - answer.gone_since >= screen.rules.settled_s:
                await self._end_answer(screen, answer, shown, verdict)
            return
        answer.gone_since = None
        is_late = now >= answer.due_at(now, screen.rules.settled_s)
        option = answer.option_of(dialog)
        is_moving = answer.has_moved and option is not None and bool(option.moves)
        if (answer.is_typed or answer.has_moved) and is_late:
            await self._put_back(screen, answer, "it was typed, and the dialog is still there")
        elif (
            not (answer.is_typed or is_moving)
            and screen.seen is not None
            and now - screen.seen.since >= LISTENS_AFTER_S
        ):
            await self._type_answer(screen, answer)

    async def _type_answer(self, screen: _Screen, answer: ScreenAnswer) -> None:
        """Look at the live screen once more, and type the keys when it shows the very dialog."""
        pane_ids = [screen.pane_id] if screen.pane_id is not None else []
        try:
            coloured = (await self._tmux.look_at_panes(pane_ids, is_coloured=True)).screens
            plain = (await self._tmux.look_at_panes(pane_ids)).screens
        except TmuxUnavailableError as error:
            _log.info("execution %s: it cannot be answered yet: %s", screen.id, error)
            return
        lines = [one[pane_id] for pane_id in pane_ids for one in (plain, coloured) if pane_id in one]
        dialog = read_dialog(screen.rules, ScreenText.of("", lines[0])) if len(lines) > 1 else None
        if dialog is None or dialog.digest != answer.digest:
            return
        option = answer.option_of(dialog)
        if option is None:
            await self._put_back(screen, answer, "its screen does not offer this")
            return
        if not option.is_marked(lines[1]):
            await self._put_back(screen, answer, "something else is chosen in its terminal")
            return
        is_move = bool(option.moves)
        typed = (
            {"id": answer.move_id, "text": option.moves} if is_move else {"id": answer.command_id, "text": option.keys}
        )
        try:
            command = _for_this_try({**typed, "type": "type", "is_paste": False}, screen)
            await give_to_host(screen.folder, command)
        except OSError as error:
            _log.warning("execution %s: it cannot be answered: %s", screen.id, error)
            return
        if not (is_move and answer.has_moved):
            answer.since = time.monotonic()
        answer.has_moved, answer.is_typed = is_move or answer.has_moved, not is_move

    async def _end_answer(self, screen: _Screen, answer: ScreenAnswer, shown: ScreenText, verdict: Verdict) -> None:
        """Settle a decision whose dialog is gone: by its keys, or before they were typed."""
        command_id, at = CommandId(answer.command_id), self._clock.now()
        if not answer.is_typed:
            outcome = gone_outcome(screen.seen, screen.rules, shown, verdict)
            error = "the dialog was gone before anything was typed"
            await self._activity.settle_answer(command_id, error=error, status=outcome, at=at)
        elif answer.reason:
            await self._activity.close_request(command_id, at=at)
            screen.deliveries.append(await _resumed(screen, answer.command_id, answer.reason))
        else:
            await self._activity.settle_command(command_id, at=at)
        screen.answered.add(command_id)
        screen.answer = None

    async def _put_back(self, screen: _Screen, answer: ScreenAnswer, error: str) -> None:
        """Let the request wait for another decision."""
        command_id = CommandId(answer.command_id)
        await self._activity.settle_answer(command_id, error=error, status=ApprovalStatus.PENDING, at=self._clock.now())
        screen.answered.add(command_id)
        screen.answer = screen.published = None

    async def _name_conversation(self, screen: _Screen) -> None:
        """Write the id by which the agent knows its conversation, where its own signal tells it."""
        told = screen.files.signal.session_ref if screen.files.signal is not None else ""
        if told and told != screen.session_ref:
            await self._activity.name_conversation(screen.id, told)
            screen.session_ref = told

    def _note_work(self, screen: _Screen, verdict: Verdict) -> None:
        if screen.worked_at > screen.submitted_at:
            screen.held_until = float("-inf")
        finding, pending = verdict.finding, screen.pending
        if finding is None or not finding.state.is_busy:
            return
        screen.has_worked = screen.has_worked or pending is None
        if finding.source != OUTPUT_SOURCE and (pending is None or not pending.is_inside):
            screen.held_until = float("-inf")

    async def _interrupt_again(self, screen: _Screen, verdict: Verdict, now: float) -> None:
        interrupt = screen.interrupt
        if interrupt is None or now < interrupt.due_at:
            return
        pressed_later = None
        # How long it was so before the first look, nobody knows: the keys may have been pressed by another worker.
        is_as_found = screen.judge.same_since == screen.first_look_at
        same_since = float("-inf") if is_as_found else screen.judge.same_since
        if interrupt.had_no_effect(verdict, same_since=same_since):
            try:
                await _press_interrupt(screen, interrupt.second_id)
            except OSError as error:
                _log.warning("execution %s: it cannot be interrupted again: %s", screen.id, error)
                pressed_later = replace(interrupt, refused_at=now)
        if screen.interrupt is interrupt:  # another one may have come meanwhile
            screen.interrupt = pressed_later

    async def _finish_when_free(self, screen: _Screen, shown: ScreenText, verdict: Verdict, now: float) -> None:
        """Let the host end the agent that was told to finish, unless it works, asks or is given a text."""
        is_known = bool(screen.rules.rules or screen.rules.signal)
        is_free = not is_known or is_waiting_for_text(screen.rules, shown, verdict)
        is_given = screen.pending is not None or screen.answer is not None
        if screen.finish is None or is_given or now < screen.held_until or not is_free:
            return
        command = {"id": screen.finish, "type": CommandType.FINISH.value}
        try:
            await give_to_host(screen.folder, _for_this_try(command, screen))
        except OSError as error:
            _log.warning("execution %s: its end cannot be handed on: %s", screen.id, error)
            return
        await self._activity.settle_command(screen.finish, at=self._clock.now())
        screen.finish = None

    async def _deliver(self, screen: _Screen, shown: ScreenText, verdict: Verdict, now: float) -> None:
        delivery = screen.pending
        # The one before was taken, and the agent may not have begun: it is no more free than it seems.
        if delivery is None or (now < screen.held_until and delivery.step is DeliveryStep.WAITING):
            return
        quiet_s = now - max(screen.judge.lines_since, screen.judge.grown_at)
        step = next_step(delivery, screen.rules, shown, verdict, quiet_s=quiet_s, at=now)
        if step is not None:
            taken = replace(delivery, step=step, since=now, problem="")
            if step is DeliveryStep.PASTED:
                taken.seen_before = signs_of(delivery.text, screen.rules, shown)
            elif step is DeliveryStep.SUBMITTED:
                taken.rows = box_rows(screen.rules, shown)
                screen.submitted_at = now
            try:
                await in_daemon_thread(partial(screen.steps.write, taken), name="delivery")
            except OSError as error:
                _log.warning("execution %s: a step of its text cannot be written down: %s", screen.id, error)
                if step is not DeliveryStep.DONE:
                    delivery.problem = f"its next step cannot be written down: {error.strerror or error}"
                return
            screen.deliveries[screen.deliveries.index(delivery)] = taken
            delivery = taken
        if step is not None or is_still_due(delivery, screen.rules, shown, verdict):
            await self._hand_over(screen, delivery)
        if delivery.step is DeliveryStep.DONE:
            screen.has_worked = True
            finding = verdict.finding
            is_at_work = finding is not None and finding.source != OUTPUT_SOURCE and not finding.state.is_free
            has_worked = is_at_work or screen.worked_at > screen.submitted_at
            screen.held_until = float("-inf") if has_worked else now + _SUBMITTED_HOLD_S
            if not delivery.is_prompt:
                await self._activity.settle_command(CommandId(delivery.key), at=self._clock.now())

    async def _hand_over(self, screen: _Screen, delivery: Delivery) -> None:
        """Give the host what belongs to the step; what it has had already it passes over."""
        key = (delivery.key, delivery.step)
        if key in screen.handed or not delivery.is_inside:
            return
        is_paste = delivery.step is DeliveryStep.PASTED
        command = {
            "id": command_id(screen.id, screen.claimed.execution.attempt, delivery),
            "type": "type",
            "text": screen.rules.typed(delivery.text) if is_paste else "\r",
            "is_paste": is_paste,
        }
        try:
            await give_to_host(screen.folder, _for_this_try(command, screen))
        except OSError as error:
            _log.warning("execution %s: a text cannot be handed on: %s", screen.id, error)
        else:
            screen.handed.add(key)

    async def _publish(
        self, screen: _Screen, shown: ScreenText | None, dialog: Dialog | None, verdict: Verdict, now: float
    ) -> None:
        news = news_of(
            verdict,
            pending=screen.pending,
            has_worked=screen.has_worked,
            is_starting=now - screen.begun_at < _STARTING_FOR_S,
            is_held=now < screen.held_until,
        )
        asks = verdict.state is not None and verdict.state.is_asking
        screen.asks_since = (now if screen.asks_since is None else screen.asks_since) if asks else None
        # The agent's signal comes before it has drawn what it asks; a request without words helps nobody.
        is_request = screen.asks_since is not None and (verdict.is_drawn or now - screen.asks_since > _DRAWN_WITHIN_S)
        # A dialog is drawn in pieces, and changes its words for a moment while it takes an answer.
        is_drawing = shown is not None and now - screen.shows[1] < screen.rules.settled_s
        if is_request and (is_drawing or (screen.answer is not None and screen.answer.is_typed)):
            return
        dialog = dialog if is_request else None
        digest = dialog.digest if dialog is not None else ""
        told = _Published(news.activity, news.note, is_request, news.source in _ASSUMING_SOURCES, digest)
        before = screen.published
        if before is not None and before.says(told):
            return
        at = self._clock.now()
        ask = None
        if is_request:
            danger_rules = danger_rules_in_force(self._paths.danger_rules_file)
            ask = ask_of(news, shown, dialog, danger_rules, at_ms=int(at.timestamp() * 1000))
        is_of_seen = before is not None and screen.seen is not None and before.digest == screen.seen.dialog.digest
        gone = gone_outcome(screen.seen if is_of_seen else None, screen.rules, shown, verdict)
        if screen.seen is not None and screen.interrupted_at >= screen.seen.since:
            gone = ApprovalStatus.WITHDRAWN
        is_written = await self._activity.record(
            screen.id, news, ask=ask, gone=gone, evidence=evidence_of(verdict), at=at
        )
        if is_written:
            screen.published = told
            self._watch.has_asked = self._watch.has_asked or ask is not None


def _begin(claimed: ClaimedExecution, folder: ExecutionFolder, rules: ScreenRules) -> _Screen:
    execution = claimed.execution
    config = claimed.agent.session_config
    environ = dict(config.environment) if config is not None else {}
    environ |= folder.read_environment() or {}
    now = time.monotonic()
    screen = _Screen(
        claimed=claimed,
        folder=folder,
        rules=rules,
        judge=ScreenJudge(rules),
        files=ScreenFiles(folder, rules, environ, attempt=execution.attempt),
        steps=DeliverySteps(folder, execution.attempt),
        begun_at=now,
    )
    screen.session_ref = given_conversation(claimed) or (None if execution.attempt else execution.session_ref)
    if execution.activity is not None:
        screen.published = _Published(
            execution.activity, execution.activity_note or "", False, execution.activity_source in _ASSUMING_SOURCES
        )
    if execution.prompt:
        step, seen_before = screen.steps.read().get(PROMPT_KEY, (DeliveryStep.WAITING, 0))
        screen.deliveries.append(
            Delivery(key=PROMPT_KEY, text=execution.prompt, step=step, seen_before=seen_before, since=now)
        )
        screen.has_worked = step is DeliveryStep.DONE
    return screen


class _FilesLook:
    """One look at the files of several screens; what is given up ends behind the screen at which it hangs."""

    def __init__(self, screens: Sequence[_Screen]) -> None:
        self._screens = screens
        self.at: ExecutionId | None = None
        """Whose files are being read."""
        self.changed: set[ExecutionId] = set()
        """Those whose own signal, title or process changed."""
        self.is_given_up = False

    def run(self) -> None:
        for screen in self._screens:
            if self.is_given_up:
                return
            self.at, screen.is_being_read = screen.id, True
            try:
                self._take(screen, screen.files.read())
            finally:
                screen.is_being_read = False

    def _take(self, screen: _Screen, news: FileNews) -> None:
        if news.has_started:
            screen.begun_at = time.monotonic()
            for delivery in screen.deliveries:
                delivery.since = screen.begun_at
        if news.grown_bytes is not None:
            screen.pace.note_growth(news.grown_bytes)
        if news.has_worked:
            screen.worked_at = time.monotonic()
        if news.is_telling:
            self.changed.add(screen.id)


def _run_of(screen: _Screen, *, has_ended: bool = False) -> ScreenRun | None:
    """Return what tells its conversation from others; None before its process is known, unless that is gone."""
    pid = 0 if has_ended else screen.files.pid
    if pid is None:
        return None
    return screen_run_of(screen.claimed, screen.files.environ, pid=pid, session_ref=screen.session_ref or "")


def _has_been_told(screen: _Screen) -> bool:
    """Return whether an agent that has ended had a text, and wrote it down where it writes such things down; blocks."""
    steps = {step for step, _ in screen.steps.read().values()}
    has_had_text = screen.has_worked or bool(steps - {DeliveryStep.WAITING, DeliveryStep.PASTED})
    run = _run_of(screen, has_ended=True)
    return has_had_text and (run is None or not keeps_no_record(run))


async def _resumed(screen: _Screen, key: str, text: str) -> Delivery:
    """Return a text on its way to the agent, as far as an earlier worker has brought it."""
    steps = await in_daemon_thread(screen.steps.read, name="delivery")
    step, seen_before = steps.get(key, (DeliveryStep.WAITING, 0))
    return Delivery(key=key, text=text, step=step, seen_before=seen_before, since=time.monotonic())


async def _press_interrupt(screen: _Screen, key_id: str) -> None:
    typed = {"id": key_id, "type": "type", "text": screen.rules.interrupt_keys, "is_paste": False}
    await give_to_host(screen.folder, _for_this_try(typed, screen))


def _for_this_try(command: Mapping[str, object], screen: _Screen) -> Mapping[str, object]:
    return {**command, "attempt": screen.claimed.execution.attempt}
