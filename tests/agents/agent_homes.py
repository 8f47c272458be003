"""Scratch homes in which the real agents find their settings, all of them pointing at the mock model."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

AGENTS_BIN = Path(__file__).parents[2] / ".agents" / "bin"


@dataclass(frozen=True, kw_only=True)
class AgentHome:
    """What one agent needs to run offline: a home of its own, and the environment of whoever starts it."""

    slug: str
    environ: dict[str, str]
    passed: tuple[str, ...] = ()
    args: dict[str, object] = field(default_factory=dict)
    """Arguments of the capability with which it asks before it acts."""


def is_installed(slug: str) -> bool:
    return os.access(AGENTS_BIN / slug, os.X_OK)


def make_home(slug: str, folder: Path, mock_url: str, working_dir: Path) -> AgentHome:
    folder.mkdir(parents=True, exist_ok=True)
    environ = {
        "HOME": str(folder),
        "PATH": f"{AGENTS_BIN}:{os.environ.get('PATH', os.defpath)}",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
    }
    return _MAKERS[slug](folder, mock_url, working_dir, environ)


def _claude(folder: Path, mock_url: str, working_dir: Path, environ: dict[str, str]) -> AgentHome:
    key = "sk-ant-mock-key-of-the-tests-0000"
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key[-20:]], "rejected": []},
        "projects": {str(working_dir): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}},
    }
    (folder / ".claude.json").write_text(json.dumps(settings))
    variables = {
        "ANTHROPIC_BASE_URL": mock_url,
        "ANTHROPIC_API_KEY": key,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "IS_SANDBOX": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    return AgentHome(slug="claude", environ=environ | variables, args={"permission_mode": "manual"})


def _codex(folder: Path, mock_url: str, working_dir: Path, environ: dict[str, str]) -> AgentHome:
    (folder / ".codex").mkdir(exist_ok=True)
    (folder / ".codex" / "config.toml").write_text(
        f"""
model = "gpt-5.5"
model_provider = "mock"
check_for_update_on_startup = false
[model_providers.mock]
name = "mock"
base_url = "{mock_url}/v1"
wire_api = "responses"
env_key = "MOCK_API_KEY"
request_max_retries = 1
stream_max_retries = 1
[projects."{working_dir}"]
trust_level = "trusted"
[notice.model_migrations]
"gpt-5.5" = "gpt-6-sol"
[analytics]
enabled = false
"""
    )
    return AgentHome(
        slug="codex",
        environ=environ | {"MOCK_API_KEY": "mock-key-of-the-tests"},
        passed=("MOCK_API_KEY",),
        args={"permission_mode": "untrusted"},
    )


def _gemini(folder: Path, mock_url: str, working_dir: Path, environ: dict[str, str]) -> AgentHome:
    del working_dir
    (folder / ".gemini").mkdir(exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": False},
        "model": {"name": "gemini-2.5-pro"},
    }
    (folder / ".gemini" / "settings.json").write_text(json.dumps(settings))
    variables = {"GOOGLE_GEMINI_BASE_URL": mock_url, "GEMINI_API_KEY": "mock-key-of-the-tests"}
    return AgentHome(slug="gemini", environ=environ | variables, args={"permission_mode": "default"})


def _opencode(folder: Path, mock_url: str, working_dir: Path, environ: dict[str, str]) -> AgentHome:
    del working_dir
    place = folder / ".config" / "opencode"
    place.mkdir(parents=True, exist_ok=True)
    model = {"tool_call": True, "limit": {"context": 200000, "output": 8000}, "cost": {"input": 1, "output": 2}}
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "mock/mock-model",
        "small_model": "mock/mock-model",
        "provider": {
            "mock": {
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{mock_url}/v1", "apiKey": "k"},
                "models": {"mock-model": model},
            }
        },
        "permission": {"bash": "ask", "edit": "ask", "webfetch": "ask"},
    }
    (place / "opencode.json").write_text(json.dumps(settings))
    variables = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return AgentHome(slug="opencode", environ=environ | variables)


_MAKERS = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}
