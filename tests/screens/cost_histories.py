"""Histories of three agents over months, written as they write them, the same whenever they are made."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PROJECTS = ("/home/ada/acme-api", "/home/ada/acme-web", "/home/ada/notes", "/srv/ci/reports")
CLAUDE_MODELS = ("claude-opus-5-5", "claude-sonnet-5", "claude-haiku-5-5")
CODEX_MODELS = ("gpt-5.5", "gpt-5.4")
GEMINI_MODEL = "gemini-3.1-pro-preview"
WEEKEND = 5


def write_histories(home: Path, now: datetime, *, days: int = 200, per_day: int = 3) -> None:
    """Write what agents did on the days up to now; weekends are calm, and two have just answered."""
    chance = Random(7)
    for number, at in enumerate(_sessions(chance, now, days, per_day)):
        project = chance.choice(PROJECTS)
        kind = chance.choices(("claude", "codex", "gemini"), (6, 3, 1))[0]
        turns = chance.randint(2, 9)
        if kind == "claude":
            _write_claude(home, chance, number, at, project, turns)
        elif kind == "codex":
            _write_codex(home, chance, number, at, project, turns)
        else:
            _write_gemini(home, chance, number, at, project, turns)
    windows = {
        "limit_id": "codex",
        "primary": {"used_percent": 62.0, "window_minutes": 300, "resets_at": int(now.timestamp()) + 7_500},
        "secondary": {"used_percent": 31.0, "window_minutes": 10_080, "resets_at": int(now.timestamp()) + 250_000},
        "plan_type": "pro",
    }
    _write_codex(home, chance, 9_000_000, now - timedelta(minutes=40), PROJECTS[0], 8, windows)
    _write_claude(home, chance, 9_000_001, now - timedelta(minutes=35), PROJECTS[1], 7)


def _sessions(chance: Random, now: datetime, days: int, per_day: int) -> Iterator[datetime]:
    for back in range(days, -1, -1):
        day = now - timedelta(days=back)
        count = chance.randint(0, 1) if day.weekday() >= WEEKEND else chance.randint(1, 2 * per_day)
        for _ in range(count):
            at = day.replace(hour=chance.randint(7, 12), minute=chance.randint(0, 59), second=0, microsecond=0)
            if at < now - timedelta(hours=1):
                yield at


def _write_claude(home: Path, chance: Random, number: int, at: datetime, project: str, turns: int) -> None:
    session = f"aaaaaaaa-0000-4000-8000-{number:012d}"
    model = chance.choices(CLAUDE_MODELS, (5, 3, 2))[0]
    common = {"sessionId": session, "cwd": project, "version": "2.1.332", "userType": "external", "isSidechain": False}
    lines: list[dict[str, object]] = [
        {
            "type": "user",
            "message": {"role": "user", "content": f"Task {number}: look into it"},
            "uuid": f"u{number}",
            "parentUuid": None,
            "timestamp": _iso(at),
            **common,
        }
    ]
    for turn in range(turns):
        at += timedelta(seconds=chance.randint(20, 240))
        written = chance.randint(2_000, 30_000)
        usage = {
            "input_tokens": chance.randint(20, 4_000),
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": chance.randint(20_000, 400_000),
            "output_tokens": chance.randint(200, 6_000),
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "service_tier": "standard",
        }
        message = {
            "id": f"msg_{number}_{turn}",
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [{"type": "text", "text": "ok"}],
            "usage": usage,
        }
        lines.append(
            {
                "type": "assistant",
                "message": message,
                "requestId": f"req_{number}_{turn}",
                "uuid": f"a{number}-{turn}",
                "timestamp": _iso(at),
                **common,
            }
        )
    _write(home / ".claude" / "projects" / project.replace("/", "-") / f"{session}.jsonl", lines)


def _write_codex(
    home: Path,
    chance: Random,
    number: int,
    at: datetime,
    project: str,
    turns: int,
    windows: Mapping[str, object] | None = None,
) -> None:
    session = f"019a0000-0000-7000-8000-{number:012d}"
    begun = at
    meta = {"id": session, "timestamp": _iso(at), "cwd": project, "source": "cli", "model_provider": "openai"}
    lines: list[dict[str, object]] = [
        {"timestamp": _iso(at), "type": "session_meta", "payload": meta},
        {
            "timestamp": _iso(at),
            "type": "turn_context",
            "payload": {"turn_id": f"t{number}", "cwd": project, "model": chance.choice(CODEX_MODELS)},
        },
    ]
    total = dict.fromkeys(("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"), 0)
    for _ in range(turns):
        at += timedelta(seconds=chance.randint(20, 240))
        cached = chance.randint(10_000, 160_000)
        last = {
            "input_tokens": cached + chance.randint(500, 20_000),
            "cached_input_tokens": cached,
            "output_tokens": chance.randint(300, 5_000),
            "reasoning_output_tokens": chance.randint(0, 300),
        }
        total = {name: total[name] + last[name] for name in total}
        info = {"total_token_usage": _with_total(total), "last_token_usage": _with_total(last)}
        payload = {"type": "token_count", "info": info, "rate_limits": windows}
        lines.append({"timestamp": _iso(at), "type": "event_msg", "payload": payload})
    folder = home / ".codex" / "sessions" / f"{begun:%Y/%m/%d}"
    _write(folder / f"rollout-{begun:%Y-%m-%dT%H-%M-%S}-{session}.jsonl", lines)


def _write_gemini(home: Path, chance: Random, number: int, at: datetime, project: str, turns: int) -> None:
    name = project.rpartition("/")[2]
    lines: list[dict[str, object]] = [
        {"sessionId": f"11111111-{number:04d}-4aaa-8aaa-000000000001", "startTime": _iso(at), "kind": "main"}
    ]
    for turn in range(turns):
        at += timedelta(seconds=chance.randint(20, 240))
        cached = chance.randint(1_000, 60_000)
        prompt = cached + chance.randint(500, 20_000)
        tokens = {"input": prompt, "output": chance.randint(100, 3_000), "cached": cached, "thoughts": 50, "tool": 0}
        tokens["total"] = tokens["input"] + tokens["output"] + tokens["thoughts"]
        answer = {"type": "gemini", "content": "ok", "thoughts": [], "tokens": tokens, "model": GEMINI_MODEL}
        lines.append({"id": f"g{number}-{turn}", "timestamp": _iso(at), **answer})
    known = home / ".gemini" / "projects.json"
    projects = json.loads(known.read_text())["projects"] if known.exists() else {}
    known.parent.mkdir(parents=True, exist_ok=True)
    known.write_text(json.dumps({"projects": {**projects, project: name}}))
    _write(home / ".gemini" / "tmp" / name / "chats" / f"session-{at:%Y-%m-%dT%H-%M}-{number:08d}.jsonl", lines)


def _with_total(tokens: dict[str, int]) -> dict[str, int]:
    return {**tokens, "total_tokens": tokens["input_tokens"] + tokens["output_tokens"]}


def _iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _write(path: Path, lines: Sequence[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines))
