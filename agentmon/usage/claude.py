"""Billed answers out of a transcript of Claude Code, ``projects/<folder>/<session>.jsonl`` (1.0 to 2.1.332).

An answer has one line for each part of its content, all with its id and its usage; older releases wrote the usage
down before the size of the answer was known, so that the largest counts.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer, Confidence, FailedCall
from agentmon.usage.fields import (
    MAX_MOMENT_MS,
    count_in,
    moment_in,
    moment_of,
    object_in,
    objects_in,
    parse_record,
    record_behind_torn,
    ref_in,
    text_in,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem, line_places, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROVIDER: Final = "anthropic"
SYNTHETIC_MODEL: Final = "<synthetic>"
"""Names the answers that the program itself makes up, such as the text of an error: nothing is billed."""
MAX_BEGUN_TOKENS: Final = 10
"""What an answer has at most when it has only begun; more without a reason to stop is the size of a whole one."""
_TITLE_RANKS: Final = {"summary": ("summary", 1), "ai-title": ("aiTitle", 2), "custom-title": ("customTitle", 3)}
"""Under which field each kind of record has a title, and which title is the better one."""
_HEAD: Final = re.compile(rb'\{(?:"(?!type")[A-Za-z]++":(?:"[^"\\]*+"|null|true|false|[0-9]+),){,64}"type":"([a-z-]+)"')
"""The beginning of a record whose fields before its type are no objects, so that this is the record's own."""
_TYPE_PLACE: Final = len(b'{"type":"')
_TAIL_BYTES: Final = 4_096
_TITLES: Final = frozenset(name.encode() for name in _TITLE_RANKS)
_MESSAGE_ID: Final = re.compile(rb'"message":\{(?:"model":"[^"\\]*",)?"id":"([^"\\]{1,200})"')
_USAGE: Final = re.compile(rb'"usage":\{[^{}]*+(?:\{[^{}]*+\}[^{}]*+){,64}\}')
_MAX_ID_PLACE: Final = 512
_STAMP: Final = re.compile(rb'"timestamp":"([^"\\]{19,29}Z)"')
_MAX_STOP_BYTES: Final = 200
_OF_THE_ANSWER: Final = re.compile(rb'"(?:requestSessionId|forkedFrom|costUSD)":[^,}]*+')
"""What a record says of the answer beside the message, up to the end of the first value in it."""
_SPEEDS: Final = frozenset({"priority", "flex", "batch"})
_MAX_DOLLARS: Final = 1_000_000
_NOT_ITS_OWN: Final = ("isSidechain", "agentId", "forkedFrom", "requestSessionId")
"""Fields of records that a subagent or another conversation wrote."""
_FIRST_FIELDS: Final = (b'{"parentUuid":', b'{"type":')
_FAILURE_MARKS: Final = (b'"subtype":"api_error"', b'"isApiErrorMessage":true')
_MAX_ERROR: Final = 500
_HEAD_LINES: Final = 8
_MAX_HEAD_BYTES: Final = 65_536


_Part = tuple[bytes, bytes, bytes, int, int]
"""Of one line: the id of its answer, why that stopped with its usage, the time, and where its content lies."""


