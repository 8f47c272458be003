"""What a branch would make of its base, found out in objects of our own; and the commit of that, made in a tree aside.

The commit is made by the person's own git, with their hooks and settings. Nobody's branch, index or file changes here.
"""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from agentmon.domain.errors import ConflictError, GitError
from agentmon.domain.merges import FileConflict, Forecast, MergeHow, few
from agentmon.domain.plain_text import plain_line
from agentmon.domain.worktrees import is_readable_base
from agentmon.workspaces import worktree_filling, worktrees
from agentmon.workspaces.comparison import tree_of
from agentmon.workspaces.contained import ContainedFolder
from agentmon.workspaces.files import FileState
from agentmon.workspaces.git import Git, GitFailedError, names, require_version
from agentmon.workspaces.index_lock import IndexLock, copy_index, locks_of, remove_left_locks
from agentmon.workspaces.repositories import Repository, find_repository

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from agentmon.domain.merges import Merged
    from agentmon.domain.worktrees import Worktree

_log = logging.getLogger(__name__)

_OLDEST: Final = (2, 38)
"""The first with ``merge-tree --write-tree``."""
_NO_WORKTREE: Final = {"user.name": "agentmon", "user.email": "agentmon@localhost"}
_MAX_SAID: Final = 1000
_HEAD_OF_OPERATION: Final = ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START")
_QUIET: Final = {
    "advice.detachedHead": "false",
    "core.sparseCheckout": "false",
    "rebase.autoStash": "false",
    "rebase.updateRefs": "false",
    "rebase.autoSquash": "false",
    "rebase.rebaseMerges": "false",
    "merge.autoStash": "false",
    "submodule.recurse": "false",
}
"""What the tree aside is not for; the rest is as the person has set it."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working tree of the repository."""

    path: Path
    repository: Repository

    def git(self, index: Path) -> Git:
        """Return git on it with an index of our own; its files and its own index are only read."""
        git = worktrees.git_of(self.repository)
        return replace(git, work_tree=self.path, cwd=None, index=index)

    @property
    def person(self) -> Git:
        """The person's own git in it."""
        return Git(git_dir=self.repository.git_dir, cwd=self.path, acts_as_person=True, limit_s=600.0)


def require_identity(folder: Path) -> None:
    """Refuse where git does not know who commits.

    Raises:
        ConflictError: It does not.
    """
    git = Git(git_dir=folder, cwd=folder, acts_as_person=True)
    for name in ("GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"):
        try:
            git.run("var", name)
        except GitFailedError as error:
            raise ConflictError(
                "git does not know who you are, and so cannot commit",
                hint='git config --global user.name "Your Name"; git config --global user.email you@example.org',
            ) from error


def foretell(worktree: Worktree, *, into: str | None, how: MergeHow) -> Forecast:
    """Return what merging the worktree's branch would do, with what is uncommitted in it; nothing is touched.

    Args:
        worktree: Of the task.
        into: The branch that gets it; None for the one from which it was made.
        how: What becomes of its commits.

    Raises:
        ConflictError: It cannot be merged as things are; the hint says what to do.
        GitError: git is too old, or failed; or the worktree is not what agentmon made.
    """
    require_version(_OLDEST, "merging needs it")
    tree = _require_at_rest(worktree)
    git = worktrees.git_of(worktrees.recorded(worktree))
    into = _require_base(git, worktree, into)
    checkout = find_checkout(git, worktree, into)
    with TemporaryDirectory(prefix="agentmon-merge-") as folder:
        private = _private(git, tree, Path(worktree.path), Path(folder))
        base, tip = _commit(git, f"refs/heads/{into}"), _commit(git, f"refs/heads/{worktree.branch}")
        uncommitted = _uncommitted(private)
        whole = _with_uncommitted(private, tip) if uncommitted else tip
        subjects = _lines(private, "log", "--format=%s", f"{base}..{whole}")
        if uncommitted:
            subjects = subjects[1:]
        if how is MergeHow.REBASE:
            result, conflicts = _replayed(private, base, whole)
        else:
            result, conflicts = _merged(private, base, whole)
        return _forecast(
            private,
            checkout,
            Forecast(
                into=into,
                base_commit=base,
                how=how,
                tip=tip,
                commits=tuple(subjects),
                uncommitted=tuple(uncommitted),
                conflicts=conflicts,
            ),
            result,
            Path(folder),
        )


