"""Billed answers out of a rollout of Codex, ``sessions/Y/M/D/rollout-<time>-<thread>.jsonl`` (0.30 to 0.171.0).

Newer releases write a ``token_usage_record`` with a key for each answer, and its ``token_count`` as well; older ones
write ``token_count`` alone, over and over, with the running total of the thread. Forks of older releases begin with a
copy of their parent's history, stamped anew and without a mark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final, Self

from agentmon.domain.billing import BilledAnswer, Confidence, FailedCall
from agentmon.usage.codex_limits import CodexLimits, last_limits
from agentmon.usage.fields import (
    MAX_COUNT,
    MAX_MOMENT_MS,
    MAX_RUNNING_TOTAL,
    count_in,
    moment_in,
    object_in,
    parse_record,
    record_behind_torn,
    ref_in,
    text_in,
)
from agentmon.usage.reading import Answers, Reading, ReadingProblem, line_places, lines_with, without_byte_order_mark
from agentmon.usage.session_notes import SessionNotes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

ASSUMED_MODEL: Final = "gpt-5"
"""What Codex used in September 2025, when its rollouts did not name the model."""
PROVIDER: Final = "openai"
_PROVIDERS_MODELS: Final = ("gpt-", "codex-", "o1", "o3", "o4")
"""How the models begin that are taken for the provider's own where a rollout names no provider."""
MIN_FORK_PAUSE_MS: Final = 5_000
"""A fork writes what it copies at once; a turn that begins this much later is its own, where the parent is gone."""

_FIELDS: Final = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)
_CACHE_WRITE: Final = 2
_FIRST_FIELDS: Final = (b'{"timestamp":',)
_MAX_UNPAIRED: Final = 16
_EVENT: Final = b"event_msg"
_COUNT: Final = b"token_count"
_END: Final = b"task_complete"
_ERROR: Final = b'"error":{'
_MAX_ERROR: Final = 500
_KINDS: Final = frozenset({b"token_usage_record", b"turn_context", b"session_meta"})
_MARKS: Final = tuple(b'"%s"' % kind for kind in (*sorted(_KINDS), _COUNT, _END))
_HEAD: Final = re.compile(
    rb'\{"timestamp":"[^"\\]*+",(?:"ordinal":[0-9]++,)?"type":"([a-z_]++)","payload":\{(?:"type":"([a-z_]++)")?'
)
"""The beginning of a record, with its kind, and that of its event."""

Totals = tuple[int, int, int, int, int]
"""Tokens of input with those from and for a cache, cached, written to a cache, output, and reasoning in it."""


