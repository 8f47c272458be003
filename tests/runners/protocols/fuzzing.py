"""Broken conversations for every adapter, and what must hold whatever an agent writes.

``mutated`` breaks the lines of a recording; ``check_conversation`` feeds them to an adapter, gives commands in
between, and asserts the contract of ``agentmon/runners/protocols/adapter.py``.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import sys
from collections import Counter, deque
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from agentmon.domain import activity, billing, changes, conversation, events, operations
from agentmon.runners.protocols.conversation import MAX_UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from random import Random

    from agentmon.runners.protocols.adapter import Adapter, Step

MAX_TEXT_CHARACTERS: Final = {
    ("tool_started", "target"): 1_000,
    ("tool_started", "input_summary"): 4_000,
    ("tool_finished", "output_summary"): 4_000,
    ("diff", "diff"): 40_000,
    ("ask", "detail"): 40_000,
    ("turn_ended", "text"): 4_000,
}
MAX_ANY_TEXT_CHARACTERS: Final = 60_000
MAX_ADAPTER_BYTES: Final = 16 * 1024 * 1024

_ODD_VALUES: Final[tuple[object, ...]] = (
    None, True, False, 0, -1, 1.5, 10**30, float("nan"), float("inf"), "", "x", "\ud800", "\x00\x1b[31m", "ä" * 300,
    [], {}, [None], [[]], [{}], {"type": 1}, {"": {"": []}}, "1e999", json.loads('{"a":[' * 150 + "]}" * 150),
)  # fmt: skip
_ODD_LINES: Final = (
    b"", b"null", b"[]", b"{}", b"0", b'"text"', b"{", b"\xff\xfe\x00", b"[" * 30_000, b'{"a":' * 30_000,
    b'{"type":' + b"9" * 5_000 + b"}", b'{"type":"' + b"y" * 70_000 + b'"}', b"Warning: not JSON at all", b"\r",
    b'{"type":"invented","subtype":"thing"}', b'{"type":{}}', b'{"type":[]}', b'{"jsonrpc":"2.0","id":{},"method":[]}',
    b'{"jsonrpc":"2.0","id":"u1","method":"invented/request","params":{}}',
    b'{"jsonrpc":"2.0","method":"invented/notification","params":[]}', b'{"id":1}', b'{"id":1,"error":null}',
)  # fmt: skip
_ENUMS: Final = {
    enum.__name__: {str(member.value) for member in enum}
    for enum in (
        conversation.TurnOutcome, conversation.AskKind, conversation.AskOutcome, conversation.PlanStatus,
        activity.Activity, billing.Confidence, events.EventLevel, changes.ChangeType, operations.MessageRole,
        operations.OperationStatus, operations.OperationType,
    )
}  # fmt: skip
_VALUES: Final = {
    value.__name__: value for value in (conversation.PlanStep, conversation.AskChoice, conversation.AskQuestion)
}
_SIMPLE: Final[dict[str, type]] = {"str": str, "bool": bool, "int": int}


def _kind(name: str) -> str:
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("News"))
    return words.removeprefix("_")


KINDS: Final[dict[str, Any]] = {_kind(news.__name__): news for news in conversation.ConversationNews.__args__}


def recorded_lines(path: Path) -> list[bytes]:
    """Return what the agent wrote in a recording: ``*.io.jsonl`` with directions, or its plain output."""
    lines = path.read_bytes().splitlines()
    if not path.name.endswith(".io.jsonl"):
        return lines
    entries = [json.loads(line) for line in lines]
    return [
        json.dumps(entry["msg"], ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        for entry in entries
        if entry["dir"] == "out" and "msg" in entry
    ]


def mutated(lines: Sequence[bytes], random: Random) -> bytes:
    """Return the lines as one stream, with one to eight things broken in it."""
    broken = list(lines)
    for _ in range(random.randint(1, 8)):
        if not broken:
            broken.append(random.choice(_ODD_LINES))
        random.choice(_MUTATIONS)(broken, random)
    stream = b"\n".join(broken) + random.choice((b"\n", b"\n", b"\n", b""))
    if random.random() < 0.1:
        stream = stream[: random.randrange(len(stream) + 1)]
    return stream


def interleaved(conversations: Sequence[Sequence[bytes]], random: Random) -> list[bytes]:
    """Return the lines of several recordings mixed, each in its own order."""
    waiting = [list(lines) for lines in conversations if lines]
    mixed = []
    while waiting:
        lines = random.choice(waiting)
        mixed.append(lines.pop(0))
        waiting = [others for others in waiting if others]
    return mixed


def _drop(lines: list[bytes], random: Random) -> None:
    del lines[random.randrange(len(lines))]


def _duplicate(lines: list[bytes], random: Random) -> None:
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def _swap(lines: list[bytes], random: Random) -> None:
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]


def _repeat_part(lines: list[bytes], random: Random) -> None:
    start = random.randrange(len(lines))
    part = lines[start : start + random.randint(1, 10)]
    lines[start:start] = part * random.randint(1, 3)


def _cut(lines: list[bytes], random: Random) -> None:
    place = random.randrange(len(lines))
    lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]


def _join(lines: list[bytes], random: Random) -> None:
    place = random.randrange(len(lines))
    lines[place : place + 2] = [b"".join(lines[place : place + 2])]


def _flip_bytes(lines: list[bytes], random: Random) -> None:
    place = random.randrange(len(lines))
    line = bytearray(lines[place])
    for _ in range(random.randint(1, 4)):
        if line:
            line[random.randrange(len(line))] = random.randrange(256)
    lines[place] = bytes(line)


def _insert_odd_line(lines: list[bytes], random: Random) -> None:
    lines.insert(random.randrange(len(lines) + 1), random.choice(_ODD_LINES))


def _change_value(lines: list[bytes], random: Random) -> None:
    place = random.randrange(len(lines))
    try:
        message = json.loads(lines[place])
    except (ValueError, RecursionError):
        return
    holders = _containers(message)
    if not holders:
        return
    for _ in range(random.randint(1, 3)):
        holder = random.choice(holders)
        if isinstance(holder, dict):
            _change_object(holder, random)
        else:
            holder[random.randrange(len(holder))] = random.choice(_ODD_VALUES)
    lines[place] = json.dumps(message).encode()


def _change_object(holder: dict[str, object], random: Random) -> None:
    if not holder:
        return
    key = random.choice(list(holder))
    if random.random() < 0.2:
        del holder[key]
    elif random.random() < 0.1:
        holder["z" + key] = holder.pop(key)
    elif random.random() < 0.1:
        holder[key] = holder[random.choice(list(holder))]
    else:
        holder[key] = random.choice(_ODD_VALUES)


def _containers(value: object) -> list[Any]:
    found, waiting = [], [value]
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, dict | list) and holder:
            found.append(holder)
            waiting += holder.values() if isinstance(holder, dict) else holder
    return found


_MUTATIONS: Final = (
    _drop, _duplicate, _swap, _repeat_part, _cut, _join, _flip_bytes, _insert_odd_line,
    _change_value, _change_value, _change_value, _change_value,
)  # fmt: skip


class ConversationCheck:
    """Watches one adapter: every step is checked on its own, the whole of them in ``finish``."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self.events: list[dict[str, Any]] = []
        self.sent = bytearray()
        self.open_asks: dict[str, dict[str, Any]] = {}
        self._asks: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._started: set[str] = set()
        self._finished: Counter[str] = Counter()
        self._commands: set[str] = set()
        self._obeyed: Counter[str] = Counter()
        self._queued: Counter[str] = Counter()
        self._message_refs: set[str] = set()
        self._newest_refs: deque[str] = deque(maxlen=MAX_UNFINISHED)
        self._cut_refs: set[str] = set()

    def note_command(self, command: Mapping[str, object]) -> None:
        """Expect the fate of a command that is given next."""
        self._commands.add(str(command["id"]))

    def take(self, step: Step) -> None:
        """Check one step."""
        assert isinstance(step.send, bytes)
        assert not step.send or step.send.endswith(b"\n")
        for line in step.send.splitlines():
            assert isinstance(json.loads(line), dict)
        self.sent += step.send
        assert isinstance(self._adapter.is_finished, bool)
        assert self._adapter.outcome in {"", *_ENUMS["TurnOutcome"]}
        assert self._adapter.error is None or "\n" not in self._adapter.error
        for event in step.events:
            check_event(event)
            self.events.append(event)
            self._count(event)

    def _count(self, event: dict[str, Any]) -> None:
        match event["kind"]:
            case "ask":
                self._asks[event["request_id"]] += 1
                self.open_asks[event["request_id"]] = event
            case "ask_closed":
                assert event["request_id"] in self.open_asks, "a request is closed that is not open"
                del self.open_asks[event["request_id"]]
                self._closed[event["request_id"]] += 1
            case "tool_started":
                assert event["tool_ref"] not in self._finished, "a call starts again after its end"
                self._started.add(event["tool_ref"])
            case "tool_finished":
                assert event["tool_ref"] in self._started, "a call ends that never started"
                self._finished[event["tool_ref"]] += 1
            case "message":
                is_known = event["message_ref"] in self._message_refs
                is_cut = event["message_ref"] in self._cut_refs
                assert is_cut or is_known == event.get("continues", False), "a message has an id, its parts share it"
                self._message_refs.add(event["message_ref"])
                if event["role"] == "assistant":
                    self._newest_refs.append(event["message_ref"])
            case "turn_ended" if event["outcome"] != "completed":
                # They were told as far as they had come, and may still come whole.
                self._cut_refs.update(self._newest_refs)
            case "command":
                assert event["command_id"] in self._commands, "a command that nobody gave"
                (self._queued if event.get("is_queued") else self._obeyed)[event["command_id"]] += 1

    def finish(self) -> None:
        """Check the whole, after ``receive_end``."""
        assert self._asks == self._closed, "every request is asked once and settled once"
        assert self._finished == Counter(self._started), "every call that starts ends once"
        assert all(count == 1 for count in self._obeyed.values()), "a command has one fate"
        assert all(count == 1 for count in self._queued.values())
        assert self._commands == set(self._obeyed) | set(self._queued), "every command has a fate"
        assert size_bytes(self._adapter) < MAX_ADAPTER_BYTES