def foretell_undo(worktree: Worktree, merged: Merged) -> Forecast:
    """Return what a commit that takes a merge back would do to its base as it is now; nothing is touched.

    Raises:
        ConflictError: The base does not have the merge any more, or something goes on where it is checked out.
        GitError: git is too old, or failed.
    """
    require_version(_OLDEST, "merging needs it")
    repository = worktrees.recorded(worktree)
    git = worktrees.git_of(repository)
    into = _require_base(git, worktree, merged.into)
    checkout = find_checkout(git, worktree, into)
    base = _commit(git, f"refs/heads/{into}")
    if not is_ancestor(git, merged.commit, base):
        raise ConflictError(
            f"{into} does not have {merged.commit[:10]} any more", hint="nothing is left to take back there"
        )
    with TemporaryDirectory(prefix="agentmon-merge-") as folder:
        private = _private(git, repository, None, Path(folder))
        result, conflicts = _reverted(private, base, merged)
        subjects = _lines(private, "log", "--format=%s", f"{merged.before}..{merged.commit}")
        known = Forecast(into=into, base_commit=base, how=None, commits=tuple(subjects), conflicts=conflicts)
        return _forecast(private, checkout, known, result, Path(folder))


def conflicting(
    git: Git, sides: Mapping[str, tuple[FileState | None, FileState | None, FileState | None]]
) -> frozenset[str]:
    """Return which files conflict when two states of them are merged, in objects of our own.

    Args:
        git: That sees the contents.
        sides: By path: what both come from, and the two states; None where there is no file.

    Raises:
        GitError: git is too old, or failed.
    """
    require_version(_OLDEST, "foretelling a conflict needs it")
    with TemporaryDirectory(prefix="agentmon-merge-") as folder:
        objects = Path(folder) / "objects"
        objects.mkdir()
        kept = tuple(one for one in (git.objects, *git.alternates) if one is not None)
        git = replace(git, objects=objects, alternates=kept, settings={**git.settings, **_NO_WORKTREE})
        trees = [tree_of(replace(git, index=Path(folder) / f"index-{at}"), sides, at) for at in range(3)]
        base = git.run("commit-tree", trees[0], data=b"base\n").decode().strip()
        ours, theirs = (git.run("commit-tree", tree, "-p", base, data=b"side\n").decode().strip() for tree in trees[1:])
        return frozenset(conflict.path for conflict in _merged(git, ours, theirs)[1])


def states_in_common(one: Path, other: Path, paths: Collection[str]) -> dict[str, FileState]:
    """Return what the newest commit that two working trees have in common has at some paths; else nothing.

    Raises:
        GitError: git failed.
    """
    repositories = [find_repository(tree) for tree in (one, other)]
    heads = [repository.head() for repository in repositories if repository is not None]
    if repositories[0] is None or len(heads) != len(repositories) or None in heads:
        return {}
    git = worktrees.git_of(repositories[0])
    common = worktrees.answer(git, "merge-base", *(str(head) for head in heads))
    found = {}
    for line in names(git.run("ls-tree", "-z", "--full-tree", common, "--", *sorted(paths))) if common else ():
        facts, _, path = line.partition("\t")
        mode, _, ref = facts.split(" ")
        found[path] = FileState(int(mode, 8), ref)
    return found


def commit_all(worktree: Worktree, message: str, *, folder: Path, runs_hooks: bool) -> bool:
    """Commit all that is uncommitted in a worktree on its branch, as ``git commit`` does; return whether there was any.

    Its index is written last, from one of our own: whatever fails or is killed before leaves it as it was.

    Raises:
        GitError: A hook refused, or git failed; the message has its words.
    """
    tree = _require_at_rest(worktree)
    checkout = Checkout(Path(worktree.path), tree)
    index = folder / "worktree-index"
    copy_index(tree, index)
    git = checkout.git(index)
    if not _uncommitted(git):
        return False
    person = replace(checkout.person, index=index)
    person.run("add", "--all")
    # Otherwise whoever committed it was killed before the index followed.
    is_new = not _is_committed(git)
    if is_new:
        text = folder / "worktree-message"
        text.write_text(message, "utf-8", "surrogateescape")
        try:
            _spoken(person, "commit", *_quietly(text, runs_hooks=runs_hooks))
        except GitError:
            # It may have been killed behind the commit.
            if not finish_commit(worktree, folder=folder):
                raise
    finish_commit(worktree, folder=folder)
    return is_new