class CodexReader:
    """Reads one rollout."""

    parser_version: ClassVar[int] = 4

    __slots__ = (
        "_answer_count",
        "_counted",
        "_cwd",
        "_forked_at_ms",
        "_has_fallen",
        "_inherited",
        "_is_copying",
        "_is_subagent",
        "_last_at_ms",
        "_model",
        "_owner_ref",
        "_provider",
        "_recorded",
        "_thread_id",
        "_total",
    )

    def __init__(self, *, thread_id: str = "", inherited: Collection[Totals] | None = None) -> None:
        """Begin at the start of a rollout.

        Args:
            thread_id: Of a rollout that does not say whose it is.
            inherited: The running totals of the thread that this one was forked from, by which copied history is
                known; None when there is none, or when its rollout is gone.
        """
        self._thread_id = ""
        self._owner_ref = thread_id
        self._is_subagent = False
        self._provider = ""
        self._model = ""
        self._cwd = ""
        self._total: Totals | None = None
        # Whether the running total fell to zero, so that the next one is counted from there.
        self._has_fallen = False
        # Of records whose count has not come yet, oldest first.
        self._recorded: tuple[Totals, ...] = ()
        # What counts of this reading gave, by key: a record may come behind its count.
        self._counted: dict[str, tuple[Totals, Totals]] = {}
        self._answer_count = 0
        self._inherited = None if inherited is None else frozenset(inherited)
        self._is_copying = False
        self._forked_at_ms = 0
        self._last_at_ms = 0

    @classmethod
    def restore(cls, state: Mapping[str, object]) -> Self:
        """Return a reader that goes on where the one with that state was."""
        inherited = state.get("inherited")
        reader = cls(inherited=None if inherited is None else _as_list_of_totals(inherited))
        reader._thread_id = text_in(state, "thread_id")
        reader._owner_ref = text_in(state, "owner_ref")
        reader._is_subagent = state.get("is_subagent") is True
        reader._provider = text_in(state, "provider")
        reader._model = text_in(state, "model")
        reader._cwd = text_in(state, "cwd")
        reader._total = _as_totals(state.get("total"))
        reader._has_fallen = state.get("has_fallen") is True
        reader._recorded = tuple(_as_list_of_totals(state.get("recorded")))
        reader._answer_count = count_in(state, "answer_count")
        reader._is_copying = state.get("is_copying") is True
        reader._forked_at_ms = count_in(state, "forked_at_ms", MAX_MOMENT_MS)
        reader._last_at_ms = count_in(state, "last_at_ms", MAX_MOMENT_MS)
        return reader

    def state(self) -> dict[str, object]:
        """Return what is to be known of the lines so far."""
        return {
            "thread_id": self._thread_id,
            "owner_ref": self._owner_ref,
            "is_subagent": self._is_subagent,
            "provider": self._provider,
            "model": self._model,
            "cwd": self._cwd,
            "total": None if self._total is None else list(self._total),
            "has_fallen": self._has_fallen,
            "recorded": [list(spent) for spent in self._recorded],
            "answer_count": self._answer_count,
            "inherited": None if self._inherited is None else [list(totals) for totals in sorted(self._inherited)],
            "is_copying": self._is_copying,
            "forked_at_ms": self._forked_at_ms,
            "last_at_ms": self._last_at_ms,
        }

    def read(self, chunk: bytes, offset: int) -> Reading:
        """Return what the lines tell; see ``Reader``."""
        answers, notes, problems = Answers(), SessionNotes(), []
        failures: list[FailedCall] = []
        self._counted = {}
        for begin, line in _marked_lines(without_byte_order_mark(chunk, offset)):
            record = parse_record(line)
            if record is None:
                problems.append(ReadingProblem(offset=offset + begin, reason="a damaged line"))
                record = record_behind_torn(line, _FIRST_FIELDS) or {}
            payload = object_in(record, "payload")
            at_ms = moment_in(record, "timestamp") or self._last_at_ms
            self._last_at_ms = at_ms
            match record.get("type"):
                case "session_meta":
                    self._take_beginning(payload, at_ms, notes)
                case "turn_context":
                    self._take_turn(payload, at_ms, notes)
                case "token_usage_record":
                    self._take_record(payload, at_ms, offset + begin, answers)
                case "event_msg":
                    failures += self._take_event(payload, at_ms, offset + begin, answers)
        if answers.by_key and not self._is_subagent:
            for answer in answers.by_key.values():
                if answer.session_ref == self._owner_ref:
                    notes.note(answer.session_ref, at_ms=answer.at_ms)
        told = CodexLimits() if self._is_copying else last_limits(chunk, "" if self._is_subagent else self._owner_ref)
        return Reading(
            answers=tuple(answers.by_key.values()),
            failures=tuple(failures),
            sessions=notes.sessions(),
            problems=tuple(problems),
            limits=told.limits,
            contexts=told.contexts,
        )

    def _take_event(self, payload: Mapping[str, object], at_ms: int, offset: int, answers: Answers) -> list[FailedCall]:
        """Return the call with which a turn failed; what was tried again before that stands in no rollout."""
        if payload.get("type") == "token_count":
            self._take_count(object_in(payload, "info"), at_ms, offset, answers)
        told, turn_id = object_in(payload, "error"), ref_in(payload, "turn_id")
        if payload.get("type") != "task_complete" or not told or not turn_id or self._is_copying:
            return []
        return [
            FailedCall(
                key=f"{turn_id}:failed",
                session_ref=self._owner_ref,
                provider=self._provider,
                model=self._model,
                at_ms=at_ms,
                error=_error_in(told) or "failed",
                status=_status_in(told.get("codex_error_info")),
                is_subagent=self._is_subagent,
                offset=offset,
            )
        ]

    def _take_beginning(self, payload: Mapping[str, object], at_ms: int, notes: SessionNotes) -> None:
        thread_id = ref_in(payload, "id")
        if self._thread_id:
            # A second beginning is the copy of the parent's.
            self._is_copying |= bool(thread_id) and thread_id != self._thread_id and self._answer_count == 0
            return
        self._thread_id = thread_id or self._owner_ref
        parent_id = parent_thread(payload)
        source = object_in(payload, "source")
        self._is_subagent = "subagent" in source or payload.get("thread_source") == "subagent"
        self._is_subagent |= bool(ref_in(payload, "parent_thread_id"))
        self._owner_ref = (parent_id if self._is_subagent else "") or self._thread_id
        self._provider = text_in(payload, "model_provider", 200)
        self._cwd = text_in(payload, "cwd")
        self._forked_at_ms = at_ms
        self._is_copying = bool(parent_id) and payload.get("history_mode") != "paginated"
        if not self._is_subagent:
            notes.note(
                self._thread_id,
                at_ms=at_ms,
                parent_ref=parent_id,
                cwd=self._cwd,
                git_branch=text_in(object_in(payload, "git"), "branch"),
            )

    def _take_turn(self, payload: Mapping[str, object], at_ms: int, notes: SessionNotes) -> None:
        self._model = text_in(payload, "model", 200) or self._model
        self._cwd = text_in(payload, "cwd") or self._cwd
        if self._is_copying and self._inherited is None and at_ms >= self._forked_at_ms + MIN_FORK_PAUSE_MS:
            self._is_copying = False
        if not self._is_copying and not self._is_subagent:
            notes.note(self._owner_ref, at_ms=at_ms, cwd=self._cwd, model=self._model)

    def _take_record(self, payload: Mapping[str, object], at_ms: int, offset: int, answers: Answers) -> None:
        total = totals_of(payload.get("thread_token_usage"), MAX_RUNNING_TOTAL)
        self._total = total or self._total
        key, spent = ref_in(payload, "response_id"), totals_of(payload.get("usage"))
        if not key or spent is None or not any(spent):
            return
        if not self._takes_place_of_count(spent, total, answers) and key not in answers.by_key:
            self._recorded = (*self._recorded, spent)[-_MAX_UNPAIRED:]
        thread_id = ref_in(payload, "thread_id") or self._thread_id
        is_own = thread_id == self._thread_id or not self._thread_id
        if is_own:
            self._end_copy()
        answers.add(
            self._answer(
                key,
                spent,
                total or spent,
                at_ms=at_ms,
                offset=offset,
                thread_id=thread_id,
                session_ref=self._owner_ref if is_own else thread_id,
                is_owner_marked=True,
                confidence=Confidence.EXACT,
            )
        )

    def _take_count(self, info: Mapping[str, object], at_ms: int, offset: int, answers: Answers) -> None:
        total, before = totals_of(info.get("total_token_usage"), MAX_RUNNING_TOTAL), self._total
        if total is None:
            return
        if not any(total):
            self._has_fallen |= before is not None and any(before)
            self._total = total
            return
        spent = totals_of(info.get("last_token_usage"))
        if _are_same(total, before):
            self._is_of_record(spent)
            return
        self._total = total
        confidence = Confidence.EXACT
        if spent is None:
            self._has_fallen |= before is not None and any(now < then for now, then in zip(total, before, strict=True))
            spent = total if before is None or self._has_fallen else _difference(total, before)
            confidence = Confidence.ASSUMED if self._has_fallen else Confidence.DERIVED
        self._has_fallen = False
        if self._is_of_record(spent) or not any(spent) or max(spent) > MAX_COUNT:
            return
        if self._is_copying and self._is_copied(total):
            return
        self._end_copy()
        self._answer_count += 1
        key = ":".join((self._thread_id or self._owner_ref, str(self._answer_count), *map(str, total)))
        self._counted[key] = spent, total
        answers.add(
            self._answer(
                key,
                spent,
                total,
                at_ms=at_ms,
                offset=offset,
                thread_id=self._thread_id,
                session_ref=self._owner_ref,
                is_owner_marked=False,
                confidence=confidence,
            )
        )

    def _is_of_record(self, spent: Totals | None) -> bool:
        """Whether the count is of an answer that a record has told; each record has one count."""
        for place, recorded in enumerate(self._recorded):
            if spent is not None and _are_same(spent, recorded):
                self._recorded = self._recorded[:place] + self._recorded[place + 1 :]
                return True
        return False

    def _takes_place_of_count(self, spent: Totals, total: Totals | None, answers: Answers) -> bool:
        """Take back what the count of the same answer gave, when that came before its record."""
        for key, (counted, counted_total) in self._counted.items():
            if _are_same(spent, counted) and (total is None or _are_same(total, counted_total)):
                del self._counted[key], answers.by_key[key]
                self._answer_count -= 1
                return True
        return False

    def _is_copied(self, total: Totals) -> bool:
        """Whether an answer with that total was the parent's, while no answer of its own has come."""
        return True if self._inherited is None else total in self._inherited

    def _end_copy(self) -> None:
        self._is_copying = False
        self._inherited = None

    def _answer(
        self,
        key: str,
        spent: Totals,
        total: Totals,
        *,
        at_ms: int,
        offset: int,
        thread_id: str,
        session_ref: str,
        is_owner_marked: bool,
        confidence: Confidence,
    ) -> BilledAnswer:
        input_tokens, cached, written, output, reasoning = spent
        cache_read = min(cached, input_tokens)
        cache_write = min(written, input_tokens - cache_read)
        model = self._model or ASSUMED_MODEL
        return BilledAnswer(
            key=key,
            session_ref=session_ref,
            is_owner_marked=is_owner_marked,
            cwd=self._cwd,
            provider=self._provider or (PROVIDER if model.startswith(_PROVIDERS_MODELS) else ""),
            model=model,
            at_ms=at_ms,
            prompt_tokens=input_tokens - cache_read - cache_write,
            cache_read_tokens=cache_read,
            cache_write_5m_tokens=cache_write,
            cache_write_1h_tokens=0,
            response_tokens=output,
            reasoning_tokens=min(reasoning, output),
            is_subagent=self._is_subagent,
            confidence=confidence if self._model else Confidence.ASSUMED,
            offset=offset,
            provisional_key=":".join((thread_id, *map(str, total))),
        )