class ClaudeReader:
    """Reads one transcript of a conversation or of a subagent."""

    parser_version: ClassVar[int] = 5

    __slots__ = ("_is_subagent", "_last_at_ms", "_last_own_ref", "_last_part", "_session_ref", "_title_rank")

    def __init__(self, *, session_ref: str = "", is_subagent: bool = False) -> None:
        """Begin at the start of a file.

        Args:
            session_ref: The conversation of records that name none.
            is_subagent: Whether the file is that of a subagent, even where its records do not say so.
        """
        self._session_ref = session_ref
        self._is_subagent = is_subagent
        self._last_at_ms = 0
        # Of the part of an answer that came last: the next one mostly says the same. No state, it only saves time.
        self._last_part: _Part | None = None
        self._last_own_ref = ""
        self._title_rank = 0

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        reader = cls(session_ref=text_in(state, "session_ref"), is_subagent=state.get("is_subagent") is True)
        reader._last_at_ms = count_in(state, "last_at_ms", MAX_MOMENT_MS)
        reader._title_rank = count_in(state, "title_rank")
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "session_ref": self._session_ref,
            "is_subagent": self._is_subagent,
            "last_at_ms": self._last_at_ms,
            "title_rank": self._title_rank,
        }

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell; see ``Reader``."""
        chunk = without_byte_order_mark(chunk, offset)
        answers, notes, problems = Answers(), SessionNotes(), []
        if offset == 0:
            self._read_head(chunk, notes)
        titles = []
        for begin, end in line_places(chunk):
            head = _HEAD.match(chunk, begin, end)
            if head is not None and head[1] in _TITLES and head.start() + _TYPE_PLACE == head.start(1):
                titles.append(chunk[begin:end])
            if not _may_have_answer(chunk, begin, end, head):
                continue
            line = chunk[begin:end]
            if self._is_further_part(line, notes) or b'"usage"' not in line:
                continue
            record = self._parse(line)
            if record is None or record.get("type") != "assistant":
                self._last_part = None
            if record is None:
                problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                record = record_behind_torn(line, _FIRST_FIELDS)
            if record is not None and record.get("type") == "assistant":
                self._take_answer(record, offset + begin, answers, notes)
        for line in titles:
            self._take_title(parse_record(line) or {}, notes)
        return Reading(
            answers=tuple(answers.by_key.values()),
            failures=tuple(self._read_failures(chunk, offset)),
            sessions=notes.sessions(),
            problems=tuple(problems),
        )

    def _read_failures(self, chunk: bytes, offset: int) -> Iterator[FailedCall]:
        """Yield the calls that failed: those that were tried again, and what the program said when it gave up."""
        for mark in _FAILURE_MARKS:
            at = chunk.find(mark)
            while at >= 0:
                begin = chunk.rfind(b"\n", 0, at) + 1
                end = chunk.find(b"\n", at)
                end = len(chunk) if end < 0 else end
                failure = self._failure(parse_record(chunk[begin:end]) or {}, offset + begin)
                if failure is not None:
                    yield failure
                at = chunk.find(mark, end)

    def _failure(self, record: Mapping[str, object], offset: int) -> FailedCall | None:
        message = object_in(record, "message")
        if record.get("type") == "system" and record.get("subtype") == "api_error":
            told = object_in(record, "error")
            key, status = ref_in(record, "uuid"), count_in(told, "status")
            error = text_in(told, "formatted", _MAX_ERROR) or text_in(told, "message", _MAX_ERROR)
        elif record.get("type") == "assistant" and record.get("isApiErrorMessage") is True:
            key, status = ref_in(message, "id") or ref_in(record, "uuid"), count_in(record, "apiErrorStatus")
            said = [text_in(part, "text", _MAX_ERROR) for part in objects_in(message, "content")]
            error = " ".join(said).strip() or text_in(record, "error", _MAX_ERROR)
        else:
            return None
        session_ref = ref_in(record, "sessionId") or self._session_ref
        if not key or not session_ref or (not status and record.get("type") == "assistant"):
            # What it says without a status, such as that nobody is logged in, was no call.
            return None
        return FailedCall(
            key=key,
            session_ref=session_ref,
            provider=PROVIDER,
            model="",
            at_ms=moment_in(record, "timestamp") or self._last_at_ms,
            error=error or "failed",
            status=status or None,
            is_subagent=self._is_subagent or record.get("isSidechain") is True,
            offset=offset,
        )

    def _is_further_part(self, line: bytes, notes: SessionNotes) -> bool:
        """Whether the line says of an answer what the one before said, which is known without parsing it."""
        part, last = _part_in(line), self._last_part
        self._last_part = part
        if part is None or last is None or part[:2] != last[:2] or part[2] < last[2]:
            self._last_own_ref = ""
            return False
        self._last_at_ms = moment_of(part[2].decode("ascii", "replace")) or self._last_at_ms
        notes.touch(self._last_own_ref, self._last_at_ms)
        return True

    def _parse(self, line: bytes) -> dict[str, object] | None:
        """Return the record, without its content where that is sure to be apart; None when it is damaged."""
        part = self._last_part
        if part is not None and part[3] >= 0 and line.count(b'"message":{') == 1:
            record = parse_record(line[: part[3]] + line[part[4] :])
            if record is not None:
                return record
        return parse_record(line)

    def _read_head(self, chunk: bytes, notes: SessionNotes) -> None:
        """Take from the first lines when the conversation began, and where."""
        for line in chunk[:_MAX_HEAD_BYTES].split(b"\n", _HEAD_LINES)[:_HEAD_LINES]:
            record = parse_record(line) if b'"timestamp"' in line else None
            if record is None or self._is_subagent or any(record.get(name) for name in _NOT_ITS_OWN):
                continue
            notes.note(
                ref_in(record, "sessionId"),
                at_ms=moment_in(record, "timestamp"),
                cwd=text_in(record, "cwd"),
                git_branch=text_in(record, "gitBranch"),
            )

    def _take_title(self, record: Mapping[str, object], notes: SessionNotes) -> None:
        name, rank = _TITLE_RANKS.get(text_in(record, "type"), ("", 0))
        title = text_in(record, name)
        if title and rank >= self._title_rank and not self._is_subagent:
            self._title_rank = rank
            notes.note(ref_in(record, "sessionId") or self._session_ref, title=title)

    def _take_answer(self, record: Mapping[str, object], offset: int, answers: Answers, notes: SessionNotes) -> None:
        message = object_in(record, "message")
        usage = object_in(message, "usage")
        at_ms = moment_in(record, "timestamp") or self._last_at_ms
        self._last_at_ms = at_ms
        own_ref = ref_in(record, "sessionId") or self._session_ref
        model = _served_by(usage) or text_in(message, "model", 200)
        key = ref_in(message, "id") or ref_in(record, "uuid")
        if not key or not usage or model == SYNTHETIC_MODEL:
            return
        forked_ref = ref_in(object_in(record, "forkedFrom"), "sessionId")
        owner_ref = ref_in(record, "requestSessionId") or forked_ref
        is_subagent = self._is_subagent or record.get("isSidechain") is True or bool(ref_in(record, "agentId"))
        answer = _answer(
            usage,
            key=key,
            session_ref=owner_ref or own_ref,
            is_owner_marked=bool(owner_ref),
            cwd=text_in(record, "cwd"),
            model=model,
            at_ms=at_ms,
            is_subagent=is_subagent,
            reported_cost_nano=_nano(record.get("costUSD")),
            has_ended=message.get("stop_reason") is not None,
            offset=offset,
        )
        if answer.total_tokens or answer.web_searches:
            answers.add(answer)
        _take_iterations(usage, answer, answers)
        if is_subagent:
            return
        if owner_ref and owner_ref != own_ref:
            notes.note(own_ref, parent_ref=forked_ref or owner_ref)
        else:
            self._last_own_ref = own_ref
            place = record.get("cwd"), record.get("gitBranch"), model
            if notes.touch(own_ref, at_ms, place):
                notes.note(own_ref, cwd=answer.cwd, git_branch=text_in(record, "gitBranch"), model=model)


def _served_by(usage: Mapping[str, object]) -> str:
    """Return the model that answered when the one that was asked declined; empty when it did not."""
    fallen = _iterations(usage, "fallback_message")
    return text_in(fallen[-1], "model", 200) if fallen else ""


def _take_iterations(usage: Mapping[str, object], answer: BilledAnswer, answers: Answers) -> None:
    """Take what was computed within the answer and is billed besides its own numbers.

    That is advice of another model, the summary by which the vendor shortens a long prompt, and answers of fallback
    models before the last one, whose numbers the answer has.
    """
    if not usage.get("iterations"):
        return
    place = {"inference_geo": usage.get("inference_geo")}
    way = {**place, "speed": usage.get("speed"), "service_tier": usage.get("service_tier")}
    _take_parts("adv", _iterations(usage, "advisor_message"), place, answer, answers)
    _take_parts("cmp", _iterations(usage, "compaction"), way, answer, answers)
    _take_parts("fb", _iterations(usage, "fallback_message")[:-1], way, answer, answers)


def _iterations(usage: Mapping[str, object], kind: str) -> list[dict[str, object]]:
    return (
        [part for part in objects_in(usage, "iterations") if part.get("type") == kind] if "iterations" in usage else []
    )


def _take_parts(
    name: str, parts: list[dict[str, object]], shared: Mapping[str, object], answer: BilledAnswer, answers: Answers
) -> None:
    for number, part in enumerate(parts, start=1):
        told = _answer(
            {**shared, **part},
            key=f"{answer.key}#{name}{number}",
            session_ref=answer.session_ref,
            is_owner_marked=answer.is_owner_marked,
            cwd=answer.cwd,
            model=text_in(part, "model", 200) or answer.model,
            at_ms=answer.at_ms,
            is_subagent=answer.is_subagent,
            reported_cost_nano=None,
            has_ended=True,
            offset=answer.offset,
        )
        if told.total_tokens:
            answers.add(told)


def _part_in(line: bytes) -> _Part | None:
    """Return what the line tells where it is laid out as Claude Code does; None when that is not sure."""
    named = _MESSAGE_ID.search(line, 0, _MAX_ID_PLACE)
    at = line.rfind(b'"usage":{')
    if named is None or at < 0 or line.find(b'"usage"') != at:
        return None
    stop, counts = line.rfind(b'"stop_reason"', max(0, at - _MAX_STOP_BYTES), at), _USAGE.match(line, at)
    stamp = _STAMP.search(line, counts.end()) if stop >= 0 and counts is not None else None
    if stamp is None or counts is None:
        return None
    # Only where nothing stands between the content and why the answer stopped: the model may.
    is_apart = line[stop - 2 : stop] == b"],"
    content = line.find(b'"content":[', named.end(), named.end() + _MAX_ID_PLACE) if is_apart else -1
    more = _OF_THE_ANSWER.findall(line, 0, named.start()) + _OF_THE_ANSWER.findall(line, counts.end())
    return named[1], b"".join((line[stop : counts.end()], *more)), stamp[1], content, stop


def _may_have_answer(chunk: bytes, begin: int, end: int, head: re.Match[bytes] | None) -> bool:
    """Whether a line has to be looked at, told by its head where that names its type.

    Half a line of another type may have a whole record behind it, whose usage is near the end.
    """
    if head is not None and head[1] != b"assistant":
        return chunk.find(b'"usage"', max(head.end(), end - _TAIL_BYTES), end) >= 0
    return chunk.find(b'"assistant"', begin, end) >= 0


def _answer(
    usage: Mapping[str, object],
    *,
    key: str,
    session_ref: str,
    is_owner_marked: bool,
    cwd: str,
    model: str,
    at_ms: int,
    is_subagent: bool,
    reported_cost_nano: int | None,
    has_ended: bool,
    offset: int,
) -> BilledAnswer:
    written = object_in(usage, "cache_creation")
    for_an_hour = count_in(written, "ephemeral_1h_input_tokens") if written else 0
    for_minutes = count_in(written, "ephemeral_5m_input_tokens") if written else 0
    # What is not split lives for five minutes; the total is missing where only the parts are told.
    unsplit = count_in(usage, "cache_creation_input_tokens") - for_an_hour
    response_tokens = count_in(usage, "output_tokens")
    tier = usage.get("service_tier")
    speed = tier if isinstance(tier, str) and tier in _SPEEDS else "standard"
    confidence = Confidence.ASSUMED if unsplit > for_minutes else Confidence.EXACT
    if not has_ended and response_tokens <= MAX_BEGUN_TOKENS:
        confidence = Confidence.INCOMPLETE
    return BilledAnswer(
        key=key,
        session_ref=session_ref,
        is_owner_marked=is_owner_marked,
        cwd=cwd,
        provider=PROVIDER,
        model=model,
        at_ms=at_ms,
        prompt_tokens=count_in(usage, "input_tokens"),
        cache_read_tokens=count_in(usage, "cache_read_input_tokens"),
        cache_write_5m_tokens=max(unsplit, for_minutes),
        cache_write_1h_tokens=for_an_hour,
        response_tokens=response_tokens,
        reasoning_tokens=min(count_in(object_in(usage, "output_tokens_details"), "thinking_tokens"), response_tokens),
        web_searches=count_in(object_in(usage, "server_tool_use"), "web_search_requests"),
        speed="fast" if usage.get("speed") == "fast" else speed,
        geo="us" if usage.get("inference_geo") == "us" else "",
        is_subagent=is_subagent,
        reported_cost_nano=reported_cost_nano,
        confidence=confidence,
        offset=offset,
    )


def _nano(dollars: object) -> int | None:
    """Return the dollars, as JSON has them, in nano-dollars; None when they are no amount."""
    if isinstance(dollars, bool) or not isinstance(dollars, (int, float)) or not 0 <= dollars < _MAX_DOLLARS:
        return None
    return round(Decimal(repr(dollars)) * 10**9)
