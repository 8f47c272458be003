"""What the looks at an agent's own screen mean for its execution: the activity, what it asks, and the evidence."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import DELIVERY_SOURCE, Activity
from agentmon.domain.approvals import SCREEN_REQUEST
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.conversation import ActivityNews, AskChoice, AskDecision, AskKind, AskNews, AskQuestion
from agentmon.domain.operations import OperationType
from agentmon.domain.plain_text import plain_lines
from agentmon.domain.redaction import redact
from agentmon.runners.screens.states import ScreenState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentmon.domain.danger import DangerRules
    from agentmon.runners.screens.judging import Verdict
    from agentmon.runners.screens.reading import Dialog, ScreenText
    from agentmon.runners.screens.states import Finding
    from agentmon.worker.prompt_delivery import Delivery

DONE_NOTE: Final = "done: waits for your next message"
_DETAIL_LINES: Final = 40
_TARGET_MAX_CHARACTERS: Final = 1000
_LONG_RULE: Final = re.compile(r"^([ │┃╭╰├┌└]*)(([─━═╌┄▔▁])\3{15})\3+(?=[ │┃╮╯┤┐┘]*$)", re.MULTILINE)
"""What is drawn across a whole screen; a narrower one would wrap it."""


def news_of(
    verdict: Verdict, *, pending: Delivery | None, has_worked: bool, is_starting: bool, is_held: bool
) -> ActivityNews:
    """Return what the agent's execution is to say.

    Args:
        verdict: What the looks found.
        pending: The text that is on its way to the agent.
        has_worked: Whether it has had a text before.
        is_starting: Whether it was started so recently that a screen without meaning is nothing strange.
        is_held: Whether it took a text so recently that being free does not mean that it is done.
    """
    finding = verdict.finding
    is_asking = finding is not None and finding.state.is_asking
    if pending is not None and pending.problem and not is_asking:
        what = "the prompt" if pending.is_prompt else "your message"
        note = f"{what} could not be delivered: {pending.problem}"
        return ActivityNews(activity=Activity.WAITING, note=note, source=DELIVERY_SOURCE)
    if finding is None:
        if is_starting and not has_worked:
            return ActivityNews(activity=Activity.WORKING, note="starts", source="start")
        return ActivityNews(activity=Activity.UNKNOWN, note=verdict.doubt, source="screen")
    if is_asking:
        note = finding.note or finding.state.value
        return ActivityNews(activity=Activity.WAITING, note=note, source=finding.source)
    if finding.state.is_busy:
        note = finding.note if has_worked else "starts"
        return ActivityNews(activity=Activity.WORKING, note=note, source=finding.source)
    return _news_of_free(finding, pending=pending, has_worked=has_worked, is_held=is_held)


def _news_of_free(finding: Finding, *, pending: Delivery | None, has_worked: bool, is_held: bool) -> ActivityNews:
    if pending is not None:
        note = "is given its prompt" if pending.is_prompt else "is given your message"
        return ActivityNews(activity=Activity.WORKING, note=note, source=DELIVERY_SOURCE)
    if is_held:
        return ActivityNews(activity=Activity.WORKING, note="", source=DELIVERY_SOURCE)
    note = finding.note or (DONE_NOTE if has_worked else "waits for your first message")
    return ActivityNews(activity=Activity.WAITING, note=note, source=finding.source)


def ask_of(
    news: ActivityNews, shown: ScreenText | None, dialog: Dialog | None, danger_rules: DangerRules, *, at_ms: int
) -> AskNews:
    """Return the request that stands for what the screen asks.

    Args:
        news: What the agent's execution says.
        shown: The screen; None when it was not seen.
        dialog: What it asks, where that is known whole; else only attaching answers it.
        danger_rules: The rules about dangerous commands.
        at_ms: The time now.
    """
    detail = _detail_of(shown.last(_DETAIL_LINES)) if shown is not None else ""
    if dialog is None:
        digest = hashlib.sha256(f"{news.note}\n{detail}".encode()).hexdigest()
        return AskNews(
            request_id=f"{SCREEN_REQUEST}{at_ms}:{digest[:12]}",
            ask_kind=AskKind.DIALOG,
            title=news.note,
            detail=detail,
            reason="answered in the agent's own screen: attach to it",
            input_digest=digest,
        )
    ask = AskNews(
        request_id=f"{SCREEN_REQUEST}{at_ms}:{dialog.digest[:12]}",
        ask_kind=AskKind.PERMISSION if dialog.rule.state is ScreenState.PERMISSION else AskKind.DIALOG,
        tool_name=dialog.rule.tool,
        type=dialog.rule.type,
        target=redact(dialog.path),
        title=news.note,
        detail=_detail_of(dialog.text),
        input_digest=dialog.digest,
        can_allow_for_session=AskDecision.ALLOW_FOR_SESSION in dialog.answers,
        questions=(
            AskQuestion(
                question="Typed into its terminal",
                choices=tuple(
                    AskChoice(key=decision.value, label=answer.label, description=f"types {answer.keys_text}")
                    for decision, answer in dialog.answers.items()
                ),
            ),
        ),
    )
    return ask if dialog.rule.type is not OperationType.EXECUTE else _of_command(ask, dialog.command, danger_rules)


def _detail_of(drawn: str) -> str:
    return _LONG_RULE.sub(r"\1\2", plain_lines(redact(drawn)))


def _of_command(ask: AskNews, lines: Sequence[str], danger_rules: DangerRules) -> AskNews:
    """Return the request with its command and the danger of that.

    A line that is drawn may be one of the command or a piece of a longer one, so the worse of both counts; rules about
    commands see more than one line as a command that is not known whole.
    """
    drawn, joined = redact("\n".join(lines)), redact(" ".join(lines))
    readings = [
        with_danger(replace(ask, detail=one, target=joined[:_TARGET_MAX_CHARACTERS]), danger_rules)
        for one in (drawn, joined)
    ]
    worst = max(readings, key=lambda one: one.danger_level)
    is_whole = len(lines) == 1 and lines[0].isascii() and lines[0].isprintable() and "  " not in lines[0]
    return replace(worst, detail=drawn if is_whole else f"{drawn}\n")


def evidence_of(verdict: Verdict) -> dict[str, object]:
    """Return what each source said, for the event that tells of a change."""
    decided = verdict.finding
    return {
        "state": decided.state.value if decided is not None else None,
        "where": decided.where if decided is not None else "",
        "evidence": decided.evidence if decided is not None else "",
        "said": [
            {"source": one.source, "state": one.state.value, "note": one.note, "where": one.where}
            for one in verdict.sources
        ],
    }
