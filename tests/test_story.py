"""The story that agentmon exists for, from the first key to the record, inside a tmux of the person's own."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.domain.execution_status import ExecutionStatus
from agentmon.domain.task_status import TaskStatus
from tests.live_home import add_command
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.waiting import wait_for

if TYPE_CHECKING:
    from tests.live_home import LiveHome

SCRIPT = "sh -c 'echo hello-from-inside; read answer; echo got-$answer; sleep 300'"


@dataclass(frozen=True)
class Person:
    """Presses keys and waits for what they bring up."""

    tmux: RawTmux

    def press(self, *keys: str, until: str) -> None:
        assert until not in self.tmux.screen("person:"), f"{until} is there before {keys}"
        self.tmux("send-keys", "-t", "person:", *keys)
        self.see(until)

    def type(self, text: str, *, until: str) -> None:
        self.press("-l", text, until=until)

    def see(self, text: str) -> None:
        try:
            wait_for(lambda: text in self.tmux.screen("person:"))
        except AssertionError as error:
            error.add_note(self.tmux.screen("person:"))
            raise


async def test_a_card_is_made_run_entered_left_stopped_and_the_rest_goes_on_without_the_app(
    live_home: LiveHome,
) -> None:
    with short_folder() as folder:
        tmux = RawTmux(folder / "s", environ=dict(os.environ))
        app = [sys.executable, "-P", "-m", "agentmon", str(live_home.project)]
        tmux("new-session", "-d", "-s", "person", "-x", "120", "-y", "40", "--", *app)
        person = Person(tmux)
        person.see("No tasks yet")

        person.press("n", until="New task")
        person.type("Say hello", until="Say hello")
        tmux("send-keys", "-t", "person:", "Tab", "Tab")
        person.type(SCRIPT, until="got-$answer")
        person.press("C-r", until="› hello-from-inside")

        person.press("a", until="back to agentmon")
        person.type("forty-two", until="forty-two")
        person.press("Enter", until="got-forty-two")
        person.press("C-q", until="In progress 1")

        person.press("x", until="cancelled")
        async with open_services(live_home.paths) as services:
            workspace = await services.workspaces.open(live_home.project)
            await add_command(services, workspace, "sh", "-c", "sleep 3; seq 5; exit 3", title="Outlive the app")
        person.see("Outlive the app")
        tmux("send-keys", "-t", "person:", "j")
        person.press("r", until="1/4 running")
        tmux("send-keys", "-t", "person:", "q")
        wait_for(lambda: tmux("list-sessions", check=False) == "")

    async with open_services(live_home.paths) as services:
        stopped = await services.tasks.by_number(workspace, 1)
        first = await services.executions.newest(stopped.id)
        task = await services.tasks.by_number(workspace, 2)
        execution = await services.executions.newest(task.id)
        assert first is not None
        assert execution is not None
        was_live = execution.status.is_live
        ended = await services.queue.wait(execution.id)

    assert was_live
    assert first.status is ExecutionStatus.CANCELLED
    assert services.executions.log_path(first).read_bytes().endswith(b"got-forty-two\n")
    assert stopped.status is TaskStatus.TODO
    assert (ended.status, ended.exit_code) == (ExecutionStatus.FAILED, 3)
    assert services.executions.log_path(ended).read_bytes() == b"1\n2\n3\n4\n5\n"
