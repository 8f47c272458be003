"""Makes a home with long histories of Claude Code, Codex and Gemini CLI out of the real programs' own records."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

CAPTURED: Final = Path("tests/usage/samples/captured")
CLAUDE_BYTES: Final = 380_000_000
CODEX_BYTES: Final = 110_000_000
GEMINI_BYTES: Final = 45_000_000
FILE_BYTES: Final = (200_000, 800_000, 3_000_000, 8_000_000)
"""Short conversations and long ones, as often as each other."""
TOOL_OUTPUT_BYTES: Final = (200, 1_000, 4_000, 16_000)
"""What tools give back: a short command, a search, a file that is read, a long one; as often as each other."""
CALLS_PER_TURN: Final = 8
PROJECTS: Final = 12
_DAYS: Final = 180
_FIRST_DAY: Final = datetime(2026, 5, 1, 8, tzinfo=UTC)
_CLAUDE_MODELS: Final = ("claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5-20251001")


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageTree:
    """What was made."""

    size_bytes: int
    files: int
    answers: int


class _Chance:
    """The same texts, ids and times at every run."""

    def __init__(self) -> None:
        self.random = random.Random(1)
        words = ["".join(self.random.choices("abcdefghijklmnop", k=self.random.randint(2, 9))) for _ in range(4_000)]
        # As much is quoted and broken into lines as in source code.
        self._prose = " ".join(self.random.choices([*words, *['"quoted"', "\n"] * 400], k=20_000))
        self._numbers = 0
        self.at = _FIRST_DAY

    def text(self, length: int) -> str:
        begin = self.random.randrange(len(self._prose) - length)
        return self._prose[begin : begin + length]

    def tool_output(self) -> str:
        return self.text(self.random.choice(TOOL_OUTPUT_BYTES))

    def id(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def name(self, prefix: str) -> str:
        self._numbers += 1
        return f"{prefix}{self._numbers:024d}"

    def begin(self) -> str:
        self.at = _FIRST_DAY + timedelta(days=self.random.randrange(_DAYS), seconds=self.random.randrange(30_000))
        return self.stamp()

    def stamp(self) -> str:
        self.at += timedelta(milliseconds=self.random.randrange(500, 20_000))
        return self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def make_tree(home: Path, *, scale: float = 1.0) -> UsageTree:
    """Fill the home with some 535 MB, or so many times as much; the same bytes every time."""
    chance = _Chance()
    size_bytes = files = answers = 0
    for make, wanted in ((_claude_file, CLAUDE_BYTES), (_codex_file, CODEX_BYTES), (_gemini_file, GEMINI_BYTES)):
        made = 0
        while made < wanted * scale:
            path, lines = make(home, chance)
            path.parent.mkdir(parents=True, exist_ok=True)
            limit = chance.random.choice(FILE_BYTES)
            written = 0
            with path.open("wb") as opened:
                for record, told in lines:
                    line = json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
                    opened.write(line)
                    written += len(line)
                    answers += told
                    # An answer is told in several lines: none is left half told.
                    if written >= limit and told:
                        break
            made += written
            files += 1
        size_bytes += made
    return UsageTree(size_bytes=size_bytes, files=files, answers=answers)


_Lines: TypeAlias = "Iterator[tuple[dict[str, Any], int]]"
"""Records, each with how many answers it tells for the last time."""


def _records(pattern: str) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(CAPTURED.glob(pattern)) for line in path.read_bytes().splitlines()]


def _claude_file(home: Path, chance: _Chance) -> tuple[Path, _Lines]:
    session_id, project = chance.id(), chance.random.randrange(PROJECTS)
    path = home / ".claude" / "projects" / f"-home-dev-project{project}" / f"{session_id}.jsonl"
    return path, _claude_lines(chance, session_id, f"/home/dev/project{project}")


def _claude_lines(chance: _Chance, session_id: str, cwd: str) -> _Lines:
    recorded = _records("claude/projects/*/*.jsonl")
    call = next(one for one in recorded if _has_part(one, "tool_use"))
    given = next(one for one in recorded if _has_part(one, "tool_result"))
    beside = [one for one in recorded[:20] if one.get("type") != "assistant"]
    chance.begin()
    model = chance.random.choice(_CLAUDE_MODELS)
    while True:
        for one in beside:
            yield _claude_record(one, chance, session_id, cwd), 0
        for _ in range(CALLS_PER_TURN):
            usage = call["message"]["usage"] | {
                "input_tokens": chance.random.randrange(1, 40),
                "output_tokens": chance.random.randrange(50, 2_000),
                "cache_read_input_tokens": chance.random.randrange(10_000, 150_000),
            }
            message = call["message"] | {"id": chance.name("msg_01"), "model": model, "usage": usage}
            text = {"type": "text", "text": chance.text(chance.random.randint(100, 1_500))}
            tool = next(part for part in call["message"]["content"] if part["type"] == "tool_use")
            tool |= {"input": {"command": chance.text(chance.random.randint(30, 1_500))}}
            for part in (text, tool):
                record = call | {"message": message | {"content": [part]}}
                yield _claude_record(record, chance, session_id, cwd), 0
            output = chance.tool_output()
            back = given["message"]["content"][0] | {"content": output}
            record = given | {
                "message": given["message"] | {"content": [back]},
                "toolUseResult": {"stdout": output, "stderr": "", "interrupted": False},
            }
            yield _claude_record(record, chance, session_id, cwd), 1


def _has_part(record: dict[str, Any], kind: str) -> bool:
    content = record.get("message", {}).get("content")
    return isinstance(content, list) and any(part.get("type") == kind for part in content)


def _claude_record(record: dict[str, Any], chance: _Chance, session_id: str, cwd: str) -> dict[str, Any]:
    fresh = {"uuid": chance.id(), "timestamp": chance.stamp(), "sessionId": session_id, "cwd": cwd}
    return {name: fresh.get(name, value) for name, value in record.items()}


def _codex_file(home: Path, chance: _Chance) -> tuple[Path, _Lines]:
    thread_id = chance.id()
    chance.begin()
    name = f"rollout-{chance.at:%Y-%m-%dT%H-%M-%S}-{thread_id}.jsonl"
    path = home / ".codex" / "sessions" / f"{chance.at:%Y}" / f"{chance.at:%m}" / f"{chance.at:%d}" / name
    return path, _codex_lines(chance, thread_id, f"/home/dev/project{chance.random.randrange(PROJECTS)}")


def _codex_lines(chance: _Chance, thread_id: str, cwd: str) -> _Lines:
    recorded = _records("codex/sessions/*/*/*/*.jsonl")

    def first(kind: str, payload_kind: str = "", item_kind: str = "") -> dict[str, Any]:
        return next(
            one
            for one in recorded
            if one["type"] == kind
            and payload_kind in {"", one["payload"].get("type")}
            and item_kind in {"", one["payload"].get("item", {}).get("type")}
        )

    def record(one: dict[str, Any], **payload: object) -> dict[str, Any]:
        return one | {"timestamp": chance.stamp(), "payload": one["payload"] | payload}

    meta, turn = first("session_meta"), first("turn_context")
    billed, counted = first("token_usage_record"), first("event_msg", "token_count")
    ran, said = (first("event_msg", "item_completed", kind) for kind in ("CommandExecution", "AgentMessage"))
    yield record(meta, id=thread_id, session_id=thread_id, cwd=cwd, model_provider="openai"), 0
    total = dict.fromkeys(billed["payload"]["usage"], 0)
    while True:
        yield record(turn, cwd=cwd), 0
        for _ in range(CALLS_PER_TURN):
            sent = chance.random.randrange(10_000, 150_000)
            answered = chance.random.randrange(50, 2_000)
            usage = dict.fromkeys(total, 0) | {
                "input_tokens": sent,
                "cached_input_tokens": sent * 9 // 10,
                "output_tokens": answered,
                "reasoning_output_tokens": answered // 2,
                "total_tokens": sent + answered,
            }
            total = {name: count + usage[name] for name, count in total.items()}
            told = {"thread_id": thread_id, "session_id": thread_id, "response_id": chance.name("resp_")}
            yield record(billed, **told, usage=usage, thread_token_usage=total), 0
            item = ran["payload"]["item"] | {"aggregated_output": chance.tool_output()}
            yield record(ran, thread_id=thread_id, item=item), 0
            words = {"type": "Text", "text": chance.text(chance.random.randint(100, 1_500))}
            yield record(said, thread_id=thread_id, item=said["payload"]["item"] | {"content": [words]}), 0
            info = counted["payload"]["info"] | {"total_token_usage": total, "last_token_usage": usage}
            yield record(counted, info=info), 1


def _gemini_file(home: Path, chance: _Chance) -> tuple[Path, _Lines]:
    session_id, project = chance.id(), f"project{chance.random.randrange(PROJECTS)}"
    chance.begin()
    folder = home / ".gemini" / "tmp" / project
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".project_root").write_text(f"/home/dev/{project}")
    path = folder / "chats" / f"session-{chance.at:%Y-%m-%dT%H-%M}-{session_id[:8]}.jsonl"
    return path, _gemini_lines(chance, session_id)


def _gemini_lines(chance: _Chance, session_id: str) -> _Lines:
    recorded = _records("gemini/tmp/*/chats/*.jsonl")
    begun = next(one for one in recorded if "sessionId" in one)
    answer = next(one for one in recorded if "toolCalls" in one)
    given = next(one for one in recorded if one.get("type") == "user" and "functionResponse" in one["content"][0])
    yield begun | {"sessionId": session_id, "startTime": chance.stamp()}, 0
    while True:
        sent = chance.random.randrange(10_000, 150_000)
        counts = {"input": sent, "cached": sent * 8 // 10, "output": chance.random.randrange(50, 2_000)}
        told = answer | {
            "id": chance.id(),
            "timestamp": chance.stamp(),
            "content": chance.text(chance.random.randint(100, 1_500)),
            "tokens": answer["tokens"] | counts,
        }
        without_calls = {name: value for name, value in told.items() if name != "toolCalls"}
        yield without_calls, 0
        output = chance.tool_output()
        calls = [answer["toolCalls"][0] | {"resultDisplay": output}]
        yield told | {"toolCalls": calls}, 1
        response = given["content"][0]["functionResponse"] | {"response": {"output": output}}
        user = given | {"id": chance.id(), "timestamp": chance.stamp()}
        yield user | {"content": [{"functionResponse": response}]}, 0
        yield {"$set": {"lastUpdated": chance.stamp()}}, 0


if __name__ == "__main__":
    import sys

    print(make_tree(Path(sys.argv[1]), scale=float(sys.argv[2]) if len(sys.argv) > 2 else 1.0))
