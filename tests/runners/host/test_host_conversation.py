"""An agent that is spoken to in its protocol: what it says, what it is told, and how it ends."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.runners.host.conversations import Conversation, peak_bytes
from tests.runners.host.host_runs import find_processes_with
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.runners.host.conftest import PrepareRun
    from tests.runners.host.scripted_agent import Act

_SECRET = "sk-ant-" + "api03-abcdefghijklmnopqrst"


def test_a_conversation_is_journaled_shown_and_recorded(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [
        ["prompt"],
        ["stream", "I look", " around.\n", "Now."],
        ["tool", "Bash", {"command": "ls"}, "a\nb"],
    ]
    talk = Conversation(prepare_run, [*acts, ["result"], ["wait_for_end"]], prompt="look\naround").start()

    ended = talk.end()

    assert [event["text"] for event in talk.events("message")] == ["look\naround", "I look around.\nNow."]
    assert talk.events("delta") == []
    assert [(event["tool_name"], event["target"]) for event in talk.events("tool_started")] == [("Bash", "ls")]
    assert talk.wait_for("turn_ended")["outcome"] == "completed"
    assert (ended["outcome"], ended["exit_code"]) == ("exited", 0)
    assert (ended["agent_outcome"], ended["agent_error"]) == ("completed", None)
    assert talk.shown().count("I look around.\nNow.\n") == 1
    assert "● Bash  ls\n" in talk.shown()
    assert [entry["dir"] for entry in talk.protocol()][:3] == ["start", "in", "in"]


def test_a_request_waits_for_its_answer(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["ask", "Bash", {"command": "touch a"}], ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts).start()

    talk.answer("c1")

    assert talk.end()["agent_outcome"] == "completed"
    assert talk.outcome_of("c1")["was_obeyed"]
    assert talk.wait_for("ask_closed")["outcome"] == "allowed"
    assert '"behavior": "allow"' in talk.wait_for("tool_finished")["output_summary"]
    assert "needs you: " in talk.shown()


def test_messages_of_a_person_reach_the_agent(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["say", "yes?"], ["prompt"], ["say", "fine"], ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts).start()
    talk.wait_for("message", 2)

    talk.command("message", "c1", text="more " + "ü" * 300_000)

    assert talk.end()["agent_outcome"] == "completed"
    assert talk.outcome_of("c1")["was_obeyed"]
    assert sum(event["text"].count("ü") for event in talk.events("message")) == 300_000


def test_a_command_before_the_start_is_obeyed_after_it(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["prompt"], ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts)
    talk.run.command("pause", wakes=False, command_id="p")
    with (talk.run.folder / "control.jsonl").open("a") as file:
        file.write(json.dumps({"id": "m", "type": "message", "text": "early"}) + "\n")
    talk.start()
    talk.run.wait_for_entry("host_started")

    talk.run.command("resume", command_id="r")

    assert talk.end()["outcome"] == "exited"
    assert talk.outcome_of("m")["was_obeyed"]


def test_what_was_said_to_the_agent_of_an_earlier_try_is_not_said_again(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["prompt"], ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts, attempt=1)
    talk.run.command("pause", wakes=False, command_id="p")
    with (talk.run.folder / "control.jsonl").open("a") as file:
        for command_id, kind, attempt in (("old", "message", 0), ("end", "finish", 0), ("new", "message", 1)):
            file.write(json.dumps({"id": command_id, "type": kind, "text": command_id, "attempt": attempt}) + "\n")
    talk.start()
    talk.run.wait_for_entry("host_started")

    talk.run.command("resume", command_id="r")

    assert talk.end()["outcome"] == "exited"
    assert [event["command_id"] for event in talk.events("command")] == ["new"]


def test_an_interrupted_agent_waits_until_it_may_finish(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["until_interrupted"], ["wait_for_end"]]).start()
    talk.wait_for("session")

    talk.command("interrupt", "c1")
    assert talk.wait_for("turn_ended")["outcome"] == "interrupted"
    talk.command("finish", "c2")

    ended = talk.end()
    assert (ended["outcome"], ended["agent_outcome"]) == ("exited", "interrupted")
    assert talk.outcome_of("c1")["was_obeyed"]
    assert talk.outcome_of("c2")["was_obeyed"]


def test_an_agent_that_does_not_end_by_itself_is_ended(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["ignore_signals"], ["fork"], ["prompt"], ["result"], ["sleep", 1000]]
    talk = Conversation(prepare_run, acts, grace_s=0.2, exit_grace_s=0.2).start()

    ended = talk.end()

    assert (ended["outcome"], ended["agent_outcome"]) == ("finished", "completed")
    assert [entry["signal"] for entry in talk.run.entries("signal_sent")] == ["TERM", "KILL"]
    assert find_processes_with(talk.run.execution_id) == []


def test_what_an_agent_leaves_behind_is_ended_after_it(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["fork"], ["say", "bye"], ["result"], ["exit", 0]]).start()

    ended = talk.end()

    assert (ended["outcome"], ended["exit_code"], ended["agent_outcome"]) == ("exited", 0, "completed")
    assert len(talk.run.entries("stragglers")) == 1
    assert find_processes_with(talk.run.execution_id) == []


def test_a_message_after_the_end_of_the_work_is_refused(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["result"], ["sleep", 1000]]).start()
    talk.wait_for("turn_ended")

    def refuse() -> bool:
        talk.command("message", f"c{len(talk.events('command'))}", text="and?")
        return any(not event["was_obeyed"] for event in talk.events("command"))

    wait_for(refuse, "a refusal")
    talk.run.end()


def test_an_agent_that_closes_its_output_and_lives_on_is_ended(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["close_output"], ["sleep", 1000]], exit_grace_s=0.2).start()

    ended = talk.end()

    assert (ended["outcome"], ended["agent_outcome"]) == ("finished", None)
    assert ended["agent_error"] == "The agent ended in the middle of its work."


def test_an_agent_that_hears_nothing_does_no_harm(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["close_input"], ["say", "I do not listen"], ["result"], ["exit", 0]]
    talk = Conversation(prepare_run, acts, prompt="x" * 3_000_000).start()

    assert talk.end()["outcome"] == "exited"
    assert "I do not listen" in talk.shown()


def test_an_agent_that_never_reads_is_stopped_like_any_other(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["say", "hm"], ["sleep", 1000]], prompt="x" * 3_000_000, grace_s=0.5).start()
    talk.wait_for("message", 2)

    talk.command("message", "c1", text="y" * 200_000)
    assert talk.outcome_of("c1")["was_obeyed"]
    talk.run.command("stop", command_id="s")

    assert talk.end()["outcome"] == "stopped"


def test_an_exit_at_once_is_told_with_its_code_and_words(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["errors", "no such model\nbye"], ["exit", 127]]).start()

    ended = talk.end()

    assert (ended["outcome"], ended["exit_code"]) == ("exited", 127)
    assert ended["agent_outcome"] is None
    assert {"no such model", "bye"} <= set(talk.shown().splitlines())
    assert (talk.run.folder / "errors.log").read_bytes() == b"no such model\nbye"


@pytest.mark.parametrize("protocol", ["stream-json", "app-server", "acp"])
@pytest.mark.parametrize(
    ("acts", "reason"),
    [
        ([], ""),
        ([["raw", "Invalid API key\n"]], ": Invalid API key"),
        ([["raw", "unfinished"]], ": unfinished"),
        ([["errors", "no such model\n"]], ": no such model"),
        ([["errors", "Error: no such model\n    at main\n\nNode.js v22\n"]], ": Error: no such model"),
        ([["raw", "hello\n"], ["errors", "\x1b[31mno login\x1b[0m\n"]], ": no login"),
    ],
)
def test_an_agent_that_exits_without_a_result_has_not_succeeded(
    prepare_run: PrepareRun, protocol: str, acts: list[Act], reason: str
) -> None:
    talk = Conversation(prepare_run, [*acts, ["exit", 0]], protocol=protocol).start()

    ended = talk.end()

    assert (ended["outcome"], ended["exit_code"], ended["agent_outcome"]) == ("exited", 0, None)
    assert ended["agent_error"].removeprefix("The agent ended before it began").removesuffix(".") == reason
    assert [event["outcome"] for event in talk.events("turn_ended")] == ["failed"]


_QUESTION = "There are two ways.\n\nSQLite or Postgres? Tell me before I go on."
_DENIED: list[Act] = [["prompt"], ["ask", "Bash", {"command": "touch a"}], ["say", "I may not."], ["result"]]


def test_a_turn_that_ends_with_a_question_waits_for_the_answer(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["say", _QUESTION], ["result"], ["prompt"], ["say", "Done."], ["result"]]
    talk = Conversation(prepare_run, [*acts, ["wait_for_end"]], exit_grace_s=0.2).start()

    waits = wait_for(lambda: [one for one in talk.events("activity") if one["activity"] == "waiting"], "the question")[
        -1
    ]
    assert "SQLite or Postgres?" in waits["note"]
    assert "guess" in waits["source"]
    talk.command("message", "c1", text="SQLite")

    ended = talk.end()
    assert (ended["outcome"], ended["agent_outcome"]) == ("exited", "completed")
    assert [event["outcome"] for event in talk.events("turn_ended")] == ["completed", "completed"]


@pytest.mark.parametrize(
    "acts",
    [[["prompt"], ["say", _QUESTION], ["result"]], _DENIED, [*_DENIED[:2], _DENIED[3]]],
    ids=["question", "denied", "denied silently"],
)
def test_what_waits_for_a_person_can_be_finished_as_it_is(prepare_run: PrepareRun, acts: list[Act]) -> None:
    talk = Conversation(prepare_run, [*acts, ["wait_for_end"]]).start()
    if acts[1][0] == "ask":
        talk.answer("c1", "deny")
    talk.wait_for("turn_ended")
    waiting = wait_for(
        lambda: [one for one in talk.events("activity")[-1:] if one["activity"] == "waiting"], "the wait"
    )
    assert waiting[0]["note"]

    talk.command("finish", "c2")

    assert talk.end()["agent_outcome"] == "completed"


@pytest.mark.parametrize("text", ["Done. Anything else I can help with?", "It asks:\n\n```\nContinue?\n```"])
def test_a_polite_closing_or_a_question_in_code_holds_nothing_up(prepare_run: PrepareRun, text: str) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["say", text], ["result"], ["wait_for_end"]]).start()

    assert talk.end()["agent_outcome"] == "completed"


def test_work_that_goes_on_after_a_refusal_is_done(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [*_DENIED[:-1], ["tool", "Read", {"file_path": "/a"}, "text"], ["say", "Done."], ["result"]]
    talk = Conversation(prepare_run, [*acts, ["wait_for_end"]]).start()

    talk.answer("c1", "deny")

    assert talk.end()["agent_outcome"] == "completed"


def test_a_message_that_the_agent_leaves_unanswered_is_no_success(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["say", "yes?"], ["wait_for_file", "more"], ["result"], ["exit", 0]]
    talk = Conversation(prepare_run, acts)
    talk.start()
    talk.wait_for("message", 2)
    talk.command("message", "c1", text="and more")
    talk.outcome_of("c1")
    (Path(talk.run.spec["working_dir"]) / "more").touch()

    assert talk.end()["agent_outcome"] is None


@pytest.mark.parametrize(
    "text", ["hello, this is no JSON\n", "\xff\xfe\x00\n", "[1, 2]\n", '{"type": 3}\n', "unfinished"]
)
def test_what_is_no_protocol_is_passed_over(prepare_run: PrepareRun, text: str) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["raw", text], ["raw", "\n"], ["result"], ["wait_for_end"]]).start()

    assert talk.end()["agent_outcome"] == "completed"
    assert text.strip("\n").encode("latin-1").decode(errors="replace") in [
        entry.get("line") for entry in talk.protocol()
    ]


@pytest.mark.parametrize(
    "value",
    ["NaN", "-Infinity", "1e999", "[" * 90 + "]" * 90, '{"a":' * 90 + "1" + "}" * 90],
    ids=["nan", "negative", "large", "lists", "objects"],
)
def test_no_input_of_a_tool_damages_the_journal(prepare_run: PrepareRun, value: str) -> None:
    request = f'{{"subtype": "can_use_tool", "tool_name": "T", "tool_use_id": "t", "input": {{"a": {value}}}}}'
    line = f'{{"type": "control_request", "request_id": "r", "request": {request}}}\n'
    talk = Conversation(prepare_run, [["prompt"], ["raw", line], ["result"], ["wait_for_end"]]).start()

    talk.answer("c1", "allow")

    assert talk.run.wait_for_end()["agent_outcome"] == "completed"
    assert [event["request_id"] for event in talk.events("ask")] == ["r"]


@pytest.mark.parametrize("depth", [400, 10_000])
def test_a_request_that_is_nested_too_deeply_is_refused_and_the_agent_goes_on(
    prepare_run: PrepareRun, depth: int
) -> None:
    deep = "[" * depth + '"]}"' + "]" * depth
    request = f'{{"subtype": "can_use_tool", "tool_name": "T", "tool_use_id": "t", "input": {{"a": {deep}}}}}'
    line = f'{{"type": "control_request", "request": {request}, "request_id": "r"}}\n'
    talk = Conversation(prepare_run, [["prompt"], ["raw", line], ["result"], ["wait_for_end"]]).start()

    assert talk.run.wait_for_end()["agent_outcome"] == "completed"
    assert talk.events("ask") == []
    lines = [str(entry.get("line")) for entry in talk.protocol()]
    answers = [json.loads(line)["response"] for line in lines if '"control_response"' in line]
    assert [(answer["subtype"], answer["request_id"]) for answer in answers][-1] == ("error", "r")


@pytest.mark.proof
def test_a_line_of_20_mb_is_heard(prepare_run: PrepareRun) -> None:
    talk = Conversation(
        prepare_run, [["prompt"], ["say", "0123456789 ", 1_900_000], ["result"], ["wait_for_end"]]
    ).start()

    ended = talk.end()

    assert ended["agent_outcome"] == "completed"
    assert sum(len(event["text"]) for event in talk.events("message")) > 20_000_000
    assert max(map(len, (talk.run.folder / "journal.jsonl").read_bytes().splitlines())) < 900_000


@pytest.mark.proof
def test_a_flood_is_heard_to_its_end_in_bounded_memory(prepare_run: PrepareRun, tmp_path: Path) -> None:
    is_measured = tmp_path / "measured"
    acts: list[Act] = [["prompt"], ["flood", 50_000_000, 4000], ["result"], ["wait_for_file", str(is_measured)]]
    talk = Conversation(prepare_run, acts).start()
    talk.wait_for("turn_ended")

    peak = peak_bytes(talk.run.pid)
    is_measured.touch()

    assert peak < 150_000_000
    assert talk.run.wait_for_end()["agent_outcome"] == "completed"


def test_more_than_is_kept_of_a_run_is_said_so_and_ends_are_kept(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], ["repeat", 300, ["stream", "x" * 900]], ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts, max_output_bytes=20_000).start()

    ended = talk.run.wait_for_end()

    assert (ended["agent_outcome"], ended["exit_code"]) == ("completed", 0)
    assert 50 < len(talk.events("message")) < 200
    assert len(talk.events("notice")) == len(talk.events("turn_ended")) == 1
    assert talk.run.entries("left_out")[-1]["entries"] > 100
    assert (talk.run.folder / "journal.jsonl").stat().st_size < 5 * 20_000 + 20_000


@pytest.mark.proof
def test_the_time_in_which_it_is_paused_is_not_the_agents(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["result"], ["sleep", 1000]], exit_grace_s=1).start()
    talk.wait_for("turn_ended")
    over = next(one for one in talk.run.entries("agent_event") if one["event"]["kind"] == "turn_ended")

    talk.run.command("pause", command_id="p")
    paused = talk.run.wait_for_entry("paused")
    wait_for(lambda: time.time() * 1000 > paused["at_ms"] + 1200, "more than the grace")
    talk.run.command("resume", command_id="r")

    assert talk.end()["outcome"] == "finished"
    resumed = talk.run.wait_for_entry("resumed")
    first_signal = talk.run.entries("signal_sent")[0]
    assert paused["at_ms"] <= resumed["at_ms"]
    assert (paused["at_ms"] - over["at_ms"]) + (first_signal["at_ms"] - resumed["at_ms"]) > 900


@pytest.mark.proof
def test_the_time_in_which_it_asks_or_is_paused_is_not_that_of_its_limit(prepare_run: PrepareRun) -> None:
    talk = Conversation(prepare_run, [["prompt"], ["ask", "Bash", {}], ["sleep", 1000]], timeout_s=4).start()
    talk.wait_for("ask")
    talk.run.command("pause", command_id="p")
    paused = talk.run.wait_for_entry("paused")
    wait_for(lambda: time.time() * 1000 > paused["at_ms"] + 2000, "a part of the limit")
    talk.run.command("resume", command_id="r")
    resumed = talk.run.wait_for_entry("resumed")
    wait_for(lambda: time.time() * 1000 > resumed["at_ms"] + 2500, "more than the limit")
    assert "time_limit_reached" not in talk.run.types()

    talk.answer("a")

    assert talk.run.wait_for_end()["outcome"] == "timed_out"


def test_secrets_are_nowhere_in_the_record(prepare_run: PrepareRun) -> None:
    pieces = [f"the key is {_SECRET[:9]}", _SECRET[9:], " and api_key", f" = {_SECRET[10:20]} done\n"]
    acts: list[Act] = [
        ["prompt"],
        ["stream", *pieces],
        [
            "tool",
            "Bash",
            {"command": f"export TOKEN={_SECRET}", "env": {"api_key": "hunter2hunter2", _SECRET: 1}},
            _SECRET,
        ],
        ["errors", f"stderr {_SECRET}\n"],
        ["result", f"{_SECRET}"],
        ["wait_for_end"],
    ]
    talk = Conversation(prepare_run, acts, prompt=f"use {_SECRET}").start()

    talk.run.wait_for_end()

    assert _SECRET not in talk.run.output.decode()
    assert _SECRET not in json.dumps([entry for entry in talk.run.entries() if entry["type"] != "agent_started"])
    assert _SECRET not in json.dumps(talk.protocol())
    assert "hunter2" not in json.dumps([talk.events(), talk.protocol()])
    assert "the key is [secret] and api_key = [secret] done\n" in talk.shown()
    told = [event["kind"] for event in talk.replay() if event["kind"] not in {"delta", "activity"}]
    assert told == [event["kind"] for event in talk.events() if event["kind"] != "activity"]


def test_no_escape_sequence_of_an_agent_reaches_the_terminal(prepare_run: PrepareRun) -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b31md\u202ee\x07\r\x00f"
    acts: list[Act] = [["prompt"], ["stream", evil[:3], evil[3:], "\n"], ["say", evil], ["errors", evil + "\n"]]
    talk = Conversation(
        prepare_run, [*acts, ["tool", evil, {"command": evil}, evil], ["result"], ["wait_for_end"]]
    ).start()

    talk.end()

    shown = talk.shown()
    assert not {"\x1b", "\x07", "\x9b", "\u202e", "\x00", "\r"} & set(shown)
    assert shown.isascii() or "●" in shown


def test_an_agent_that_cannot_be_started_is_explained_as_any_program(prepare_run: PrepareRun) -> None:
    conversation = {"protocol": "stream-json", "prompt": "x", "working_dir": "/"}
    run = prepare_run("no-such-agent", mode="stream-json", conversation=conversation).start()

    ended = run.wait_for_end()

    assert (ended["outcome"], ended["agent_outcome"]) == ("start_failed", None)
    assert ended["error"] == "program not found: no-such-agent (not in any folder of PATH)"


def test_a_protocol_that_nobody_speaks_is_explained(prepare_run: PrepareRun) -> None:
    run = prepare_run("true", mode="acp", conversation={"protocol": "klingon"}).start()

    ended = run.wait_for_end()

    assert ended["outcome"] == "start_failed"
    assert ended["error"].startswith("the agent cannot be spoken to: No adapter speaks the protocol 'klingon'")


def test_a_host_without_a_protocol_loads_nothing_of_it(prepare_run: PrepareRun) -> None:
    run = prepare_run("true")
    program = (
        "import sys; sys.path.append(sys.argv[1]); from agentmon.runners.host import host\n"
        "host.main(sys.argv[2:]); print(*sys.modules)"
    )
    command = [sys.executable, "-I", "-S", "-c", program, str(Path(__file__).parents[3]), str(run.folder)]

    answer = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)

    loaded = set(answer.stdout.split())
    heavy = {"json", "re", "typing", "dataclasses", "pathlib", "logging", "subprocess", "socket", "signal", "enum"}
    assert loaded & heavy == set()
    assert [name for name in loaded if name.startswith(("agentmon.domain", "agentmon.runners.protocols"))] == []


def test_a_full_disk_makes_the_agent_wait_and_loses_nothing(prepare_run: PrepareRun) -> None:
    acts: list[Act] = [["prompt"], *([["say", "0123456789 ", 400]] * 200), ["result"], ["wait_for_end"]]
    talk = Conversation(prepare_run, acts)
    # The agent writes no files, so the limit is the host's alone.
    talk.start(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY)))
    wait_for(
        # The other files of the folder come and go.
        lambda: any(path.stat().st_size == 300_000 for path in talk.run.folder.iterdir() if path.suffix == ".jsonl"),
        "a full disk",
    )

    resource.prlimit(talk.run.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))

    assert talk.end()["agent_outcome"] == "completed"
    assert len(talk.events("message")) == 201
    assert talk.run.output.count(b"0123456789") == 80_000
    numbers = [entry["n"] for entry in talk.run.entries()]
    assert numbers == list(range(1, len(numbers) + 1))


def test_what_is_written_can_be_read_while_it_is_written(prepare_run: PrepareRun, tmp_path: Path) -> None:
    first, second, last = tmp_path / "first", tmp_path / "second", tmp_path / "last"
    acts: list[Act] = [
        ["prompt"],
        ["write", f"The key is {_SECRET[:12]}"],
        ["errors", "a warning\n"],
        ["wait_for_file", str(first)],
        ["complete"],
        ["write", "Half a th"],
        ["wait_for_file", str(second)],
        ["result"],
        ["wait_for_file", str(last)],
    ]
    talk = Conversation(prepare_run, acts, exit_grace_s=1_000).start()
    drafts = talk.run.folder / "drafts.jsonl"

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in drafts.read_text().splitlines()] if drafts.exists() else []

    def texts() -> list[str]:
        return [line["text"] for line in lines() if "text" in line]

    wait_for(lambda: texts() == ["The key is "] and "a warning" in talk.shown(), "the first message")
    assert "api" not in talk.shown()
    assert [event["role"] for event in talk.events("message")] == ["user"]
    first.touch()
    wait_for(lambda: texts() == ["The key is ", "Half a "], "the second message")
    second.touch()
    settled = wait_for(
        lambda: [line for line in lines() if "settled" in line and not line.keys() & {"attempt", "message_ref"}],
        "the end of the turn",
    )
    told = [line for line in lines() if "settled" in line and "message_ref" in line]
    last.touch()
    journal = (talk.run.folder / "journal.jsonl").read_bytes()
    for line, kind in ((told[0], b'"message"'), (settled[-1], b'"turn_ended"')):
        before = journal[: line["settled"]]
        assert kind in before.splitlines()[-1]
        assert before.endswith(b"\n")
    assert told[0]["message_ref"] == next(line["message_ref"] for line in lines() if "text" in line)

    assert talk.end()["agent_outcome"] == "completed"
    assert not drafts.exists()
