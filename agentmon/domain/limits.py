"""Limits that hold unless a setting says otherwise; imports nothing, since the quickest commands read it."""

DEFAULT_RUNNING_LIMIT = 4
"""Most executions that run at one time; the default of the setting ``worker.max_running``."""
LARGEST_RUNNING_LIMIT = 1000
WARN_PERCENTS = (50, 80, 95)
"""How much of a budget is used when a person is warned; each once in a period."""
