"""``agentmon keys``: every key, and the file that changes them."""

from typing import Annotated

import typer

from agentmon.cli.context import JsonOption
from agentmon.cli.output import say, say_document, tell
from agentmon.domain.errors import NotFoundError
from agentmon.paths import find_paths


def keys(
    place: Annotated[
        str | None, typer.Argument(metavar="[PLACE]", help="Only those of a screen: board, task …")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List all keys with the ids of their actions.

    Mistakes in the file that changes them are named.

    The file is keymap.toml in the config folder; it names actions by their ids:
    [keys]
    "board.new" = "ctrl+n"
    "board.stop" = ["x", "ctrl+x"]

    Examples:
      agentmon keys board
      agentmon keys --json
    """
    from agentmon.screens.bindings import TABLES, key_words  # noqa: PLC0415 - Textual is dear where nothing needs it
    from agentmon.screens.settings.keymap import read_keymap  # noqa: PLC0415

    file = find_paths().keymap_file
    keymap = read_keymap(file)
    chosen = {name: table for name, table in TABLES.items() if place is None or name.lower().startswith(place.lower())}
    if not chosen:
        raise NotFoundError(f"there is no screen {place!r}", hint=f"screens are: {', '.join(TABLES)}")
    lines = [
        (name, str(binding.id), keymap.keys.get(str(binding.id), binding.key), binding)
        for name, table in chosen.items()
        for binding in table
        if not binding.system
    ]
    if as_json:
        say_document(
            {
                "keys": [
                    {
                        "screen": name,
                        "id": action,
                        "keys": [key.strip() for key in bound.split(",")],
                        "is_changed": action in keymap.keys,
                        "does": binding.tooltip or binding.description,
                    }
                    for name, action, bound, binding in lines
                ],
                "file": str(file),
                "problems": list(keymap.problems),
            }
        )
    else:
        shown = ""
        for name, action, bound, binding in lines:
            if name != shown:
                say(f"\n{name}" if shown else name)
                shown = name
            mark = "*" if action in keymap.keys else " "
            say(f"{mark} {key_words(bound):<22} {action:<24} {binding.tooltip or binding.description}")
        if keymap.keys:
            tell(f"* changed in {file}")
    for problem in keymap.problems:
        tell(f"warning: {file}: {problem}")
    if keymap.problems:
        raise typer.Exit(1)
