"""What the host is asked to run: ``spec.json`` and the environment, read and checked."""

from __future__ import annotations

import os

from agentmon.runners.host import documents
from agentmon.runners.host.lean import signal

MARKER_VARIABLE = "AGENTMON_EXECUTION_ID"
CALLED_VARIABLE = "AGENTMON_CALLED"
"""Set for what is started for a run that is in a sandbox, outside of it."""

INTERRUPTS: dict[str, int] = {
    "INT": signal.SIGINT,
    "TERM": signal.SIGTERM,
    "HUP": signal.SIGHUP,
    "QUIT": signal.SIGQUIT,
}
"""The signals by which a program can be asked to end."""

_PROTOCOLS = frozenset({"stream-json", "app-server", "acp"})

_MAX_DIMENSION = 65535  # a window size is two unsigned short numbers


class SpecError(Exception):
    """The folder does not say properly what to run; the message is one line for a person."""


class Spec:
    """One execution as the worker asks for it.

    Times are seconds and sizes bytes; 0 means no limit for ``timeout_s`` and ``max_output_bytes``. ``timeout_s`` counts
    the time in which the program may run: its clock stands still while the run is paused. ``interrupt`` names the
    signals that ask the run to end, in their order; each gets an equal share of ``grace_s``, and what lives then is
    killed. ``conversation`` is what an adapter of ``runners.protocols`` has to know; empty for a program in a terminal.
    ``attempt`` counts the tries of an execution from 0: what was said to the agent of another one is none of its own.
    An agent whose work is done has ``exit_grace_s`` to end by itself once its input is closed. ``sandbox`` is what
    ``runners.sandbox.kernel`` takes, None for no sandbox; what is called from within it gets ``calls_environment``.
    """

    __slots__ = (
        "argv",
        "attempt",
        "calls_environment",
        "columns",
        "continues_log",
        "conversation",
        "execution_id",
        "exit_grace_s",
        "grace_s",
        "interrupt",
        "keeps_typed_text",
        "max_output_bytes",
        "mode",
        "notify_socket",
        "rows",
        "sandbox",
        "timeout_s",
        "working_dir",
    )

    def __init__(self, document: dict[str, object]) -> None:
        self.execution_id = _text(document, "execution_id")
        self.mode = _text(document, "mode", "template")
        self.conversation = _conversation(document)
        self.continues_log = document.get("continues_log") is True
        self.attempt = int(_number(document, "attempt", 0.0))
        self.argv = _texts(document, "argv")
        self.working_dir = _text(document, "working_dir")
        self.timeout_s = _number(document, "timeout_s", 0.0)
        self.max_output_bytes = int(_number(document, "max_output_bytes", 0.0))
        self.grace_s = _number(document, "grace_s", 5.0)
        self.exit_grace_s = _number(document, "exit_grace_s", 5.0)
        self.interrupt = _interrupt(document)
        self.keeps_typed_text = document.get("keeps_typed_text") is True
        self.notify_socket = _text(document, "notify_socket", "")
        self.columns = min(_MAX_DIMENSION, int(_number(document, "columns", 80.0)) or 80)
        self.sandbox = _sandbox(document)
        self.calls_environment = _variables(document.get("calls_environment", {}), "spec.json: calls_environment")
        self.rows = min(_MAX_DIMENSION, int(_number(document, "rows", 24.0)) or 24)

    @property
    def is_protocol(self) -> bool:
        """Whether the program is an agent that is spoken to over pipes."""
        return self.mode in _PROTOCOLS


def read_spec(folder: str) -> Spec:
    """Return what ``spec.json`` of the folder asks for.

    Raises:
        SpecError: The file is missing, unreadable, not JSON, or a field has the wrong form.
    """
    return Spec(_read_mapping(os.path.join(folder, "spec.json")))


def take_environment(folder: str) -> dict[str, str]:
    """Return the program's environment and delete the file that held it, whatever it holds.

    Raises:
        SpecError: The file is missing, unreadable, or not a mapping of names to texts.
    """
    path = os.path.join(folder, "launch-environment.json")
    try:
        variables = _read_mapping(path)
    finally:
        try:
            os.unlink(path)
        except OSError:
            pass
    return _variables(variables, "launch-environment.json")


def _variables(told: object, where: str) -> dict[str, str]:
    if not isinstance(told, dict):
        message = f"{where} must be an object"
        raise SpecError(message)
    environment = {}
    for name, value in told.items():
        if not isinstance(value, str) or not name or "=" in name or not _is_passable(name + value):
            message = f"{where}: the variable {name[:80]!r} cannot be passed to a program"
            raise SpecError(message)
        environment[name] = value
    return environment


def _sandbox(document: dict[str, object]) -> dict[str, object] | None:
    layout = document.get("sandbox")
    if layout is not None and not isinstance(layout, dict):
        message = "spec.json: sandbox must be an object"
        raise SpecError(message)
    return layout


def _read_mapping(path: str) -> dict[str, object]:
    name = os.path.basename(path)
    try:
        with open(path, "rb") as file:
            document = documents.parse(file.read().decode("utf-8", "surrogateescape"))
    except OSError as error:
        message = f"{name} cannot be read: {error.strerror}"
        raise SpecError(message) from error
    except ValueError as error:
        message = f"{name} is damaged: {error}"
        raise SpecError(message) from error
    if not isinstance(document, dict):
        message = f"{name} is damaged: an object is expected"
        raise SpecError(message)
    return document


def _text(document: dict[str, object], key: str, default: str | None = None) -> str:
    value = document.get(key, default)
    if not isinstance(value, str) or (default is None and not value) or not _is_passable(value):
        message = f"spec.json: {key} must be a text without NUL"
        raise SpecError(message)
    return value


def _texts(document: dict[str, object], key: str) -> list[str]:
    value = document.get(key)
    if not isinstance(value, list) or not value or not value[0]:
        message = f"spec.json: {key} must name a program"
        raise SpecError(message)
    texts = [text for text in value if isinstance(text, str) and _is_passable(text)]
    if len(texts) != len(value):
        message = f"spec.json: {key} holds something other than texts without NUL"
        raise SpecError(message)
    return texts


def _interrupt(document: dict[str, object]) -> list[str]:
    names = document.get("interrupt", ["TERM"])
    if (
        not isinstance(names, list)
        or not names
        or not all(isinstance(name, str) and name in INTERRUPTS for name in names)
    ):
        message = f"spec.json: interrupt must be a list of some of {', '.join(INTERRUPTS)}"
        raise SpecError(message)
    return names


def _conversation(document: dict[str, object]) -> dict[str, object]:
    conversation = document.get("conversation", {})
    if not isinstance(conversation, dict):
        message = "spec.json: conversation must be an object"
        raise SpecError(message)
    return conversation


def _number(document: dict[str, object], key: str, default: float) -> float:
    value = document.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        message = f"spec.json: {key} must be a number from 0 up"
        raise SpecError(message)
    return value


def _is_passable(text: str) -> bool:
    """Return whether the system can take the text as an argument."""
    try:
        return b"\0" not in text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
