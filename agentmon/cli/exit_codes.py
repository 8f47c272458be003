"""Exit codes of the commands; imported before anything else, so it imports nothing."""

DONE = 0
FAILED = 1
USAGE = 2
BUDGET_WARNED = 10
BUDGET_SPENT = 11
TIMED_OUT = 124
"""What ``timeout`` of the GNU core utilities returns."""
INTERRUPTED = 130
"""128 + SIGINT, as shells count."""
