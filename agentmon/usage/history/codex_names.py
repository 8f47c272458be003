"""What Codex calls its threads: ``session_index.jsonl`` beside its sessions, a line for each name that was given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.redaction import redact
from agentmon.usage.fields import parse_record, ref_in, text_in
from agentmon.usage.sources import CODEX, list_places

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_FILE_BYTES: Final = 8 * 1_048_576
_MAX_NAME_CHARACTERS: Final = 200
_FILE_NAME: Final = "session_index.jsonl"


def name_files(environ: Mapping[str, str]) -> list[Path]:
    """Return where such files may lie."""
    folders = {Path(place.path).parent for place in list_places(environ) if place.agent_slug == CODEX}
    return [folder / _FILE_NAME for folder in sorted(folders)]


def thread_names(content: bytes) -> dict[str, str]:
    """Return the newest name of each thread, on one line and without secrets; damaged lines are passed over."""
    names: dict[str, str] = {}
    for line in content.split(b"\n"):
        record = parse_record(line) if line.strip() else None
        if record is None:
            continue
        thread_id = ref_in(record, "id")
        name = " ".join(text_in(record, "thread_name", _MAX_NAME_CHARACTERS).split())
        if thread_id and name:
            names[thread_id] = redact(name)
    return names
