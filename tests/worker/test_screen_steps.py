"""Each step towards an agent's own screen: written first, taken once, whatever write fails or kills the worker."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import threading
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from agentmon.domain.agents import DangerLevel
from agentmon.domain.approvals import ApprovalStatus
from agentmon.domain.conversation import AskKind
from agentmon.domain.errors import StoreError
from agentmon.domain.execution_mode import ExecutionMode
from agentmon.domain.executions import CommandType
from agentmon.runners.execution_folder import ExecutionFolder
from agentmon.runners.screens.reading import ScreenText, read_dialog
from agentmon.runners.screens.rules import find_rules
from agentmon.runners.tmux.pane_looks import PaneInfo, PaneLooks
from agentmon.worker import screen_files, screen_watching
from agentmon.worker.prompt_delivery import PROMPT_KEY, DeliveryStep, DeliverySteps
from agentmon.worker.screen_answer import LISTENS_AFTER_S
from agentmon.worker.screen_files import ScreenFiles
from agentmon.worker.screen_watching import ScreenWatch
from tests.worker.screen_stubs import RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agentmon.domain.conversation import AskNews

_LINE = "=" * 30
_INTERRUPT_KEYS = "\x1b"


class Killed(Exception):  # noqa: N818 - it is what happens to a worker
    """The worker is gone."""


class Faults:
    """Lets one of the writes that a worker makes fail, or be the last thing that it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, how: str, at: int) -> None:
        self._how = how
        self._left = at
        self.has_struck = False
        monkeypatch.setattr(DeliverySteps, "write", self._faulty(DeliverySteps.write))
        monkeypatch.setattr(ExecutionFolder, "append_command", self._faulty(ExecutionFolder.append_command))

    def _faulty(self, write: Callable[..., None]) -> Callable[..., None]:
        def made(*arguments: object) -> None:
            self.strike("before", OSError(errno.ENOSPC, "no space"))
            write(*arguments)
            self.strike("after", None)

        return made

    def strike(self, when: str, refusal: Exception | None) -> None:
        if when == "before":
            self._left -= 1
        if self._left != 0:
            return
        if refusal is not None and self._how == "refused":
            self.has_struck = True
            raise refusal
        if self._how == f"killed {when}":
            self.has_struck = True
            raise Killed


class Agent:
    """Draws what it was given, and obeys each command of its host once."""

    def __init__(self, folder: ExecutionFolder) -> None:
        self._folder = folder
        self._obeyed: set[str] = set()
        self._inside = ""
        self.lost_presses = 0
        self.presses = 0
        self.is_working = False
        self.works_unseen = False
        """Whether its turns are over before its screen shows them."""
        self.works_on = False
        """Whether a turn lasts until it is interrupted."""
        self.received: list[str] = []
        self.wish = ""
        """The command that it asks leave for; empty while it asks nothing."""
        self.answers: list[str] = []
        self.said: list[str] = []

    @staticmethod
    def dialog(wish: str) -> tuple[str, ...]:
        return ("May I run this?", f"  $ {wish}", "> 1. Yes", "  2. No", "", "allow or deny")

    def hear(self) -> None:
        self.is_working = self.is_working and self.works_on
        if not self._folder.control.exists():
            return
        for command in [json.loads(line) for line in self._folder.control.read_text().splitlines() if line]:
            if command["id"] not in self._obeyed:
                self._obeyed.add(command["id"])
                self._type(command["text"], is_paste=command["is_paste"])

    def _type(self, text: str, *, is_paste: bool) -> None:
        if self.wish and not is_paste:
            self.answers.append(text)
            self.lost_presses -= 1
            self.wish = self.wish if self.lost_presses >= 0 else ""
        elif is_paste:
            self._inside += text
        elif text == "\r":
            self.received.append(self._inside)
            self._inside, self.is_working = "", not self.works_unseen
        else:
            self.presses += 1
            self.is_working = self.is_working and self.presses <= self.lost_presses

    def drawn(self) -> tuple[str, ...]:
        said = (*self.said, "") if self.said else ()
        if self.wish:
            return (*said, *self.dialog(self.wish))
        work = ("esc to interrupt",) if self.is_working else ()
        return (*said, *work, _LINE, f"> {self._inside}".rstrip(), _LINE)


