"""A connection to an MCP server: started for it, and ended with all that it started when it closes."""

from __future__ import annotations

import logging
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from agentmon import __version__
from agentmon.domain.errors import AgentmonError, RunnerError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from typing import TextIO

    from mcp import Client

_INSTALL: Final = "-m pip install 'mcp>=2.3,<3'"
_PROBLEM_MAX_CHARACTERS: Final = 300


@asynccontextmanager
async def connect(
    server: Sequence[str],
    *,
    environ: Mapping[str, str],
    errors: TextIO,
    working_dir: str | None = None,
) -> AsyncIterator[Client]:
    """Start a server and give a client of it.

    Args:
        server: Its command.
        environ: Its environment.
        errors: An open file with a descriptor, which gets what the server says beside the protocol.
        working_dir: Where it starts; None means the folder of this process.

    Raises:
        RunnerError: The client library is missing, or the server cannot be started or does not speak the protocol.
    """
    try:
        from mcp import Client, StdioServerParameters  # noqa: PLC0415 - most of a second, and an extra
        from mcp.client.stdio import stdio_client  # noqa: PLC0415
        from mcp_types import Implementation  # noqa: PLC0415
    except ImportError as error:
        raise RunnerError(
            "MCP servers need the package mcp, which is not installed", hint=f"{sys.executable} {_INSTALL}"
        ) from error
    # What it cannot read it would tell on the terminal, over the screen.
    log = logging.getLogger("mcp")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    parameters = StdioServerParameters(
        command=server[0],
        args=list(server[1:]),
        env=dict(environ),
        cwd=working_dir,
        encoding_error_handler="replace",
    )
    try:
        async with Client(
            stdio_client(parameters, errlog=errors),
            client_info=Implementation(name="agentmon", version=__version__),
        ) as client:
            yield client
    except AgentmonError:
        raise
    except Exception as error:
        raise _problem(server[0], error) from error


def _problem(program: str, error: BaseException) -> AgentmonError:
    """Return the first error inside of groups of them, in words; one of agentmon's own as it is."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, AgentmonError):
        return error
    if isinstance(error, FileNotFoundError | PermissionError):
        return RunnerError(f"the MCP server {program} cannot be started: {error.strerror}", hint="check its command")
    words = " ".join(str(error).split())[:_PROBLEM_MAX_CHARACTERS] or type(error).__name__
    return RunnerError(f"the MCP server {program} does not answer as one: {words}")
