"""Worktrees of real repositories: made beside every kind of folder, and taken away with nothing lost unsaid."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from agentmon.domain.errors import GitError, SnapshotError
from agentmon.domain.worktrees import LossKind, Worktree, WorktreeStatus
from agentmon.workspaces import worktrees
from agentmon.workspaces.worktrees import BranchTakenError, WorktreeError
from tests.workspaces.worktree_place import WorktreePlace, a_repository, commit, git, write


@pytest.fixture
def place(tmp_path: Path) -> WorktreePlace:
    return WorktreePlace(tmp_path / "data" / "worktrees")


def _losses(worktree: Worktree) -> dict[LossKind, tuple[str, ...]]:
    return {loss.kind: loss.names for loss in worktrees.find_losses(worktree)}


@pytest.mark.parametrize("name", ["My Project", "it's", "ü-漢", "-dash", "blank ", "new\nline", "a" * 200, "-"])
def test_a_repository_of_any_name_gets_working_trees(tmp_path: Path, place: WorktreePlace, name: str) -> None:
    source = a_repository(tmp_path / name)

    made = place.made(source)

    assert Path(made.path, "readme").read_text() == "hello\n"
    assert git(made.path, "rev-parse", "--abbrev-ref", "HEAD") == made.branch == "agentmon/12-mend-the-door"
    assert made.base_branch == "main"
    assert git(source, "status", "--porcelain") == ""
    assert _losses(made) == {}


def test_the_base_is_the_present_commit_or_the_one_that_was_asked_for(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    first = git(source, "rev-parse", "HEAD")
    git(source, "tag", "v1")
    git(source, "switch", "--quiet", "--create", "feature")
    write(source, more="1")
    commit(source, "second")

    present, tagged, named = (
        place.made(source),
        place.made(source, number=2, base="v1"),
        place.made(source, number=3, base="main"),
    )

    assert (present.base_branch, present.base_commit) == ("feature", git(source, "rev-parse", "HEAD"))
    assert (tagged.base_branch, tagged.base_commit) == (None, first)
    assert (named.base_branch, named.base_commit) == ("main", first)
    for nonsense in ("no-such", "--all", "HEAD:readme", ""):
        with pytest.raises(WorktreeError):
            worktrees.plan(place.row(source, base=nonsense), str(source))


def test_a_detached_head_a_rebase_under_way_and_a_shallow_clone_are_worked_from_as_they_are(
    tmp_path: Path, place: WorktreePlace
) -> None:
    source = a_repository(tmp_path / "api")
    write(source, readme="second\n")
    commit(source, "second")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{source}", str(shallow))
    git(source, "switch", "--quiet", "--create", "other", "HEAD~1")
    write(source, readme="third\n")
    commit(source, "third")
    with pytest.raises(AssertionError):
        git(source, "rebase", "main")
    rebasing = place.made(source)
    git(source, "rebase", "--abort")
    git(source, "switch", "--quiet", "--detach", "main")

    detached = place.made(source, number=2)

    assert (rebasing.base_branch, rebasing.base_commit) == (None, git(source, "rev-parse", "main"))
    assert (detached.base_branch, detached.base_commit) == (None, git(source, "rev-parse", "main"))
    assert Path(place.made(shallow, number=3).path, "readme").read_text() == "second\n"


def test_a_sparse_checkout_is_as_sparse_in_the_working_tree_and_loses_nothing(
    tmp_path: Path, place: WorktreePlace
) -> None:
    source = a_repository(tmp_path / "sparse", in__a="1\n", out__b="2\n", top="3\n").resolve()
    git(source, "sparse-checkout", "set", "in")
    made = place.made(source)
    tree = Path(made.path)

    assert (tree / "in" / "a").is_file()
    assert not (tree / "out").exists()
    assert git(tree, "status", "--porcelain") == ""
    assert worktrees.find_losses(made) == ()
    assert place.remove(made) is None
    assert git(source, "status", "--porcelain") == ""
    assert not (source / "out").exists()


def test_a_worktree_a_submodule_and_bare_layouts_are_worked_beside(tmp_path: Path, place: WorktreePlace) -> None:
    library = a_repository(tmp_path / "library")
    source = a_repository(tmp_path / "api")
    git(source, "submodule", "--quiet", "add", str(library), "lib")
    commit(source, "with library")
    git(source, "worktree", "add", "--quiet", str(tmp_path / "linked"))
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(library), str(bare))
    layout = tmp_path / "layout"
    git(tmp_path, "clone", "--quiet", "--bare", str(library), str(layout / ".bare"))
    (layout / ".git").write_text("gitdir: ./.bare\n")

    linked, inner, of_bare, of_layout = [
        place.made(folder, number=number)
        for number, folder in enumerate((tmp_path / "linked", source / "lib", bare, layout), 1)
    ]

    assert linked.repository == str(source / ".git")
    assert inner.repository == str(source / ".git" / "modules" / "lib")
    for made in (linked, inner, of_bare, of_layout):
        assert Path(made.path, "readme").is_file()
        assert git(made.path, "rev-parse", "--show-toplevel") == made.path
        assert worktrees.find_losses(made) == ()
        place.remove(made)
        assert not Path(made.path).exists()
    assert (tmp_path / "linked" / "readme").is_file()


def test_what_has_no_commit_no_repository_or_no_such_folder_is_refused_with_the_reason(
    tmp_path: Path, place: WorktreePlace
) -> None:
    unborn = tmp_path / "unborn"
    unborn.mkdir()
    git(unborn, "init", "--quiet")
    plain = tmp_path / "plain"
    plain.mkdir()
    source = a_repository(tmp_path / "api", src__a="1")
    (source / "untracked").mkdir()

    for folder in (unborn, plain, source / "untracked", tmp_path / "gone"):
        with pytest.raises(WorktreeError) as refused:
            worktrees.plan(place.row(folder), str(folder))
        assert refused.value.hint
    assert not place.folder.exists()


def test_a_folder_of_the_repository_is_that_folder_in_the_working_tree_also_by_way_of_a_link(
    tmp_path: Path, place: WorktreePlace
) -> None:
    source = a_repository(tmp_path / "api", src__web__a="1")
    (tmp_path / "link").symlink_to(source / "src")

    assert worktrees.plan(place.row(source), str(source / "src" / "web")).inside == "src/web"
    assert worktrees.plan(place.row(tmp_path / "link"), str(tmp_path / "link" / "web")).inside == "src/web"


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("agentmon/12-mend-the-door", "agentmon/12-mend-the-door-2"),
        ("Agentmon/12-Mend-The-Door", "agentmon/12-mend-the-door-2"),
        ("agentmon/12-mend-the-door/more", "agentmon/12-mend-the-door-2"),
        ("agentmon", "agentmon-12-mend-the-door"),
    ],
)
def test_a_branch_that_is_taken_gets_another_name(tmp_path: Path, place: WorktreePlace, taken: str, given: str) -> None:
    source = a_repository(tmp_path / "api")
    git(source, "branch", taken)

    assert place.made(source).branch == given


def test_a_folder_that_stands_at_its_path_is_left_alone(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    row = place.row(source)
    foreign = Path(row.path)
    foreign.mkdir(parents=True)
    (foreign / "notes").write_text("mine")

    made = place.made(source)

    assert made.path == f"{row.path}-2"
    assert (foreign / "notes").read_text() == "mine"


def test_a_branch_that_somebody_makes_meanwhile_is_not_taken_over(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    write(source, more="1")
    commit(source, "second")
    planned = worktrees.plan(place.row(source), str(source)).worktree
    git(source, "branch", planned.branch, "HEAD~1")

    with pytest.raises(BranchTakenError):
        place.make(planned)
    assert worktrees.is_missing(planned)


def test_one_whose_folder_was_deleted_by_hand_is_made_again_from_its_branch(
    tmp_path: Path, place: WorktreePlace
) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    write(Path(made.path), result="42")
    commit(Path(made.path), "work")
    shutil.rmtree(made.path)

    with worktrees.held(made) as lock:
        worktrees.make(made, lock=lock, adopts=True, say=place.said.append)

    assert Path(made.path, "result").read_text() == "42"
    assert len(git(source, "worktree", "list").splitlines()) == 2


def test_all_that_would_be_lost_is_named(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api", **{"a": "1\n", ".gitignore": "out/\n*.key\n"})
    origin = tmp_path / "origin.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(source), str(origin))
    git(source, "remote", "add", "origin", str(origin))
    git(source, "fetch", "--quiet", "origin")
    write(source, **{"own.key": "same"})
    made = place.made(source)
    tree = Path(made.path)
    write(tree, a="2\n", new="3", out__result="4", **{"own.key": "same"})
    write(tree, committed="5")
    git(tree, "add", "committed")
    git(tree, "commit", "--quiet", "--message", "work", "committed")

    losses = _losses(made)

    assert losses[LossKind.UNCOMMITTED] == ("a",)
    assert losses[LossKind.UNTRACKED] == ("new",)
    assert losses[LossKind.IGNORED] == ("out/",)
    assert [line.split(" ", 1)[1] for line in losses[LossKind.COMMITS]] == ["work"]
    assert losses[LossKind.UNPUSHED] == losses[LossKind.COMMITS]


@pytest.mark.parametrize("only", ["new", "out__result"])
def test_only_untracked_or_only_ignored_files_count_as_work(tmp_path: Path, place: WorktreePlace, only: str) -> None:
    made = place.made(a_repository(tmp_path / "api", **{"a": "1\n", ".gitignore": "out/\n"}))
    write(Path(made.path), **{only: "x"})

    assert len(worktrees.find_losses(made)) == 1


def test_commits_count_also_when_the_base_has_moved_on_or_was_rebased(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    assert worktrees.find_losses(made) == ()
    write(source, more="1")
    commit(source, "base moves")
    write(Path(made.path), work="1")
    commit(Path(made.path), "work")
    git(source, "commit", "--quiet", "--amend", "--message", "rebased")

    assert list(_losses(made)) == [LossKind.COMMITS]
    assert worktrees.count_commits(made) == (1, 1)
    git(source, "merge", "--quiet", made.branch)
    assert _losses(made) == {}


def test_a_detached_head_and_a_merge_under_way_in_it_are_named(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    tree = Path(made.path)
    write(source, readme="theirs\n")
    commit(source, "theirs")
    git(tree, "switch", "--quiet", "--detach")
    write(tree, readme="ours\n")
    commit(tree, "ours")
    with pytest.raises(AssertionError):
        git(tree, "merge", "main")

    losses = _losses(made)

    assert losses[LossKind.IN_PROGRESS] == ("a merge",)
    assert [line.split(" ", 1)[1] for line in losses[LossKind.COMMITS]] == ["ours"]


def test_removal_leaves_a_recovery_ref_for_commits_that_are_nowhere_else(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    write(Path(made.path), result="42")
    commit(Path(made.path), "work")
    tip = git(made.path, "rev-parse", "HEAD")

    ref = place.remove(made)

    assert ref is not None
    assert git(source, "rev-parse", ref) == tip
    assert not Path(made.path).exists()
    assert git(source, "branch", "--list") == "* main"
    assert len(git(source, "worktree", "list").splitlines()) == 1
    git(source, "fsck", "--strict")
    assert list(place.folder.rglob("*")) in ([], [place.folder / ".removing"])


def test_only_its_own_goes_and_those_of_others_stay_whatever_they_are(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    others = [tmp_path / name for name in ("agentmon-12", "locked", "detached", "gone")]
    git(source, "worktree", "add", "--quiet", "-b", "agentmon/12-mend", str(others[0]))
    git(source, "worktree", "add", "--quiet", "--lock", str(others[1]))
    git(source, "worktree", "add", "--quiet", "--detach", str(others[2]))
    git(source, "worktree", "add", "--quiet", str(others[3]))
    shutil.rmtree(others[3])
    before = git(source, "worktree", "list", "--porcelain")

    place.remove(made)

    after = git(source, "worktree", "list", "--porcelain")
    assert after.split("\n\n") == [part for part in before.split("\n\n") if made.path not in part]
    assert all((other / "readme").is_file() for other in others[:3])


def test_nothing_but_a_registered_worktree_of_its_own_is_ever_removed(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    shelf = Path(made.path).parent
    (shelf / "link").symlink_to(source)
    (tmp_path / "data" / "link").symlink_to(place.folder)
    shutil.copytree(source, shelf / "copy")
    wrong = [
        *(
            str(source),
            str(source.parent),
            "",
            "/",
            str(place.folder),
            str(shelf),
            str(shelf / "link"),
            str(shelf / "copy"),
        ),
        *(f"{shelf}/../../../../api", str(tmp_path / "data" / "link" / shelf.name / Path(made.path).name)),
    ]

    for path in wrong:
        with pytest.raises((GitError, OSError)):
            worktrees.remove(replace(made, path=path), folder=place.folder, lock=0)

    assert (source / ".git" / "HEAD").is_file()
    assert (shelf / "copy" / "readme").is_file()
    assert Path(made.path, "readme").is_file()


def test_a_branch_that_is_checked_out_elsewhere_stays(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    git(made.path, "switch", "--quiet", "--detach")
    git(source, "switch", "--quiet", made.branch)

    place.remove(made)

    assert git(source, "rev-parse", "--abbrev-ref", "HEAD") == made.branch


def test_commits_of_a_submodule_that_are_nowhere_else_are_named(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    git(source, "submodule", "--quiet", "add", str(a_repository(tmp_path / "library")), "lib")
    commit(source, "with library")
    made = place.made(source)
    git(made.path, "submodule", "--quiet", "update", "--init")
    assert _losses(made) == {}
    write(Path(made.path, "lib"), readme="changed\n")
    commit(Path(made.path, "lib"), "in the library")
    commit(Path(made.path), "newer library")

    assert _losses(made)[LossKind.SUBMODULE] == ("lib",)


def test_what_git_cannot_read_counts_as_lost(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    Path(made.path, ".git").write_text("gitdir: /nowhere\n")

    assert list(_losses(made)) == [LossKind.UNREADABLE]
    with pytest.raises(GitError):
        place.remove(made)
    assert Path(made.path, "readme").is_file()


def test_a_clean_up_of_git_takes_none_of_them(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    away = Path(f"{made.path}.away")
    Path(made.path).rename(away)
    git(source, "worktree", "prune", "--expire", "now")
    away.rename(made.path)

    assert git(made.path, "status", "--porcelain") == ""
    with pytest.raises(AssertionError, match="locked"):
        git(source, "worktree", "remove", "--force", made.path)


def test_a_half_made_one_goes_without_a_look(tmp_path: Path, place: WorktreePlace) -> None:
    source = a_repository(tmp_path / "api")
    planned = worktrees.plan(place.row(source), str(source)).worktree
    Path(planned.path, "part").mkdir(parents=True)

    assert planned.status is WorktreeStatus.MAKING
    place.remove(planned)

    assert worktrees.is_missing(planned)


def test_a_disk_without_room_fails_with_the_reason_and_leaves_all_as_it_was(
    tmp_path: Path, place: WorktreePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = a_repository(tmp_path / "api")
    made = place.made(source)
    write(Path(made.path), result="mine")
    refs = git(source, "for-each-ref")

    def full(self: Path, *_: object) -> Path:
        raise OSError(28, "No space left on device", str(self))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "rename", full)
        with pytest.raises(SnapshotError, match="No space left"):
            place.remove(made)

    assert (Path(made.path) / "result").read_text() == "mine"
    assert git(source, "for-each-ref") == refs
    place.remove(made)
    assert worktrees.is_missing(made)


def test_worktrees_are_their_owners_alone_whatever_the_umask(tmp_path: Path, place: WorktreePlace) -> None:
    before = os.umask(0o022)
    try:
        made = place.made(a_repository(tmp_path / "api"))
    finally:
        os.umask(before)

    for folder in (place.folder, Path(made.path).parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