class Stage:
    """One agent, and the workers that look at its screen, one after the other."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rules: str = RULES) -> None:
        self.folder = ExecutionFolder(tmp_path / "e1")
        self.folder.make()
        self.folder.journal.write_text(json.dumps({"n": 1, "type": "agent_started", "pid": os.getpid()}) + "\n")
        file = tmp_path / "screens" / "stub.toml"
        file.parent.mkdir()
        file.write_text(rules.replace('agent = "stub"\n', 'agent = "stub"\ninterrupt_keys = "\\u001b"\n'))
        self._config_dir = tmp_path
        self._now = 1000.0
        for module in (screen_watching, screen_files):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self._now))
        self.agent = Agent(self.folder)
        self.faults: Faults | None = None
        self.beside: dict[str, ExecutionFolder] = {}
        """Folders of other agents that the worker looks at, which draw nothing."""
        self.problems: dict[str, str] = {}
        self.settled: list[str] = []
        self.unheard: list[ApprovalStatus] = []
        self.closed: list[str] = []
        """The decisions that were heard, and have a reason that is still to be said."""
        self.asked: list[AskNews] = []
        self.gone: list[ApprovalStatus] = []
        self.commands: list[Any] = []
        self.handed_on: list[str] = []
        self._worker: ScreenWatch | None = None

    @property
    def steps(self) -> dict[str, DeliveryStep]:
        return {key: step for key, (step, _) in DeliverySteps(self.folder, 0).read().items()}

    def has_given_its_prompt(self) -> bool:
        return self.steps.get(PROMPT_KEY) is DeliveryStep.DONE

    def has_handed_on(self) -> bool:
        return len(self.handed_on) == len(self.commands)

    def decide(self, decision: str, *, wish: str, reason: str = "") -> None:
        dialog = read_dialog(
            find_rules("stub", own_folder=self._config_dir / "screens"), ScreenText.of("", Agent.dialog(wish))
        )
        assert dialog is not None
        self.send(CommandType.ANSWER, decision=decision, input_digest=dialog.digest, reason=reason)

    def is_settled(self) -> bool:
        return len(self.settled) == len(self.commands)

    def send(self, kind: CommandType, text: str = "", **payload: str) -> None:
        payload = {"text": text, **payload} if text else payload
        command = SimpleNamespace(id=f"c{len(self.commands)}", execution_id="e1", type=kind, payload=payload)
        self.commands.append(command)

    async def run_until(self, is_over: Callable[[], bool]) -> None:
        for _ in range(200):
            if is_over():
                return
            self._now += 0.3
            self.agent.hear()
            try:
                await self._turn()
            except Killed:
                self._worker = None
            except StoreError:
                pass
        pytest.fail(f"not within 60 s: {self.steps}, {self.handed_on}, {self.agent.received}, {self.agent.presses}")

    async def go_on(self, seconds: float) -> None:
        until = self._now + seconds
        await self.run_until(lambda: self._now >= until)

    async def _turn(self) -> None:
        if self._worker is None:
            self._worker = await self._begin()
        await self._worker.look()
        for command in self.commands:
            # What is settled is handed on, and no worker is given it again.
            is_open = command.type is not CommandType.ANSWER or command.id not in self.settled
            try:
                if is_open and command.id not in self.handed_on and await self._worker.take(command):
                    self.handed_on.append(command.id)
            except OSError:
                continue

    async def _begin(self) -> ScreenWatch:
        async def look_at_panes(pane_ids: list[str], **_: object) -> PaneLooks:
            self.agent.hear()
            screens = {"%1": self.agent.drawn()} if pane_ids else {}
            return PaneLooks(panes={"am-e1": PaneInfo(pane_id="%1", title="")}, screens=screens)

        async def record(*_: object, ask: AskNews | None, gone: ApprovalStatus, **__: object) -> bool:
            self.asked += [ask] if ask is not None else []
            self.gone.append(gone)
            return True

        async def settle_answer(command_id: str, *, status: ApprovalStatus, **_: object) -> None:
            await settle_command(command_id)
            self.unheard.append(status)

        async def note(noted: list[str], command_id: str) -> None:
            if self.faults is not None:
                self.faults.strike("before", StoreError("busy"))
            noted.append(command_id)
            if self.faults is not None:
                self.faults.strike("after", None)

        async def close_request(command_id: str, **_: object) -> None:
            await note(self.closed, command_id)

        async def settle_command(command_id: str, **_: object) -> None:
            await note(self.settled, command_id)

        folders = {**self.beside, "e1": self.folder}
        watched = {one: SimpleNamespace(id=one, folder=folder) for one, folder in folders.items()}
        fields: dict[str, Any] = {
            "tmux": SimpleNamespace(look_at_panes=look_at_panes),
            "watch": _Watch(watched, self.problems),
            "activity": SimpleNamespace(
                record=record, settle_command=settle_command, settle_answer=settle_answer, close_request=close_request
            ),
            "paths": SimpleNamespace(config_dir=self._config_dir, danger_rules_file=self._config_dir / "danger.toml"),
            "clock": SimpleNamespace(now=lambda: datetime.now(UTC)),
        }
        worker = ScreenWatch(**fields)
        agent = SimpleNamespace(slug="stub", binary_path="/bin/stub", session_config=None)
        for one in folders:
            execution = SimpleNamespace(
                id=one, mode=ExecutionMode.TMUX, attempt=0, prompt="hello", activity=None, session_ref=None
            )
            claimed: Any = SimpleNamespace(execution=execution, agent=agent)
            await worker.add(claimed)
        return worker


class _Watch(dict[str, Any]):
    has_asked = False

    def __init__(self, watched: dict[str, Any], problems: dict[str, str]) -> None:
        super().__init__(watched)
        self._problems = problems

    def find(self, execution_id: str) -> Any:
        return self[execution_id]

    async def note_problem(self, execution_id: str, problem: str) -> None:
        self._problems[execution_id] = problem


async def test_files_that_do_not_answer_hold_up_the_looks_at_their_own_screen_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over, read = threading.Event(), ScreenFiles.read
    hanging: list[str] = []

    def read_or_hang(files: ScreenFiles) -> screen_files.FileNews:
        if files.environ.get("HANGS"):
            hanging.append("look")
            is_over.wait()
        return read(files)

    monkeypatch.setattr(ScreenFiles, "read", read_or_hang)
    monkeypatch.setattr(screen_watching, "_FILES_WITHIN_S", 0.05)
    stage = Stage(tmp_path, monkeypatch)
    other = ExecutionFolder(tmp_path / "e0")
    other.make()
    other.write_environment({"HANGS": "1"})
    stage.beside = {"e0": other}
    try:
        await stage.run_until(lambda: stage.agent.received == ["hello"])
    finally:
        is_over.set()
    assert hanging == ["look"]


async def test_a_person_is_told_of_a_screen_whose_files_do_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(screen_watching, "_begin", lambda *_: is_over.wait())
    monkeypatch.setattr(screen_watching, "_BEGUN_WITHIN_S", 0.05)
    stage = Stage(tmp_path, monkeypatch)
    try:
        await stage.run_until(lambda: bool(stage.problems))
    finally:
        is_over.set()
    assert list(stage.problems) == ["e1"]


HOW = ["refused", "killed before", "killed after"]


async def _play_texts(stage: Stage) -> None:
    await stage.run_until(lambda: stage.agent.received == ["hello"])
    stage.send(CommandType.MESSAGE, "second")
    await stage.run_until(stage.has_handed_on)


@pytest.mark.parametrize("how", HOW)
async def test_a_text_arrives_once_whichever_write_fails_or_is_the_workers_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    at = 0
    while True:
        at += 1
        (tmp_path / str(at)).mkdir()
        with monkeypatch.context() as context:
            stage = Stage(tmp_path / str(at), context)
            stage.faults = Faults(context, how, at)

            await _play_texts(stage)

        assert stage.agent.received == ["hello", "second"]
        assert stage.steps == {PROMPT_KEY: DeliveryStep.DONE, "c0": DeliveryStep.DONE}
        assert "c0" in stage.settled
        if not stage.faults.has_struck:
            break
    assert at > 10


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("lost_presses", [0, 1])
async def test_an_interrupt_is_pressed_until_it_is_heard_whichever_write_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, lost_presses: int
) -> None:
    at = 0
    while True:
        at += 1
        (tmp_path / str(at)).mkdir()
        with monkeypatch.context() as context:
            stage = Stage(tmp_path / str(at), context)
            stage.agent.works_on, stage.agent.lost_presses = True, lost_presses
            await stage.run_until(stage.has_given_its_prompt)
            stage.faults = Faults(context, how, at)

            stage.send(CommandType.INTERRUPT)
            await stage.run_until(stage.has_handed_on)
            stage.agent.hear()

        assert not stage.agent.is_working
        assert stage.agent.presses == lost_presses + 1
        if not stage.faults.has_struck:
            break
    assert at > lost_presses + 1


async def test_a_step_that_cannot_be_written_is_told_and_no_key_is_pressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(DeliverySteps, "write", refuse)
        tries = iter(range(30))
        await stage.run_until(lambda: next(tries) == 29)

        assert not stage.folder.control.exists()

    await stage.run_until(lambda: stage.agent.received == ["hello"])


async def test_steps_that_cannot_be_read_are_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.send(CommandType.MESSAGE, "second")
    steps = stage.folder.path / "deliveries.json"
    kept = stage.folder.path / "kept"
    steps.rename(kept)
    steps.mkdir()
    tries = iter(range(30))

    await stage.run_until(lambda: next(tries) == 29)
    steps.rmdir()
    kept.rename(steps)
    await stage.run_until(stage.has_handed_on)

    assert stage.steps == {PROMPT_KEY: DeliveryStep.DONE, "c0": DeliveryStep.DONE}
    assert stage.agent.received == ["hello", "second"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(
    ("decision", "reason", "key"), [("allow", "", "1"), ("deny", "", "\x1b"), ("deny", "why", "\x1b")]
)
async def test_a_decision_is_typed_once_whichever_write_fails_or_is_the_workers_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, decision: str, reason: str, key: str
) -> None:
    at = 0
    while True:
        at += 1
        (tmp_path / str(at)).mkdir()
        with monkeypatch.context() as context:
            stage = Stage(tmp_path / str(at), context)
            await stage.run_until(stage.has_given_its_prompt)
            stage.agent.wish = "touch it"
            stage.faults = Faults(context, how, at)

            stage.decide(decision, wish="touch it", reason=reason)
            await stage.run_until(stage.is_settled)

        assert stage.agent.answers == [key]
        assert stage.agent.received == ["hello", *([reason] if reason else [])]
        assert stage.unheard == []
        if not stage.faults.has_struck:
            break
    assert at > 1


async def test_a_decision_on_a_dialog_that_is_gone_types_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = "touch it"
    await stage.run_until(lambda: bool(stage.asked))
    stage.agent.wish = ""

    stage.decide("allow", wish="touch it")
    await stage.run_until(stage.is_settled)

    assert stage.agent.answers == []
    assert stage.unheard == [ApprovalStatus.ANSWERED]


async def test_a_decision_is_never_typed_into_another_dialog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = "touch it"
    await stage.run_until(lambda: bool(stage.asked))
    stage.agent.wish = "rm -rf it"

    stage.decide("allow", wish="touch it")
    await stage.run_until(stage.is_settled)

    assert stage.agent.answers == []
    assert stage.unheard == [ApprovalStatus.WITHDRAWN]


async def test_a_key_that_is_not_heard_puts_the_request_back_and_is_not_typed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish, stage.agent.lost_presses = "touch it", 1

    stage.decide("allow", wish="touch it")
    await stage.run_until(stage.is_settled)

    assert stage.agent.answers == ["1"]
    assert stage.unheard == [ApprovalStatus.PENDING]
    stage.decide("allow", wish="touch it")
    await stage.run_until(stage.is_settled)
    assert stage.agent.answers == ["1", "1"]
    assert stage.agent.wish == ""


async def test_the_same_dialog_once_more_is_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = RULES.replace("ready_s = 0.05\n", 'ready_s = 0.05\nallowed = "^OK ran"\n')
    stage = Stage(tmp_path, monkeypatch, rules)
    await stage.run_until(stage.has_given_its_prompt)
    for said in (["OK ran"], ["OK ran"]):
        stage.agent.wish = "touch it"
        await stage.go_on(6)
        stage.agent.wish, stage.agent.said = "", said
        await stage.go_on(6)

    outcomes = [gone for gone in stage.gone if gone is not ApprovalStatus.WITHDRAWN]
    assert len(stage.asked) == 2
    assert stage.gone[-1] is ApprovalStatus.ANSWERED
    assert outcomes.count(ApprovalStatus.ALLOWED) == 1


async def test_the_same_dialog_once_more_is_given_the_time_to_listen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = "touch it"
    await stage.go_on(6)
    stage.agent.wish = ""
    await stage.go_on(6)
    stage.agent.wish = "touch it"
    stage.decide("allow", wish="touch it")

    await stage.go_on(LISTENS_AFTER_S - 0.3)

    assert stage.agent.answers == []
    await stage.run_until(lambda: stage.agent.answers == ["1"])


async def test_a_denial_whose_reason_is_still_to_be_said_holds_back_no_dialog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = "touch it"
    stage.decide("deny", wish="touch it", reason="why")
    stage.agent.works_on = stage.agent.is_working = True

    await stage.run_until(lambda: stage.closed == ["c0"])
    stage.agent.wish = "touch it"
    await stage.run_until(lambda: len(stage.asked) == 2)

    assert stage.settled == []
    stage.agent.wish, stage.agent.works_on = "", False
    await stage.run_until(stage.is_settled)
    assert stage.agent.received == ["hello", "why"]


async def test_a_decision_that_an_older_list_names_is_not_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = "touch it"
    stage.decide("allow_for_session", wish="touch it")
    await stage.run_until(stage.is_settled)
    assert stage._worker is not None

    is_through = await stage._worker.take(stage.commands[0])
    await stage.go_on(6)

    assert is_through
    assert stage.unheard == [ApprovalStatus.PENDING]
    assert stage.agent.answers == []


async def test_the_mark_of_choice_is_sent_to_the_option_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = 'decision = "allow"\nmoves = "\\u001b[B"\nkeys = "\\r"\n'
    stage = Stage(tmp_path, monkeypatch, RULES.replace('decision = "allow"\n', moves))
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish, stage.agent.lost_presses = "touch it", 1
    stage.decide("allow", wish="touch it")

    await stage.run_until(stage.is_settled)

    assert stage.folder.control.read_text().count('"c0-move"') == 1
    assert stage.agent.answers == ["\x1b[B"]
    assert stage.unheard == [ApprovalStatus.PENDING]


@pytest.mark.parametrize(
    ("wish", "level", "is_whole"),
    [
        ("touch it", DangerLevel.SAFE, True),
        ("rm -rf /", DangerLevel.DESTRUCTIVE, True),
        ("echo  two", DangerLevel.SAFE, False),
        ("echo \u200b", DangerLevel.SAFE, False),
    ],
)
async def test_a_request_names_the_command_its_danger_and_whether_it_is_known_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wish: str, level: DangerLevel, is_whole: bool
) -> None:
    stage = Stage(tmp_path, monkeypatch)
    await stage.run_until(stage.has_given_its_prompt)
    stage.agent.wish = wish
    await stage.run_until(lambda: bool(stage.asked))

    (ask,) = stage.asked
    assert (ask.ask_kind, ask.tool_name, ask.danger_level) == (AskKind.PERMISSION, "Run", level)
    assert (ask.detail == ask.target) is is_whole
    assert {choice.key: choice.description for choice in ask.questions[0].choices} == {
        "allow": "types 1",
        "deny": "types esc",
    }


async def test_a_turn_that_is_over_before_anybody_looks_is_not_held_as_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen_watching, "_SUBMITTED_HOLD_S", float("inf"))
    read = ScreenFiles.read
    turns: list[str] = []

    def read_title(files: ScreenFiles) -> screen_files.FileNews:
        has_worked = len(stage.agent.received) > len(turns)
        turns.extend(stage.agent.received[len(turns) :])
        return dataclasses.replace(read(files), has_worked=has_worked)

    monkeypatch.setattr(ScreenFiles, "read", read_title)
    stage = Stage(tmp_path, monkeypatch)
    stage.agent.works_unseen = True

    await _play_texts(stage)

    assert stage.agent.received == ["hello", "second"]
