"""Runs command lines in processes of their own that need not import everything again: each is a fork of this one.

Reads one JSON request a line: words, folder, environment, and files for the three standard streams. Answers each with
the exit code of the process.
"""

from __future__ import annotations

import gc
import json
import os
import sys

import agentmon.__main__
import agentmon.cli.app
import agentmon.store.upgrade


def main() -> None:
    # A collection in a fork would copy the pages of everything that was imported.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become_command(request)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def _become_command(request: dict[str, object]) -> None:
    words, streams, environ = request["words"], request["streams"], request["environ"]
    assert isinstance(words, list)
    assert isinstance(streams, list)
    assert isinstance(environ, dict)
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(environ)
    for number, path in enumerate(streams):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(str(path), flags, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - the process's own
    sys.argv = ["agentmon", *(str(word) for word in words)]
    code = 1
    try:
        agentmon.__main__.main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
