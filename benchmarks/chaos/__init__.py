"""Chaos: a queue under kill -9, a full disk and a missing tmux, and what must hold checked from outside afterwards.

``python -m benchmarks.chaos --minutes N --seed S``. Nothing that agentmon says of a program is believed: each program
keeps a ledger of its own outside the home, and a process beside all others samples ``/proc``.
"""
