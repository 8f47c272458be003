"""Starts workers that need not import everything again: each is a fork of this process.

Reads one JSON request a line, environment and log file, and answers each with a line once the worker has let go of it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback

import agentmon.runners.screens
import agentmon.store.upgrade
import agentmon.worker.main
import agentmon.worker.usage_importing


def main() -> None:
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            if os.fork():
                os._exit(0)
            _become_worker(request["environ"], request["log"])
        os.waitpid(pid, 0)
        sys.stdout.write("\n")
        sys.stdout.flush()


def _become_worker(environ: dict[str, str], log: str) -> None:
    code = 1
    try:
        os.setsid()
        os.chdir("/")
        os.environ.clear()
        os.environ.update(environ)
        for number, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_APPEND)):
            file = os.open(os.devnull if number == 0 else log, flags)
            os.dup2(file, number)
            os.close(file)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - the process's own
        code = agentmon.worker.main.run_foreground()
    except BaseException:  # noqa: BLE001 - the fork must never go on as the server
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    main()
