"""What the looks at an agent's own screen mean for its execution: the activity, what it asks, and the evidence."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from agentmon.domain.activity import Activity
from agentmon.domain.conversation import ActivityNews, AskKind, AskNews
from agentmon.domain.plain_text import plain_lines
from agentmon.domain.redaction import redact

if TYPE_CHECKING:
    from agentmon.runners.screens.judging import Verdict
    from agentmon.runners.screens.reading import ScreenText
    from agentmon.runners.screens.states import Finding
    from agentmon.worker.prompt_delivery import Delivery

DONE_NOTE: Final = "done: waits for your next message"
DELIVERY_SOURCE: Final = "prompt delivery"
_DETAIL_LINES: Final = 40


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


def ask_of(news: ActivityNews, shown: ScreenText | None, *, at_ms: int) -> AskNews:
    """Return the request that stands for what the screen asks; only attaching answers it."""
    detail = plain_lines(redact(shown.last(_DETAIL_LINES))) if shown is not None else ""
    digest = hashlib.sha256(f"{news.note}\n{detail}".encode()).hexdigest()
    return AskNews(
        request_id=f"screen:{at_ms}:{digest[:12]}",
        ask_kind=AskKind.DIALOG,
        title=news.note,
        detail=detail,
        reason="answered in the agent's own screen: attach to it",
        input_digest=digest,
    )


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
