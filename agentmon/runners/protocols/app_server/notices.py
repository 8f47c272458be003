"""Notices out of the app-server protocol: each kind said as often as it helps, and no more."""

from __future__ import annotations

from time import gmtime, strftime

from agentmon.domain.json_values import count_in, object_in, text_in
from agentmon.runners.protocols.notices import NoticeBook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentmon.runners.protocols.adapter import Event

RATE_LIMIT_STEPS = (100, 90, 75)
"""Percent of a limit at which a person is told, once for each window."""

SILENT = frozenset({
    "account/gatewayOAuth/changed", "account/login/completed", "account/updated", "app/list/updated",
    "autoApprovalReview/strictReviewRequired", "command/exec/outputDelta", "externalAgentConfig/import/completed",
    "externalAgentConfig/import/progress", "fs/changed", "fuzzyFileSearch/sessionCompleted",
    "fuzzyFileSearch/sessionUpdated", "hook/completed", "hook/started", "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started", "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction", "item/fileChange/outputDelta", "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded", "mcpServer/event/stream/notification", "mcpServer/oauthLogin/completed",
    "mcpServer/startupStatus/updated", "model/safetyBuffering/updated", "model/verification",
    "modelProvider/authRecoveryCompleted", "modelProvider/authRecoveryStarted", "process/exited",
    "process/outputDelta", "project/changed", "rawResponseItem/completed", "remoteControl/status/changed",
    "skills/changed", "thread/archived", "thread/attachment/updated", "thread/closed", "thread/compacted",
    "thread/deleted", "thread/environment/connected", "thread/environment/disconnected", "thread/goal/cleared",
    "thread/goal/updated", "thread/prediction/updated", "thread/project/updated", "thread/queue/changed",
    "thread/readState/changed", "thread/reverted", "thread/search/partial", "thread/section/changed",
    "thread/unarchived", "turn/diff/updated", "turn/moderationMetadata", "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
})  # fmt: skip
"""Notifications of Codex 0.171.0 that say nothing about the conversation that other ones do not."""

UNWANTED = (
    "rawResponseItem/completed",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "turn/diff/updated",
    "thread/readState/changed",
    "remoteControl/status/changed",
    "mcpServer/startupStatus/updated",
)
"""What Codex is asked not to send: it is much, or said again by other notifications."""


class LimitBook(NoticeBook):
    """Tells of limits as well."""

    __slots__ = ()

    def rate_limits(self, params: dict[str, object]) -> list[Event]:
        """Return notices for the windows of a limit that are nearly used up, and for a limit that is reached."""
        limits = object_in(params, "rateLimits")
        events: list[Event] = []
        for name in ("primary", "secondary"):
            window = object_in(limits, name)
            used = count_in(window, "usedPercent")
            step = next((step for step in RATE_LIMIT_STEPS if used >= step), 0)
            if step:
                text = f"{step} % of the {_window_name(window)} limit is used{_reset(window)}"
                events += self.once("warn", text, "rate_limit")
        reached = text_in(limits, "rateLimitReachedType")
        if reached:
            events += self.once(
                "error", f"A limit of the account is reached: {reached.replace('_', ' ')}", "rate_limit"
            )
        return events


def _window_name(window: dict[str, object]) -> str:
    minutes = count_in(window, "windowDurationMins")
    if minutes and minutes % 1_440 == 0:
        return f"{minutes // 1_440}-day"
    if minutes and minutes % 60 == 0:
        return f"{minutes // 60}-hour"
    return f"{minutes}-minute" if minutes else "account's"


def _reset(window: dict[str, object]) -> str:
    resets_at_s = count_in(window, "resetsAt")
    if not 0 < resets_at_s < 2**33:
        return ""
    return strftime(", it resets at %Y-%m-%d %H:%M UTC", gmtime(resets_at_s))
