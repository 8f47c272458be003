"""What the demo agent plays: one conversation with edits and commands, one with a question, and small talk."""

from __future__ import annotations

import difflib
import subprocess
import sys
from pathlib import Path
from typing import Final

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agentmon.runners.demo_agent.wire import Wire

INTRODUCTION: Final = (
    "I am agentmon's demo agent: no model is called and nothing costs money. I play a part, so that you can see how an "
    "agent looks here. What I change and run is real, and stays in this scratch folder."
)
_STEPS: Final = ("Read how the discount is computed", "Round half a cent up", "Run the tests")
_CART: Final = "shop/cart.py"
_OLD: Final = "    return price * (100 - percent) // 100"
_NEW: Final = "    return (price * (100 - percent) + 50) // 100"
_TEST_TIMEOUT_S: Final = 60


def repair_discount(wire: Wire) -> str:
    """Read a file, change it, run its tests; asks before each of the last two."""
    wire.say(INTRODUCTION)
    _plan(wire, 0)
    path = Path(_CART)
    call_id = wire.call("Read", {"file_path": str(path.absolute())})
    try:
        before = path.read_text("utf-8")
    except OSError as error:
        wire.result(call_id, f"{_CART}: {error.strerror}", is_error=True)
        return f"There is no {_CART} here, so there is nothing to play."
    wire.result(call_id, before)
    wire.say("The division throws half a cent away. I add half of the divisor before it.")
    _plan(wire, 1)
    if not _edit(wire, path, before):
        return "I leave the file as it is."
    _plan(wire, 2)
    command = f"{Path(sys.executable).name} -m unittest tests.test_discount"
    tool_input = {"command": command, "description": "Run the tests of the discount"}
    call_id = wire.call("Bash", tool_input)
    answer = wire.ask(call_id, "Bash", tool_input)
    if answer.get("behavior") != "allow":
        wire.result(call_id, str(answer.get("message") or "denied"), is_error=True)
        return "The change is made; its tests were not run."
    done = subprocess.run(
        [sys.executable, "-m", "unittest", "tests.test_discount"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TEST_TIMEOUT_S,
        check=False,
    )
    output = (done.stdout + done.stderr).strip()
    wire.result(call_id, output, is_error=done.returncode != 0, details={"stdout": output, "stderr": ""})
    _plan(wire, 3)
    return "Half a cent is rounded up now, and the test passes. No model was called."


def choose_format(wire: Wire) -> str:
    """Ask a person something and go on with the answer."""
    wire.say(INTRODUCTION)
    question = "In which format shall the catalogue be written?"
    options = [
        {"label": "JSON", "description": "For programs"},
        {"label": "CSV", "description": "For spreadsheets"},
        {"label": "Markdown", "description": "For people"},
    ]
    tool_input: dict[str, object] = {
        "questions": [{"question": question, "header": "Format", "options": options, "multiSelect": False}]
    }
    call_id = wire.call("AskUserQuestion", tool_input)
    answer = wire.ask(call_id, "AskUserQuestion", tool_input, requires_user_interaction=True)
    given = answer.get("updatedInput")
    answers = given.get("answers") if isinstance(given, dict) else None
    if answer.get("behavior") != "allow" or not isinstance(answers, dict):
        wire.result(call_id, str(answer.get("message") or "no answer"), is_error=True)
        return "Then I write no catalogue."
    chosen = ", ".join(map(str, answers.values()))
    wire.result(call_id, f"The answer is: {chosen}")
    return f"It will be {chosen}. A real agent would write it now; no model was called."


def answer_back(said: str) -> Callable[[Wire], str]:
    """Return the play that answers what a person said in between."""

    def play(wire: Wire) -> str:
        del wire
        return f"You said: {said.strip()[:200]}. I only play a part, and no model is called."

    return play


def _edit(wire: Wire, path: Path, before: str) -> bool:
    tool_input = {"file_path": str(path.absolute()), "old_string": _OLD, "new_string": _NEW}
    call_id = wire.call("Edit", tool_input)
    if _OLD not in before:
        wire.result(call_id, "the line is not there any more", is_error=True)
        return True
    answer = wire.ask(call_id, "Edit", tool_input)
    if answer.get("behavior") != "allow":
        wire.result(call_id, str(answer.get("message") or "denied"), is_error=True)
        return False
    after = before.replace(_OLD, _NEW)
    path.write_text(after, "utf-8")
    wire.result(
        call_id,
        f"{_CART} was changed",
        details={"type": "update", "filePath": str(path.absolute()), "structuredPatch": _hunks(before, after)},
    )
    return True


def _hunks(before: str, after: str) -> list[dict[str, object]]:
    old, new = before.splitlines(), after.splitlines()
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(3):
        lines = []
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += [f" {line}" for line in old[old_from:old_to]]
            else:
                lines += [f"-{line}" for line in old[old_from:old_to]]
                lines += [f"+{line}" for line in new[new_from:new_to]]
        first, last = group[0], group[-1]
        hunks.append(
            {
                "oldStart": first[1] + 1,
                "oldLines": last[2] - first[1],
                "newStart": first[3] + 1,
                "newLines": last[4] - first[3],
                "lines": lines,
            }
        )
    return hunks


def _plan(wire: Wire, done_count: int) -> None:
    todos = [
        {
            "content": step,
            "activeForm": step,
            "status": "completed" if number < done_count else "in_progress" if number == done_count else "pending",
        }
        for number, step in enumerate(_STEPS)
    ]
    call_id = wire.call("TodoWrite", {"todos": todos})
    wire.result(call_id, "the plan was noted", details={"oldTodos": [], "newTodos": todos})
