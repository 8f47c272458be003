"""Entry point of the demo agent: ``python -I -S <this file> [--pace SECONDS] [--session-id ID]``."""

from __future__ import annotations

import os
import sys
import uuid

# Isolated mode leaves out the package's own folder.
sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])  # noqa: PTH100 - no other import before the path is set

from agentmon.runners.demo_agent.plays import answer_back, choose_format, repair_discount
from agentmon.runners.demo_agent.wire import Interrupted, Wire

_DEFAULT_PACE_S = 0.4
_INTERRUPTED = 130


def main(arguments: list[str]) -> int:
    """Play until the input is closed; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    session_id = options.get("--session-id") or options.get("--resume") or str(uuid.uuid4())
    wire = Wire(pace_s=float(options.get("--pace", _DEFAULT_PACE_S)), session_id=session_id)
    is_first = "--resume" not in options
    code = 0
    while (said := wire.next_prompt()) is not None:
        play = answer_back(said)
        if is_first:
            play = choose_format if "catalogue" in said else repair_discount
        is_first = False
        code = 0
        try:
            wire.begin_turn()
            last_words = play(wire)
            wire.say(last_words)
            wire.end_turn(last_words)
        except Interrupted:
            code = 1
            wire.end_turn("", is_interrupted=True)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        # Its time is up, or a person stops it.
        sys.exit(_INTERRUPTED)
