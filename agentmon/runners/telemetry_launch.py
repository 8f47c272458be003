"""How an agent is told at its start to send its telemetry to agentmon."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_INTERVAL_MS: Final = "1000"


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryTarget:
    """Where the telemetry of one execution goes."""

    endpoint: str
    """``http://127.0.0.1:PORT``, without a path."""
    token: str
    """Names the execution, and proves that agentmon started it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryLaunch:
    """What an agent gets beside its own command and environment."""

    args: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def telemetry_launch(agent_slug: str, target: TelemetryTarget, environment: Mapping[str, str]) -> TelemetryLaunch:
    """Return how the agent is told; nothing for one that knows none, or whose telemetry goes elsewhere already.

    Args:
        agent_slug: Which agent; those of the presets are known.
        target: Where it is to go.
        environment: What the agent gets anyway: whoever set up telemetry there keeps it.
    """
    if any(name.startswith(("OTEL_", "GEMINI_TELEMETRY_")) for name in environment):
        return TelemetryLaunch()
    if "CLAUDE_CODE_ENABLE_TELEMETRY" in environment:
        return TelemetryLaunch()
    authorization = f"Authorization=Bearer {target.token}"
    if agent_slug == "claude":
        return TelemetryLaunch(
            environment={
                "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
                "OTEL_LOGS_EXPORTER": "otlp",
                "OTEL_LOGS_EXPORT_INTERVAL": _INTERVAL_MS,
                "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
                "OTEL_EXPORTER_OTLP_ENDPOINT": target.endpoint,
                "OTEL_EXPORTER_OTLP_HEADERS": authorization,
            }
        )
    if agent_slug == "codex":
        exporter = (
            f'{{otlp-http={{endpoint="{target.endpoint}/v1/logs",protocol="json",'
            f'headers={{"authorization"="Bearer {target.token}"}}}}}}'
        )
        return TelemetryLaunch(args=("-c", f"otel.exporter={exporter}", "-c", "otel.log_user_prompt=false"))
    if agent_slug == "gemini":
        return TelemetryLaunch(
            environment={
                "GEMINI_TELEMETRY_ENABLED": "true",
                "GEMINI_TELEMETRY_TARGET": "local",
                "GEMINI_TELEMETRY_OTLP_ENDPOINT": target.endpoint,
                "GEMINI_TELEMETRY_OTLP_PROTOCOL": "http",
                "GEMINI_TELEMETRY_LOG_PROMPTS": "false",
                "OTEL_EXPORTER_OTLP_HEADERS": authorization,
            }
        )
    return TelemetryLaunch()
