"""The description of a task, written in the person's own editor."""

import os
from dataclasses import replace
from pathlib import Path

from agentmon.domain.errors import RunnerError
from agentmon.domain.tasks import TaskDraft
from agentmon.runners.text_editor import LentFile, find_editor, lend_file, run_editor


def described(drafts_dir: Path, draft: TaskDraft) -> tuple[TaskDraft, LentFile]:
    """Return the draft with the description that a person wrote in their editor, and its file, to be removed then.

    Raises:
        UsageError: There is no editor.
        RunnerError: The editor failed; what was written stays in the file that the hint names.
    """
    argv = find_editor(os.environ)
    lent = lend_file(drafts_dir, draft.description, title=draft.title)
    written = run_editor(argv, lent, os.environ)
    if written.complaint:
        if written.text == draft.description:
            lent.remove()
            raise RunnerError(f"{written.complaint}; nothing was changed")
        raise RunnerError(f"{written.complaint}; nothing was stored", hint=f"what was written is in {lent.path}")
    return replace(draft, description=written.text), lent
