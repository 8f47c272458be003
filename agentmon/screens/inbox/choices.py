"""The answers to the questions of one request while a person chooses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.widgets.question_blocks import ChoiceBlock, OwnWordsBlock, QuestionBlock, choice_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.conversation import AskQuestion
    from agentmon.widgets.block_view import Block


class Choices:
    """What is chosen and typed so far, and which question is being answered."""

    def __init__(self, questions: Sequence[AskQuestion]) -> None:
        self._questions = tuple(questions)
        self._chosen: list[list[str]] = [[] for _ in questions]
        self._typed: list[str] = ["" for _ in questions]
        self._current = 0
        self._cursor = 0

    @property
    def question(self) -> AskQuestion | None:
        """The question that keys answer; None when there is none."""
        return self._questions[self._current] if self._questions else None

    @property
    def lit_key(self) -> str:
        """The name of the block that keys answer: the lit choice, or the question when there is nothing to choose."""
        question = self.question
        if question is None or not question.choices:
            return f"question-{self._current + 1}"
        return choice_key(self._current + 1, self._cursor + 1)

    def go_question(self, steps: int) -> None:
        """Go to another question, up to the ends."""
        wanted = max(0, min(self._current + steps, len(self._questions) - 1))
        if wanted != self._current:
            self._go_to(wanted)

    def choose_in(self, question_number: int, number: int) -> None:
        """Choose or take back a choice of any question; both numbers count from 1."""
        if 1 <= question_number <= len(self._questions):
            self._current = question_number - 1
            self.choose(number)

    def go(self, steps: int) -> None:
        """Go to another choice, round the ends."""
        question = self.question
        if question is not None and question.choices:
            self._cursor = (self._cursor + steps) % len(question.choices)

    def choose(self, number: int) -> bool:
        """Choose or take back the choice of this number, counted from 1; False when there is none."""
        question = self.question
        if question is None or not 1 <= number <= len(question.choices):
            return False
        self._cursor = number - 1
        key = question.choices[self._cursor].key
        chosen = self._chosen[self._current]
        if key in chosen:
            chosen.remove(key)
        elif question.is_multiple:
            chosen.append(key)
        else:
            chosen[:] = [key]
            self._typed[self._current] = ""
        return True

    def toggle(self) -> None:
        """Choose or take back the choice under the cursor."""
        self.choose(self._cursor + 1)

    def type(self, text: str) -> None:
        """Answer the question in the person's own words."""
        question = self.question
        if question is not None:
            self._typed[self._current] = text
            if not question.is_multiple:
                self._chosen[self._current].clear()

    @property
    def typed(self) -> str:
        """What was typed as an answer to the question."""
        return self._typed[self._current] if self._questions else ""

    def go_on(self) -> bool:
        """Take the answer to the question and go to the next that has none; True when all are answered.

        A question with one answer takes the choice under the cursor when nothing is chosen.
        """
        question = self.question
        if question is None:
            return False
        if not self._is_answered(self._current) and question.choices and not question.is_multiple:
            self.toggle()
        if not self._is_answered(self._current):
            return False
        left = [at for at in range(len(self._questions)) if not self._is_answered(at)]
        if not left:
            return True
        self._go_to(next((at for at in left if at > self._current), left[0]))
        return False

    def answers(self) -> dict[str, str | Sequence[str]]:
        """Return the answers by their questions: a key or words for one, a list where several may be chosen."""
        answers: dict[str, str | Sequence[str]] = {}
        for at, question in enumerate(self._questions):
            typed = [self._typed[at]] if self._typed[at] else []
            given = [*self._chosen[at], *typed]
            answers[question.question] = given if question.is_multiple else given[0]
        return answers

    def blocks(self) -> list[Block]:
        """Return what is shown of the questions."""
        blocks: list[Block] = []
        for at, question in enumerate(self._questions):
            is_current = at == self._current
            blocks.append(QuestionBlock(question, at + 1, len(self._questions), is_current=is_current))
            blocks += [
                ChoiceBlock(
                    choice=choice,
                    question_number=at + 1,
                    number=choice_at + 1,
                    is_multiple=question.is_multiple,
                    is_chosen=choice.key in self._chosen[at],
                    is_current=is_current,
                    is_lit=is_current and choice_at == self._cursor,
                )
                for choice_at, choice in enumerate(question.choices)
            ]
            if self._typed[at] or not question.choices:
                blocks.append(OwnWordsBlock(at + 1, self._typed[at]))
        return blocks

    def _go_to(self, current: int) -> None:
        """Make it the question that keys answer, with the cursor on what is chosen there."""
        self._current = current
        chosen, choices = self._chosen[current], self._questions[current].choices
        self._cursor = next((at for at, choice in enumerate(choices) if choice.key in chosen), 0)

    def _is_answered(self, at: int) -> bool:
        return bool(self._chosen[at] or self._typed[at])
