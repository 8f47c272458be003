from __future__ import annotations

import asyncio
import json
import os
import threading
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.bootstrap import open_services
from agentmon.domain.notifications import Notification, NotificationKind
from agentmon.settings import NotificationSettings
from agentmon.store.audit import AuditRepository
from agentmon.worker import notification_channels, notifying
from agentmon.worker.notification_channels import ChannelError, tell_command, tell_desktop, tell_webhook
from agentmon.worker.notifying import Notifier
from tests.live_home import add_command, run_to_end
from tests.store.conversation_place import an_ending, opened_place
from tests.store.queue_place import NOON
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from datetime import datetime

    from tests.live_home import LiveHome
    from tests.store.conversation_place import ConversationPlace

TOLD = Notification(
    kind=NotificationKind.DONE, title="#1 Mend: done", text='say "hi" $(touch x)', at=NOON, event_id=7, task_number=1
)


class _Noon:
    def now(self) -> datetime:
        return NOON


async def _tell_all(notifier: Notifier) -> None:
    while True:
        await notifier.wait()
        await notifier.tell_next()


@asynccontextmanager
async def _running(notifier: Notifier) -> AsyncIterator[None]:
    running = asyncio.create_task(_tell_all(notifier))
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


def _notifier(place: ConversationPlace, folder: Path) -> Notifier:
    return Notifier(audit=AuditRepository(place.database), place_file=folder / "notified.json", clock=_Noon())


def _settings(told: Path, **more: str) -> NotificationSettings:
    chosen = {"done": "toast command", "failed": "none", "command": f"cat >> {told}", **more}
    return NotificationSettings(**chosen)


def _titles(told: Path) -> list[str]:
    return [json.loads(line)["title"] for line in told.read_text().splitlines()] if told.exists() else []


async def test_what_happens_from_then_on_is_told_once_whoever_the_worker_is(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with opened_place(tmp_path) as place:
        before = await place.begin()
        await place.tell(before.id, ending=an_ending())
        first = _notifier(place, tmp_path)
        async with _running(first):
            await first.look(_settings(told))
            execution = await place.begin()
            await place.tell(execution.id, ending=an_ending())
            await first.look(_settings(told))

            async def is_told() -> bool:
                return len(_titles(told)) == 1

            await until(is_told)
        second = _notifier(place, tmp_path)
        async with _running(second):
            await second.look(_settings(told))
            another = await place.begin()
            await place.tell(another.id, ending=an_ending())
            await second.look(_settings(told))

            async def is_told_of_both() -> bool:
                return len(_titles(told)) == 2

            await until(is_told_of_both)
    assert _titles(told) == ["#2 a task: done", "#3 a task: done"]


async def test_one_look_tells_all_that_is_new_however_much_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifying, "_MOST_LINES", 1)
    told = tmp_path / "told"
    async with opened_place(tmp_path) as place:
        notifier = _notifier(place, tmp_path)
        async with _running(notifier):
            await notifier.look(_settings(told))
            for _ in range(3):
                execution = await place.begin()
                await place.tell(execution.id, ending=an_ending())
            await notifier.look(_settings(told))

            async def are_told() -> bool:
                return len(_titles(told)) == 3

            await until(are_told)
    assert _titles(told) == ["#1 a task: done", "#2 a task: done", "#3 a task: done"]


async def test_what_happened_while_nothing_was_set_up_is_not_told_later(tmp_path: Path) -> None:
    told = tmp_path / "told"
    async with opened_place(tmp_path) as place:
        notifier = _notifier(place, tmp_path)
        async with _running(notifier):
            await notifier.look(_settings(told))
            await notifier.look(_settings(told, done="toast"))
            execution = await place.begin()
            await place.tell(execution.id, ending=an_ending())
            await notifier.look(_settings(told, done="toast"))
            await notifier.look(_settings(told))
            another = await place.begin()
            await place.tell(another.id, ending=an_ending())
            await notifier.look(_settings(told))

            async def is_told() -> bool:
                return bool(_titles(told))

            await until(is_told)
    assert _titles(told) == ["#2 a task: done"]


async def test_in_quiet_hours_nothing_is_told_then_or_later(tmp_path: Path) -> None:
    told = tmp_path / "told"
    local = NOON.astimezone()
    quiet = f"{local:%H:%M}-{local.hour:02d}:59" if local.minute < 59 else "00:00-23:59"
    async with opened_place(tmp_path) as place:
        notifier = _notifier(place, tmp_path)
        async with _running(notifier):
            await notifier.look(_settings(told, quiet_hours=quiet))
            execution = await place.begin()
            await place.tell(execution.id, ending=an_ending())
            await notifier.look(_settings(told, quiet_hours=quiet))
            another = await place.begin()
            await place.tell(another.id, ending=an_ending())
            await notifier.look(_settings(told))

            async def is_told() -> bool:
                return bool(_titles(told))

            await until(is_told)
    assert _titles(told) == ["#2 a task: done"]


