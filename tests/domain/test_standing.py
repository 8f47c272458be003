"""What is left of a difference, against the texts themselves."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from agentmon.domain.diffs import Diff
from agentmon.domain.standing import Standing, standings

if TYPE_CHECKING:
    from collections.abc import Sequence

_COUNT = 60


def patch_of(old: Sequence[str], new: Sequence[str], *, context: int) -> Diff:
    names = ["a/f" if old else "/dev/null", "b/f" if new else "/dev/null"]
    lines = list(unified_diff(old, new, names[0], names[1], lineterm="", n=context))
    mode = "new file mode 100644\n" if not old else "deleted file mode 100644\n" if not new else ""
    return Diff("\n".join([f"diff --git a/f b/f\n{mode}" + lines[0], *lines[1:]]) + "\n" if lines else "")


EDITS = st.dictionaries(
    st.integers(0, _COUNT // 3 - 1).map(lambda at: 3 * at),
    st.sampled_from(["changed", "removed", "added above", "added below"]),
    max_size=6,
)


def edited(edits: dict[int, str], mark: str) -> list[str]:
    lines: list[str] = []
    for number in range(_COUNT):
        edit, line = edits.get(number, ""), f"line {number}"
        lines += [f"{mark} above {number}"] if edit == "added above" else []
        lines += [f"{line} {mark}"] if edit == "changed" else [] if edit == "removed" else [line]
        lines += [f"{mark} below {number}"] if edit == "added below" else []
    return lines


@given(EDITS, st.sets(st.integers(0, _COUNT - 1)), st.integers(0, _COUNT - 1))
def test_what_was_taken_back_is_known_from_what_stands(edits: dict[int, str], gone: set[int], other: int) -> None:
    """Some edits are taken back, and somebody changes a line far from all of them."""
    before, after = edited({}, ""), edited(edits, "run")
    now = edited({at: edit for at, edit in edits.items() if at not in gone}, "run")
    if all(abs(at - other) > 4 for at in edits):
        now = [f"{line} person" if line == f"line {other}" else line for line in now]
    diff = patch_of(before, after, context=3)
    found = standings(diff, patch_of(after, now, context=0), patch_of(before, now, context=0))
    for file in diff.files:
        for hunk, name in zip(file.hunks, diff.hunk_digests(file), strict=True):
            mine = {at for at in edits if hunk.old_start - 1 <= at < hunk.old_start - 1 + hunk.old_count}
            if not mine & gone:
                assert name not in found
            else:
                assert found[name] is (Standing.TAKEN_BACK if mine <= gone else Standing.CHANGED)


def test_files_that_came_and_went() -> None:
    lines = [f"line {number}" for number in range(5)]
    made, removed, none = patch_of([], lines, context=3), patch_of(lines, [], context=3), Diff()
    (name,) = made.hunk_digests(made.files[0])

    assert standings(made, patch_of(lines, [], context=0), none) == {name: Standing.TAKEN_BACK}
    longer = [*lines, "more"]
    assert standings(made, patch_of(lines, longer, context=0), patch_of([], longer, context=0)) == {}
    (name,) = removed.hunk_digests(removed.files[0])
    assert standings(removed, patch_of([], lines, context=0), none) == {name: Standing.TAKEN_BACK}
    other = ["another"]
    assert standings(removed, patch_of([], other, context=0), patch_of(lines, other, context=0)) == {
        name: Standing.CHANGED
    }


def test_what_has_no_lines() -> None:
    head = "diff --git a/x.png b/x.png\nindex {}..{} 100644\nBinary files a/x.png and b/x.png differ\n"
    diff = Diff(head.format("1" * 7, "2" * 7))
    name = diff.file_digest(diff.files[0])

    assert standings(diff, Diff(), diff) == {}
    assert standings(diff, Diff(head.format("2" * 7, "1" * 7)), Diff()) == {name: Standing.TAKEN_BACK}
    other = Diff(head.format("2" * 7, "3" * 7))
    assert standings(diff, other, Diff(head.format("1" * 7, "3" * 7))) == {name: Standing.CHANGED}
