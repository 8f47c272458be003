"""The answers that must be quick, since hooks and status bars ask often: standard library only, no dataclasses.

Importing dataclasses, pathlib's users and typer costs three times what starting Python does.
"""

import os
import sys
import time

from agentmon import __version__
from agentmon.cli.output import say_clean_line, say_document
from agentmon.store.money_setting import find_money_words
from agentmon.store.status_counts import StatusCounts, find_status_counts, has_startable

_SHORT_FOLDER_BYTES = 80
"""Up to here the folder of sockets is where it is looked for; ``paths`` knows where longer ones go."""


def print_version(*, as_json: bool) -> int:
    """Print the version of agentmon."""
    if as_json:
        say_document({"version": __version__})
    else:
        say_clean_line(f"agentmon {__version__}")
    return 0


def print_status(words: list[str]) -> int:
    """Print the numbers of the status line, over all workspaces; before the first start they are zero.

    Args:
        words: What follows ``status`` on the command line.
    """
    unknown = [word for word in words if word != "--json"]
    if unknown:
        from agentmon.cli.output import tell_error  # noqa: PLC0415 - only a wrong command line needs it

        tell_error(f"status does not take {unknown[0]!r}", hint="agentmon status [--json]")
        return 2
    database_path = find_database_path()
    counts = find_status_counts(database_path)
    if counts is None:
        from agentmon.cli.output import tell_error  # noqa: PLC0415 - only a database out of order needs it

        tell_error(f"the database {database_path} cannot be read", hint="agentmon doctor says why")
        return 1
    counts.worker_seen_at = find_worker_seen_at(counts, database_path)
    if "--json" in words:
        say_document({**counts.as_document(), **_currency_form(counts)})
    else:
        say_clean_line(
            f"● {counts.running}/{counts.running_limit} running  ◌ {counts.queued} queued  "
            f"◆ {counts.needs_you} {'needs' if counts.needs_you == 1 else 'need'} you"
            + (f"  ⚠ {counts.overlapping} overlap" if counts.overlapping else "")
            + ("  ‖ paused" if counts.is_paused else "")
            + ("" if counts.worker_seen_at is None else f"  ? worker last seen {worker_silence(counts)} ago")
            + cost_words(counts)
        )
    return 0


def find_worker_seen_at(counts: StatusCounts, database_path: str) -> float | None:
    """Return when a worker was last at work, while one is needed and none is."""
    if not counts.running and not counts.queued:
        return None
    from agentmon.worker.at_work import find_last_beat  # noqa: PLC0415 - only runs need it

    run_dir = find_run_dir()
    seen_at = find_last_beat(f"{run_dir}/worker.lock", f"{run_dir}/worker-loops.json", database_path)
    return seen_at if seen_at is None or counts.running or has_startable(database_path) else None


def worker_silence(counts: StatusCounts) -> str:
    """Return for how long no worker was at work: ``40s``."""
    from agentmon.domain.amounts import duration_text  # noqa: PLC0415 - only a dead worker needs it

    return duration_text(time.time() - (counts.worker_seen_at or 0.0))


def cost_words(counts: StatusCounts) -> str:
    """Return what the day has cost, behind two blanks; empty when it cost nothing of nothing."""
    if not counts.cost_today_nano and not counts.unpriced_today and counts.budget_today_nano is None:
        return ""
    from agentmon.domain.amounts import today_text  # noqa: PLC0415 - only a day that cost something needs it
    from agentmon.store.money_setting import money_format  # noqa: PLC0415

    words = today_text(
        counts.cost_today_nano,
        unpriced=counts.unpriced_today,
        budget_nano=counts.budget_today_nano,
        money=money_format(_money_words(counts)),
    )
    return f"  {words}"


def _currency_form(counts: StatusCounts) -> dict[str, str]:
    """Return in which currency the text would show amounts; empty for dollars."""
    words = _money_words(counts)
    if not words:
        return {}
    from agentmon.store.money_setting import money_format  # noqa: PLC0415 - most have set nothing

    return money_format(words).named


def _money_words(counts: StatusCounts) -> dict[str, str]:
    return {**find_money_words(find_settings_path(), os.environ), **counts.money_words}


def find_database_path() -> str:
    """Return the same as ``find_paths().database_path``, without what that costs wherever it can be known."""
    home = os.environ.get("AGENTMON_HOME", "")
    if not os.environ.get("AGENTMON_DATABASE_URL"):
        if home.startswith("/"):
            return f"{home}/agentmon.db"
        data_home = _folder_of("XDG_DATA_HOME", "/.local/share")
        if not home and sys.platform == "linux" and data_home.startswith("/"):
            return f"{data_home}/agentmon/agentmon.db"
    from agentmon.paths import find_paths  # noqa: PLC0415 - the rare cases may cost more

    return str(find_paths().database_path)


def find_run_dir() -> str:
    """Return the same as ``find_paths().run_dir``, without what that costs wherever it can be known."""
    home = os.environ.get("AGENTMON_HOME", "")
    if not os.environ.get("AGENTMON_DATABASE_URL"):
        state_home = _folder_of("XDG_STATE_HOME", "/.local/state")
        folder = ""
        if home.startswith("/"):
            folder = f"{home.rstrip('/')}/run"
        elif not home and sys.platform == "linux" and state_home.startswith("/"):
            folder = f"{state_home}/agentmon/run"
        if folder and len(os.fsencode(folder)) <= _SHORT_FOLDER_BYTES:
            return folder
    from agentmon.paths import find_paths  # noqa: PLC0415 - the rare cases may cost more

    return str(find_paths().run_dir)


def find_settings_path() -> str:
    """Return the same as ``find_paths().settings_file``, without what that costs wherever it can be known."""
    home = os.environ.get("AGENTMON_HOME", "")
    if home.startswith("/"):
        return f"{home}/config.toml"
    config_home = _folder_of("XDG_CONFIG_HOME", "/.config")
    if not home and sys.platform == "linux" and config_home.startswith("/"):
        return f"{config_home}/agentmon/config.toml"
    from agentmon.paths import find_paths  # noqa: PLC0415 - the rare cases may cost more

    return str(find_paths().settings_file)


def _folder_of(name: str, below_home: str) -> str:
    """Return a folder as the XDG rules name it; what is not absolute has to be looked up."""
    home = os.environ.get("HOME", "")
    return os.environ.get(name, "").strip() or (f"{home}{below_home}" if home else "")