def _error_in(told: Mapping[str, object]) -> str:
    """Return what the vendor said; an answer of its interface in JSON is reduced to its message."""
    said = text_in(told, "message", _MAX_ERROR)
    inner = object_in(parse_record(said.encode("utf-8", "replace")) or {}, "error") if said.startswith("{") else {}
    return text_in(inner, "message", _MAX_ERROR) or said


def _status_in(info: object) -> int | None:
    """Return the status of HTTP that ``codex_error_info`` tells; some kinds have one, and some are a mere name."""
    for part in info.values() if isinstance(info, dict) else ():
        status = part.get("http_status_code") if isinstance(part, dict) else None
        if isinstance(status, int):
            return status
    return None


def parent_thread(beginning: Mapping[str, object]) -> str:
    """Return the id of the thread that a ``session_meta`` was forked or spawned from, or an empty text."""
    spawned = object_in(object_in(object_in(beginning, "source"), "subagent"), "thread_spawn")
    return (
        ref_in(beginning, "forked_from_id")
        or ref_in(beginning, "parent_thread_id")
        or ref_in(spawned, "parent_thread_id")
    )


def find_parent_thread(lines: Iterable[bytes]) -> str:
    """Return the id of the thread whose history the rollout begins with, or an empty text.

    Args:
        lines: The first ones of a rollout.
    """
    own_id = ""
    for line in lines:
        record = (parse_record(line) if b'"session_meta"' in line else None) or {}
        if record.get("type") != "session_meta":
            continue
        beginning = object_in(record, "payload")
        if own_id and ref_in(beginning, "id") != own_id:
            return ref_in(beginning, "id")
        own_id = ref_in(beginning, "id")
        if parent_id := parent_thread(beginning):
            return "" if beginning.get("history_mode") == "paginated" else parent_id
    return ""


