"""``agentmon search`` without the services and all that they import; what is out of order is left to the long way."""

from pathlib import Path

from agentmon.cli.search_text import LARGEST_LIMIT, LIMIT, Asked, print_found
from agentmon.domain.errors import AgentmonError

_FLAGS = {"--json", "--all"}
_WITH_VALUE = {"--in": "--in", "-n": "--limit", "--limit": "--limit", "-C": "--workspace", "--workspace": "--workspace"}


def print_search(words: list[str]) -> int | None:
    """Search and print, exactly as the long way does; None when that has to.

    Args:
        words: What follows ``search`` on the command line.
    """
    asked = _asked(words)
    if asked is None:
        return None
    try:
        return print_found(asked)
    except AgentmonError:
        return None


def _asked(words: list[str]) -> Asked | None:
    """Return what is asked for; None where it takes the long way to say what is wrong."""
    text: list[str] = []
    flags: set[str] = set()
    given: dict[str, list[str]] = {name: [] for name in _WITH_VALUE.values()}
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            given[_WITH_VALUE[word]].append(next(rest, ""))
        elif word in _FLAGS:
            flags.add(word)
        elif word.startswith("-"):
            return None
        else:
            text.append(word)
    limits = [int(limit[:9]) if limit.isdecimal() else 0 for limit in given["--limit"]] or [LIMIT]
    folder = _folder(*given["--workspace"][-1:])
    if folder is None or not text or not 1 <= limits[-1] <= LARGEST_LIMIT:
        return None
    return Asked(
        text=" ".join(text),
        kinds=tuple(name.strip().lower() for part in given["--in"] for name in part.split(",")),
        limit=limits[-1],
        is_everywhere="--all" in flags,
        folder=folder,
        as_json="--json" in flags,
    )


def _folder(name: str = ".") -> Path | None:
    try:
        folder = Path(name).resolve(strict=True)
    except (OSError, RuntimeError):
        return None
    return folder if folder.is_dir() and not name.startswith("~") else None