def check_event(event: Mapping[str, Any]) -> None:
    """Assert that the event is one of the vocabulary: its fields, their types, their lengths."""
    kind = event["kind"]
    json.dumps(event)
    if kind == "delta":
        assert set(event) <= {"kind", "message_ref", "text", "is_thinking", "parent_tool_ref"}
        assert isinstance(event["message_ref"], str)
        assert isinstance(event["text"], str)
        return
    assert kind in KINDS, f"unknown kind {kind}"
    # Whether more of a message follows is for the host alone.
    fields = {name: value for name, value in event.items() if name not in {"kind", "goes_on"}}
    _check_fields(KINDS[kind], fields, kind)
    for name, value in event.items():
        if isinstance(value, str):
            assert len(value) <= MAX_TEXT_CHARACTERS.get((kind, name), MAX_ANY_TEXT_CHARACTERS), (
                f"{kind}.{name} is long"
            )
    if kind == "ask":
        assert len(json.dumps(event)) < 20 * MAX_ANY_TEXT_CHARACTERS


def _check_fields(news: Any, fields: Mapping[str, Any], path: str) -> None:
    known = {field.name: field for field in dataclasses.fields(news)}
    assert set(fields) <= set(known), f"{path} has unknown fields {set(fields) - set(known)}"
    for name, field in known.items():
        is_needed = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if name in fields:
            _check_type(str(field.type), fields[name], f"{path}.{name}")
        else:
            assert not is_needed, f"{path}.{name} is missing"


