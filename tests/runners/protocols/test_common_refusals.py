from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.runners.protocols.registry import ADAPTERS, make_adapter

if TYPE_CHECKING:
    from collections.abc import Mapping


def _refusals(protocol: str, command: Mapping[str, object], *, has_ended: bool) -> list[dict[str, object]]:
    adapter = make_adapter({"protocol": protocol, "working_dir": "/project", "start": "fresh"})
    adapter.start(0)
    if has_ended:
        adapter.receive_end(1)
    return adapter.command({"id": "c1", **command}, 2).events


@pytest.mark.parametrize("protocol", ADAPTERS)
@pytest.mark.parametrize(
    ("command", "has_ended", "error"),
    [
        ({"type": "message", "text": "more"}, True, "The agent has ended; nothing reaches it any more."),
        ({"type": "dance"}, False, "This command is not known."),
        ({"type": "message", "text": " \n"}, False, "A message needs a text."),
        ({"type": "answer", "request_id": "r9", "decision": "allow"}, False, "The agent does not ask this."),
        ({"type": "interrupt"}, False, "The agent does nothing that could be interrupted."),
        ({"type": "set_model", "model": " "}, False, "It needs a name."),
        ({"type": "set_permission_mode", "permission_mode": "x" * 201}, False, "It needs a name."),
    ],
)
def test_the_same_refusal_is_said_in_the_same_words_whatever_the_protocol(
    protocol: str, command: dict[str, object], has_ended: bool, error: str
) -> None:
    events = _refusals(protocol, command, has_ended=has_ended)

    assert events == [{"kind": "command", "command_id": "c1", "was_obeyed": False, "error": error}]


@pytest.mark.parametrize("protocol", ADAPTERS)
def test_what_is_no_message_is_told_in_the_same_words_a_few_times(protocol: str) -> None:
    adapter = make_adapter({"protocol": protocol, "working_dir": "/project", "start": "fresh"})
    adapter.start(0)

    events = adapter.receive(b"Warning: hello\n" * 9, 1).events

    told = "The agent wrote something that is no message: Warning: hello"
    assert [event["text"] for event in events] == [told] * 4 + [f"{told} Further ones are passed over in silence."]
