"""Merging as plain git does it, foretold first: in many random repositories, and where git has its corners."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from agentmon.domain.errors import ConflictError, GitError, NoRoomError, SnapshotError
from agentmon.domain.merges import MergeHow
from agentmon.workspaces import merging
from agentmon.workspaces.undo_journal import Journal
from tests.workspaces.merge_place import MergePlace, a_merge_place, commit, git, write
from tests.workspaces.worktree_place import WorktreePlace, a_repository

if TYPE_CHECKING:
    from collections.abc import Callable

_NAMES: Final = ("a", "b", "dir/c", "dir/deep/d", "e", "dir2")
_HOWS: Final = tuple(MergeHow)


def _change(folder: Path, chance: random.Random) -> None:
    """Change one path in one of the ways that a person or an agent would."""
    path = folder / chance.choice(_NAMES)
    match chance.randrange(7):
        case 0 | 1:
            if path.is_file() and not path.is_symlink():
                lines = path.read_bytes().split(b"\n")
                lines[chance.randrange(len(lines))] = b"%d" % chance.randrange(1000)
                path.write_bytes(b"\n".join(lines))
        case 2:
            _clear(path, folder)
            path.write_bytes(b"\n".join(b"%d" % number for number in range(chance.randrange(2, 12))))
        case 3:
            _remove(path)
        case 4:
            if path.is_file() and not path.is_symlink():
                path.chmod(chance.choice((0o644, 0o755)))
        case 5:
            _clear(path, folder)
            path.symlink_to(chance.choice(_NAMES))
        case 6:
            _clear(path, folder)
            path.write_bytes(bytes(chance.randrange(256) for _ in range(40)))


def _clear(path: Path, folder: Path) -> None:
    """Make room for a file, also where a file is in the place of one of its folders."""
    for around in reversed(path.relative_to(folder).parents[:-1]):
        if (folder / around).is_symlink() or (folder / around).is_file():
            (folder / around).unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _history(folder: Path, chance: random.Random, commits: int) -> None:
    for number in range(commits):
        for _ in range(chance.randrange(1, 4)):
            _change(folder, chance)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", f"commit {number}")


def _files(folder: Path) -> dict[str, tuple[bool, bytes]]:
    return {
        str(path.relative_to(folder)): (
            (True, os.fsencode(path.readlink())) if path.is_symlink() else (os.access(path, os.X_OK), path.read_bytes())
        )
        for path in folder.rglob("*")
        if path.relative_to(folder).parts[0] != ".git" and (path.is_symlink() or path.is_file())
    }


def _seen(repository: Path) -> tuple[str, str, str, dict[str, tuple[bool, bytes]]]:
    """Return the tree of the base, index and state, the stash, and all files."""
    return (
        git(repository, "rev-parse", "main^{tree}"),
        git(repository, "ls-files", "-s") + git(repository, "status", "--porcelain", "--untracked-files=all"),
        git(repository, "stash", "list"),
        _files(repository),
    )


def _plainly(repository: Path, branch: str, how: MergeHow) -> bool:
    """Merge with git alone, and return whether it did: in a clean tree, then forward where the changes are."""
    tree = repository.parent / "clean"
    git(repository, "worktree", "add", "--quiet", "--detach", str(tree), branch if how is MergeHow.REBASE else "main")
    steps = {
        MergeHow.SQUASH: [["merge", "--squash", branch], ["commit", "--message", "merged"]],
        MergeHow.MERGE: [["merge", "--no-ff", "--message", "merged", branch]],
        MergeHow.REBASE: [["rebase", "--quiet", "main"]],
    }[how]
    if not all(_succeeds(tree, *words) for words in steps):
        return False
    commit_id = git(tree, "rev-parse", "HEAD")
    # What is ignored git would overwrite; here nothing is.
    return _succeeds(repository, "merge", "--ff-only", commit_id)


def _succeeds(folder: Path, *words: str) -> bool:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_EDITOR": ":"}
    return not subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, check=False).returncode


def _random_place(folder: Path, chance: random.Random) -> MergePlace:
    lines = "".join(f"{number}\n" for number in range(8))
    place = a_merge_place(folder, a=lines, b="b\n", dir__c="c\nc\nc\n", dir__deep__d="d\n", e="e\n")
    _history(place.tree, chance, chance.randrange(1, 4))
    _history(place.repository, chance, chance.randrange(3))
    if chance.random() < 0.3:
        write(place.repository, stashed="s\n")
        git(place.repository, "stash", "push", "--quiet", "--include-untracked")
    for _ in range(chance.randrange(3)):
        _change(place.repository, chance)
    if chance.random() < 0.3:
        for path in place.repository.glob("[a-z]*"):
            os.utime(path, (1, 1), follow_symlinks=False)
    if chance.random() < 0.4:
        git(place.repository, "add", "--all")
        _change(place.repository, chance)
    return place


@pytest.mark.parametrize("seed", range(12))
def test_it_is_what_git_makes_of_it_with_all_local_changes_as_they_were(tmp_path: Path, seed: int) -> None:
    _compare(tmp_path, seed)


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_it_is_what_git_makes_of_it_in_many_repositories(tmp_path: Path) -> None:
    outcomes = [_compare(tmp_path / str(seed), seed) for seed in range(100, 140)]
    assert 5 < sum(outcomes) < 35


def _compare(folder: Path, seed: int) -> bool:
    """Merge in one copy as a person, and in the other as agentmon; return whether it could be merged."""
    chance = random.Random(seed)
    how = _HOWS[seed % 3]
    place = _random_place(folder / "ours", chance)
    copy = folder / "plain" / "api"
    shutil.copytree(place.repository, copy, symlinks=True)
    before = _seen(place.repository)

    is_merged = _plainly(copy, place.worktree.branch, how)
    try:
        forecast = place.foretell(how=how)
    except ConflictError:
        # There is nothing to merge: git makes a commit without a change, or none.
        assert _seen(copy)[0] == before[0] or not is_merged
        return False
    assert _seen(place.repository) == before
    if not is_merged:
        assert not forecast.is_possible, (seed, how)
        return False

    assert forecast.is_possible, (seed, how, forecast)
    place.merge(how=how)
    assert _seen(place.repository) == _seen(copy), (seed, how)
    git(place.repository, "fsck", "--strict", "--no-dangling")
    return True


def _worked(folder: Path, **files: str) -> MergePlace:
    """Return a place whose branch has one commit."""
    place = a_merge_place(folder, a="1\n2\n3\n", b="b\n")
    write(place.tree, **(files or {"a": "1\n2\n3\n4\n"}))
    commit(place.tree, "work")
    return place


def _hook(repository: Path, name: str, script: str) -> None:
    path = repository / ".git" / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_conflicts_are_foretold_by_file_and_kind_and_nothing_is_written(tmp_path: Path) -> None:
    place = _worked(tmp_path, a="1\nagent\n3\n")
    write(place.tree, b="uncommitted\n")
    write(place.repository, a="1\nperson\n3\n")
    (place.repository / "b").unlink()
    commit(place.repository, "meanwhile")
    objects = sorted(path.name for path in (place.repository / ".git").rglob("*"))

    for how in _HOWS:
        forecast = place.foretell(how=how)
        assert not forecast.is_possible
        assert "a" in {one.path for one in forecast.conflicts}
    told = {one.path: one.kind for one in place.foretell().conflicts}

    assert told == {"a": "contents", "b": "modify/delete"}
    assert sorted(path.name for path in (place.repository / ".git").rglob("*")) == objects
    assert git(place.tree, "status", "--porcelain") == "M b"


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_file_in_the_way_that_git_does_not_know_is_never_overwritten(tmp_path: Path, is_ignored: bool) -> None:
    place = a_merge_place(tmp_path, **{".gitignore": "*.env\n" if is_ignored else ""})
    write(place.tree, **{"secret.env": "agent's\n"})
    git(place.tree, "add", "--force", "secret.env")
    git(place.tree, "commit", "--quiet", "--message", "work")
    write(place.repository, **{"secret.env": "mine\n"})

    assert place.foretell().blocked == ("secret.env",)


def test_ignored_files_in_a_folder_that_becomes_a_file_are_in_the_way(tmp_path: Path) -> None:
    place = a_merge_place(tmp_path, **{".gitignore": "*.o\n", "out__x": "x\n"})
    shutil.rmtree(place.tree / "out")
    write(place.tree, out="a file\n")
    commit(place.tree, "work")
    write(place.repository, **{"out__kept.o": "mine\n"})

    assert place.foretell().blocked == ("out/kept.o",)


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        (["rebase", "--quiet", "other"], "rebase"),
        (["merge", "--quiet", "other"], "merge"),
        (["cherry-pick", "other"], "cherry-pick"),
        (["bisect", "start", "HEAD", "HEAD~1"], "bisect"),
    ],
)
def test_what_is_in_progress_where_the_base_is_checked_out_refuses(tmp_path: Path, begin: list[str], what: str) -> None:
    place = a_merge_place(tmp_path, a="1\n", c="c\n")
    git(place.repository, "switch", "--quiet", "--create", "other")
    write(place.repository, a="other\n")
    commit(place.repository, "other")
    git(place.repository, "switch", "--quiet", "main")
    write(place.repository, a="main\n")
    commit(place.repository, "main")
    write(place.tree, c="work\n")
    commit(place.tree, "work")
    subprocess.run(["git", *begin], cwd=place.repository, capture_output=True, check=False)
    before = _seen(place.repository)

    with pytest.raises(ConflictError, match=what) as refused:
        place.merge()

    assert refused.value.hint
    assert _seen(place.repository) == before


def test_a_base_that_is_checked_out_nowhere_moves_alone(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    git(place.repository, "switch", "--quiet", "--create", "elsewhere")
    write(place.repository, a="my own\n")
    before = _seen(place.repository)[1:]

    merged = place.merge()

    assert git(place.repository, "rev-parse", "main") == merged.commit
    assert git(place.repository, "show", "main:a") == "1\n2\n3\n4"
    assert _seen(place.repository)[1:] == before


def test_a_base_in_another_worktree_of_the_person_is_merged_there(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    git(place.repository, "worktree", "add", "--quiet", "-b", "release", str(tmp_path / "release"), "main")
    before = _seen(place.repository)

    assert place.foretell(into="release").checkout == str(tmp_path / "release")
    place.merge(into="release")

    assert (tmp_path / "release" / "a").read_text() == "1\n2\n3\n4\n"
    assert git(tmp_path / "release", "status", "--porcelain") == ""
    assert _seen(place.repository) == before


def test_a_detached_base_asks_for_a_branch(tmp_path: Path) -> None:
    repository = a_repository(tmp_path / "api")
    git(repository, "config", "user.name", "Ann")
    git(repository, "config", "user.email", "ann@example.org")
    git(repository, "switch", "--quiet", "--detach")
    place = MergePlace(repository, tmp_path / "merges", WorktreePlace(tmp_path / "worktrees").made(repository))
    write(place.tree, new="n\n")
    commit(place.tree, "work")

    with pytest.raises(ConflictError) as refused:
        place.foretell()
    place.merge(into="main")

    assert "--into" in refused.value.hint
    assert git(repository, "show", "main:new") == "n"
    assert not (repository / "new").exists()


@pytest.mark.parametrize("into", ["nowhere", "--all", "HEAD", "agentmon/12-mend-the-door", "origin/main"])
def test_what_is_no_branch_to_merge_into_is_refused(tmp_path: Path, into: str) -> None:
    with pytest.raises(ConflictError):
        _worked(tmp_path).foretell(into=into)


def test_a_hook_that_refuses_is_an_error_with_its_words_and_nothing_is_merged(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    _hook(place.repository, "pre-commit", "echo too many doors; exit 1")
    write(place.tree, b="uncommitted\n")
    before = _seen(place.repository)

    with pytest.raises(GitError, match="too many doors"):
        place.merge()

    assert _seen(place.repository) == before
    assert git(place.tree, "status", "--porcelain") == "M b"
    assert [path.name for path in place.folder.iterdir()] == ["lock"]
    place.merge(runs_hooks=False)
    assert git(place.repository, "log", "-1", "--format=%s") == "merged"


def test_hooks_see_what_is_committed_and_may_change_the_message(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    seen = tmp_path / "seen"
    _hook(place.repository, "pre-commit", f"git diff --cached --name-only > {seen}; cat a >> {seen}")
    _hook(place.repository, "commit-msg", 'echo "Change-Id: I1" >> "$1"')
    _hook(place.repository, "post-merge", f"echo merged >> {tmp_path}/told; exit 1")
    write(place.repository, a="mine\n")
    git(place.repository, "stash", "push", "--quiet")

    place.merge()

    assert seen.read_text() == "a\n1\n2\n3\n4\n"
    assert git(place.repository, "log", "-1", "--format=%B") == "merged\nChange-Id: I1"


@pytest.mark.parametrize("is_ignored", [False, True])
def test_hooks_have_the_ignored_files_that_worktrees_are_given(tmp_path: Path, is_ignored: bool) -> None:
    place = a_merge_place(tmp_path, **{".gitignore": "tool\n", ".worktreeinclude": "tool\n"})
    write(place.tree, new="n\n")
    commit(place.tree, "work")
    write(place.repository, tool=f"echo checked > {tmp_path}/told\n")
    _hook(place.repository, "pre-commit", "sh ./tool")
    if is_ignored:
        write(place.repository, **{".gitignore": "tool\nown-hooks\n", ".worktreeinclude": "tool\nown-hooks\n"})
        (place.repository / ".git" / "hooks").rename(place.repository / "own-hooks")
        git(place.repository, "config", "core.hooksPath", "own-hooks")

    merged = place.merge()

    assert (tmp_path / "told").read_text() == "checked\n"
    assert git(place.repository, "show", "--name-only", "--format=", merged.commit) == "new"


def test_commits_are_signed_where_the_person_signs(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    signer = tmp_path / "gpg"
    signer.write_text(
        "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED x' >&2\n"
        "printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nby-ann\\n-----END PGP SIGNATURE-----\\n'\n"
    )
    signer.chmod(0o755)
    git(place.repository, "config", "commit.gpgSign", "true")
    git(place.repository, "config", "gpg.program", str(signer))

    merged = place.merge(how=MergeHow.MERGE)
    signer.write_text("#!/bin/sh\necho no secret key >&2\nexit 2\n")
    write(place.tree, more="m\n")

    assert "by-ann" in git(place.repository, "cat-file", "commit", merged.commit)
    with pytest.raises(SnapshotError, match="failed to sign"):
        place.merge()


def test_a_base_that_moves_meanwhile_is_not_moved(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    other = f"env -u GIT_DIR -u GIT_INDEX_FILE git -C {place.repository} commit --quiet --allow-empty --message other"
    _hook(place.repository, "post-commit", f'rm "$0"; {other}')

    with pytest.raises(ConflictError, match="meanwhile"):
        place.merge()

    assert git(place.repository, "log", "--format=%s", "-1") == "other"
    assert git(place.repository, "status", "--porcelain") == ""
    place.merge()
    assert git(place.repository, "log", "--format=%s").splitlines() == ["merged", "other", "first"]


def test_another_git_at_work_where_the_base_is_checked_out_refuses(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    lock = place.repository / ".git" / "index.lock"
    lock.touch()

    with pytest.raises(ConflictError) as refused:
        place.merge()

    assert str(lock) in refused.value.hint
    assert lock.exists()
    assert git(place.repository, "log", "--format=%s") == "first"


@pytest.mark.parametrize("failing_at", [1, 2, 3])
def test_a_file_that_cannot_be_written_takes_all_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing_at: int
) -> None:
    place = _worked(tmp_path, a="agent\n", b="agent\n", c="agent\n")
    write(place.repository, mine="m\n")
    before = _seen(place.repository)
    calls = []
    place_one = Journal._place

    def fail(*words: object) -> bool:
        calls.append(words)
        if len(calls) == failing_at:
            raise OSError(28, "No space left on device", "a")
        return place_one(*words)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "_place", fail)
    with pytest.raises(SnapshotError, match="No space left"):
        place.merge()

    assert _seen(place.repository) == before
    assert not list((place.repository / ".git").glob("*lock*"))
    monkeypatch.undo()
    place.merge()
    assert (place.repository / "c").read_text() == "agent\n"


@pytest.mark.parametrize("how", _HOWS)
def test_a_merge_is_taken_back_by_a_commit(tmp_path: Path, how: MergeHow) -> None:
    place = _worked(tmp_path)
    write(place.tree, new="n\n")
    commit(place.tree, "more")
    tree = git(place.repository, "rev-parse", "main^{tree}")
    merged = place.merge(how=how)
    write(place.repository, later="l\n")
    commit(place.repository, "later")
    write(place.repository, b="mine\n")

    place.merge(undone=merged)

    assert git(place.repository, "log", "--format=%s").splitlines()[1] == "later"
    git(place.repository, "rm", "--quiet", "later")
    git(place.repository, "commit", "--quiet", "--message", "without", "--", "later")
    assert git(place.repository, "rev-parse", "main^{tree}") == tree
    assert (place.repository / "b").read_text() == "mine\n"
    with pytest.raises(ConflictError):
        place.merge(undone=merged)


def test_what_came_since_keeps_a_merge_from_being_taken_back(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    merged = place.merge()
    write(place.repository, a="1\n2\n3\nfour\n")
    commit(place.repository, "later")

    forecast = merging.foretell_undo(place.worktree, merged)

    assert [one.path for one in forecast.conflicts] == ["a"]


def test_there_may_be_nothing_to_merge(tmp_path: Path) -> None:
    place = a_merge_place(tmp_path)
    with pytest.raises(ConflictError, match="nothing"):
        place.foretell()
    write(place.tree, new="n\n")
    commit(place.tree, "work")
    place.merge()
    for how in _HOWS:
        with pytest.raises(ConflictError, match="nothing"):
            place.foretell(how=how)


def test_a_branch_with_merge_commits_is_not_rebased(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    write(place.repository, b="main\n")
    commit(place.repository, "main")
    git(place.tree, "merge", "--quiet", "--message", "from main", "main")

    with pytest.raises(ConflictError) as refused:
        place.foretell(how=MergeHow.REBASE)

    assert "squash" in refused.value.hint
    assert place.foretell().is_possible


def test_an_agent_that_is_on_another_branch_or_in_the_middle_of_something_is_not_merged(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    git(place.tree, "switch", "--quiet", "--create", "own-idea")
    with pytest.raises(ConflictError, match="own-idea"):
        place.foretell()
    git(place.tree, "switch", "--quiet", "--detach")
    with pytest.raises(ConflictError):
        place.foretell()
    git(place.tree, "switch", "--quiet", place.worktree.branch)
    git(place.tree, "bisect", "start", "HEAD", "HEAD~1")
    with pytest.raises(ConflictError, match="bisect"):
        place.foretell()


@pytest.mark.parametrize("path", ["root", "parent", "link", "empty", "deleted"])
def test_only_a_worktree_that_agentmon_made_is_ever_merged_from(tmp_path: Path, path: str) -> None:
    place = _worked(tmp_path)
    (tmp_path / "link").symlink_to(place.repository)
    paths = {
        "root": place.repository, "parent": tmp_path, "link": tmp_path / "link", "empty": "", "deleted": place.tree,
    }  # fmt: skip
    if path == "deleted":
        shutil.rmtree(place.tree)
    before = _seen(place.repository)

    with pytest.raises(GitError):
        merging.foretell(replace(place.worktree, path=str(paths[path])), into="main", how=MergeHow.SQUASH)

    assert _seen(place.repository) == before


def _bare(folder: Path) -> Path:
    a_repository(folder / "origin", a="1\n")
    git(folder, "clone", "--quiet", "--bare", str(folder / "origin"), str(folder / "api.git"))
    git(folder / "api.git", "worktree", "add", "--quiet", str(folder / "api.git" / "main"), "main")
    return folder / "api.git" / "main"


def _submodule(folder: Path) -> Path:
    a_repository(folder / "inner", a="1\n")
    a_repository(folder / "outer")
    git(folder / "outer", "submodule", "--quiet", "add", str(folder / "inner"), "lib")
    return folder / "outer" / "lib"


def _shallow(folder: Path) -> Path:
    a_repository(folder / "origin", a="1\n")
    write(folder / "origin", b="2\n")
    commit(folder / "origin", "second")
    git(folder, "clone", "--quiet", "--depth", "1", f"file://{folder}/origin", str(folder / "api"))
    return folder / "api"


def _linked(folder: Path) -> Path:
    a_repository(folder / "api", a="1\n")
    git(folder / "api", "worktree", "add", "--quiet", "-b", "feature", str(folder / "feature"))
    return folder / "feature"


@pytest.mark.parametrize("make", [_bare, _submodule, _shallow, _linked])
def test_repositories_of_other_shapes_are_merged_where_their_base_is(
    tmp_path: Path, make: Callable[[Path], Path]
) -> None:
    source = make(tmp_path)
    git(source, "config", "user.name", "Ann")
    git(source, "config", "user.email", "ann@example.org")
    place = MergePlace(source, tmp_path / "merges", WorktreePlace(tmp_path / "worktrees").made(source))
    write(place.tree, new="n\n")
    commit(place.tree, "work")
    write(place.tree, a="2\n")

    assert place.foretell().checkout == str(source)
    merged = place.merge()

    assert git(source, "rev-parse", "HEAD") == merged.commit
    assert (source / "new").read_text() == "n\n"
    assert git(source, "status", "--porcelain") == ""


def test_line_endings_and_filters_are_as_git_writes_them(tmp_path: Path) -> None:
    place = a_merge_place(tmp_path, **{".gitattributes": "*.txt text eol=crlf\n*.up filter=up\n"})
    for key, command in (("clean", "tr A-Z a-z"), ("smudge", "tr a-z A-Z")):
        git(place.repository, "config", f"filter.up.{key}", command)
    (place.tree / "lines.txt").write_bytes(b"one\r\ntwo\r\n")
    (place.tree / "loud.up").write_bytes(b"LOUD\n")
    (place.tree / "tool").write_bytes(b"#!/bin/sh\n")
    (place.tree / "tool").chmod(0o755)
    commit(place.tree, "work")

    place.merge()

    assert (place.repository / "lines.txt").read_bytes() == b"one\r\ntwo\r\n"
    assert (place.repository / "loud.up").read_bytes() == b"LOUD\n"
    assert os.access(place.repository / "tool", os.X_OK)
    assert git(place.repository, "status", "--porcelain") == ""


def test_files_that_only_look_changed_are_no_obstacle(tmp_path: Path) -> None:
    place = _worked(tmp_path)
    for name in ("a", "b"):
        os.utime(place.repository / name, (1, 1))

    assert place.foretell().blocked == ()
    place.merge()

    assert (place.repository / "a").read_text() == "1\n2\n3\n4\n"


def test_what_a_sparse_checkout_leaves_out_stays_out(tmp_path: Path) -> None:
    place = a_merge_place(tmp_path, src__a="1\n", docs__b="2\n")
    git(place.repository, "sparse-checkout", "set", "src")
    git(place.tree, "sparse-checkout", "disable")
    write(place.tree, src__a="new\n", docs__b="new\n")
    commit(place.tree, "work")

    place.merge()

    assert (place.repository / "src/a").read_text() == "new\n"
    assert not (place.repository / "docs").exists()
    assert git(place.repository, "show", "main:docs/b") == "new"
    assert git(place.repository, "status", "--porcelain") == ""


def test_without_a_name_nothing_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _worked(tmp_path)
    git(place.repository, "config", "--remove-section", "user")
    git(place.repository, "config", "user.useConfigOnly", "true")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    with pytest.raises(ConflictError) as refused:
        merging.require_identity(place.tree)

    assert "user.email" in refused.value.hint


def test_a_git_that_is_too_old_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = _worked(tmp_path)
    monkeypatch.setattr(merging, "_OLDEST", (99, 0))

    with pytest.raises(GitError) as refused:
        place.foretell()

    assert "99.0" in refused.value.hint


def test_a_full_disk_is_said_and_nothing_is_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = a_merge_place(tmp_path, a="1\n")
    write(place.tree, a="2\n")
    before = git(place.repository, "rev-parse", "HEAD")

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "merge.json")

    with monkeypatch.context() as broken:
        broken.setattr("agentmon.workspaces.landing.replace_file", full)
        with pytest.raises(NoRoomError, match=r"merge\.json"):
            place.merge()

    assert git(place.repository, "rev-parse", "HEAD") == before
    place.merge()
    assert (place.repository / "a").read_text() == "2\n"


def test_what_changed_in_the_second_of_the_checkout_is_merged_too(tmp_path: Path) -> None:
    place = a_merge_place(tmp_path, a="1\n")
    git(place.repository, "config", "core.trustCtime", "false")
    file = place.tree / "a"
    index = Path(git(place.tree, "rev-parse", "--git-path", "index"))
    at = file.stat().st_mtime_ns - 10**11
    os.utime(file, ns=(at, at))
    git(place.tree, "update-index", "--refresh")
    # Of the same size, at the time that git knows of it and that its index has.
    write(place.tree, a="2\n")
    for path in (file, index):
        os.utime(path, ns=(at, at))

    assert place.foretell().uncommitted == ("a",)
    place.merge()
    assert (place.repository / "a").read_text() == "2\n"
