"""The plan of an agent: a checklist, and the one row that stands for it in a conversation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.conversation import PlanStatus
from agentmon.widgets.cells import cut, even_line
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from agentmon.domain.conversation import PlanNews
    from agentmon.domain.operations import Operation
    from agentmon.widgets.text_rows import Row

_INDENT: Final = "  "
_LONGEST_LINE: Final = 1000
_MARKS: Final = {
    PlanStatus.PENDING: ("☐", "muted"),
    PlanStatus.IN_PROGRESS: ("▸", "running"),
    PlanStatus.COMPLETED: ("☑", "good"),
}
_TOOLS: Final = frozenset({"todowrite", "taskcreate", "taskupdate", "writetodos", "updateplan"})
"""Tools with which agents note their plan, in small letters: of Claude Code, opencode and Gemini CLI."""


def is_plan_call(operation: Operation) -> bool:
    """Whether the call does nothing but note the plan of the conversation."""
    return operation.parent_ref is None and operation.tool_name.replace("_", "").casefold() in _TOOLS


@dataclass(frozen=True, slots=True)
class PlanBlock:
    """The plan of one run as it is now, in one row where it was first noted; unfolded with all its steps."""

    run: str
    plan: PlanNews
    can_unfold: bool = True
    has_gap: bool = True
    """As that of a call."""

    @property
    def key(self) -> str:
        """Its name in the view."""
        return f"plan-{self.run}"

    def rows(self, width: int, *, is_unfolded: bool) -> list[Row]:
        """Return how much is done and the step that is worked on, or all steps."""
        steps = self.plan.steps
        present = next((step for step in steps if step.status is not PlanStatus.COMPLETED), None)
        mark, style = _MARKS[PlanStatus.COMPLETED if present is None else PlanStatus.IN_PROGRESS]
        line = [Span(f"{mark} ", style), Span("Plan ", "bold"), Span(f"{done_words(self.plan)} ", "muted")]
        if is_unfolded:
            return [tuple(line), *(_step_row(self.plan, at, width, _INDENT) for at in range(len(steps))), (Span(""),)]
        room = width - sum(len(span.text) for span in line)
        if present is not None and room > 0:
            line.append(Span(cut(f"· {even_line(present.text, max_characters=_LONGEST_LINE)}", room), "muted"))
        return [tuple(line), (Span(""),)] if self.has_gap else [tuple(line)]


def plan_rows(plan: PlanNews, width: int, *, most: int) -> list[Row]:
    """Return the plan as a checklist of at most so many rows; steps that are done make room first."""
    steps = plan.steps
    room = max(1, most - 1)
    present = next((at for at, step in enumerate(steps) if step.status is not PlanStatus.COMPLETED), 0)
    first = max(0, min(present, len(steps) - room))
    rows: list[Row] = [(Span("Plan ", "heading"), Span(done_words(plan), "muted"))]
    return rows + [_step_row(plan, at, width) for at in range(first, min(first + room, len(steps)))]


def done_words(plan: PlanNews) -> str:
    """Return how much of the plan is done: ``1 of 3 done``."""
    done = sum(step.status is PlanStatus.COMPLETED for step in plan.steps)
    return f"{done} of {len(plan.steps)} done"


def _step_row(plan: PlanNews, at: int, width: int, indent: str = "") -> Row:
    step = plan.steps[at]
    mark, style = _MARKS[step.status]
    text = cut(even_line(step.text, max_characters=_LONGEST_LINE), max(0, width - len(indent) - 2))
    return (
        Span(indent, "muted"),
        Span(f"{mark} ", style),
        Span(text, "muted" if step.status is PlanStatus.COMPLETED else "text"),
    )
