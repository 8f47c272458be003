from __future__ import annotations

import tomllib

import pytest

from agentmon.runners.telemetry_launch import TelemetryLaunch, TelemetryTarget, telemetry_launch

TARGET = TelemetryTarget(endpoint="http://127.0.0.1:4318", token="id.proof")


def test_claude_code_and_gemini_are_told_by_their_environment_and_keep_prompts_to_themselves() -> None:
    claude = telemetry_launch("claude", TARGET, {}).environment
    gemini = telemetry_launch("gemini", TARGET, {}).environment

    assert claude["OTEL_EXPORTER_OTLP_ENDPOINT"] == gemini["GEMINI_TELEMETRY_OTLP_ENDPOINT"] == TARGET.endpoint
    assert claude["OTEL_EXPORTER_OTLP_HEADERS"] == "Authorization=Bearer id.proof"
    assert "OTEL_LOG_USER_PROMPTS" not in claude
    assert gemini["GEMINI_TELEMETRY_LOG_PROMPTS"] == "false"


def test_codex_is_told_by_arguments_that_are_toml() -> None:
    args = telemetry_launch("codex", TARGET, {}).args

    assert args[::2] == ("-c", "-c")
    exporter = tomllib.loads(args[1])["otel"]["exporter"]["otlp-http"]
    assert exporter == {
        "endpoint": "http://127.0.0.1:4318/v1/logs",
        "protocol": "json",
        "headers": {"authorization": "Bearer id.proof"},
    }
    assert tomllib.loads(args[3]) == {"otel": {"log_user_prompt": False}}


@pytest.mark.parametrize(
    "present", ["OTEL_EXPORTER_OTLP_ENDPOINT", "GEMINI_TELEMETRY_ENABLED", "CLAUDE_CODE_ENABLE_TELEMETRY"]
)
@pytest.mark.parametrize("slug", ["claude", "codex", "gemini"])
def test_who_set_up_telemetry_keeps_it(slug: str, present: str) -> None:
    assert telemetry_launch(slug, TARGET, {present: "x"}) == TelemetryLaunch()


def test_a_program_that_knows_no_telemetry_is_started_as_ever() -> None:
    assert telemetry_launch("opencode", TARGET, {}) == TelemetryLaunch()
