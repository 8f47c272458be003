"""``agentmon tmux-status``: the numbers of the board for the status bar of tmux; the standard library alone."""

from agentmon.cli.output import say_clean_line
from agentmon.cli.status import cost_words, find_database_path, find_worker_seen_at, worker_silence
from agentmon.store.status_counts import StatusCounts, find_status_counts

HINT = "agentmon tmux-status [--plain]"


def print_tmux_status(words: list[str]) -> int:
    """Print one line in tmux's own format; what cannot be read is a question mark, since a status bar asks again.

    Args:
        words: What follows ``tmux-status`` on the command line; ``--plain`` leaves the colours out.
    """
    unknown = [word for word in words if word != "--plain"]
    if unknown:
        from agentmon.cli.output import tell_error  # noqa: PLC0415 - only a wrong command line needs it

        tell_error(f"tmux-status does not take {unknown[0]!r}", hint=HINT)
        return 2
    database_path = find_database_path()
    counts = find_status_counts(database_path)
    is_plain = "--plain" in words
    if counts is None:
        say_clean_line(_coloured("agentmon ?", "", is_plain=is_plain))
        return 0
    counts.worker_seen_at = find_worker_seen_at(counts, database_path)
    say_clean_line(" ".join(_coloured(text, style, is_plain=is_plain) for text, style in _parts(counts)))
    return 0


def _parts(counts: StatusCounts) -> list[tuple[str, str]]:
    parts = [(f"●{counts.running}/{counts.running_limit}", "fg=green" if counts.running else "")]
    if counts.queued:
        parts.append((f"◌{counts.queued}", ""))
    if counts.is_paused:
        parts.append(("‖", "fg=yellow"))
    if counts.needs_you:
        parts.append((f"◆{counts.needs_you}", "fg=yellow,bold"))
    if counts.overlapping:
        parts.append((f"⚠{counts.overlapping}", "fg=yellow"))
    if counts.worker_seen_at is not None:
        parts.append((f"?{worker_silence(counts)}", "fg=yellow"))
    cost = cost_words(counts).strip().removesuffix(" today")
    if cost:
        parts.append((cost, ""))
    return parts


def _coloured(text: str, style: str, *, is_plain: bool) -> str:
    # In tmux's formats a doubled # is one.
    text = text if is_plain else text.replace("#", "##")
    return f"#[{style}]{text}#[default]" if style and not is_plain else text
