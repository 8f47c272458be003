"""Worktrees of a person's repository that agentmon makes, looks through before they go, and takes away.

Each is locked by git, so that no clean-up of somebody else takes it, and by a file beside it while it is made or
removed. Nothing outside of agentmon's own folder of worktrees is ever removed.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import GitError
from agentmon.domain.worktrees import Loss, LossKind, WorktreeStatus, is_readable_base
from agentmon.paths import find_workspace_root
from agentmon.private_folders import make_private_folder
from agentmon.workspaces.files import refusals_told
from agentmon.workspaces.git import Git, GitFailedError, GitTimeoutError, names
from agentmon.workspaces.index_lock import locks_of, remove_left_locks
from agentmon.workspaces.repositories import Repository, find_repository

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentmon.domain.worktrees import Worktree

_LIMIT_S: Final = 600.0
_LOOK_LIMIT_S: Final = 60.0
_MOST_NAMES: Final = 5
_MOST_SUFFIXES: Final = 1000
_MOST_KILLED: Final = 3
"""How often a git is started again that somebody has killed."""
_TRASH: Final = ".removing"
_KEPT_REFS: Final = "refs/agentmon/removed"
IN_PROGRESS: Final = {
    "rebase-merge": "a rebase", "rebase-apply": "a rebase", "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisect",
}  # fmt: skip
SETTINGS: Final = {"submodule.recurse": "false", "protocol.file.allow": "always", "advice.detachedHead": "false"}


class WorktreeError(GitError):
    """A worktree cannot be made, looked through or removed."""


class BranchTakenError(WorktreeError):
    """The name of its branch was free, and is no more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A worktree that can be made."""

    worktree: Worktree
    inside: str
    """The folder in it in which the run works; empty for its top."""


@contextmanager
def held(worktree: Worktree) -> Iterator[int]:
    """Hold the lock of a worktree, which a git that outlives its caller holds on; give its descriptor.

    Raises:
        WorktreeError: Somebody else makes or removes it right now.
        SnapshotError: What is done meanwhile is refused by the system.
    """
    lock = Path(f"{worktree.path}.lock")
    with refusals_told(lock.parent):
        make_private_folder(lock.parent)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise WorktreeError(
                    f"the worktree {worktree.path} is being made or removed", hint="try again in a moment"
                ) from error
            # From now on, by the clock of the disk.
            os.utime(descriptor)
            yield descriptor
        finally:
            os.close(descriptor)


def plan(worktree: Worktree, folder: str) -> Plan:
    """Return how a worktree for a run in ``folder`` is made; nothing is written.

    Its base is the present commit of the folder unless another one was asked for. A path or a branch that is taken gets
    a suffix.

    Raises:
        GitError: None can be made; the message says why.
    """
    place = Path(folder).resolve()
    if not place.is_dir():
        raise WorktreeError(f"the folder {folder} is not there", hint="make it, or choose another one for the task")
    top = find_workspace_root(place)
    repository = _repository_at(top)
    if repository is None:
        raise WorktreeError(
            f"{folder} is in no git repository, so that it has no worktrees",
            hint=f"`agentmon task edit {worktree.task_number} --isolation folder` runs it in the folder",
        )
    git = git_of(repository, cwd=top)
    commit, branch = worktree.base_commit, worktree.base_branch
    if commit is None:
        commit, branch = _base(git, worktree.base_branch, top)
    inside = "" if place == top else os.path.relpath(place, top)
    if inside and answer(git, "cat-file", "-t", f"{commit}:{inside}") != "tree":
        raise WorktreeError(
            f"{inside} is not in commit {commit[:10]}, and so would not be in a worktree",
            hint=f"commit it, or `agentmon task edit {worktree.task_number} --isolation folder`",
        )
    planned = replace(
        worktree,
        source=str(top),
        repository=str(repository.common_dir),
        path=_free_path(worktree.path),
        branch=_free_branch(git, worktree.branch),
        base_branch=branch,
        base_commit=commit,
    )
    return Plan(worktree=planned, inside=inside)


def make(worktree: Worktree, *, lock: int, adopts: bool = False, say: Callable[[str], None]) -> None:
    """Make a planned worktree; what an earlier try left of it is taken away first.

    Args:
        worktree: As it was planned.
        lock: The descriptor of its lock.
        adopts: Whether the branch is known to be its own; otherwise one that is there has to go on from the base.
        say: Takes each line for the log of the run.

    Raises:
        BranchTakenError: Somebody else has made a branch of this name meanwhile.
        GitError: It cannot be made; what there is of it stays until it is made again or removed.
    """
    repository = recorded(worktree)
    git = replace(git_of(repository), held_locks=(lock,))
    _clear(worktree)
    commit = worktree.base_commit or ""
    tip = answer(git, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}")
    if tip is not None:
        goes_on = ("merge-base", "--is-ancestor", commit, tip)
        if not adopts and _exit_code(git, *goes_on) != 0:
            raise BranchTakenError(f"there is another branch {worktree.branch} now")
        words = ["worktree", "add", "--lock", "--", worktree.path, worktree.branch]
    else:
        words = ["worktree", "add", "--lock", "--no-track", "-b", worktree.branch, "--", worktree.path, commit]
    with _without_left_locks(locks_of(repository, worktree.branch)[:1], lock):
        said = git.start(*words)
        said.end()
    for line in said.warnings.splitlines():
        say(line)
    tree = linked(worktree)
    (tree.git_dir / "locked").write_text(f"agentmon: task #{worktree.task_number}\n")
    base = worktree.base_branch or "a detached head"
    say(f"worktree {worktree.path}")
    say(f"branch {worktree.branch} from {commit[:10]} ({base})")


def linked(worktree: Worktree) -> Repository:
    """Return the repository as the worktree sees it.

    Raises:
        WorktreeError: What stands there is not the worktree that was made: the main one, another one, or none.
    """
    path = Path(worktree.path)
    found = find_repository(path) if path.is_dir() and not path.is_symlink() else None
    is_own = (
        found is not None
        and found.git_dir != found.common_dir
        and found.git_dir.parent == found.common_dir / "worktrees"
        and str(found.common_dir) == worktree.repository
        and _points_back(found.git_dir, path)
    )
    if not is_own or found is None:
        raise WorktreeError(
            f"{worktree.path} is not the worktree of branch {worktree.branch} any more",
            hint="`agentmon worktrees` shows what is left; its branch has its commits",
        )
    return found


def is_missing(worktree: Worktree) -> bool:
    """Return whether nothing stands at the path of a worktree."""
    return not os.path.lexists(worktree.path)


@contextmanager
def checked_out(worktree: Worktree, commit: str | None) -> Iterator[None]:
    """Check out another commit for a moment, in a worktree in which nothing differs from its branch.

    Raises:
        GitError: The commit is gone, or git failed.
    """
    tree = linked(worktree)
    git = replace(git_of(tree, cwd=Path(worktree.path)), work_tree=Path(worktree.path))
    if commit in {None, git.run("rev-parse", "HEAD").decode().strip()}:
        yield
        return
    git.run("checkout", "--quiet", "--detach", str(commit))
    try:
        yield
    finally:
        git.run("checkout", "--quiet", worktree.branch, "--")


def head_of(worktree: Worktree) -> str:
    """Return the branch or commit that is checked out in a worktree.

    Raises:
        GitError: It is not there.
    """
    git = git_of(linked(worktree))
    return answer(git, "symbolic-ref", "--quiet", "--short", "HEAD") or git.run("rev-parse", "HEAD").decode().strip()


def count_commits(worktree: Worktree) -> tuple[int, int]:
    """Return how many commits the branch has that its base has not, and the other way round.

    Raises:
        GitError: One of them is gone.
    """
    git = git_of(recorded(worktree), limit_s=_LOOK_LIMIT_S)
    base = worktree.base_commit or ""
    if worktree.base_branch is not None:
        base = answer(git, "rev-parse", "--verify", "--quiet", f"{worktree.base_branch}^{{commit}}") or base
    counted = git.run("rev-list", "--count", "--left-right", f"refs/heads/{worktree.branch}...{base}", "--")
    ahead, behind = counted.split()
    return int(ahead), int(behind)


def find_losses(worktree: Worktree) -> tuple[Loss, ...]:
    """Return all that would be lost if the worktree and its branch went.

    What is in the folder is named also where nobody asked git to look at it: untracked and ignored files. What is the
    same beside it, in the folder that it was made from, is none.
    """
    losses = []
    try:
        if not is_missing(worktree):
            losses += _losses_in_folder(worktree, linked(worktree))
        losses += _losses_of_branch(worktree)
    except (GitError, OSError) as error:
        losses.append(Loss(kind=LossKind.UNREADABLE, count=1, names=(str(error),)))
    return tuple(losses)


def remove(worktree: Worktree, *, folder: Path, lock: int) -> str | None:
    """Take a worktree and its branch away; return the ref that keeps its commits, None where none is needed.

    It is moved aside in one step first: a kill before that leaves all as it was, and one behind it leaves something
    that ``finish_removal`` ends.

    Args:
        worktree: One that agentmon has a record of.
        folder: Agentmon's own folder of worktrees; only what is in it is removed.
        lock: The descriptor of its lock.

    Raises:
        GitError: It is not what the record says, or git cannot be asked; nothing was removed.
    """
    require_own(worktree, folder)
    kept_ref = _keep_commits(worktree, lock)
    aside = folder / _TRASH / worktree.id
    if not is_missing(worktree):
        if worktree.repository is not None and worktree.status is not WorktreeStatus.MAKING:
            linked(worktree)
        make_private_folder(aside.parent)
        Path(worktree.path).rename(aside)
    finish_removal(worktree, folder=folder, lock=lock)
    return kept_ref


def finish_removal(worktree: Worktree, *, folder: Path, lock: int) -> None:
    """Take away what is left of a worktree whose folder is gone or was moved aside: registration, branch, files.

    Raises:
        GitError: git cannot be asked; doing it again is harmless.
    """
    require_own(worktree, folder)
    if worktree.repository is not None and Path(worktree.repository).is_dir():
        git = replace(git_of(recorded(worktree)), held_locks=(lock,))
        if is_missing(worktree):
            unregister(worktree)
        with contextlib.suppress(FileNotFoundError):
            begun_at = (folder / _TRASH / worktree.id).lstat().st_ctime
            remove_left_locks(locks_of(recorded(worktree), worktree.branch, deletes=True), since=begun_at)
        tip = answer(git, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}")
        # A branch that is checked out elsewhere, or that nothing is kept of, stays.
        if tip is not None and (tip == worktree.base_commit or _is_kept(git, tip, worktree.branch)):
            _delete_branch(git, worktree.branch, lock)
    for name in (worktree.id, f"{worktree.id}.partial"):
        remove_tree(folder / _TRASH / name)
    Path(f"{worktree.path}.lock").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        Path(worktree.path).parent.rmdir()


def _delete_branch(git: Git, branch: str, lock: int) -> None:
    """Delete a branch, unless it is checked out elsewhere; again where its git was killed."""
    locks = locks_of(Repository(git.git_dir, git.git_dir), branch, deletes=True)
    for _ in range(_MOST_KILLED):
        try:
            with _without_left_locks(locks, lock):
                git.run("branch", "-D", "--", branch)
        except (GitFailedError, GitTimeoutError) as error:
            if error.is_killed:
                continue
        return


@contextmanager
def _without_left_locks(locks: Sequence[Path], lock: int) -> Iterator[None]:
    """Remove the locks that a git leaves when it is killed; that of agentmon's own ref, the first, also from before.

    Raises:
        GitError: The git in it failed.
    """
    remove_left_locks(locks[:1], since=0)
    try:
        yield
    except (GitFailedError, GitTimeoutError) as error:
        if error.is_killed:
            remove_left_locks(locks, since=os.fstat(lock).st_mtime)
        raise


def is_moved_aside(worktree: Worktree, folder: Path) -> bool:
    """Return whether a removal of the worktree was begun, and not ended."""
    return os.path.lexists(folder / _TRASH / worktree.id)


def require_own(worktree: Worktree, folder: Path) -> None:
    """Refuse a path that is not two levels below agentmon's own folder, as it is made; also by way of a link.

    Raises:
        WorktreeError: It is another one: the main worktree, a folder above it, or a link to it.
    """
    path = Path(worktree.path)
    is_inside = path.is_absolute() and path.parent.parent == folder and ".." not in path.parts
    if not is_inside or path.parent.resolve() != folder.resolve() / path.parent.name or path.is_symlink():
        raise WorktreeError(
            f"{worktree.path or 'its path'} is no worktree of agentmon, which are in {folder}; nothing was removed"
        )


def git_of(repository: Repository, *, cwd: Path | None = None, limit_s: float = _LIMIT_S) -> Git:
    """Return git on a person's repository, with their settings and without their hooks."""
    return Git(
        git_dir=repository.git_dir,
        cwd=cwd or repository.git_dir,
        reads_settings_of_person=True,
        settings=SETTINGS,
        limit_s=limit_s,
    )


