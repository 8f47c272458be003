"""What an import could not read, as lines for a person."""

from agentmon.cli.output import tell
from agentmon.domain.plain_text import plain_line
from agentmon.worker.import_progress import FileProblem

_MOST_SHOWN = 5


def tell_problems(problems: tuple[FileProblem, ...]) -> None:
    """Print the first of them as notes, and how many more there are."""
    for problem in problems[:_MOST_SHOWN]:
        place = f"{problem.path}:{problem.offset}: " if problem.path else ""
        tell(f"note: passed over: {plain_line(f'{place}{problem.reason}', max_characters=500)}")
    if len(problems) > _MOST_SHOWN:
        tell(f"note: and {len(problems) - _MOST_SHOWN} more; --json lists them")