def finish_commit(worktree: Worktree, *, folder: Path) -> bool:
    """Let the index of a worktree be that of its newest commit, where ``commit_all`` has made it and not got to that.

    Returns whether it has. A lock that its git left is removed.

    Raises:
        GitError: Another git works there, or the worktree is not there any more.
    """
    index = folder / "worktree-index"
    if not index.exists():
        return False
    tree = worktrees.linked(worktree)
    text = folder / "worktree-message"
    if text.exists():
        remove_left_locks(locks_of(tree, worktree.branch), since=text.stat().st_mtime)
    git = Checkout(Path(worktree.path), tree).git(index)
    is_made = _is_committed(git)
    if is_made:
        with IndexLock(tree, f"agentmon-merge-{worktree.id}") as lock:
            lock.install(index)
    index.unlink()
    return is_made


def _is_committed(git: Git) -> bool:
    """Return whether all of an index is in the newest commit."""
    return git.run("write-tree").decode().strip() == _tree(git, "HEAD")


@contextmanager
def made_aside(
    worktree: Worktree,
    forecast: Forecast,
    *,
    message: str,
    undone: Merged | None,
    folder: Path,
    lock: int,
    runs_hooks: bool,
) -> Iterator[tuple[str, Path]]:
    """Make the commit that the base becomes in a tree of its own; give it and the tree, which is removed afterwards.

    Args:
        worktree: Of the task.
        forecast: What is to be done; its base is what the commit goes on from.
        message: Of the commit; a rebase keeps those of the branch.
        undone: The merge that is taken back; None to merge.
        folder: Where the tree is made.
        lock: A descriptor that git holds on to.
        runs_hooks: Whether the hooks of the person run.

    Raises:
        ConflictError: It conflicts all the same.
        GitError: A hook refused, or git failed; the message has its words.
    """
    tree = folder / f"merge-{worktree.task_number}"
    repository = worktrees.recorded(worktree)
    git = replace(worktrees.git_of(repository), held_locks=(lock,))
    git = replace(git, settings={**git.settings, **_QUIET})
    begins_at = forecast.tip if forecast.how is MergeHow.REBASE else forecast.base_commit
    text = folder / "message"
    text.write_text(message, "utf-8", "surrogateescape")
    remove_aside(worktree, folder)
    try:
        git.run("worktree", "add", "--quiet", "--lock", "--detach", "--", str(tree), begins_at)
        # Without the lock, which a program that a hook leaves behind would hold for ever.
        person = Git(git_dir=tree, cwd=tree, acts_as_person=True, settings=_QUIET, limit_s=git.limit_s)
        # Looked for where the person works: the folder of hooks may be ignored itself.
        if runs_hooks and _has_hooks(replace(person, cwd=Path(worktree.source))):
            # They need what the agent's own worktree was given: tools that are ignored, settings.
            worktree_filling.bring_along(tree, Path(worktree.source), say=_log.info)
        checks = () if runs_hooks else ("--no-verify",)
        written = _quietly(text, runs_hooks=runs_hooks)
        try:
            if undone is not None:
                result, _ = _reverted(replace(git, settings={**git.settings, **_NO_WORKTREE}), begins_at, undone)
                person.run("read-tree", "-m", "-u", "HEAD", result)
                _spoken(person, "commit", *written)
            elif forecast.how is MergeHow.REBASE:
                _spoken(person, "rebase", "--quiet", "--no-fork-point", *checks, forecast.base_commit)
            elif forecast.how is MergeHow.SQUASH:
                _spoken(person, "merge", "--quiet", "--ff", "--squash", forecast.tip)
                _spoken(person, "commit", *written)
            else:
                _spoken(person, "merge", "--quiet", "--no-ff", "--no-log", *checks, "--file", str(text), forecast.tip)
        except worktrees.WorktreeError as error:
            unmerged = names(person.run("diff", "--name-only", "-z", "--diff-filter=U"))
            if unmerged:
                raise ConflictError(
                    f"conflicts with {forecast.into}: {few(unmerged)}; nothing was changed", hint=error.hint
                ) from error
            raise
        yield person.run("rev-parse", "HEAD").decode().strip(), tree
    finally:
        # What a hook has left at work may still write there; the next one removes it.
        with suppress(OSError):
            remove_aside(worktree, folder)