async def test_a_command_that_fails_is_told_in_the_log_and_the_next_one_is_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told = tmp_path / "told"
    settings = _settings(told, command=f"echo tried >> {told}; echo bad luck >&2; exit 3")
    async with opened_place(tmp_path) as place:
        notifier = _notifier(place, tmp_path)
        async with _running(notifier):
            await notifier.look(settings)
            for number in (1, 2):
                execution = await place.begin()
                await place.tell(execution.id, ending=an_ending())
                await notifier.look(settings)

                async def is_tried(times: int = number) -> bool:
                    return told.exists() and len(told.read_text().splitlines()) == times

                await until(is_tried)

            async def is_logged() -> bool:
                return "bad luck" in caplog.text

            await until(is_logged)
    assert caplog.text.count("it ended with 3: bad luck") == 1


async def test_a_worker_tells_by_itself_what_its_runs_did(live_home: LiveHome) -> None:
    told = live_home.folder / "told"
    async with open_services(live_home.paths) as services:
        workspace = await services.workspaces.open(live_home.project)
        await services.settings.set("notifications.command", f"cat >> {told}", actor=services.actor)
        await services.settings.set("notifications.failed", "command", actor=services.actor)
        task = await add_command(services, workspace, "sh", "-c", "exit 4")
        await run_to_end(services, task)

        async def is_told() -> bool:
            return bool(_titles(told))

        await until(is_told)
    assert _titles(told)[0].endswith(": failed (exit 4)")


# Channels


async def test_a_command_gets_json_on_its_standard_input_and_nothing_in_its_words(tmp_path: Path) -> None:
    await tell_command(f"cat > {tmp_path}/told", TOLD)

    assert json.loads((tmp_path / "told").read_text()) == TOLD.as_document()


async def test_a_command_that_does_not_read_its_input_is_no_failure() -> None:
    await tell_command("true", TOLD)


async def test_of_a_command_that_complains_without_end_the_last_words_are_told() -> None:
    with pytest.raises(ChannelError, match=r"^it ended with 5: the end$"):
        await tell_command("head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo the end >&2; exit 5", TOLD)


async def test_a_command_that_takes_too_long_is_ended_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notification_channels, "COMMAND_TIMEOUT_S", 0.3)

    with pytest.raises(ChannelError, match="took longer"):
        await tell_command(f"sleep 600 & echo $! > {tmp_path}/pid; wait", TOLD)

    pid = int((tmp_path / "pid").read_text())

    async def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return ") Z " in Path(f"/proc/{pid}/stat").read_text()

    await until(is_gone)


async def test_without_a_desktop_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ChannelError, match=r"there is no (notify-send|osascript) here"):
        await tell_desktop(TOLD)


async def test_the_desktop_gets_title_and_text_as_they_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    program.chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    await tell_desktop(TOLD)

    assert (tmp_path / "told").read_text().splitlines()[-2:] == [TOLD.title, TOLD.text]


@contextmanager
def _hook(*statuses: int) -> Iterator[tuple[str, list[dict[str, object]]]]:
    told: list[dict[str, object]] = []
    waiting = list(statuses)

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(waiting.pop(0))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as it is called there
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/hook/s3cret", told
        finally:
            server.shutdown()
            thread.join()


async def test_a_webhook_gets_json_and_is_tried_again_when_it_errs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_channels, "_WEBHOOK_PAUSES_S", (0.0, 0.0))
    with _hook(500, 204) as (url, told):
        await tell_webhook(url, TOLD)

    assert told == [TOLD.as_document()] * 2


async def test_a_webhook_that_refuses_is_asked_once_and_its_path_stays_a_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notification_channels, "_WEBHOOK_PAUSES_S", (0.0, 0.0))
    with _hook(403) as (url, told), pytest.raises(ChannelError) as caught:
        await tell_webhook(url, TOLD)

    assert len(told) == 1
    assert str(caught.value) == "the webhook at 127.0.0.1 was not reached: it answered 403"


async def test_a_webhook_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notification_channels, "_WEBHOOK_PAUSES_S", (0.0, 0.0))
    with _hook() as (url, _):
        pass

    with pytest.raises(ChannelError, match="Connection refused"):
        await tell_webhook(url, TOLD)
