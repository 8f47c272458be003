"""The words that name a command; kept apart, since telling them from folders must not import the commands."""

COMMAND_NAMES = frozenset(
    {
        "agents",
        "attach",
        "audit",
        "board",
        "demo",
        "doctor",
        "executions",
        "log",
        "pause",
        "resume",
        "run",
        "settings",
        "status",
        "stop",
        "task",
        "worker",
    },
)
