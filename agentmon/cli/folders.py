"""Folders that a person names."""

from pathlib import Path

from agentmon.domain.errors import UsageError


def existing_folder(text: str) -> Path:
    """Return the folder as an absolute path with links resolved.

    Raises:
        UsageError: There is no such folder, it cannot be entered, or its name is not valid UTF-8 and so cannot be kept.
    """
    path = Path(text)
    if text == "~" or text.startswith("~/"):
        path = path.expanduser()
    try:
        folder = path.resolve(strict=True)
        is_folder = folder.is_dir()
    except FileNotFoundError as error:
        raise UsageError(
            f"there is no folder {text!r}", hint="name an existing folder; `agentmon --help` lists the commands"
        ) from error
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the folder {text!r} cannot be used: {reason}") from error
    if not is_folder:
        raise UsageError(f"{text!r} is not a folder")
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the name of the folder {text!r} is not valid UTF-8", hint="rename the folder") from error
    return folder
