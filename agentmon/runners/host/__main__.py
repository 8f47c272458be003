"""Entry point of the host: ``python -I -S <this file> <execution folder>``."""

from __future__ import annotations

import os
import sys

# Isolated mode leaves out this folder; appended, so that nothing of the package's surroundings hides a standard module.
sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])

from agentmon.runners.host.host import main

if __name__ == "__main__":
    # Without the interpreter's tidying up, which takes milliseconds: all files are written unbuffered.
    os._exit(main(sys.argv[1:]))