def remove_aside(worktree: Worktree, folder: Path) -> None:
    """Remove the tree that ``made_aside`` makes, as far as it is there."""
    tree = folder / f"merge-{worktree.task_number}"
    worktrees.remove_tree(tree)
    if Path(worktree.repository or "").is_dir():
        worktrees.unregister(replace(worktree, path=str(tree)))


def find_checkout(git: Git, worktree: Worktree, branch: str) -> Checkout | None:
    """Return where a branch is checked out; None where it is nowhere.

    Raises:
        ConflictError: A rebase, merge or the like goes on there, it is there twice, or its folder is gone.
    """
    found = []
    for path, repository in _trees(git, worktree, branch):
        head = worktrees.answer(worktrees.git_of(repository), "symbolic-ref", "--quiet", "HEAD")
        is_here = head == f"refs/heads/{branch}"
        marks = (what for mark, what in worktrees.IN_PROGRESS.items() if (repository.git_dir / mark).exists())
        under_way = next(marks, None)
        if under_way is not None and (is_here or _is_about(repository, branch)):
            raise ConflictError(
                f"{under_way} of {branch} is in progress in {path}",
                hint=f"finish or abort it: git -C {path} status says how",
            )
        if is_here:
            found.append(Checkout(path, repository))
    if len(found) > 1:
        places = " and ".join(str(one.path) for one in found)
        raise ConflictError(f"{branch} is checked out in {places}", hint="switch one of them to another branch")
    return found[0] if found else None


def has_commits_beyond(worktree: Worktree, bases: Sequence[str]) -> bool:
    """Return whether the branch of a worktree has a commit that none of these refs has; those that are gone count not.

    Raises:
        GitError: The repository or the branch is gone.
    """
    git = worktrees.git_of(worktrees.recorded(worktree))
    known = [one for one in bases if worktrees.answer(git, "rev-parse", "--verify", "--quiet", f"{one}^{{commit}}")]
    counted = git.run("rev-list", "--count", f"refs/heads/{worktree.branch}", "--not", *known, "--")
    return counted.strip() != b"0"


def is_ancestor(git: Git, commit: str, of: str) -> bool:
    """Return whether a commit is in the history of another one."""
    return git.start("merge-base", "--is-ancestor", commit, of).ends_with(0)


def _trees(git: Git, worktree: Worktree, branch: str) -> list[tuple[Path, Repository]]:
    """Return the working trees of a repository: those that git knows, and the one that the worktree was made from.

    Raises:
        ConflictError: The folder of the one that has the branch is gone.
    """
    paths = [Path(worktree.source)]
    for line in names(git.run("worktree", "list", "--porcelain", "-z")):
        if line.startswith("worktree "):
            paths.append(Path(line.removeprefix("worktree ")))
        elif line == f"branch refs/heads/{branch}" and not paths[-1].exists():
            raise ConflictError(
                f"{branch} is checked out in {paths[-1]}, which is gone",
                hint=f"git -C {worktree.source} worktree prune forgets it",
            )
    found: dict[Path, tuple[Path, Repository]] = {}
    for path in paths:
        repository = find_repository(path)
        if repository is not None and repository.common_dir == Path(worktree.repository or ""):
            found.setdefault(repository.git_dir, (path, repository))
    return list(found.values())


def _is_about(repository: Repository, branch: str) -> bool:
    """Return whether a rebase or bisect, which leaves HEAD detached, is one of this branch."""
    for name in _HEAD_OF_OPERATION:
        path = repository.git_dir / name
        if path.is_file() and path.read_text("utf-8", "replace").strip() in {branch, f"refs/heads/{branch}"}:
            return True
    return False


def _require_at_rest(worktree: Worktree) -> Repository:
    tree = worktrees.linked(worktree)
    under_way = next((what for mark, what in worktrees.IN_PROGRESS.items() if (tree.git_dir / mark).exists()), None)
    if under_way is not None:
        raise ConflictError(
            f"{under_way} is in progress in the worktree {worktree.path}",
            hint=f"let the agent finish it (`agentmon message {worktree.task_number} …`), "
            f"or look with git -C {worktree.path} status",
        )
    head = worktrees.head_of(worktree)
    if head != worktree.branch:
        raise ConflictError(
            f"the worktree {worktree.path} is on {plain_line(head)} instead of {worktree.branch}",
            hint=f"git -C {worktree.path} switch {worktree.branch}",
        )
    return tree


