"""``python -m agentmon.worker``: the worker as a process; ``--background`` lets go of the parent before it loads."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run the worker until it is told to stop."""
    is_background = "--background" in sys.argv[1:]
    if is_background:
        if os.fork():
            os._exit(0)
        os.setsid()
    from agentmon.worker.main import run_foreground  # noqa: PLC0415 - the parent must be let go before this loads

    return run_foreground(makes_home=not is_background)


if __name__ == "__main__":
    sys.exit(main())
