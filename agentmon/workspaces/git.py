"""The one way in which git is called: free of what a person has set, and never for longer than a limit."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import GitError
from agentmon.domain.plain_text import plain_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import IO, Self

_OLDEST: Final = (2, 32)
"""The first that can be told to read no configuration of the person."""
_MAX_WORDS: Final = 300
# Source: git rev-parse --local-env-vars, git 2.39.
_OF_ONE_REPOSITORY: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT",
        "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_GRAFT_FILE",
        "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX", "GIT_SHALLOW_FILE",
        "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX",
    }
)  # fmt: skip

# What a person or a repository may have set that would run programs, change bytes, or write behind our back.
_SETTINGS: Final = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.fileMode": "true",
    "core.symlinks": "true",
    # Names that are nothing special here, such as git~1.
    "core.protectNTFS": "false",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "core.hooksPath": os.devnull,
    "core.looseCompression": "1",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "advice.detachedHead": "false",
}


class GitFailedError(GitError):
    """git ended with an exit code that says no.

    Attributes:
        exit_code: Of git; negative for a signal.
    """

    def __init__(self, message: str, *, exit_code: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code

    @property
    def is_killed(self) -> bool:
        """Whether a signal ended it, so that it may have left locks, and may have done what it was to do."""
        return self.exit_code < 0


class GitTimeoutError(GitError):
    """git took longer than its limit and was ended."""

    is_killed: Final = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """How git is called on one repository; each call is a process of its own.

    The repository is named, never looked for, so that git neither asks who owns it nor finds another one.
    """

    git_dir: Path
    work_tree: Path | None = None
    cwd: Path | None = None
    """Where it runs; without it in the work tree, or in the repository."""
    reads_settings_of_person: bool = False
    """For asking what a person has set; only where nothing is written and no file of the folder is read."""
    acts_as_person: bool = False
    """As when they type it in the work tree: their environment, settings and hooks, and git finds the repository."""
    settings: Mapping[str, str] = field(default_factory=dict)
    objects: Path | None = None
    alternates: tuple[Path, ...] = ()
    """Further folders of objects, which are only read."""
    index: Path | None = None
    takes_paths_literally: bool = True
    """Whether ``*`` in a path means itself; ``check-ignore`` takes paths so anyway, and refuses the word."""
    held_locks: tuple[int, ...] = ()
    """The descriptors of locks that hold until git has ended, also when this process is killed before."""
    limit_s: float = 120.0

    def run(self, *words: str, data: bytes = b"", fine: Sequence[int] = (0,)) -> bytes:
        """Return what git prints.

        Args:
            words: The command and its arguments; paths go through ``data`` where there can be many.
            data: What it reads.
            fine: Exit codes that are answers.

        Raises:
            GitError: It is missing, too old, takes longer than the limit, or ends with another exit code.
        """
        return self.start(*words).end(data, fine=fine)

    def start(self, *words: str) -> RunningGit:
        """Return git at work, so that another one can work beside it.

        Raises:
            GitError: It is missing, or too old.
        """
        # Hooks would take over how paths are read.
        is_literal = self.takes_paths_literally and not self.acts_as_person
        command = [git_program(), *(["--literal-pathspecs"] if is_literal else []), *words]
        folder = self.cwd or self.work_tree or self.git_dir
        errors = TemporaryFile()  # noqa: SIM115 - closed by the running git
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=self._environment(),
                pass_fds=self.held_locks,
                # The store is its owner's alone; what a person's repository and folders get is theirs to say.
                umask=-1 if self.objects is None else 0o077,
            )
        except OSError as error:
            errors.close()
            raise GitError(
                f"git could not be started in {plain_line(str(folder))}: {error.strerror}",
                hint="Check that the folder is there.",
            ) from error
        return RunningGit(process, errors, name=words[0], limit_s=self.limit_s, hint=self._hint)

    @property
    def _hint(self) -> str:
        """What to do where git says no."""
        fsck = "Try again; if it fails again, look with `git fsck` and `git status`"
        if self.objects is None:
            return f"{fsck}."
        return f"{fsck}; where these say nothing, {plain_line(str(self.objects.parent))} is damaged: move it away."

    def without_alternates(self) -> Git:
        """Return a git that sees only the objects of its own."""
        return replace(self, alternates=())

    def _environment(self) -> dict[str, str]:
        if self.acts_as_person:
            return self._environment_of_person()
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        environment |= {
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_PAGER": "cat",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_EDITOR": "false",
        }
        if self.work_tree is not None:
            environment["GIT_WORK_TREE"] = str(self.work_tree)
        if self.objects is not None:
            environment["GIT_OBJECT_DIRECTORY"] = str(self.objects)
        if self.alternates:
            environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.pathsep.join(map(_in_list, self.alternates))
        if self.index is not None:
            environment["GIT_INDEX_FILE"] = str(self.index)
        settings = dict(self.settings)
        if not self.reads_settings_of_person:
            environment |= {
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_ATTR_NOSYSTEM": "1",
            }
            settings = _SETTINGS | settings
        else:
            settings = {"core.fsmonitor": "false", "core.hooksPath": os.devnull} | settings
        return environment | _variables(settings)

    def _environment_of_person(self) -> dict[str, str]:
        environment = {name: value for name, value in os.environ.items() if name not in _OF_ONE_REPOSITORY}
        environment |= {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "GIT_EDITOR": ":", "GIT_MERGE_AUTOEDIT": "no"}
        if self.index is not None:
            environment["GIT_INDEX_FILE"] = str(self.index)
        # Its daemon would outlive the tree that it watches.
        return environment | _variables({"core.fsmonitor": "false", **self.settings})


def _variables(settings: Mapping[str, str]) -> dict[str, str]:
    variables = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        variables |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


class RunningGit:
    """One git at work."""

    def __init__(
        self, process: subprocess.Popen[bytes], errors: IO[bytes], *, name: str, limit_s: float, hint: str
    ) -> None:
        self._process = process
        self._errors = errors
        self._name = name
        self._limit_s = limit_s
        self._hint = hint
        self.warnings = ""
        """What it said beside its answer; there behind the end."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it where nobody waits for its answer any more."""
        if self._process.poll() is None:
            self._process.kill()
        with self._process:
            self._errors.close()

    def ends_with(self, code: int) -> bool:
        """Return whether it ends with an exit code, behind its end."""
        try:
            self.end()
        except GitFailedError as error:
            return error.exit_code == code
        return code == 0

    def end(self, data: bytes = b"", *, fine: Sequence[int] = (0,)) -> bytes:
        """Return what it prints, behind its end.

        Raises:
            GitError: As for ``Git.run``.
        """
        process = self._process
        with self._errors, process:
            try:
                answer, _ = process.communicate(data, timeout=self._limit_s)
            except subprocess.TimeoutExpired as error:
                raise GitTimeoutError(
                    f"git {self._name} took longer than {self._limit_s:g} s",
                    hint="The folder may be on a slow disk, or very large.",
                ) from error
            finally:
                if process.poll() is None:
                    process.kill()
            self._errors.seek(0)
            self.warnings = os.fsdecode(self._errors.read())
        if process.returncode not in fine:
            last_words = plain_line(self.warnings.strip(), max_characters=_MAX_WORDS)
            raise GitFailedError(
                f"git {self._name} failed with {process.returncode}: {last_words}",
                exit_code=process.returncode,
                hint=self._hint,
            )
        return answer


