"""The answers to the questions of one request while a person chooses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.widgets.request_blocks import QuestionBlock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.conversation import AskQuestion


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
    def current_key(self) -> str:
        """The name of the block of that question."""
        return f"question-{self._current + 1}"

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
        self._current = next((at for at in left if at > self._current), left[0])
        self._cursor = 0
        return False

    def answers(self) -> dict[str, str | Sequence[str]]:
        """Return the answers by their questions: a key or words for one, a list where several may be chosen."""
        answers: dict[str, str | Sequence[str]] = {}
        for at, question in enumerate(self._questions):
            typed = [self._typed[at]] if self._typed[at] else []
            given = [*self._chosen[at], *typed]
            answers[question.question] = given if question.is_multiple else given[0]
        return answers

    def blocks(self) -> list[QuestionBlock]:
        """Return what is shown of the questions."""
        return [
            QuestionBlock(
                question=question,
                number=at + 1,
                count=len(self._questions),
                is_current=at == self._current,
                chosen=tuple(self._chosen[at]),
                cursor=self._cursor,
                typed=self._typed[at],
            )
            for at, question in enumerate(self._questions)
        ]

    def _is_answered(self, at: int) -> bool:
        return bool(self._chosen[at] or self._typed[at])