def answer(git: Git, *words: str) -> str | None:
    """Return what git answers, as one line; None when it says that there is none."""
    return git.run(*words, fine=(0, 1, 128)).decode("utf-8", "surrogateescape").strip() or None


def _exit_code(git: Git, *words: str) -> int:
    try:
        git.run(*words)
    except GitFailedError as error:
        return error.exit_code
    return 0


def _repository_at(top: Path) -> Repository | None:
    found = find_repository(top)
    if found is None and (top / "HEAD").is_file() and (top / "objects").is_dir() and (top / "refs").is_dir():
        return Repository(top, top)
    return found


def recorded(worktree: Worktree) -> Repository:
    """Return the repository that a worktree belongs to.

    Raises:
        WorktreeError: It is gone.
    """
    common_dir = Path(worktree.repository or "")
    if worktree.repository is None or not (common_dir / "HEAD").is_file():
        raise WorktreeError(f"the repository {worktree.repository or worktree.source} is gone")
    return Repository(common_dir, common_dir)


def _base(git: Git, asked: str | None, top: Path) -> tuple[str, str | None]:
    """Return the commit, and the branch whose tip it is."""
    if asked is not None:
        commit = None
        if is_readable_base(asked):
            commit = answer(git, "rev-parse", "--verify", "--quiet", f"{asked}^{{commit}}")
        if commit is None:
            raise WorktreeError(
                f"{top} has no commit, branch or tag {asked!r}", hint="`git branch --all` lists the branches"
            )
        is_branch = answer(git, "rev-parse", "--verify", "--quiet", f"refs/heads/{asked}") is not None
        return commit, asked if is_branch else None
    commit = answer(git, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if commit is None:
        raise WorktreeError(
            f"{top} has no commit yet, so that nothing can be put into a worktree",
            hint="commit something, or run it in the folder: `--isolation folder`",
        )
    return commit, answer(git, "symbolic-ref", "--quiet", "--short", "HEAD")


def _free_path(path: str) -> str:
    for number in range(1, _MOST_SUFFIXES):
        free = path if number == 1 else f"{path}-{number}"
        if not os.path.lexists(free):
            return free
    raise WorktreeError(f"there are too many folders like {path}", hint="`agentmon worktrees prune` removes old ones")


def _free_branch(git: Git, branch: str) -> str:
    refs = git.run("for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads/").decode("utf-8", "surrogateescape")
    # On disks that do not tell small letters from capitals two branches may differ by more.
    taken = {name.lower() for name in refs.splitlines()}
    folders = {name[:place] for name in taken for place, sign in enumerate(name) if sign == "/"}

    def is_free(name: str) -> bool:
        return name.lower() not in taken | folders

    parts = branch.lower().split("/")
    if any("/".join(parts[:count]) in taken for count in range(1, len(parts))):
        branch = branch.replace("/", "-")
    for number in range(1, _MOST_SUFFIXES):
        free = branch if number == 1 else f"{branch}-{number}"
        if is_free(free):
            return free
    raise WorktreeError(f"there are too many branches like {branch}", hint="remove some of them")


def _points_back(git_dir: Path, path: Path) -> bool:
    """Return whether git's own record of a worktree names this path."""
    try:
        told = os.fsdecode((git_dir / "gitdir").read_bytes().rstrip(b"\n"))
    except OSError:
        return False
    return (git_dir / told).parent.resolve() == path.resolve()


def _clear(worktree: Worktree) -> None:
    """Take away what a try that was cut off left: only git and the set-up have written there."""
    if not is_missing(worktree):
        aside = Path(worktree.path).parents[1] / _TRASH / f"{worktree.id}.partial"
        make_private_folder(aside.parent)
        remove_tree(aside)
        Path(worktree.path).rename(aside)
        remove_tree(aside)
    unregister(worktree)


def unregister(worktree: Worktree) -> None:
    """Let git forget this one worktree, whose folder is gone; those of others stay, whatever became of them."""
    for git_dir in _registrations(Path(worktree.repository or ""), Path(worktree.path)):
        # git itself looks at the whole list, and would refuse one that a kill has left half-written.
        remove_tree(git_dir)


def _registrations(common_dir: Path, path: Path) -> Iterator[Path]:
    with contextlib.suppress(FileNotFoundError):
        for git_dir in sorted((common_dir / "worktrees").iterdir()):
            if _points_back(git_dir, path):
                yield git_dir


def remove_tree(path: Path) -> None:
    """Remove a folder with all that is in it; one that is not there is fine."""
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
        return

    def make_writable(function: Callable[..., object], name: str, _: object) -> None:
        # Tools write caches that their owner may not write to either.
        Path(name).parent.chmod(0o700)
        function(name)

    shutil.rmtree(path, onerror=make_writable)


def _losses_in_folder(worktree: Worktree, tree: Repository) -> list[Loss]:
    path = Path(worktree.path)
    git = Git(
        git_dir=tree.git_dir, work_tree=path, reads_settings_of_person=True, settings=SETTINGS, limit_s=_LOOK_LIMIT_S
    )
    words = ("status", "--porcelain=v1", "-z", "--untracked-files=normal", "--ignored=traditional")
    lines = names(git.run(*words, "--ignore-submodules=none", "--no-renames"))
    changed = [line[3:] for line in lines if line[:2] not in {"??", "!!"}]
    untracked = [line[3:] for line in lines if line[:2] == "??" and not _is_beside(line[3:], worktree)]
    ignored = [line[3:] for line in lines if line[:2] == "!!" and not _is_beside(line[3:], worktree)]
    under_way = {what for mark, what in IN_PROGRESS.items() if (tree.git_dir / mark).exists()}
    losses = [
        _loss(LossKind.UNCOMMITTED, changed),
        _loss(LossKind.UNTRACKED, untracked),
        _loss(LossKind.IGNORED, ignored),
        _loss(LossKind.IN_PROGRESS, sorted(under_way)),
        _loss(LossKind.SUBMODULE, _commits_in_submodules(tree)),
    ]
    return [loss for loss in losses if loss.count]


def _loss(kind: LossKind, found: Sequence[str]) -> Loss:
    return Loss(kind=kind, count=len(found), names=tuple(found[:_MOST_NAMES]))


def _is_beside(name: str, worktree: Worktree) -> bool:
    """Return whether an ignored file is the same in the folder that the worktree was made from, or a link to it."""
    own, other = Path(worktree.path, name), Path(worktree.source, name)
    if own.is_symlink():
        return own.readlink() == other
    try:
        return own.is_file() and other.is_file() and own.read_bytes() == other.read_bytes()
    except OSError:
        return False


def _commits_in_submodules(tree: Repository) -> list[str]:
    """Return the submodules with commits that are nowhere else, since theirs go with the worktree."""
    found = []
    modules = tree.git_dir / "modules"
    for head in sorted(modules.rglob("HEAD")) if modules.is_dir() else ():
        if not (head.parent / "objects").is_dir():
            continue
        git = git_of(Repository(head.parent, head.parent), limit_s=_LOOK_LIMIT_S)
        count = answer(git, "rev-list", "--count", "HEAD", "--branches", "--not", "--remotes", "--tags")
        if count != "0":
            found.append(str(head.parent.relative_to(modules)))
    return found


def _losses_of_branch(worktree: Worktree) -> list[Loss]:
    if worktree.repository is None:
        return []
    git = git_of(recorded(worktree), limit_s=_LOOK_LIMIT_S)
    tips = _tips(worktree, git)
    if not tips:
        return []
    others = ("--not", f"--exclude={worktree.branch}", "--branches", "--tags", "--remotes")
    alone = _subjects(git, *tips, *others)
    unpushed = _subjects(git, *tips, "--not", "--remotes") if alone and git.run("remote") else []
    losses = [_loss(LossKind.COMMITS, alone), _loss(LossKind.UNPUSHED, unpushed)]
    return [loss for loss in losses if loss.count]


def _subjects(git: Git, *commits: str) -> list[str]:
    return git.run("log", "--format=%h %s", *commits, "--").decode("utf-8", "replace").splitlines()


def _tips(worktree: Worktree, git: Git) -> list[str]:
    """Return the commits that the worktree holds: of its branch, and what is checked out instead."""
    found = [answer(git, "rev-parse", "--verify", "--quiet", f"refs/heads/{worktree.branch}")]
    for git_dir in _registrations(Path(worktree.repository or ""), Path(worktree.path)):
        own = git_of(Repository(git_dir, Path(worktree.repository or "")))
        found += [answer(own, "rev-parse", "--verify", "--quiet", name) for name in ("HEAD", "ORIG_HEAD")]
    return list(dict.fromkeys(tip for tip in found if tip is not None))


def _keep_commits(worktree: Worktree, lock: int) -> str | None:
    """Write recovery refs for the commits that are on no other branch; return the name of the first, None for none."""
    if worktree.repository is None or not (Path(worktree.repository) / "HEAD").is_file():
        return None
    git = git_of(recorded(worktree))
    first = None
    for number, tip in enumerate(_tips(worktree, git), 1):
        others = ("--not", f"--exclude={worktree.branch}", "--branches", "--tags", "--remotes")
        if git.run("rev-list", "--count", tip, *others, "--").strip() == b"0":
            continue
        ref = f"{_KEPT_REFS}/{worktree.task_number}-{worktree.id[-12:]}" + (f"-{number}" if number > 1 else "")
        with _without_left_locks([Path(worktree.repository, f"{ref}.lock")], lock):
            git.run("update-ref", "--create-reflog", "-m", f"agentmon: {worktree.branch} was removed", ref, tip)
        first = first or ref
    return first


def _is_kept(git: Git, tip: str, branch: str) -> bool:
    """Return whether a commit is on another branch, a tag or a remote, or under a recovery ref."""
    others = (f"--exclude={branch}", "--branches", "--tags", "--remotes", f"--glob={_KEPT_REFS}/*")
    return git.run("rev-list", "--count", tip, "--not", *others, "--").strip() == b"0"
