"""A program in a sandbox: ``python -I -S <this file> <layout as JSON> <program> <argument>…``."""

from __future__ import annotations

import json
import os
import sys

# Isolated mode leaves out this folder; appended, so that nothing of the package's surroundings hides a standard module.
sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])  # noqa: PTH100 - as the host does

from agentmon.runners.host.signals import reset_signals
from agentmon.runners.sandbox.kernel import enter

if __name__ == "__main__":
    place = os.getcwd()  # noqa: PTH109
    try:
        enter(json.loads(sys.argv[1]))
    except OSError as error:
        sys.exit(f"the sandbox cannot be had: {error.strerror}")
    os.chdir(place)
    reset_signals()
    os.execvp(sys.argv[2], sys.argv[2:])