def running_totals(chunk: bytes) -> set[Totals]:
    """Return the running totals that whole lines of a rollout tell, those that it copied as well."""
    found = set()
    for _, line in lines_with(chunk, b'"token_count"'):
        payload = object_in(parse_record(line) or {}, "payload")
        total = totals_of(object_in(payload, "info").get("total_token_usage"), MAX_RUNNING_TOTAL)
        if total is not None:
            found.add(total)
    return found


def totals_of(usage: object, max_count: int = MAX_COUNT) -> Totals | None:
    """Return the counts of a usage object; None when it is no such object. A larger count than that is none."""
    if not isinstance(usage, dict):
        return None
    get = usage.get
    counts = get(_FIELDS[0]), get(_FIELDS[1]), get(_FIELDS[2], 0), get(_FIELDS[3]), get(_FIELDS[4])
    for count in counts:
        if type(count) is not int or not 0 <= count <= max_count:
            break
    else:
        return counts  # type: ignore[return-value]  # each is an int
    if not any(name in usage for name in _FIELDS):
        return None
    return _as_totals([count_in(usage, name, max_count) for name in _FIELDS])


def _as_totals(counts: object) -> Totals | None:
    if not isinstance(counts, list) or len(counts) != len(_FIELDS):
        return None
    first, second, third, fourth, fifth = (count if type(count) is int else 0 for count in counts)
    return first, second, third, fourth, fifth


