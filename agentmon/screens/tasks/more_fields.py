"""The part of the task editor that is seldom needed: limits, verification, worktree, schedule, environment, prompt."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from textual.containers import Horizontal, Vertical

from agentmon.domain.amounts import DOLLARS
from agentmon.domain.errors import UsageError
from agentmon.domain.money_text import parse_money
from agentmon.domain.plain_text import plain_line
from agentmon.domain.verifications import command_text, read_optional_command
from agentmon.runners.task_environment import environment_text, read_environment
from agentmon.screens.place_fields import BaseField, IsolationField
from agentmon.screens.tasks.schedule_field import ScheduleField
from agentmon.widgets.form import FormField, LineInput, TextBox, plain_paragraphs
from agentmon.widgets.guarded import Guarded

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.widgets import Input

    from agentmon.domain.amounts import MoneyFormat
    from agentmon.domain.clock import Clock
    from agentmon.domain.tasks import InputContext, Schedule, TaskDraft

MAX_RETRIES: Final = 99
_ENVIRONMENT_HELP: Final = "API_KEY is taken from your environment at each run and never stored; MODE=fast is stored"
_VERIFY_HELP: Final = "has to pass before its work counts as done; empty: what program or workspace says; none: nothing"
_BUDGET_HELP: Final = "for all its runs together"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreChoice:
    """What was filled in."""

    context: InputContext
    """That of the start with what was filled in here in its place."""
    schedule: Schedule | None
    budget_nano: int | None


class MoreFields(Guarded, Vertical):
    """Can be read whether it was ever shown or not."""

    DEFAULT_CSS = """
    MoreFields { height: auto; }
    """

    def __init__(
        self, start: TaskDraft, *, clock: Clock, budget_nano: int | None, money: MoneyFormat = DOLLARS
    ) -> None:
        super().__init__(id="more")
        self._start = start
        self._first_budget = budget_nano
        self._money = money
        context = start.input_context
        self._retries = LineInput(str(context.max_retries), id="retries")
        self._retries_field = FormField("Retries", self._retries)
        self._first_budget_text = "" if budget_nano is None else money.typed_text(budget_nano)
        self._budget = LineInput(self._first_budget_text, placeholder=f"{money.symbol}5", id="budget")
        self._budget_field = FormField("Budget", self._budget)
        self._first_verify_text = command_text(context.verify)
        self._verify = LineInput(self._first_verify_text, placeholder="make test", id="verify")
        self._isolation = IsolationField(context.isolation, default="as its agent says")
        self._base = BaseField(context.base)
        self.schedule = ScheduleField(start.schedule, clock=clock)
        self._environment = LineInput(environment_text(context), placeholder="API_KEY MODE=fast", id="environment")
        self._environment_field = FormField("Environment", self._environment, help_text=_ENVIRONMENT_HELP)
        self._prompt = TextBox(context.prompt_additions, id="prompt")
        self._prompt_field = FormField(
            "Prompt", self._prompt, help_text="told to an AI agent behind title and description", id="prompt-field"
        )

    def compose(self) -> ComposeResult:
        """Yield the fields."""
        with Horizontal(id="limits"):
            yield self._retries_field
            yield self._budget_field
        yield FormField("Verification", self._verify, help_text=_VERIFY_HELP)
        with Horizontal(id="place"):
            yield self._isolation
            yield self._base
        yield self.schedule
        yield self._environment_field
        yield self._prompt_field

    def on_mount(self) -> None:
        """Say what a budget does."""
        self._budget_field.show_help(_BUDGET_HELP)

    @property
    def typed(self) -> tuple[object, ...]:
        """What stands in the fields."""
        return (
            self._retries.value,
            self._budget.value,
            self._verify.value,
            self._isolation.chosen,
            self._base.typed,
            self._environment.value,
            self._prompt.text,
            *self.schedule.typed,
        )

    @property
    def summary(self) -> str:
        """What differs from nothing, in words: ``2 retries · budget $5 · schedule @daily``."""
        retries = self._retries.value.strip()
        parts = [
            "" if retries in {"", "0"} else f"retries {retries}",
            f"budget {self._budget.value.strip()}" if self._budget.value.strip() else "",
            f"verify {self._verify.value.strip()}" if self._verify.value.strip() else "",
            self._isolation.summary,
            f"base {self._base.typed}" if self._base.typed else "",
            f"schedule {self.schedule.typed[0]}" if self.schedule.typed[0] else "",
            self._environment.value.strip(),
            "prompt" if self._prompt.text.strip() else "",
        ]
        return " · ".join(part for part in parts if part)

    @property
    def first_wrong(self) -> FormField | None:
        """The first field with an error."""
        if self._retries_field.error:
            return self._retries_field
        if self._budget_field.error:
            return self._budget_field
        if self._base.error:
            return self._base
        if self.schedule.first_wrong is not None:
            return self.schedule.first_wrong
        return self._environment_field if self._environment_field.error else None

    async def read(self) -> MoreChoice | None:
        """Return what was filled in, or None when something is wrong; ``first_wrong`` tells what."""
        for one in (self._retries_field, self._budget_field, self._environment_field):
            one.clear()
        retries, budget_nano, environment = self._read_retries(), self._read_budget(), self._read_environment()
        base = self._base.read()
        schedule = await self.schedule.read()
        if retries is None or environment is None or self.first_wrong is not None:
            return None
        additions = self._prompt.text
        context_before = self._start.input_context
        before = context_before.prompt_additions
        is_verify_kept = self._verify.value == plain_line(self._first_verify_text)
        context = replace(
            environment,
            verify=context_before.verify if is_verify_kept else read_optional_command(self._verify.value),
            max_retries=retries,
            isolation=self._isolation.chosen,
            base=base,
            prompt_additions=before if additions == plain_paragraphs(before) else additions,
        )
        return MoreChoice(context=context, schedule=schedule, budget_nano=budget_nano)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Take errors away while the person mends them, and tell what is worth to be known of a variable."""
        for one in (self._retries_field, self._budget_field, self._base, self._environment_field):
            if one.control is event.input:
                one.clear_when_changed()
        if event.input is self._environment:
            self._note_environment()

    def _note_environment(self) -> None:
        try:
            _, notes = read_environment(self._start.input_context, self._environment.value, os.environ)
        except UsageError:
            # Half-typed; saving tells what is wrong.
            return
        self._environment_field.show_note(notes[0] if notes else "")

    def _read_retries(self) -> int | None:
        text = self._retries.value.strip() or "0"
        if text.isascii() and text.isdigit() and int(text) <= MAX_RETRIES:
            return int(text)
        self._retries_field.show_error(f"0 to {MAX_RETRIES}")
        return None

    def _read_budget(self) -> int | None:
        text = self._budget.value.strip()
        if text == self._first_budget_text:
            return self._first_budget
        try:
            return parse_money(text, self._money) if text else None
        except UsageError as error:
            self._budget_field.show_error(str(error), hint=error.hint)
            return None

    def _read_environment(self) -> InputContext | None:
        context = self._start.input_context
        if self._environment.value == plain_line(environment_text(context)):
            return context
        try:
            return read_environment(context, self._environment.value, os.environ)[0]
        except UsageError as error:
            self._environment_field.show_error(str(error), hint=error.hint)
            return None
