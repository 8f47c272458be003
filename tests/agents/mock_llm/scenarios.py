"""What the mock model answers, chosen by the prompt: ``#mock:NAME``, or ``#mock:[…]`` with the steps themselves.

A scenario is a list of steps, one for each request of a model since the last directive. A step may hold ``text`` or the
number of ``words`` of one, ``thinking``, ``tools`` (``[[name, arguments], …]``, real names or the portable write, edit,
delete, shell and read), ``delay`` and ``chunk_delay`` (seconds), ``holds`` (behind its first words until ``GET
/release``), ``status`` with ``error``, ``times`` and ``retry_after``, ``drop`` and ``usage``.
"""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Json = dict[str, Any]
Turn = tuple[str, str]
"""Role (user, assistant or tool) and text."""

USAGE: Json = {"input": 100, "output": 20, "cache_read": 1000, "cache_write": 50, "reasoning": 0}
_FINAL: Json = {"text": "Nothing more to do."}
_TICKS = "for i in 1 2 3 4 5 6; do for j in 0 1 2 3 4 5 6 7 8 9; do echo tick $i$j; sleep 1; done; done"
_ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "May I touch a file?"}

SCENARIOS: dict[str, list[Json]] = {
    "plain": [{"text": "Hello from the mock model."}],
    "tools": [
        {"text": "I will write the file.", "tools": [["write", {"path": "hello.txt", "content": "hello\n"}]]},
        {"text": "Now I run a command.", "tools": [["shell", {"command": "cat hello.txt; echo ran"}]]},
        {"text": "All done: wrote hello.txt and ran a command."},
    ],
    "shell": [
        {"text": "Running.", "tools": [["shell", {"command": "touch made-by-agent && echo ran"}]]},
        {"text": "Finished running."},
    ],
    "escalate": [
        {
            "text": "I need more rights.",
            "tools": [["shell", {"command": "touch escalated && echo ran", "extra": _ESCALATED}]],
        },
        {"text": "Finished escalating."},
    ],
    "parallel": [
        {"tools": [["shell", {"command": "echo one"}], ["shell", {"command": "echo two"}]]},
        {"text": "Both ran."},
    ],
    "fail": [{"tools": [["shell", {"command": "echo oops >&2; exit 3"}]]}, {"text": "It failed."}],
    "think": [{"thinking": "Let me think about it.", "text": "Thought about it."}],
    "slow": [{"words": 240, "chunk_delay": 0.25}],
    "sleep": [{"text": "Sleeping.", "tools": [["shell", {"command": _TICKS}]]}, {"text": "Woke up."}],
    "hang": [{"delay": 120, "text": "late"}],
    "loop": [
        {"text": f"Round {number}.", "tools": [["shell", {"command": f"echo round {number}"}]]} for number in range(50)
    ],
    "retry": [{"status": 529, "error": "overloaded", "times": 2, "text": "Recovered after retries."}],
    "e400": [{"status": 400, "error": "mock bad request"}],
    "e401": [{"status": 401, "error": "mock invalid api key"}],
    "e429": [{"status": 429, "error": "mock rate limit", "retry_after": 1}],
    "e500": [{"status": 500, "error": "mock internal error"}],
    "e529": [{"status": 529, "error": "mock overloaded"}],
    "drop": [{"text": "one two three four five", "drop": True}],
    "costly": [{"text": "That was expensive.", "usage": {"input": 200000, "output": 50000}}],
}

_tries: dict[int, int] = {}
_lock = threading.Lock()


def pick_step(conversation: Sequence[Turn], *, has_tools: bool, schema: Json | None) -> tuple[Json, int]:
    """Return the step to answer with, and how often this very conversation was asked, this time included.

    A request without tools is for a title or a choice of model; it never counts as a step.
    """
    if not has_tools:
        return {"text": json.dumps(_sample(schema)) if schema else "Mock title"}, 1
    steps, anchor = SCENARIOS["plain"], -1
    for position, (role, text) in enumerate(conversation):
        found = _find_scenario(text) if role == "user" else None
        if found is not None:
            steps, anchor = found, position
    roles = [role for role, _ in conversation[anchor + 1 :]]
    done = sum(
        role == "assistant" and (position == 0 or roles[position - 1] != "assistant")
        for position, role in enumerate(roles)
    )
    key = hash(json.dumps(conversation))
    with _lock:
        _tries[key] = _tries.get(key, 0) + 1
        return _with_words(steps[done] if done < len(steps) else _FINAL), _tries[key]


def _with_words(step: Json) -> Json:
    return step | {"text": " ".join(f"word{number}" for number in range(step["words"]))} if "words" in step else step


