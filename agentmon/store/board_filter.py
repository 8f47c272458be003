"""The filter of the board as a condition of SQL, so that any number of cards is looked through where they lie.

It must not import SQLAlchemy: the board is read with the standard library's sqlite3 too.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from agentmon.domain.any_command import ANY_COMMAND_SLUG
from agentmon.domain.board_filter import CardState, parse_filter
from agentmon.store.card_states import ARCHIVED, FAILED_TASKS, NEEDS_YOU, ON_BOARD, OPEN
from agentmon.store.moments import moment_text

if TYPE_CHECKING:
    from datetime import datetime

DUE_WITHIN_DAYS: Final = 7
_LAST: Final = "\U0010ffff"
_OPEN_TASK: Final = "t.status IN ('todo', 'in_progress', 'blocked', 'review')"
_STATES: Final = {
    CardState.NEEDS_YOU: f"t.id IN (SELECT o.task_id FROM executions o WHERE {OPEN} AND {NEEDS_YOU})",
    CardState.RUNNING: f"t.id IN (SELECT o.task_id FROM executions o WHERE {OPEN} AND o.status <> 'queued')",
    CardState.QUEUED: f"t.id IN (SELECT o.task_id FROM executions o WHERE {OPEN} AND o.status = 'queued')",
    CardState.FAILED: f"t.id IN ({FAILED_TASKS})",
    CardState.DUE: f"({_OPEN_TASK} AND t.due_at < :due_before)",
    CardState.OVERDUE: f"({_OPEN_TASK} AND t.due_at < :filter_now)",
}


def filter_condition(text_filter: str, now: datetime) -> tuple[str, dict[str, object]]:
    """Return the condition on ``tasks t`` and its parameters."""
    wanted = parse_filter(text_filter)
    conditions = [ARCHIVED if wanted.is_archived else ON_BOARD]
    parameters: dict[str, object] = {}
    for at, word in enumerate(wanted.words):
        conditions.append(_word(f"word{at}", word, parameters))
    for at, label in enumerate(wanted.labels):
        parameters |= {f"label{at}": label, f"label_end{at}": label + _LAST}
        conditions.append(
            f"t.id IN (SELECT task_id FROM task_labels WHERE label >= :label{at} AND label < :label_end{at})"
        )
    for at, slug in enumerate(wanted.agents):
        parameters |= {f"slug{at}": _escaped(slug) + "%", f"command{at}": "%/" + _escaped(slug) + "%"}
        conditions.append(_agent(at))
    if wanted.priorities:
        conditions.append(f"t.priority IN ({', '.join(str(number) for number in sorted(set(wanted.priorities)))})")
    if wanted.states:
        conditions.append(f"({' OR '.join(_STATES[state] for state in wanted.states)})")
        if not {CardState.DUE, CardState.OVERDUE}.isdisjoint(wanted.states):
            parameters |= {
                "filter_now": moment_text(now),
                "due_before": moment_text(now + timedelta(days=DUE_WITHIN_DAYS)),
            }
    return " AND ".join(conditions), parameters


def _word(name: str, word: str, parameters: dict[str, object]) -> str:
    """Return the condition that a word is found in the title, the number, the program or a label."""
    operator, pattern = _letters_in_order(word)
    parameters[name] = pattern
    number = word.removeprefix("#")
    if word.startswith("#"):
        parameters[f"{name}_number"] = f"{number}%"
        return f"CAST(t.number AS TEXT) LIKE :{name}_number"
    parts = [
        f"t.title {operator}",
        f"t.assignee_agent_id IN (SELECT id FROM agents WHERE slug {operator})",
        f"t.id IN (SELECT task_id FROM task_labels WHERE label {operator})",
    ]
    if number.isdecimal():
        parameters[f"{name}_number"] = f"{number}%"
        parts.append(f"CAST(t.number AS TEXT) LIKE :{name}_number")
    return f"({' OR '.join(parts)})".replace(":pattern", f":{name}")


def _letters_in_order(word: str) -> tuple[str, str]:
    """Return operator and pattern for the letters in this order, with anything in between, in any case."""
    if word.isascii():
        return "LIKE :pattern ESCAPE '\\'", "%" + "%".join(_escaped(letter) for letter in word) + "%"
    # LIKE knows the two cases of ASCII alone; classes of GLOB hold both of any letter.
    return "GLOB :pattern", "*" + "*".join(_class_of(letter) for letter in word) + "*"


def _class_of(letter: str) -> str:
    both = "".join(sorted({letter, letter.lower(), letter.upper()} - {"]", "^"}))
    return f"[{both}]" if both and all(len(one) == 1 for one in (letter.lower(), letter.upper())) else letter


def _agent(at: int) -> str:
    """Return the condition on the program's name; of the agent for any command, on that command's."""
    return f"""EXISTS (SELECT 1 FROM agents g WHERE g.id = t.assignee_agent_id AND CASE g.slug
        WHEN '{ANY_COMMAND_SLUG}' THEN '/' || json_extract(t.input_context, '$.args.argv[0]')
            LIKE :command{at} ESCAPE '\\' OR g.slug LIKE :slug{at} ESCAPE '\\'
        ELSE g.slug LIKE :slug{at} ESCAPE '\\' END)"""


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