def _require_base(git: Git, worktree: Worktree, into: str | None) -> str:
    into = into or worktree.base_branch
    number = worktree.task_number
    if into is None:
        raise ConflictError(
            f"#{number} was made from a detached head, and so has no branch to be merged into",
            hint=f"name one: agentmon merge {number} --into main",
        )
    is_branch = is_readable_base(into) and worktrees.answer(
        git, "rev-parse", "--verify", "--quiet", f"refs/heads/{into}^{{commit}}"
    )
    if not is_branch:
        raise ConflictError(
            f"there is no branch {plain_line(into)} in {worktree.source}",
            hint="`git branch` lists the branches; --into names one",
        )
    if into == worktree.branch:
        raise ConflictError(f"{into} is the branch of #{number} itself", hint="name another one with --into")
    return into


def _commit(git: Git, name: str) -> str:
    commit = worktrees.answer(git, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if commit is None:
        raise worktrees.WorktreeError(f"{name.removeprefix('refs/heads/')} is gone")
    return commit


def _lines(git: Git, *words: str) -> list[str]:
    return git.run(*words, "--").decode("utf-8", "replace").splitlines()


def _private(git: Git, tree: Repository, path: Path | None, folder: Path) -> Git:
    """Return git that reads the repository and writes objects and index into a folder of ours."""
    objects = folder / "objects"
    objects.mkdir()
    index = folder / "index"
    copy_index(tree, index)
    return replace(
        git,
        git_dir=tree.git_dir,
        work_tree=path,
        cwd=path or tree.git_dir,
        settings={**git.settings, **_NO_WORKTREE},
        objects=objects,
        alternates=(tree.objects,),
        index=index,
    )


def _uncommitted(git: Git) -> list[str]:
    lines = git.run(
        "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"
    )
    return [line[3:] for line in names(lines)]


def _with_uncommitted(git: Git, tip: str) -> str:
    git.run("add", "--all")
    tree = git.run("write-tree").decode().strip()
    return git.run("commit-tree", tree, "-p", tip, data=b"uncommitted\n").decode().strip()


def _merged(git: Git, ours: str, theirs: str) -> tuple[str, tuple[FileConflict, ...]]:
    """Return the tree of a merge of two commits, and the files that conflict in it."""
    words = ("merge-tree", "--write-tree", "-z", "--name-only", ours, theirs)
    tree, *told = names(git.run(*words, fine=(0, 1)))
    if not told:
        return tree, ()
    end = told.index("") if "" in told else len(told)
    return tree, tuple(
        FileConflict(path=path, kind=_kinds(told[end + 1 :]).get(path, "contents"))
        for path in dict.fromkeys(told[:end])
    )


def _kinds(told: Sequence[str]) -> dict[str, str]:
    """Return the kind of each conflict by path, out of messages: a count, the paths, the kind, and the message."""
    kinds: dict[str, str] = {}
    place = 0
    while place < len(told) and told[place].isdecimal():
        paths = told[place + 1 : place + 1 + int(told[place])]
        kind = told[place + 1 + len(paths)]
        if kind.startswith("CONFLICT ("):
            kinds |= dict.fromkeys(paths, kind.removeprefix("CONFLICT (").removesuffix(")"))
        place += len(paths) + 3
    return kinds


def _replayed(git: Git, base: str, tip: str) -> tuple[str, tuple[FileConflict, ...]]:
    """Return the tree of the branch's commits again on top of the base, and the files at which that stops."""
    if git.run("rev-list", "--merges", f"{base}..{tip}", "--"):
        raise ConflictError(
            "the branch has merge commits, which a rebase would take apart", hint="--how squash or --how merge"
        )
    words = ("rev-list", "--reverse", "--topo-order", "--right-only", "--cherry-pick", f"{base}...{tip}", "--")
    result = base
    for commit in git.run(*words).decode().split():
        parent = worktrees.answer(git, "rev-parse", "--verify", "--quiet", f"{commit}^")
        if parent is None:
            raise ConflictError("the branch has no commit in common with its base", hint="--how merge")
        tree, conflicts = _merged_over(git, parent, result, commit)
        if conflicts:
            return tree, conflicts
        result = git.run("commit-tree", tree, "-p", result, data=b"replayed\n").decode().strip()
    return _tree(git, result), ()


def _reverted(git: Git, base: str, merged: Merged) -> tuple[str, tuple[FileConflict, ...]]:
    """Return the tree of the base without what a merge brought, and the files that conflict in it."""
    return _merged_over(git, merged.commit, base, merged.before)


def _merged_over(git: Git, common: str, ours: str, theirs: str) -> tuple[str, tuple[FileConflict, ...]]:
    """Merge two commits over a third one, also where it is not their common one; git 2.40 has an option for that."""
    sides = [
        git.run("commit-tree", _tree(git, side), "-p", common, data=b"side\n").decode().strip()
        for side in (ours, theirs)
    ]
    return _merged(git, *sides)


def _tree(git: Git, commit: str) -> str:
    return git.run("rev-parse", f"{commit}^{{tree}}").decode().strip()


def _forecast(git: Git, checkout: Checkout | None, known: Forecast, result: str, folder: Path) -> Forecast:
    if known.conflicts:
        return replace(known, checkout=_path(checkout))
    changed = names(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", known.base_commit, result))
    if not changed:
        raise ConflictError(
            f"there is nothing to merge: {known.into} has all of it"
            if known.how is not None
            else f"there is nothing to take back: {known.into} has none of it any more",
            hint="`agentmon worktrees` shows the branch" if known.how is not None else "",
        )
    blocked: Sequence[str] = ()
    if checkout is not None:
        index = folder / "checkout-index"
        copy_index(checkout.repository, index)
        looking = replace(checkout.git(index), objects=git.objects, alternates=git.alternates)
        blocked = find_blocked(looking, known.base_commit, result, changed)
    return replace(known, files=len(changed), checkout=_path(checkout), blocked=tuple(blocked))


def find_blocked(git: Git, base: str, result: str, changed: Sequence[str]) -> list[str]:
    """Return the files in a checkout of the base whose own changes stand in the way of another tree.

    Args:
        git: On the checkout, with a copy of its index, which is refreshed.
        base: What is checked out.
        result: A tree or commit.
        changed: The files that differ between the two.
    """
    git.run("update-index", "-q", "--refresh", fine=(0, 1))
    # What is ignored git would overwrite without a word.
    known = {*names(git.run("ls-files", "-z"))}
    files = ContainedFolder(git.work_tree or git.git_dir)
    in_the_way = sorted({one for path in changed if path not in known for one in files.in_the_way(path, known)})
    try:
        git.run("read-tree", "-m", "-u", "-n", base, result)
    except GitFailedError as error:
        # git names the first alone.
        modified = {*names(git.run("diff-files", "-z", "--name-only"))}
        staged = {*names(git.run("diff-index", "--cached", "-z", "--name-only", base))}
        unmerged = {line.partition("\t")[2] for line in names(git.run("ls-files", "-u", "-z"))}
        found = sorted({*in_the_way} | ({*changed} & (modified | staged)) | unmerged)
        return found or [plain_line(str(error))]
    return in_the_way


def _path(checkout: Checkout | None) -> str | None:
    return None if checkout is None else str(checkout.path)


def _quietly(text: Path, *, runs_hooks: bool) -> tuple[str, ...]:
    return ("--quiet", "--file", str(text), *(() if runs_hooks else ("--no-verify",)))


def _has_hooks(git: Git) -> bool:
    """Return whether the person has any hook for the tree in which their git works."""
    place = git.cwd or git.git_dir
    if not place.is_dir():
        return False
    folder = Path(place, os.fsdecode(git.run("rev-parse", "--git-path", "hooks").strip()))
    return folder.is_dir() and any(path.suffix != ".sample" for path in folder.iterdir())


def _spoken(git: Git, *words: str) -> None:
    """Let the person's git work, with its last words, or those of a hook, in the error."""
    running = git.start(*words)
    try:
        running.end()
    except GitFailedError as error:
        said = plain_line(running.warnings.strip()[-_MAX_SAID:]) or "it said nothing"
        raise worktrees.WorktreeError(
            f"git {words[0]} failed: {said}",
            hint="nothing was merged; mend that and try again, or pass --no-verify where a hook is wrong",
        ) from error
