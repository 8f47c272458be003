"""Takes the telemetry of agents that agentmon started, on 127.0.0.1 and from them alone.

It only makes costs appear earlier: what it tells stands in until the agent's own file tells the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import logging
import re
import secrets
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agentmon.domain.conversation import UsageNews
from agentmon.domain.errors import AgentmonError
from agentmon.domain.ids import ExecutionId
from agentmon.runners.telemetry_launch import TelemetryTarget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import h11

    from agentmon.store.told_usage import ToldUsageRepository
    from agentmon.usage.telemetry import TelemetryAnswer

_log = logging.getLogger(__name__)

HOST: Final = "127.0.0.1"
MAX_BODY_BYTES: Final = 1_048_576
"""Of one message, as it comes and unpacked."""
MAX_CONNECTIONS: Final = 128
_IDLE_S: Final = 60.0
_READ_BYTES: Final = 65_536
_LOGS: Final = b"/v1/logs"
_DROPPED: Final = (b"/v1/metrics", b"/v1/traces")
_TOKEN: Final = re.compile(rb"^bearer ([0-9a-f-]{36})\.([0-9a-f]{64})$", re.IGNORECASE)
_GZIP_WINDOW: Final = zlib.MAX_WBITS | 16
_MAX_PORT: Final = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """What the next worker needs to go on hearing agents that were started by this one."""

    port: int
    secret: str


class TelemetryReceiver:
    """A small server for OTLP over HTTP with JSON; it runs between ``open`` and ``close``.

    Args:
        place_file: Keeps port and secret from one worker to the next.
        told: Writes the answers.
    """

    def __init__(self, *, place_file: Path, told: ToldUsageRepository) -> None:
        self._place_file = place_file
        self._told = told
        self._place: _Place | None = None
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], bool] = {}
        """By their age, and whether a message of a known execution has come by each."""

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    async def open(self) -> None:
        """Listen, at the port of the worker before where that is free; idempotent.

        Raises:
            OSError: No port can be listened at, or the place cannot be written.
        """
        if self._server is not None:
            return
        before = await asyncio.to_thread(_read_place, self._place_file)
        try:
            server = await asyncio.start_server(self._accept, HOST, before.port if before is not None else 0)
        except OSError:
            if before is None:
                raise
            server = await asyncio.start_server(self._accept, HOST, 0)
        port = int(server.sockets[0].getsockname()[1])
        place = _Place(port=port, secret=secrets.token_hex(32) if before is None else before.secret)
        if place != before:
            try:
                await asyncio.to_thread(_write_place, self._place_file, place)
            except OSError:
                server.close()
                raise
        self._server, self._place = server, place

    async def close(self) -> None:
        """Stop listening and end all connections; idempotent."""
        if self._server is None:
            return
        self._server.close()
        self._server = self._place = None
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def target_of(self, execution_id: ExecutionId) -> TelemetryTarget | None:
        """Return where the agent of that execution is to send its telemetry; None while nobody listens."""
        if self._place is None:
            return None
        token = f"{execution_id}.{_proof(self._place.secret, execution_id)}"
        return TelemetryTarget(endpoint=f"http://{HOST}:{self._place.port}", token=token)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None or not self._make_room():
            writer.close()
            return
        self._connections[task] = False
        try:
            await self._serve(reader, writer)
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._connections.pop(task, None)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    def _make_room(self) -> bool:
        """Return whether one more fits, once the oldest by which nobody known has spoken has ended where it has to."""
        if len(self._connections) < MAX_CONNECTIONS:
            return True
        unknown = next((one for one, is_known in self._connections.items() if not is_known), None)
        if unknown is None:
            return False
        del self._connections[unknown]
        unknown.cancel()
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        import h11  # noqa: PLC0415 - seldom wanted

        connection = h11.Connection(h11.SERVER)
        while True:
            try:
                request, body = await _next_request(connection, reader, self._is_known)
                status = await self._answer(request, body) if request is not None else None
            except _TooLargeError:
                status = 413
            except h11.RemoteProtocolError as error:
                status = error.error_status_hint
            if status is None:
                return
            try:
                writer.write(_response(connection, status))
            except h11.LocalProtocolError:
                # It asked with HEAD, which no agent does, and must not get a body.
                return
            await writer.drain()
            if {connection.our_state, connection.their_state} != {h11.DONE}:
                return
            connection.start_next_cycle()

    async def _answer(self, request: h11.Request, body: bytes) -> int:
        headers = dict(request.headers)
        execution_id = self._execution_of(headers.get(b"authorization", b""))
        if execution_id is None:
            return 401
        task = asyncio.current_task()
        if task in self._connections:
            self._connections[task] = True
        path = bytes(request.target).partition(b"?")[0]
        if path in _DROPPED:
            return 200
        if path != _LOGS:
            return 404
        if request.method != b"POST":
            return 405
        encoding = headers.get(b"content-encoding", b"identity").lower()
        if encoding not in (b"identity", b"gzip"):
            return 415
        try:
            message = json.loads(_unpacked(body) if encoding == b"gzip" else body)
        except (ValueError, RecursionError, zlib.error):
            return 400
        if isinstance(message, dict):
            await self._take(execution_id, message)
        return 200

    def _is_known(self, request: h11.Request) -> bool:
        return self._execution_of(dict(request.headers).get(b"authorization", b"")) is not None

    def _execution_of(self, authorization: bytes) -> ExecutionId | None:
        found = _TOKEN.match(authorization.replace(b"%20", b" "))
        if found is None or self._place is None:
            return None
        execution_id = ExecutionId(found[1].decode())
        proof = _proof(self._place.secret, execution_id)
        return execution_id if hmac.compare_digest(proof, found[2].decode().lower()) else None

    async def _take(self, execution_id: ExecutionId, message: dict[str, object]) -> None:
        from agentmon.usage.telemetry import answers_in  # noqa: PLC0415 - seldom wanted

        by_conversation: dict[str, list[TelemetryAnswer]] = {}
        for answer in answers_in(message):
            by_conversation.setdefault(answer.conversation_ref, []).append(answer)
        for ref, answers in by_conversation.items():
            told = [(answer.at_ms, _news_of(answer)) for answer in answers]
            try:
                await self._told.record(execution_id, ref, told)
            except AgentmonError as error:
                # The agent's file tells it again.
                _log.warning("telemetry of execution %s was not taken: %s", execution_id, error)


class _TooLargeError(Exception):
    """A message is larger than ``MAX_BODY_BYTES``."""


async def _next_request(
    connection: h11.Connection, reader: asyncio.StreamReader, is_known: Callable[[h11.Request], bool]
) -> tuple[h11.Request | None, bytes]:
    """Return the next request with its body; None when the other side has closed the connection.

    The body of a request that is not known is read and dropped.
    """
    import h11  # noqa: PLC0415 - seldom wanted

    request: h11.Request | None = None
    body, size, is_kept = bytearray(), 0, False
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            connection.receive_data(await asyncio.wait_for(reader.read(_READ_BYTES), _IDLE_S))
        elif isinstance(event, h11.Request):
            request, is_kept = event, is_known(event)
        elif isinstance(event, h11.Data):
            size += len(event.data)
            if size > MAX_BODY_BYTES:
                raise _TooLargeError
            if is_kept:
                body += event.data
        elif isinstance(event, h11.EndOfMessage):
            return request, bytes(body)
        else:
            return None, b""


def _response(connection: h11.Connection, status: int) -> bytes:
    import h11  # noqa: PLC0415 - seldom wanted

    body = b"{}"
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    sent = [
        connection.send(h11.Response(status_code=status, headers=headers)),
        connection.send(h11.Data(data=body)),
        connection.send(h11.EndOfMessage()),
    ]
    return b"".join(part for part in sent if part)


def _unpacked(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    unpacked = unpacker.decompress(body, MAX_BODY_BYTES)
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise _TooLargeError if unpacker.unconsumed_tail else zlib.error("the message is cut off")
    return unpacked


def _news_of(answer: TelemetryAnswer) -> UsageNews:
    return UsageNews(
        key=answer.key,
        model=answer.model,
        provider=answer.provider,
        prompt_tokens=answer.prompt_tokens,
        cache_read_tokens=answer.cache_read_tokens,
        cache_write_5m_tokens=answer.cache_write_5m_tokens,
        cache_write_1h_tokens=answer.cache_write_1h_tokens,
        response_tokens=answer.response_tokens,
        reasoning_tokens=answer.reasoning_tokens,
        latency_ms=answer.latency_ms,
        is_key_provisional=True,
        confidence=answer.confidence,
    )


def _proof(secret: str, execution_id: str) -> str:
    return hmac.new(secret.encode(), execution_id.encode(), hashlib.sha256).hexdigest()


def _read_place(file: Path) -> _Place | None:
    try:
        written = json.loads(file.read_text(encoding="utf-8"))
        port, secret = int(written["port"]), str(written["secret"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return _Place(port=port, secret=secret) if 0 < port <= _MAX_PORT and secret else None


def _write_place(file: Path, place: _Place) -> None:
    new = file.with_name(f".{file.name}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_text(json.dumps({"port": place.port, "secret": place.secret}), encoding="utf-8")
    new.replace(file)
