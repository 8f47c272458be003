"""Domain values as JSON documents: the names of the fields, times in ISO 8601 with Z, enums as their values."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePath

from agentmon.domain.amounts import MoneyFormat
from agentmon.domain.board import BoardPage, Card, ColumnPage, StatusLine
from agentmon.domain.executions import Execution, ExecutionListing
from agentmon.domain.overlaps import Overlap
from agentmon.domain.sightings import Sighting
from agentmon.domain.verifications import Verdict


def json_form(value: object) -> object:
    """Return the value as what ``json.dumps`` takes; tuples become arrays, paths become text.

    Raises:
        TypeError: Something in the value has no JSON form.
    """
    match value:
        case Enum():
            return value.value
        case None | str() | int() | float():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case PurePath():
            return str(value)
        case Mapping():
            return {str(json_form(key)): json_form(element) for key, element in value.items()}
        case BoardPage() | Card() | ColumnPage() | Overlap() | StatusLine() | Verdict():
            return _board_form(value)
        case tuple() | list():
            return [json_form(element) for element in value]
        case Execution() | ExecutionListing():
            return _execution_form(value)
        case _ if is_dataclass(value):
            return _fields_form({field.name: getattr(value, field.name) for field in fields(value)})
        case _:
            raise TypeError(f"no JSON form for {type(value).__name__}")


def _fields_form(parts: Mapping[str, object]) -> dict[str, object]:
    """Return the fields by their names; how money is shown is told beside the amounts, which are dollars."""
    form: dict[str, object] = {}
    for name, part in parts.items():
        match part:
            case MoneyFormat():
                form |= part.named
            case Sighting():
                form |= _fields_form(part._asdict())
            case _:
                form[name] = json_form(part)
    return form


def _execution_form(value: Execution | ExecutionListing) -> dict[str, object]:
    """Return the fields of an execution with the state that a person sees and the words beside it, on one level."""
    execution, words = (value.execution, value) if isinstance(value, ExecutionListing) else (value, None)
    form = _fields_form({field.name: getattr(execution, field.name) for field in fields(execution)})
    form["state"] = execution.live_state.value
    if words is not None:
        beside = (field.name for field in fields(words) if field.name != "execution")
        form |= {name: json_form(getattr(words, name)) for name in beside}
    return form


def _board_form(part: BoardPage | Card | ColumnPage | Overlap | StatusLine | Verdict) -> dict[str, object]:
    """Return a part of the board; the columns are an array in their order, since each names its status itself."""
    if isinstance(part, Verdict):
        return {**_fields_form(part._asdict()), "name": part.name, "text": part.text}
    if not isinstance(part, BoardPage):
        return _fields_form(part._asdict())
    return {
        "workspace_name": part.workspace_name,
        "workspaces": dict(part.workspaces),
        "sort": part.sort.value,
        "has_review": part.has_review,
        "columns": [json_form(column) for column in part.columns.values()],
        "status_line": json_form(part.status_line),
    }