@functools.cache
def git_program() -> str:
    """Return the path of git.

    Raises:
        GitError: There is none on PATH, or it is too old.
    """
    program = shutil.which("git")
    if program is None:
        raise GitError("git is not installed, or not on PATH", hint="Install git 2.32 or newer.")
    _require(program, _OLDEST, "snapshots need it")
    return program


def require_version(oldest: tuple[int, int], what: str) -> None:
    """Refuse a git that is older than this.

    Args:
        oldest: The first that can do it.
        what: Says who needs it: ``merging needs it``.

    Raises:
        GitError: It is older, or missing.
    """
    _require(git_program(), oldest, what)


def _require(program: str, oldest: tuple[int, int], what: str) -> None:
    version = _version(program)
    if version is not None and version < oldest:
        raise GitError(
            f"git {version[0]}.{version[1]} is too old", hint=f"Install git {oldest[0]}.{oldest[1]} or newer; {what}."
        )


@functools.cache
def _version(program: str) -> tuple[int, int] | None:
    said = subprocess.run([program, "version"], capture_output=True, check=False, stdin=subprocess.DEVNULL, text=True)
    numbers = said.stdout.removeprefix("git version ").split(".")
    if len(numbers) > 1 and all(number.isdigit() for number in numbers[:2]):
        return int(numbers[0]), int(numbers[1])
    return None


def names(answer: bytes) -> list[str]:
    """Return the parts of an answer that end with NUL."""
    return [os.fsdecode(name) for name in answer.split(b"\0")[:-1]]


def joined(parts: Iterable[str]) -> bytes:
    """Return parts as git reads them with ``-z``: each with NUL at its end."""
    return b"".join(os.fsencode(part) + b"\0" for part in parts)


def _in_list(folder: Path) -> str:
    # A path with a separator or a quote in it stands in quotes, as C writes them.
    text = str(folder)
    if os.pathsep not in text and not text.startswith('"') and "\n" not in text:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
