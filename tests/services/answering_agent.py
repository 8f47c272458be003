"""An agent for tests that answers whatever it is asked with the text of a file: ``answering_agent.py FILE …``."""

from __future__ import annotations

import sys
from pathlib import Path

# It is started in isolated mode.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from agentmon.runners.demo_agent.wire import Wire


def main(answer: Path, arguments: list[str]) -> None:
    """Answer until the input is closed; what was asked is kept beside the answer."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    wire = Wire(pace_s=0.0, session_id=options["--session-id"])
    while (said := wire.next_prompt()) is not None:
        answer.with_suffix(".asked").write_text(said)
        wire.begin_turn()
        wire.say(answer.read_text())
        wire.end_turn(answer.read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
