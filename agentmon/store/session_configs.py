"""How an AI agent is spoken to: the value of the JSON object ``agents.session_config``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.domain.agents import SessionConfig, SessionIdSource
from agentmon.domain.execution_mode import ExecutionMode

if TYPE_CHECKING:
    from collections.abc import Mapping


def session_config_of(stored: Mapping[str, object]) -> SessionConfig | None:
    """Return the value of the JSON object; None when it names no protocol, parts of another shape count as absent."""
    try:
        protocol = ExecutionMode(_text(stored, "bidirectional_protocol"))
        source = SessionIdSource(_text(stored, "session_id_source") or SessionIdSource.JSON_FIELD)
    except ValueError:
        return None
    flags, environment = stored.get("flags"), stored.get("environment")
    return SessionConfig(
        bidirectional_protocol=protocol,
        session_id_source=source,
        session_id_field=_text(stored, "session_id_field"),
        session_file_glob=_text(stored, "session_file_glob"),
        list_sessions_command=_texts(stored, "list_sessions_command"),
        list_sessions_pattern=_text(stored, "list_sessions_pattern"),
        protocol_args=_texts(stored, "protocol_args"),
        screen_args=_texts(stored, "screen_args"),
        resume_flags=_texts(stored, "resume_flags"),
        continue_flags=_texts(stored, "continue_flags"),
        flags={str(name): _texts(flags, name) for name in flags} if isinstance(flags, dict) else {},
        environment={str(name): str(value) for name, value in environment.items()}
        if isinstance(environment, dict)
        else {},
        permission_modes=_texts(stored, "permission_modes"),
        models=_texts(stored, "models"),
    )


def _text(stored: Mapping[str, object], name: str) -> str:
    value = stored.get(name)
    return value if isinstance(value, str) else ""


def _texts(stored: Mapping[str, object], name: str) -> tuple[str, ...]:
    value = stored.get(name)
    return tuple(str(word) for word in value) if isinstance(value, list) else ()
