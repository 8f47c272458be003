from __future__ import annotations

import asyncio
import itertools
import json
import os
import select
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.asked_danger import with_danger
from agentmon.domain.budget_requests import budget_ask
from agentmon.domain.budgets import Budget, BudgetPeriod, BudgetScope, BudgetState, BudgetUse
from agentmon.domain.conversation import (
    AskChoice,
    AskClosedNews,
    AskKind,
    AskOutcome,
    AskQuestion,
    MessageNews,
    ToolFinishedNews,
    ToolStartedNews,
)
from agentmon.domain.ids import BudgetId
from agentmon.domain.operations import MessageRole, OperationStatus, OperationType
from agentmon.runners.danger import load_danger_rules
from agentmon.runners.host.draft_log import DraftLog
from agentmon.services.demo_agent import DEMO_AGENT_SLUG, make_demo_agent
from tests.cli.command_lines import DEADLINE_S
from tests.conversing import Conversing, a_typed_wish, a_wish
from tests.idle_worker import idle_worker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path
    from typing import Self

    from agentmon.domain.conversation import AskNews, ConversationNews
    from agentmon.domain.executions import Execution
    from tests.cli.command_lines import CommandLine

_Made = TypeVar("_Made")


class Talk:
    """Conversations in the database of the command lines."""

    def __init__(self, cli: CommandLine) -> None:
        self.cli = cli
        self.offsets: dict[str, int] = {}

    def do(self, work: Callable[[Conversing], Awaitable[_Made]]) -> _Made:
        async def opened() -> _Made:
            async with open_services(self.cli.paths) as services:
                workspace = await services.workspaces.open(self.cli.workspace)
                place = Conversing(services=services, workspace=workspace, offsets=self.offsets)  # type: ignore[arg-type] # ids are texts
                return await work(place)

        return asyncio.run(opened())

    def begin(self, title: str = "mend the login") -> tuple[str, Execution]:
        """Return the number of a new task and its running execution."""

        async def work(place: Conversing) -> tuple[str, Execution]:
            if DEMO_AGENT_SLUG not in {agent.slug for agent in await place.services.agents.list()}:
                await place.services.agents.add(make_demo_agent(pace_s=0.0))
            task = await place.add_task(title)
            return str(task.number), await place.begin(task.id)

        return self.do(work)

    def ask(self, execution: Execution, ask: AskNews) -> str:
        """Let the agent ask, and return the id of the request."""

        async def work(place: Conversing) -> str:
            return (await place.ask(execution.id, ask)).approval.id

        return self.do(work)

    def payloads(self, execution: Execution) -> list[object]:
        async def work(place: Conversing) -> list[object]:
            return [dict(command.payload) for command in await place.commands(execution.id)]

        return self.do(work)


@pytest.fixture
def talk(cli: CommandLine) -> Iterator[Talk]:
    cli("task", "list")
    with idle_worker(cli.paths):
        yield Talk(cli)


def test_an_empty_inbox_says_so(cli: CommandLine, tmp_path: Path) -> None:
    plain = cli("inbox", folder=tmp_path)

    assert (plain.code, plain.stdout, plain.stderr) == (0, "", "nobody waits for you\n")
    assert cli("inbox", "--json", folder=tmp_path).document() == []
    assert "no agent has asked anything yet" in cli("inbox", "--history", folder=tmp_path).stderr


