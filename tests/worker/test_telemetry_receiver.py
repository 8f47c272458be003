from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from agentmon.domain.conversation import SessionNews
from agentmon.store.told_usage import ToldUsageRepository
from agentmon.worker.telemetry_receiver import MAX_BODY_BYTES, MAX_CONNECTIONS, TelemetryReceiver
from tests.store.conversation_place import ConversationPlace, an_ending, opened_place
from tests.usage.histories import SAMPLES
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping
    from pathlib import Path

    from agentmon.domain.ids import ExecutionId

CLAUDE_REF = "30e3cd76-ff2b-4f76-8755-eab482216eb1"


def _logs() -> bytes:
    lines = (SAMPLES / "captured" / "otlp_claude.jsonl").read_text().splitlines()
    sent = [json.loads(line) for line in lines]
    return json.dumps([one["body"] for one in sent if one["path"] == "/v1/logs"][-1]).encode()


@dataclass(kw_only=True)
class Hearing:
    place: ConversationPlace
    receiver: TelemetryReceiver
    execution_id: ExecutionId

    def headers(self) -> dict[str, str]:
        target = self.receiver.target_of(self.execution_id)
        assert target is not None
        return {"Authorization": f"Bearer {target.token}", "Content-Type": "application/json"}

    @property
    def port(self) -> int:
        target = self.receiver.target_of(self.execution_id)
        assert target is not None
        port = urlsplit(target.endpoint).port
        assert port is not None
        return port

    async def send(
        self,
        body: bytes | Iterable[bytes],
        *,
        path: str = "/v1/logs",
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> int:
        def ask() -> int:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                connection.request(
                    method, path, body=body, headers=dict(self.headers() if headers is None else headers)
                )
                return connection.getresponse().status
            finally:
                connection.close()

        return await asyncio.to_thread(ask)

    def rows(self) -> list[dict[str, object]]:
        return self.place.rows("SELECT * FROM llm_interactions ORDER BY at_ms")


@asynccontextmanager
async def _hearing(folder: Path) -> AsyncIterator[Hearing]:
    async with opened_place(folder) as place:
        execution = await place.begin()
        receiver = TelemetryReceiver(place_file=folder / "telemetry.json", told=ToldUsageRepository(place.database))
        await receiver.open()
        try:
            yield Hearing(place=place, receiver=receiver, execution_id=execution.id)
        finally:
            await receiver.close()


async def test_answers_come_into_the_session_of_the_execution_as_stand_ins(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        assert await hearing.send(_logs()) == 200
        assert await hearing.send(_logs()) == 200

        first, second = hearing.rows()
        assert (first["key"], first["is_provisional"]) == ("otel:req_011852c3f5ce8714ee88f288", 1)
        assert first["execution_id"] == second["execution_id"] == hearing.execution_id
        (session,) = hearing.place.rows("SELECT * FROM sessions")
        assert session["session_ref"] == CLAUDE_REF
        assert session["total_tokens"] == sum(
            int(str(row[name]))
            for row in (first, second)
            for name in (
                *("prompt_tokens", "cache_read_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens"),
                "response_tokens",
            )
        )


async def test_packed_and_chunked_messages_are_read(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        packed = gzip.compress(_logs())
        headers = hearing.headers() | {"Content-Encoding": "gzip"}

        assert await hearing.send(iter([packed[:100], packed[100:]]), headers=headers) == 200

        assert len(hearing.rows()) == 2


async def test_answers_of_another_conversation_are_left_to_its_file(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        await hearing.place.tell(hearing.execution_id, SessionNews(session_ref="another"))

        assert await hearing.send(_logs()) == 200

        assert hearing.rows() == []


async def test_what_comes_after_the_end_of_the_execution_is_left_to_the_file(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        await hearing.place.tell(hearing.execution_id, ending=an_ending())

        assert await hearing.send(_logs()) == 200

        assert hearing.rows() == []


async def test_who_was_not_started_by_agentmon_is_refused(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        right = hearing.headers()["Authorization"]
        other_id = "0" * 8 + right.removeprefix("Bearer ")[8:]

        for wrong in ("", "Bearer", right[:-1], right[:-1] + ("0" if right[-1] != "0" else "1"), f"Bearer {other_id}"):
            assert await hearing.send(_logs(), headers={"Authorization": wrong}) == 401
        assert await hearing.send(_logs(), headers={}) == 401

        assert hearing.rows() == []


async def test_metrics_and_traces_are_dropped_and_anything_else_is_refused(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        assert await hearing.send(b"{}", path="/v1/metrics") == 200
        assert await hearing.send(b"\x00\xff", path="/v1/traces") == 200
        assert await hearing.send(b"{}", path="/") == 404
        assert await hearing.send(b"", method="GET") == 405
        assert await hearing.send(b"{}", headers=hearing.headers() | {"Content-Encoding": "br"}) == 415


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN'])
async def test_a_message_that_is_no_json_is_refused(tmp_path: Path, body: bytes) -> None:
    async with _hearing(tmp_path) as hearing:
        assert await hearing.send(body) == 400
        assert await hearing.send(b"[1]") == 200


async def test_a_message_that_is_too_large_is_refused_packed_or_not(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        large = b'{"a":"' + b"x" * MAX_BODY_BYTES + b'"}'

        assert await hearing.send(gzip.compress(large), headers=hearing.headers() | {"Content-Encoding": "gzip"}) == 413
        assert (
            await hearing.send(gzip.compress(b"{}")[:-3], headers=hearing.headers() | {"Content-Encoding": "gzip"})
            == 400
        )
        try:
            assert await hearing.send(large) == 413
        except OSError:
            # The connection was closed while the rest was still being sent.
            assert await hearing.send(b"{}") == 200


async def test_one_connection_carries_many_messages_and_garbage_ends_only_its_own(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:

        def ask() -> list[int]:
            with socket.create_connection(("127.0.0.1", hearing.port), timeout=10) as garbage:
                garbage.sendall(b"\x16\x03\x01 no http\r\n\r\n")
                garbage.recv(1000)
                connection = http.client.HTTPConnection("127.0.0.1", hearing.port, timeout=10)
                statuses = []
                for _ in range(3):
                    connection.request("POST", "/v1/logs", body=_logs(), headers=hearing.headers())
                    response = connection.getresponse()
                    response.read()
                    statuses.append(response.status)
                connection.close()
            return statuses

        assert await asyncio.to_thread(ask) == [200, 200, 200]


async def test_who_asks_for_the_head_alone_gets_no_body(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with _hearing(tmp_path) as hearing:

        def ask() -> bytes:
            with socket.create_connection(("127.0.0.1", hearing.port), timeout=10) as asking:
                asking.sendall(b"HEAD /v1/logs HTTP/1.1\r\nHost: here\r\n\r\n")
                return asking.recv(1000)

        assert await asyncio.to_thread(ask) == b""
        assert await hearing.send(_logs()) == 200
    assert not caplog.records


async def test_the_next_worker_hears_what_this_one_started(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        port, headers = hearing.port, hearing.headers()
        await hearing.receiver.close()
        assert hearing.receiver.target_of(hearing.execution_id) is None

        await hearing.receiver.open()

        assert hearing.port == port
        assert await hearing.send(_logs(), headers=headers) == 200
        assert len(hearing.rows()) == 2
    assert (tmp_path / "telemetry.json").stat().st_mode & 0o777 == 0o600


async def test_a_port_that_somebody_else_has_taken_is_given_up(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        port = hearing.port
        await hearing.receiver.close()
        with socket.create_server(("127.0.0.1", port)):
            await hearing.receiver.open()

        assert hearing.port != port
        assert await hearing.send(b"{}") == 200


async def test_connections_by_which_nobody_known_speaks_make_room(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as place:
        known = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
        await asyncio.to_thread(known.request, "POST", "/v1/metrics", b"{}", place.headers())
        answer = await asyncio.to_thread(known.getresponse)
        await asyncio.to_thread(answer.read)
        idle = [await asyncio.open_connection("127.0.0.1", place.port) for _ in range(MAX_CONNECTIONS + 12)]

        status = await place.send(_logs())
        await asyncio.to_thread(known.request, "POST", "/v1/metrics", b"{}", place.headers())
        again = (await asyncio.to_thread(known.getresponse)).status

        assert (answer.status, status, again) == (200, 200, 200)
        assert await asyncio.wait_for(idle[0][0].read(), 10) == b""
        for _, writer in idle:
            writer.close()
        known.close()


async def test_closing_ends_open_connections(tmp_path: Path) -> None:
    async with _hearing(tmp_path) as hearing:
        reader, writer = await asyncio.open_connection("127.0.0.1", hearing.port)
        writer.write(b"POST /v1/logs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab")
        await writer.drain()

        async def is_taken() -> bool:
            return len(hearing.receiver._connections) == 1

        await until(is_taken)

        await hearing.receiver.close()

        # A connection that is closed with bytes that nobody has read is reset (source: RFC 2525, section 2.17).
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
