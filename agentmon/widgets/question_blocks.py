"""Questions of an agent as blocks: the question, a block for each choice, and an answer in a person's own words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.widgets.text_rows import Span, text_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.domain.conversation import AskChoice, AskQuestion
    from agentmon.widgets.block_view import Block
    from agentmon.widgets.text_rows import Row

_BLANK: Final[Row] = (Span(""),)
_INDENT: Final = "  "
_LABEL_CELLS: Final = 8
"""Where the label of a choice begins: behind its mark and number."""
_MOST_TYPED: Final = 9
"""Choices that a digit chooses."""


@dataclass(frozen=True, slots=True)
class QuestionBlock:
    """One question without its choices."""

    question: AskQuestion
    number: int
    """Counted from 1."""
    count: int
    is_current: bool
    """Whether keys answer it."""
    can_unfold: bool = False

    @property
    def key(self) -> str:
        """Its name in the view."""
        return f"question-{self.number}"

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return heading and question below a blank row."""
        question = self.question
        rows: list[Row] = [_BLANK]
        place = f"{self.number} of {self.count}  " if self.count > 1 else ""
        several = "several may be chosen" if question.is_multiple else ""
        head = " · ".join(part for part in (f"{place}{question.header}".strip(), several) if part)
        if head:
            rows += text_rows(head, width, "muted")
        return rows + text_rows(question.question, width, "bold" if self.is_current else "text")


@dataclass(frozen=True, slots=True)
class ChoiceBlock:
    """One choice of a question."""

    choice: AskChoice
    question_number: int
    number: int
    is_multiple: bool
    is_chosen: bool
    is_current: bool
    """Whether keys answer its question: the digit that chooses it stands beside it."""
    is_lit: bool
    """Whether space and enter take it."""
    can_unfold: bool = False

    @property
    def key(self) -> str:
        """Its name in the view."""
        return choice_key(self.question_number, self.number)

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return mark and label, and the description below."""
        mark = ("[x]" if self.is_chosen else "[ ]") if self.is_multiple else ("(•)" if self.is_chosen else "( )")
        digit = f"{self.number}" if self.is_current and self.number <= _MOST_TYPED else " "
        style = "heading" if self.is_lit else ("good" if self.is_chosen else "text")
        lead = f"{'›' if self.is_lit else ' '} {digit} {mark} "
        label = text_rows(self.choice.label, width - _LABEL_CELLS - 1, style)
        rows: list[Row] = [(Span(" " * _LABEL_CELLS if at else lead, style), *row) for at, row in enumerate(label)]
        if self.choice.description:
            rows += text_rows(self.choice.description, width, "muted", indent=" " * _LABEL_CELLS)
        return rows


@dataclass(frozen=True, slots=True)
class OwnWordsBlock:
    """What a person typed as the answer, or how to type it where there is nothing to choose."""

    question_number: int
    typed: str
    can_unfold: bool = False

    @property
    def key(self) -> str:
        """Its name in the view."""
        return f"typed-{self.question_number}"

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:  # noqa: ARG002 - there is nothing folded
        """Return the words."""
        if self.typed:
            return text_rows(self.typed, width, "good", indent="  › ")
        return text_rows("t types the answer", width, "muted", indent=_INDENT)


def choice_key(question_number: int, number: int) -> str:
    """Return the name of a choice in the view; both numbers count from 1."""
    return f"choice-{question_number}-{number}"


def parse_choice_key(key: str) -> tuple[int, int] | None:
    """Return the numbers of question and choice that a name in the view stands for; None when it names no choice."""
    word, _, numbers = key.partition("-")
    question_number, _, number = numbers.partition("-")
    if word != "choice" or not question_number.isdecimal() or not number.isdecimal():
        return None
    return int(question_number), int(number)


def unanswered_blocks(questions: Iterable[AskQuestion]) -> list[Block]:
    """Return questions with their choices as they are read, without anything chosen or lit."""
    asked = tuple(questions)
    blocks: list[Block] = []
    for number, question in enumerate(asked, start=1):
        blocks.append(QuestionBlock(question, number, len(asked), is_current=False))
        blocks += [
            ChoiceBlock(
                choice=choice,
                question_number=number,
                number=at,
                is_multiple=question.is_multiple,
                is_chosen=False,
                is_current=False,
                is_lit=False,
            )
            for at, choice in enumerate(question.choices, start=1)
        ]
    return blocks