def test_what_is_asked_is_listed_whole_and_allowed_by_its_id(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    asked = talk.ask(execution, a_wish("rm -rf tmp", reason="it is full"))

    listed = cli("inbox").stdout
    document = next(one for one in cli("inbox", "--json").document() if one["approval"]["id"] == asked)
    counted = cli("status", "--json").document()
    allowed = cli("approve", asked[:33])
    again = cli("approve", asked)

    assert all(part in listed for part in (f"#{number} mend the login", "rm -rf tmp", "why: it is full", asked))
    assert document["task_number"] == int(number)
    assert counted["needs_you"] >= 1
    assert allowed.stdout == f"#{number} ✓ allowed by You: wants Bash: rm -rf tmp\n"
    assert (again.code, again.stdout) == (1, "")
    assert "it was allowed already" in again.stderr
    assert [one["decision"] for one in talk.payloads(execution)] == ["allow"]  # type: ignore[index] # objects


def test_what_destroys_things_is_approved_by_its_name(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    asked = talk.ask(execution, with_danger(a_wish("git push --force"), load_danger_rules()))

    listed = cli("inbox").stdout
    document = next(one for one in cli("inbox", "--json").document() if one["approval"]["id"] == asked)
    refused = [cli("approve", asked), cli("approve", asked, "--name", "git"), cli("approve", asked, "--always")]
    allowed = cli("approve", asked, "--name", "git push")

    assert "▲ level 3, destroys things: git push: replaces what others have pushed" in listed
    assert f"agentmon approve {asked} --name 'git push' allows it" in listed
    assert (document["approval"]["danger_level"], document["approval"]["danger_name"]) == (3, "git push")
    assert [one.code for one in refused] == [2, 2, 2]
    assert "its name has to be typed: git push" in refused[0].stderr
    assert allowed.stdout == f"#{number} ✓ allowed by You: wants Bash: git push --force\n"


def test_a_request_named_by_its_task_is_shown_before_it_is_decided(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    asked = talk.ask(execution, a_wish("make clean"))

    unseen = cli("approve", f"#{number}")
    denied = cli("deny", f"#{number}", "--yes", "--reason", "not now", "--interrupt", "--json").document()
    history = cli("inbox", "--history").stdout

    assert unseen.code == 2
    assert "make clean" in unseen.stderr
    assert f"name it by its id, {asked}, or add --yes" in unseen.stderr
    assert (denied["status"], denied["decision_reason"]) == ("denied", "not now")
    row = next(line for line in history.splitlines() if asked in line)
    assert row.split()[:5] == ["✗", "denied", "by", "You", f"#{number}"]


def test_a_digest_that_was_not_seen_decides_nothing(cli: CommandLine, talk: Talk) -> None:
    _, execution = talk.begin()
    asked = talk.ask(execution, a_wish("make all"))

    other = cli("approve", asked, "--digest", "digest of make clean")
    empty = cli("approve", asked, "--digest", "")
    seen = cli("approve", asked, "--digest", "digest of make all", "--session")

    assert [other.code, empty.code, seen.code] == [1, 1, 0]
    assert "something else than you have seen" in other.stderr
    assert [one["decision"] for one in talk.payloads(execution)] == ["allow_for_session"]  # type: ignore[index] # objects


def test_a_request_that_was_taken_back_is_not_replaced_by_the_next(cli: CommandLine, talk: Talk) -> None:
    _, execution = talk.begin()
    seen = talk.ask(execution, a_wish("git status"))

    async def swap(place: Conversing) -> None:
        await place.tell(
            execution.id,
            AskClosedNews(request_id="r1", outcome=AskOutcome.WITHDRAWN),
            a_wish("rm -rf /", request_id="r2"),
        )

    talk.do(swap)
    stale = cli("approve", seen)

    assert stale.code == 1
    assert "nobody asks this any more" in stale.stderr
    assert talk.payloads(execution) == []


def test_an_agent_that_runs_a_command_line_decides_nothing(cli: CommandLine, talk: Talk) -> None:
    _, execution = talk.begin()
    asked = talk.ask(execution, a_wish("make all"))
    inside = {"AGENTMON_EXECUTION_ID": execution.id, "AGENTMON_APPROVALS_AGENTS_MAY_DECIDE": "true"}

    tried = [
        cli("approve", asked, environ=inside),
        cli("deny", asked, environ=inside),
        cli("rules", "add", "allow", environ=inside),
        cli("settings", "approvals.agents_may_decide", "true", environ=inside),
    ]
    stranger = cli("deny", asked, environ={"AGENTMON_EXECUTION_ID": "of another place"})

    assert [one.code for one in tried] == [1] * 4
    assert all("an agent may not" in one.stderr for one in tried)
    assert stranger.code == 0


@pytest.mark.proof
def test_a_question_is_answered_by_number_label_or_words(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    choices = (AskChoice(key="t", label="test"), AskChoice(key="l", label="live", description="the real one"))
    question = AskQuestion(question="Which database?", choices=choices)
    several = AskQuestion(question="Which tables?", choices=choices, is_multiple=True)

    def ask(name: str, *questions: AskQuestion) -> str:
        return talk.ask(execution, a_wish(name, request_id=name, ask_kind=AskKind.QUESTION, questions=questions))

    listed_id = ask("1", question)
    listed = cli("inbox").stdout
    wrong = cli("answer", listed_id, "3")
    none = cli("answer", listed_id)
    cli("answer", listed_id, "2")
    cli("answer", ask("2", question), "--text", "neither")
    cli("answer", ask("3", several), "1", "live")
    both = cli("answer", ask("4", question, several), "test", "1,2")
    cli("answer", ask("5", question), "--answers", json.dumps({"Which database?": "live"}))

    assert f"#{number}" in listed
    assert "2 live: the real one" in listed
    assert (wrong.code, none.code, both.code) == (2, 2, 0)
    assert [one["answers"] for one in talk.payloads(execution)] == [  # type: ignore[index] # objects
        {"Which database?": "l"},
        {"Which database?": "neither"},
        {"Which tables?": ["t", "l"]},
        {"Which database?": "t", "Which tables?": ["t", "l"]},
        {"Which database?": "l"},
    ]


@pytest.mark.proof
def test_rules_are_added_tried_and_removed(cli: CommandLine, talk: Talk) -> None:
    _, execution = talk.begin()
    talk.ask(execution, a_wish("git log -1"))
    rule = cli("rules", "add", "allow", "--command", "git log", "--note", "reads only", "--json").document()
    cli("rules", "add", "deny", "--path", "**/.env", "--everywhere")

    plain = cli("rules", "try", "--command", "git log -3")
    compound = cli("rules", "try", "--command", "git log; rm -rf /", "--json").document()
    path = cli("rules", "try", "--tool", "Edit", "--path", "a/.env")
    history = cli("rules", "try", "--history", "--json").document()
    off = cli("rules", "disable", rule["id"])
    without = cli("rules", "try", "--command", "git log -3")
    listed = cli("rules").stdout
    removed = cli("rules", "remove", rule["id"][-8:])

    assert plain.stdout == "allow: the rule “allow any tool git log” fits\n"
    assert compound["decision"] == "ask"
    assert path.stdout == "deny: the rule “deny any tool **/.env” fits\n"
    verdicts = {one["request"]["approval"]["target"]: one["verdict"]["decision"] for one in history}
    assert verdicts["git log -1"] == "allow"
    assert off.stdout == f"off: allow any tool git log  {rule['id']}\n"
    assert without.stdout == "ask: no rule fits\n"
    assert "(allow, off)" in listed
    assert "everywhere" in listed
    assert removed.code == 0
    assert rule["id"] not in [one["id"] for one in cli("rules", "list", "--json").document()]
    assert cli("rules", "add", "allow", "--command", "a; b").code == 2
    assert cli("rules", "try").code == 2


@pytest.mark.proof
def test_an_agent_is_told_from_standard_input_and_steered(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    text = "eine Zeile\n" * 50_000

    told = cli("message", number, "-", standard_input=text)
    cli("interrupt", number)
    cli("switch", number, "--model", "opus", "--permission-mode", "plan")
    finished = cli("finish", number, "--json").document()
    nothing = cli("switch", number)
    never = cli("message", cli.add("no agent"), "hello")

    assert told.stdout == f"#{number}: message sent\n"
    assert talk.payloads(execution) == [{"text": text}, {}, {"model": "opus"}, {"permission_mode": "plan"}, {}]
    assert finished["task_number"] == int(number)
    assert nothing.code == 2
    assert never.code == 2
    assert "has no conversation to go on with" in never.stderr


def test_a_conversation_its_calls_and_its_events_are_shown(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()

    async def tell(place: Conversing) -> None:
        await place.tell(
            execution.id,
            MessageNews(message_ref="m1", role=MessageRole.ASSISTANT, text="I look\x1b[31m around."),
            ToolStartedNews(tool_ref="t", tool_name="Bash", type=OperationType.EXECUTE, target="ls"),
            ToolFinishedNews(tool_ref="t", status=OperationStatus.SUCCESS, duration_ms=1200),
        )
        await place.end(execution.id)

    talk.do(tell)
    shown = cli("conversation", number)
    document = cli("conversation", number, "--json").document()
    followed = [json.loads(line) for line in cli("conversation", number, "-f", "--json").stdout.splitlines()]
    calls = cli("operations", number)
    stream = [json.loads(line) for line in cli("events", number, "-f", "--json").stdout.splitlines()]
    chosen = cli("events", number, "--type", "tool_started").stdout.splitlines()

    assert "Agent  " in shown.stdout
    assert "\x1b" not in shown.stdout
    assert "✓ Bash: ls  1s" in shown.stdout
    assert [one["content"] for one in document["messages"]][-1] == "I look\x1b[31m around."
    assert [one["target"] for one in document["operations"]] == ["ls"]
    assert {one["kind"] for one in followed} == {"message", "operation"}
    assert "Bash: ls" in calls.stdout
    assert [one["type"] for one in stream if one["type"].startswith("tool")] == ["tool_started", "tool_finished"]
    assert len(chosen) == 1


def test_following_goes_on_until_the_run_is_over(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    following = cli.start("events", number, "-f", "--json", "--type", "message")
    try:

        async def tell(place: Conversing) -> None:
            await place.tell(execution.id, MessageNews(message_ref="m", role=MessageRole.ASSISTANT, text="late"))
            await place.end(execution.id)

        talk.do(tell)
        output, _ = following.communicate(timeout=DEADLINE_S)
    finally:
        following.kill()

    assert [json.loads(line)["payload"]["text"] for line in output.splitlines()] == ["late"]
    assert following.returncode == 0


class Following:
    """``conversation -f`` of a run, and the host that writes what it prints."""

    def __init__(self, cli: CommandLine, talk: Talk, number: str, execution: Execution, *arguments: str) -> None:
        self._talk = talk
        self._execution = execution
        self._path = cli.paths.execution_dir(execution.id) / "drafts.jsonl"
        self._log = DraftLog(str(self._path))
        self._moments = itertools.count()
        self._process = cli.start("conversation", number, "-f", *arguments)
        self.printed = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.__exit__(None, None, None)

    def write(self, text: str, ref: str = "m") -> None:
        self._log.add({"kind": "delta", "message_ref": ref, "text": text})
        self._log.write(float(next(self._moments)))

    def tell(self, *news: ConversationNews, goes_on: str = "") -> None:
        for one in news:
            if isinstance(one, MessageNews) and one.message_ref != goes_on:
                self._log.settle(self._talk.offsets[self._execution.id] + 10, one.message_ref)
        self._talk.do(lambda place: place.tell(self._execution.id, *news))

    def retry(self) -> None:
        with closing(sqlite3.connect(self._talk.cli.paths.database_path)) as connection, connection:
            connection.execute("UPDATE executions SET attempt = 1 WHERE id = ?", (self._execution.id,))
        self._log = DraftLog(str(self._path), attempt=1)

    def wait_for(self, words: str) -> None:
        while words.encode() not in self.printed:
            assert select.select([self._process.stdout], [], [], DEADLINE_S)[0], self.printed
            part = os.read(self._process.stdout.fileno(), 65536)
            assert part, self.printed
            self.printed += part

    def end(self) -> list[str]:
        """End the run, and return the lines that were printed."""
        self._talk.do(lambda place: place.end(self._execution.id))
        while part := os.read(self._process.stdout.fileno(), 65536):
            self.printed += part
        assert self._process.wait() == 0
        return self.printed.decode().splitlines()


def a_message(text: str, ref: str = "m", *, continues: bool = False) -> MessageNews:
    return MessageNews(message_ref=ref, role=MessageRole.ASSISTANT, text=text, continues=continues)


@pytest.mark.proof
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_is_followed_while_it_is_written(cli: CommandLine, talk: Talk, form: str) -> None:
    with Following(cli, talk, *talk.begin(), *(["--json"] if form == "json" else [])) as following:
        following.write("I look\nat the cl")
        following.wait_for("at the ")
        following.write("ock and ")
        following.wait_for("clock and ")
        following.tell(ToolStartedNews(tool_ref="t", tool_name="Bash", type=OperationType.EXECUTE, target="ls"))
        following.wait_for("ls")
        following.tell(a_message("I look\nat the clock and freeze it."))
        following.wait_for("freeze it.")
        printed = following.end()

    if form == "json":
        lines = [json.loads(line) for line in printed]
        drafts = [line["text"] for line in lines if line["kind"] == "draft"]
        assert drafts == ["I look\nat the ", "clock and "]
        (message,) = [line for line in lines if line["kind"] == "message"]
        assert message["content"] == "I look\nat the clock and freeze it."
        assert {line["message_ref"] for line in lines if line["kind"] == "draft"} == {message["message_ref"]}
    else:
        head, *rest = printed
        assert head.startswith("Agent  ")
        assert rest[:4] == ["  I look", "  at the clock and ", "  … Bash: ls", "  freeze it."]


@pytest.mark.proof
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_message_that_is_stored_shorter_than_it_was_written_is_printed(
    cli: CommandLine, talk: Talk, form: str
) -> None:
    with Following(cli, talk, *talk.begin(), *(["--json"] if form == "json" else [])) as following:
        following.write("All the thoughts, word by word, ")
        following.write("Then ", "n")
        following.wait_for("word by word")
        following.tell(a_message("Thoughts."), a_message("Then", "n"), goes_on="n")
        following.wait_for("Thoughts.")
        following.write("later ", "n")
        following.wait_for("later")
        following.tell(a_message("Next.", "o"), a_message("Over.", "p"))
        following.wait_for("Over.")
        following.tell(a_message("Then later on.", "n"), a_message("Last.", "q"))
        following.wait_for("Last.")
        printed = following.end()

    if form == "json":
        lines = [json.loads(line) for line in printed]
        told = [line["content"] for line in lines if line["kind"] == "message"]
        assert told == ["Thoughts.", "Next.", "Over.", "Then later on.", "Last."]
    else:
        told = ["Thoughts.", "Next.", "Over.", "on.", "Last."]
        assert [word for word in " ".join(printed).split() if word in told] == told


def test_a_message_that_is_stored_in_parts_is_printed_once(cli: CommandLine, talk: Talk) -> None:
    with Following(cli, talk, *talk.begin()) as following:
        following.write("The first part ")
        following.wait_for("The first part")
        following.tell(a_message("The first part is here, "), goes_on="m")
        following.write("is here, and the second ")
        following.wait_for("and the second")
        following.tell(a_message("and the second too.", continues=True))
        following.wait_for("too.")
        printed = following.end()

    assert printed[0].startswith("Agent  ")
    assert " ".join(printed[1:]).split() == ["The", "first", "part", "is", "here,", "and", "the", "second", "too."]


def test_the_next_try_is_followed_like_the_first_one(cli: CommandLine, talk: Talk) -> None:
    with Following(cli, talk, *talk.begin()) as following:
        following.write("Of the first try ")
        following.wait_for("Of the first try")
        following.retry()
        following.tell(a_message("Something before.", "n"))
        following.wait_for("Something before.")
        following.write("Of the second try ")
        following.wait_for("Of the second try")
        following.tell(a_message("Of the second try too."))
        following.wait_for("too.")
        printed = "\n".join(following.end())

    assert printed.count("Of the second try") == 1


@pytest.mark.proof
def test_messages_of_an_earlier_run_of_the_same_names_hold_back_none(cli: CommandLine, talk: Talk) -> None:
    _, first = talk.begin()
    talk.do(lambda place: place.tell(first.id, a_message("What an earlier run said at some length.")))
    talk.do(lambda place: place.end(first.id))
    number, second = talk.begin("resumed")
    with closing(sqlite3.connect(cli.paths.database_path)) as connection, connection:
        connection.execute("UPDATE executions SET session_id = ? WHERE id = ?", (first.session_id, second.id))
        connection.execute("UPDATE messages SET session_id = ? WHERE execution_id = ?", (first.session_id, second.id))
    with Following(cli, talk, number, second, "--session", str(first.session_id)) as following:
        following.wait_for("at some length.")
        following.write("This one ")
        following.wait_for("This one ")
        printed = following.end()

    assert [line for line in printed if "some length" in line] == ["  What an earlier run said at some length."]


def test_a_task_without_an_agent_says_that_nothing_was_said(cli: CommandLine) -> None:
    number = cli.add("no agent")

    assert "has had no conversation" in cli("conversation", number).stderr
    assert cli("conversation", number, "--json").document()["messages"] == []
    assert cli("operations", number, "--json").document() == []
    assert "has not run yet" in cli("events", number).stderr


@pytest.mark.proof
def test_sessions_are_listed_found_named_and_gone_on_with(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin("a very particular title")
    assert execution.session_id is not None

    async def end(place: Conversing) -> None:
        await place.tell(
            execution.id, MessageNews(message_ref="m", role=MessageRole.ASSISTANT, text="the zebra crossed")
        )
        await place.end(execution.id)

    live = cli("sessions", "--live", "--json").document()
    talk.do(end)
    found = cli("sessions", "search", "zebra", "--json").document()
    renamed = cli("sessions", "rename", execution.session_id, "stripes")
    listed = cli("sessions").stdout
    shown = cli("sessions", "show", execution.session_id)
    resumed = cli("sessions", "resume", execution.session_id, "-", "--json", standard_input="and now?").document()
    cli("stop", number)
    forked = cli("run", number, "--fork", "--message", "otherwise", "--json").document()
    cli("stop", number)
    restarted = cli("sessions", "restart", execution.session_id, "--json").document()
    cli("stop", number)
    handed = ("sessions", "restart", execution.session_id, "--message", "-", "--json")
    handed_over = cli(*handed, standard_input="go on\n").document()
    cli("stop", number)

    assert execution.session_id in [one["session"]["id"] for one in live]
    assert [one["session"]["id"] for one in found] == [execution.session_id]
    assert "zebra" in found[0]["match"]
    assert renamed.stdout == f"{execution.session_id} stripes\n"
    assert "stripes" in listed
    assert f"ref-{execution.id}" in shown.stdout
    assert (resumed["session_id"], resumed["prompt"]) == (execution.session_id, "and now?")
    assert (forked["prompt"], forked["parent_execution_id"] is not None) == ("otherwise", True)
    assert restarted["parent_execution_id"] is None
    assert "zebra" not in restarted["prompt"]
    assert handed_over["session_id"] not in {execution.session_id, restarted["session_id"]}
    assert "the zebra crossed" in handed_over["prompt"]
    assert handed_over["prompt"].endswith("go on")
    assert "no conversation has these words" in cli("sessions", "search", "giraffe").stderr
    assert cli("sessions", "show", "zzz").code == 2
    assert cli("run", number, "--resume").code == 2
    assert cli("run", number, "--resume", "--fork", "--message", "x").code == 2


def test_the_trail_tells_who_decided_what(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    cli("approve", talk.ask(execution, a_wish("make all")))
    cli("message", number, "faster")

    trail = cli("audit", number).stdout

    assert "agentmon  noted that a decision is needed: Bash: make all" in trail
    assert "You       allowed: Bash: make all" in trail
    assert "You       told the agent something" in trail


@pytest.mark.proof
def test_what_is_sent_again_under_its_key_is_told_again_and_done_once(cli: CommandLine, talk: Talk) -> None:
    number, execution = talk.begin()
    talk.ask(execution, a_wish("make once"))

    decided = [cli("approve", f"#{number}", "--yes", "--key", "a", "--json") for _ in range(2)]
    said = [cli("message", number, "more", "--key", "m", "--json") for _ in range(2)]
    other = cli("message", number, "less", "--key", "m")
    stopped = [cli("stop", number, "--key", "s", "--json") for _ in range(2)]
    several = cli("stop", number, "9999", "--key", "t")

    for first, again in (decided, said, stopped):
        assert (first.code, again.code) == (0, 0)
        assert again.document() == first.document()
    assert (other.code, several.code) == (1, 2)
    assert "another request" in other.stderr
    assert [one.get("decision", one.get("text", "")) for one in talk.payloads(execution)] == ["allow", "more", ""]  # type: ignore[attr-defined] # objects


@pytest.mark.proof
def test_a_request_of_an_own_screen_says_what_is_typed(talk: Talk) -> None:
    number, execution = talk.begin()
    approval_id = talk.ask(execution, a_typed_wish())

    told = talk.cli("inbox").stdout
    listed = json.loads(talk.cli("inbox", "--json").stdout)
    document = next(one for one in listed if one["approval"]["id"] == approval_id)

    assert f"agentmon approve {approval_id}  types 1 into its terminal: Yes" in told
    assert f"agentmon deny {approval_id}  types 3 into its terminal: No" in told
    choices = document["approval"]["questions"][0]["choices"]
    assert [(one["key"], one["label"], one["description"]) for one in choices] == [
        ("allow", "Yes", "types 1"),
        ("deny", "No", "types 3"),
    ]
    assert talk.cli("approve", approval_id, "--session").code != 0
    assert talk.cli("deny", approval_id, "--interrupt").code != 0
    decided = json.loads(talk.cli("approve", approval_id, "--json").stdout)
    assert decided["status"] == "allowed"
    assert approval_id not in talk.cli("inbox").stdout
    assert [payload["decision"] for payload in talk.payloads(execution)] == ["allow"]  # type: ignore[index] # JSON
    assert talk.cli("deny", f"#{number}").code != 0


def a_budget(spent: int = 3) -> AskNews:
    budget = Budget(
        id=BudgetId("b1"),
        scope=BudgetScope.ALL,
        period=BudgetPeriod.DAY,
        limit=2 * 10**9,
        created_at=datetime(2026, 5, 4, tzinfo=UTC),
    )
    return budget_ask(BudgetState(budget=budget, use=BudgetUse(spent=spent * 10**9), span=None))


@pytest.mark.proof
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["approve"], "allowed"),
        (["deny"], "denied"),
        (["answer", "once"], "allowed"),
        (["answer", "3"], "denied"),
        (["answer", "raise"], "answered"),
        (["answer", "--text", "7.50"], "answered"),
    ],
)
def test_a_spent_budget_is_decided_by_every_verb(cli: CommandLine, talk: Talk, words: list[str], status: str) -> None:
    _, execution = talk.begin()
    asked = talk.ask(execution, a_budget())
    verb, *more = words

    listed = cli("inbox").stdout
    decided = cli(verb, asked, *more, "--json").document()

    assert "Budget spent: everything, $3.00 of $2.00 a day" in listed
    assert f"agentmon answer {asked} raise, once or stop" in listed
    assert (decided["ask_kind"], decided["status"]) == ("budget", status)
    assert [one for one in talk.payloads(execution) if one] == []


@pytest.mark.proof
def test_a_limit_that_is_spent_already_is_refused_with_what_helps(cli: CommandLine, talk: Talk) -> None:
    _, execution = talk.begin()
    asked = talk.ask(execution, a_budget())

    refused = cli("answer", asked, "--text", "2.50")

    assert refused.code == 2
    assert "larger amount" in refused.stderr
    assert cli("deny", asked).code == 0
