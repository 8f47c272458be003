"""The app on a folder; without a terminal, the board of that folder as text."""

import os
import sys

from agentmon.cli.calling import is_called
from agentmon.cli.folders import existing_folder
from agentmon.paths import find_paths, find_workspace_root


def open_app(folder: str) -> int:
    """Open the app on the workspace that the folder belongs to and return its exit code."""
    root = find_workspace_root(existing_folder(folder))
    reason = _why_no_app()
    if reason:
        from agentmon.cli.board import print_board  # noqa: PLC0415 - the app must not wait for it
        from agentmon.cli.output import tell  # noqa: PLC0415

        print_board(root)
        tell(f"hint: {reason}, so this is the board as text; `agentmon board --json` gives it to programs")
        return 0
    from agentmon.app import AgentmonApp  # noqa: PLC0415 - only where there is a terminal to draw on
    from agentmon.store.look_setting import find_look  # noqa: PLC0415

    paths = find_paths()
    look = find_look(paths.database_path, paths.settings_file, os.environ)
    notice = ""
    if not look.ascii and not _has_unicode():
        look = look._replace(ascii=True)
        notice = (
            f"This locale ({_locale_name()}) is not UTF-8: only ASCII is drawn. LC_ALL=C.UTF-8 draws everything; "
            "`agentmon settings app.ascii true` keeps ASCII without this notice."
        )
    app = AgentmonApp(paths, root, look=look, is_alone=True, notice=notice)
    app.run(mouse=look.mouse)
    return app.return_code or 0


def _has_unicode() -> bool:
    # Textual draws on standard error.
    return sys.__stderr__ is None or "utf" in sys.__stderr__.encoding.lower()


def _locale_name() -> str:
    names = (os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    return next(filter(None, names), "none is set")


def _why_no_app() -> str:
    if is_called():
        return "the app does not open in a sandbox"
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return "there is no terminal"
    if os.environ.get("TERM", "") in {"", "dumb"}:
        return "this terminal cannot draw the app (TERM is dumb)"
    return ""
