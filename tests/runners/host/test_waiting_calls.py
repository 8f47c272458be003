"""What /proc says of the calls in which a process waits, whatever its registers hold."""

from __future__ import annotations

import os

import pytest

from agentmon.runners.host import waiting_calls


@pytest.mark.parametrize("call", [7, 23, 72, 73])
@pytest.mark.parametrize("address", ["0xffffffffffffffff", "0x8000000000000000", "0x1"])
def test_an_address_that_is_none_is_no_wait(monkeypatch: pytest.MonkeyPatch, call: int, address: str) -> None:
    told = f"{call} {address} {address} {address} {address} 0x0 0x0 0x7ffd 0x7f00"
    monkeypatch.setattr(waiting_calls, "_read", lambda _: told.encode())

    assert not waiting_calls.find_waits(os.getpid())