def _check_type(annotation: str, value: Any, path: str) -> None:
    if annotation.endswith(" | None"):
        if value is not None:
            _check_type(annotation.removesuffix(" | None"), value, path)
    elif annotation in _SIMPLE:
        assert isinstance(value, _SIMPLE[annotation]), f"{path} is {value!r}"
        if annotation == "int":
            assert type(value) is int, f"{path} is {value!r}"
            assert int(value) in range(2**63), f"{path} is {value!r}"
    elif annotation in _ENUMS:
        assert value in _ENUMS[annotation], f"{path} is {value!r}"
    elif annotation.startswith("tuple["):
        assert isinstance(value, list | tuple), f"{path} is {value!r}"
        for place, member in enumerate(value):
            _check_type(annotation[len("tuple[") : -len(", ...]")], member, f"{path}[{place}]")
    elif annotation in _VALUES:
        _check_fields(_VALUES[annotation], value, path)
    else:
        assert annotation == "Mapping[str, object]", annotation
        assert isinstance(value, dict), f"{path} is {value!r}"


def check_conversation(
    make: Callable[[], Adapter],
    stream: bytes,
    random: Random,
    reply: Callable[[Mapping[str, Any], Random], bytes] | None = None,
) -> ConversationCheck:
    """Feed the stream to a new adapter in pieces, with commands in between, and check the contract.

    Args:
        make: Makes the adapter.
        stream: What the agent writes.
        random: Decides how it is cut and what is commanded.
        reply: What the agent writes at once in answer to a message that the adapter sent; empty when nothing.
    """
    adapter = make()
    check = ConversationCheck(adapter)
    at_ms = 1_800_000_000_000
    waiting = [adapter.start(at_ms)]
    place = 0
    while True:
        while waiting:
            step = waiting.pop(0)
            check.take(step)
            for line in step.send.splitlines():
                answer = reply(json.loads(line), random) if reply else b""
                if answer:
                    waiting.append(adapter.receive(answer, at_ms))
        if place >= len(stream):
            break
        at_ms += random.choice((0, 1, 50))
        if random.random() < 0.15:
            command = random_command(check, random)
            check.note_command(command)
            waiting.append(adapter.command(command, at_ms))
        else:
            size = random.choice((1, 40, 700, 4_000, 65_536))
            if reply is not None:
                newline = stream.find(b"\n", place)
                size = size if newline < 0 else newline + 1 - place
            waiting.append(adapter.receive(stream[place : place + size], at_ms))
            place += size
    check.take(adapter.receive_end(at_ms))
    assert not check.open_asks
    late = {"id": "late", "type": "message", "text": "anybody there?"}
    check.note_command(late)
    check.take(adapter.command(late, at_ms))
    check.finish()
    return check


