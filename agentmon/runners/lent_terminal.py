"""A terminal that is lent to another program: what interrupts that one ends nothing else."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_FROM_KEYS: Final = (signal.SIGINT, signal.SIGQUIT)


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    r"""Let a ctrl+c or ctrl+\ be for the other program alone; a handler, unlike SIG_IGN, is not handed down."""
    before = {number: signal.signal(number, lambda *_: None) for number in _FROM_KEYS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