def _as_list_of_totals(members: object) -> list[Totals]:
    known = [_as_totals(member) for member in members] if isinstance(members, list) else []
    return [totals for totals in known if totals is not None]


def _are_same(total: Totals, before: Totals | None) -> bool:
    """Whether two totals are of one answer; not every record tells what was written to a cache."""
    if before is None or (total[_CACHE_WRITE] and before[_CACHE_WRITE]):
        return total == before
    return total[:_CACHE_WRITE] + total[_CACHE_WRITE + 1 :] == before[:_CACHE_WRITE] + before[_CACHE_WRITE + 1 :]


def _difference(total: Totals, before: Totals) -> Totals:
    first, second, third, fourth, fifth = (now - then for now, then in zip(total, before, strict=True))
    return first, second, third, fourth, fifth


def _marked_lines(chunk: bytes) -> Iterator[tuple[int, bytes]]:
    for begin, end in line_places(chunk):
        if _is_marked(chunk, begin, end):
            yield begin, chunk[begin:end]


def _is_marked(chunk: bytes, begin: int, end: int) -> bool:
    """Whether a line has to be parsed, told by its head where that names its type."""
    head = _HEAD.match(chunk, begin, end)
    if head is not None:
        kind, event = head.groups()
        if kind in _KINDS or event == _COUNT or (event == _END and chunk.find(_ERROR, head.end(), end) >= 0):
            return True
        # Half a line may have a whole record behind it.
        if (kind != _EVENT or event is not None) and chunk.find(_FIRST_FIELDS[0], head.end(), end) < 0:
            return False
    return any(chunk.find(mark, begin, end) >= 0 for mark in _MARKS)
