"""What a person asked first in a conversation, as SQL."""

from __future__ import annotations

from typing import Final

from agentmon.domain.agents import ROLE_MARK

_BLANKS: Final = "' ' || char(9, 10, 13)"
_GAP: Final = "char(10, 10)"


def asked_first(session: str, agent: str) -> str:
    """Return the first prompt without the role and the instructions that an agent is given before it, as SQL.

    The role is told by its mark, as far as the first blank line, and the instructions by being those of the agent now.
    Where nothing is behind them a person has written them.

    Args:
        session: The name of ``sessions`` in the statement.
        agent: That of ``agents``, joined.
    """
    prompt = f"ltrim({session}.initial_prompt, {_BLANKS})"
    behind_role = f"substr({prompt}, instr({prompt} || {_GAP}, {_GAP}) + 2)"
    asked = f"ltrim(CASE WHEN instr({prompt}, '{ROLE_MARK}') = 1 THEN {behind_role} ELSE {prompt} END, {_BLANKS})"
    told = f"trim(coalesce({agent}.instructions, ''), {_BLANKS})"
    has_told = f"{told} <> '' AND instr({asked} || {_GAP}, {told} || {_GAP}) = 1"
    rest = f"trim(CASE WHEN {has_told} THEN substr({asked}, length({told}) + 1) ELSE {asked} END, {_BLANKS})"
    return f"coalesce(nullif({rest}, ''), {prompt})"
