"""Answers to the questions of an agent, checked against what it asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.conversation import AskQuestion


def checked_answers(
    questions: Sequence[AskQuestion], answers: Mapping[str, str | Sequence[str]]
) -> dict[str, str | list[str]]:
    """Return the answers by the text of their question; a label becomes the key of its choice, other text stays.

    Raises:
        UsageError: A question has no answer or several where it takes one, or an answer is for none of them.
    """
    unknown = set(answers) - {question.question for question in questions}
    if unknown:
        raise UsageError(f"nothing was asked that reads {min(unknown)!r}")
    return {question.question: _checked(question, answers.get(question.question, ())) for question in questions}


def answers_text(questions: Sequence[AskQuestion], answers: Mapping[str, str | list[str]]) -> str:
    """Return checked answers as a person reads them: ``JSON``, or ``Clock: Wall; Tests: Unit, End to end``."""
    said = []
    for question in questions:
        answer = answers[question.question]
        labels = {choice.key: choice.label for choice in question.choices}
        words = ", ".join(labels.get(one, one) for one in ([answer] if isinstance(answer, str) else answer))
        name = question.header or question.question
        said.append(f"{name}: {words}" if len(questions) > 1 else words)
    return "; ".join(said)


def _checked(question: AskQuestion, answer: str | Sequence[str]) -> str | list[str]:
    given = [answer] if isinstance(answer, str) else list(answer)
    chosen = [_key_of(question, one) for one in given if one.strip()]
    if not chosen:
        raise UsageError(f"the question has no answer: {question.question}", hint=_choices_text(question))
    if question.is_multiple:
        return list(dict.fromkeys(chosen))
    if len(chosen) > 1:
        raise UsageError(f"the question takes one answer: {question.question}", hint=_choices_text(question))
    return chosen[0]


def _key_of(question: AskQuestion, text: str) -> str:
    keys = {choice.key for choice in question.choices}
    by_label = {choice.label.casefold(): choice.key for choice in question.choices}
    return text if text in keys else by_label.get(text.strip().casefold(), text)


def _choices_text(question: AskQuestion) -> str:
    if not question.choices:
        return "answer in your own words"
    return "choices: " + ", ".join(choice.label for choice in question.choices)