def random_command(check: ConversationCheck, random: Random) -> dict[str, Any]:
    """Return a command that fits the conversation, mostly."""
    command: dict[str, Any] = {"id": f"c{random.randrange(10**9)}"}
    kind = random.choice(("message", "answer", "answer", "answer", "interrupt", "finish", "set_model", "mode", "odd"))
    match kind:
        case "message":
            command |= {"type": "message", "text": random.choice(("go on", "", "ä" * 300, "\ud800", "/help"))}
        case "answer":
            command |= _random_answer(check, random)
        case "set_model":
            command |= {"type": "set_model", "model": random.choice(("other-model", ""))}
        case "mode":
            command |= {"type": "set_permission_mode", "permission_mode": random.choice(("plan", "default", "x"))}
        case "odd":
            command |= {"type": random.choice(("", "invented", None, [])), "text": random.choice(_ODD_VALUES)}
        case _:
            command["type"] = kind
    if random.random() < 0.05:
        command[random.choice([name for name in command if name != "id"])] = random.choice(_ODD_VALUES)
    return command


def _random_answer(check: ConversationCheck, random: Random) -> dict[str, Any]:
    asked: dict[str, Any] = {"request_id": "unknown", "input_digest": "0" * 64, "questions": (), "tool_input": {}}
    if check.open_asks and random.random() < 0.9:
        asked |= random.choice(list(check.open_asks.values()))
    answer: dict[str, Any] = {
        "type": "answer",
        "request_id": asked["request_id"],
        "input_digest": asked["input_digest"] if random.random() < 0.9 else "another",
        "decision": random.choice(("allow", "allow", "allow_for_session", "deny", "answer", "invented")),
    }
    if random.random() < 0.3:
        answer["reason"] = random.choice(("no", "", "because\nof this"))
    if random.random() < 0.2:
        answer["tool_input"] = random.choice((asked["tool_input"], {"command": "true"}, {}, [], None))
    if random.random() < 0.2:
        answer["interrupts"] = random.choice((True, False))
    if asked["questions"] or random.random() < 0.1:
        answer["answers"] = {question["question"]: random.choice(("A", ["A", "B"])) for question in asked["questions"]}
    return answer


def size_bytes(value: object) -> int:
    """Return the memory that the value holds with all it refers to, without classes, functions and modules."""
    seen: set[int] = set()
    waiting: list[object] = [value]
    total = 0
    while waiting:
        held = waiting.pop()
        is_shared = isinstance(held, type | ModuleType | FunctionType | BuiltinFunctionType | MethodType)
        if id(held) in seen or is_shared:
            continue
        seen.add(id(held))
        total += sys.getsizeof(held)
        waiting += gc.get_referents(held)
    return total