def calls_of(step: Json, offered: Mapping[str, Json]) -> Iterator[tuple[str, Any]]:
    """Give the calls of a step, with portable names turned into those of a tool that the agent offers."""
    for name, arguments in step.get("tools", []):
        forms = _PORTABLE.get(name, ()) if arguments.keys() & {"path", "command"} else ()
        yield next(((own, form(arguments)) for own, form in forms if own in offered), (name, arguments))


def words_of(text: str) -> list[str]:
    """Return the text in the pieces in which it is streamed."""
    return re.findall(r"\S+\s*|\s+", text) or [text]


def _find_scenario(text: str) -> list[Json] | None:
    """Return the scenario of the last directive in a text; those inside an inline one do not count."""
    found, position = None, text.find("#mock:")
    while position >= 0:
        position += len("#mock:")
        if text[position : position + 1] == "[":
            try:
                found, position = json.JSONDecoder().raw_decode(text, position)
            except ValueError as error:
                found = [{"text": f"bad inline scenario: {error}"}]
        else:
            name = re.match(r"[\w-]*", text[position:])
            found = SCENARIOS.get(name[0] if name else "") or [{"text": f"no scenario named {text[position:][:20]!r}"}]
        position = text.find("#mock:", position)
    return found


def _sample(schema: Json) -> Any:
    """Return the smallest value that fits a JSON schema, near enough."""
    kind = str(schema.get("type", "string")).lower()
    if "enum" in schema:
        return schema["enum"][0]
    if kind == "object":
        return {name: _sample(part) for name, part in schema.get("properties", {}).items()}
    return {"array": [], "boolean": False, "integer": 1, "number": 1, "null": None}.get(kind, "mock")


def _added(arguments: Json) -> str:
    lines = "".join(f"+{line}\n" for line in arguments["content"].splitlines())
    return f"*** Begin Patch\n*** Add File: {arguments['path']}\n{lines}*** End Patch\n"


def _edited(arguments: Json) -> str:
    change = f"@@\n-{arguments['old']}\n+{arguments['new']}\n"
    return f"*** Begin Patch\n*** Update File: {arguments['path']}\n{change}*** End Patch\n"


def _deleted(arguments: Json) -> str:
    return f"*** Begin Patch\n*** Delete File: {arguments['path']}\n*** End Patch\n"


def _in_code(tool: str, argument: Any) -> str:
    return f"text(await tools.{tool}({json.dumps(argument)}))"


def _command(name: str) -> Callable[[Json], Json]:
    return lambda arguments: {name: arguments["command"], **arguments.get("extra", {})}


def _described(arguments: Json) -> Json:
    return {"command": arguments["command"], "description": "Run a command"}


def _removed(arguments: Json) -> Json:
    return _described({"command": f"rm {arguments['path']}"})


# Portable tool -> the agents' own tools, the first offered one is taken: Claude Code, Gemini CLI, opencode, Codex.
_PORTABLE: dict[str, tuple[tuple[str, Callable[[Json], Any]], ...]] = {
    "write": (
        ("Write", lambda given: {"file_path": given["path"], "content": given["content"]}),
        ("write_file", lambda given: {"file_path": given["path"], "content": given["content"]}),
        ("write", lambda given: {"filePath": given["path"], "content": given["content"]}),
        ("apply_patch", _added),
        ("exec", lambda given: _in_code("apply_patch", _added(given))),
    ),
    "edit": (
        ("Edit", lambda given: {"file_path": given["path"], "old_string": given["old"], "new_string": given["new"]}),
        (
            "replace",
            lambda given: {
                "file_path": given["path"],
                "old_string": given["old"],
                "new_string": given["new"],
                "instruction": "edit",
            },
        ),
        ("edit", lambda given: {"filePath": given["path"], "oldString": given["old"], "newString": given["new"]}),
        ("apply_patch", _edited),
        ("exec", lambda given: _in_code("apply_patch", _edited(given))),
    ),
    # Only Codex has a tool for it.
    "delete": (
        ("apply_patch", _deleted),
        ("exec", lambda given: _in_code("apply_patch", _deleted(given))),
        ("Bash", _removed),
        ("run_shell_command", _removed),
        ("bash", _removed),
    ),
    "shell": (
        ("Bash", _described),
        ("run_shell_command", _described),
        ("bash", _described),
        ("exec_command", _command("cmd")),
        ("shell_command", _command("command")),
        ("exec", lambda given: _in_code("exec_command", _command("cmd")(given))),
    ),
    "read": (
        ("Read", lambda given: {"file_path": given["path"]}),
        ("read_file", lambda given: {"file_path": given["path"]}),
        ("read", lambda given: {"filePath": given["path"]}),
        ("exec_command", lambda given: {"cmd": f"cat {given['path']}"}),
    ),
}
