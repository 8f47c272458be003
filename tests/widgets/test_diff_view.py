from __future__ import annotations

import random
from typing import TYPE_CHECKING, ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import MouseScrollDown

from agentmon.domain.diffs import Diff, DiffSide, LineSpan
from agentmon.widgets.diff_files import DiffFiles
from agentmon.widgets.diff_rows import RowKind
from agentmon.widgets.diff_text import DiffText
from agentmon.widgets.diff_view import DiffView
from agentmon.widgets.log_scroll_bar import LogScrollBar
from tests.call_counts import calls_of
from tests.domain.test_diffs import numbered, patch_of
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.message import Message
    from textual.pilot import Pilot

    from agentmon.widgets.guarded import Failed

SMALL, WIDE = (80, 24), (200, 60)


class DiffApp(App[None]):
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(key, f"do('{action}')", show=False)
        for key, action in {
            "j": "move(1)",
            "k": "move(-1)",
            "ctrl+d": "move_page(1)",
            "ctrl+u": "move_page(-1)",
            "g": "go_end(-1)",
            "G": "go_end(1)",
            "J": "go_hunk(1)",
            "K": "go_hunk(-1)",
            "f": "go_file(1)",
            "F": "go_file(-1)",
            "space": "look",
            "enter": "fold",
            "z": "fold_all",
            "h": "sideways(-1)",
            "l": "sideways(1)",
            "c": "comment",
            "v": "mark",
            "e": "edit",
            "u": "take_back",
            "slash": "search",
            "n": "find(1)",
            "N": "find(-1)",
            "b": "toggle_sides",
            "I": "toggle_blanks",
            "escape": "step_back",
        }.items()
    ]

    def __init__(self, diff: Diff, *, keeps_looked: bool = True) -> None:
        super().__init__()
        self._diff = diff
        self._keeps_looked = keeps_looked
        self.messages: list[Message] = []
        self.failures: list[BaseException] = []
        self.animation_level = "none"

    def compose(self) -> ComposeResult:
        yield DiffView()

    def on_mount(self) -> None:
        self.view.diff = self._diff
        self.view.focus_text()

    async def action_do(self, action: str) -> None:
        await self.run_action(action, self.view)

    def on_failed(self, message: Failed) -> None:
        self.failures.append(message.error)

    def on_diff_view_looked_at(self, message: DiffView.LookedAt) -> None:
        self.messages.append(message)
        if self._keeps_looked:
            kept = self.view.looked
            self.view.looked = kept | message.digests if message.is_looked else kept - message.digests

    def on_diff_view_comment_wanted(self, message: DiffView.CommentWanted) -> None:
        self.messages.append(message)

    def on_diff_view_edit_wanted(self, message: DiffView.EditWanted) -> None:
        self.messages.append(message)

    def on_diff_view_take_back_wanted(self, message: DiffView.TakeBackWanted) -> None:
        self.messages.append(message)

    def on_diff_view_unchanged_wanted(self, message: DiffView.UnchangedWanted) -> None:
        self.messages.append(message)

    @property
    def view(self) -> DiffView:
        return self.query_one(DiffView)

    @property
    def text(self) -> DiffText:
        return self.view.text

    def here(self) -> tuple[RowKind, str, int | None, int | None]:
        """Kind and path of the row under the cursor, and its line numbers."""
        row = self.text.row
        assert row is not None
        numbers = self.text.layout_of_diff.numbers(row) if row.kind in {RowKind.LINE, RowKind.KEPT} else (None, None)
        return row.kind, row.file.path, *numbers


def edited(count: int, *edits: int, path: str = "a.txt", before: int = 0) -> str:
    """Return the patch of a file in which lines were edited, with some new lines before all."""
    new = [f"edited {number}\n" if number in edits else f"line {number}\n" for number in range(1, count + 1)]
    return patch_of(numbered(count), [*(f"new {at}\n" for at in range(before)), *new], path)


TWO_FILES = edited(100, 10, 50, 90) + edited(40, 20, path="src/b.py")


def beside(app: DiffApp) -> bool:
    return app.text.is_side_by_side


def next_page(app: DiffApp) -> str:
    app.view.action_move_page(1)
    return app.text.shown_text


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    await pilot.pause()
    for _ in range(int(DEADLINE_S * 50)):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError("it never came")


async def go(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()


async def test_files_and_hunks_are_gone_through_by_keys() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        assert app.here() == (RowKind.FILE, "a.txt", None, None)
        await go(pilot, "J", "J")
        assert app.text.row is not None
        assert app.text.row.hunk == app.view.diff.files[0].hunks[1]
        await go(pilot, "j")
        assert app.here() == (RowKind.LINE, "a.txt", 47, 47)
        await go(pilot, "K")
        assert app.here()[0] is RowKind.HUNK
        await go(pilot, "f")
        assert app.here() == (RowKind.FILE, "src/b.py", None, None)
        await go(pilot, "F")
        assert app.here() == (RowKind.FILE, "a.txt", None, None)
        await go(pilot, "G")
        assert app.here()[1] == "src/b.py"
        assert app.here()[0] is RowKind.GAP
        await go(pilot, "ctrl+u", "g")
        assert app.here() == (RowKind.FILE, "a.txt", None, None)


async def test_a_hundred_thousand_lines_are_drawn_by_what_is_in_view() -> None:
    lines = numbered(100_000)
    app = DiffApp(Diff(patch_of([], lines) + TWO_FILES.replace("a.txt", "c.txt")))
    async with app.run_test(size=WIDE) as pilot:
        await go(pilot, "J")
        calls = calls_of(lambda: next_page(app))

        assert "line 60" in app.text.shown_text
        assert calls < 30_000
        await go(pilot, "G")
        assert app.here()[1] == "src/b.py"


async def test_lines_stand_side_by_side_from_150_columns_on_and_a_key_changes_that() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=(150, 30)) as pilot:
        assert beside(app)
        assert any("line 10" in row and "edited 10" in row for row in app.text.shown_text.split("\n"))
        await go(pilot, "J", "j", "j", "j", "j")
        assert app.here() == (RowKind.LINE, "a.txt", 10, 10)
        await go(pilot, "b")
        assert not beside(app)
        assert app.here()[:2] == (RowKind.LINE, "a.txt")
        assert not any("line 10" in row and "edited 10" in row for row in app.text.shown_text.split("\n"))
        await go(pilot, "b")
        await pilot.resize_terminal(149, 30)
        await pilot.pause()
        assert not beside(app)
        await go(pilot, "b")
        assert app.text.wants_sides


async def test_marks_of_what_was_looked_at_are_asked_for_and_lead_on_to_the_next() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        names = app.view.diff.hunk_digests(app.view.diff.files[0])
        await go(pilot, "J", "space")
        assert app.view.looked == {names[0]}
        assert app.text.row is not None
        assert app.text.row.hunk == app.view.diff.files[0].hunks[1]
        await go(pilot, "space", "space")
        assert app.view.looked == set(names)
        assert app.text.layout_of_diff.is_looked(app.view.diff.files[0])
        assert app.here()[1] == "src/b.py"
        await go(pilot, "f", "F", "F", "space")
        assert app.view.looked == set()


async def test_what_the_owner_does_not_keep_is_not_marked() -> None:
    app = DiffApp(Diff(TWO_FILES), keeps_looked=False)
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "J", "space")

        assert isinstance(app.messages[0], DiffView.LookedAt)
        assert app.messages[0].is_looked
        assert app.messages[0].digests == {app.view.diff.hunk_digests(app.view.diff.files[0])[0]}
        assert app.view.looked == frozenset()


async def test_new_content_keeps_the_line_under_the_cursor_in_its_row_of_the_view() -> None:
    last = edited(40, 5, 20, path="z.txt")
    app = DiffApp(Diff(edited(100, 50, 90) + last))
    async with app.run_test(size=(120, 24)) as pilot:
        await go(pilot, "J", "J", *"jjjjj")
        assert app.here() == (RowKind.LINE, "a.txt", None, 90)
        y = app.text.cursor_y

        app.view.diff = Diff(edited(5, 3, path="Before.txt") + edited(100, 20, 50, 90, before=7) + last)
        await pilot.pause()

        assert app.here() == (RowKind.LINE, "a.txt", None, 97)
        assert app.text.cursor_y == y
        app.view.diff = Diff(edited(100, 20, 89, 90, before=7))
        await pilot.pause()
        assert app.here()[1] == "a.txt"
        assert app.here()[3] in {96, 97}


async def test_new_content_without_the_file_goes_to_one_that_is_there() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "G")
        app.view.diff = Diff(edited(100, 10))
        await pilot.pause()
        assert app.here()[1] == "a.txt"

        app.view.diff = Diff()
        await pilot.pause()

        assert app.text.row is None
        nothing = app.text.render_line(0).text
        app.view.diff = Diff("fatal: not a git repository\n")
        await pilot.pause()
        assert app.text.row is None
        assert app.text.render_line(0).text not in {nothing, " " * 79}
        for key in app.BINDINGS:
            assert isinstance(key, Binding)
            await go(pilot, *([key.key] if key.key != "slash" else []))
        assert app.failures == []
        assert [message for message in app.messages if not isinstance(message, DiffView.LookedAt)] == []


async def test_folded_lines_are_asked_for_once_and_shown_with_their_numbers() -> None:
    app = DiffApp(Diff(edited(100, 50, before=2)))
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "g", "J", "J", "k")
        assert app.here()[0] is RowKind.GAP
        await go(pilot, "enter")
        assert [type(message) for message in app.messages] == [DiffView.UnchangedWanted]
        assert app.here()[0] is RowKind.GAP
        text = "".join(["new 0\n", "new 1\n", *numbered(49), "edited 50\n", *numbered(100)[50:]])
        app.view.show_unchanged("a.txt", text)
        await pilot.pause()

        assert app.here() == (RowKind.KEPT, "a.txt", 4, 6)
        assert " 6   line 4" in app.text.shown_text
        await go(pilot, "G", "enter")
        assert app.here() == (RowKind.KEPT, "a.txt", 54, 56)
        await go(pilot, "G")
        assert app.here() == (RowKind.KEPT, "a.txt", 100, 102)
        await go(pilot, "enter")
        assert app.here()[0] is RowKind.GAP
        assert len(app.messages) == 1
        app.view.diff = Diff(edited(100, 50, 60, before=2))
        await pilot.pause()
        assert [type(message) for message in app.messages] == [DiffView.UnchangedWanted] * 2


async def test_files_and_hunks_are_folded_by_keys() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "enter", "j")
        assert app.here() == (RowKind.FILE, "src/b.py", None, None)
        await go(pilot, "J", "j", "enter")
        assert app.here() == (RowKind.HUNK, "src/b.py", None, None)
        await go(pilot, "enter", "j")
        assert app.here()[0] is RowKind.LINE
        await go(pilot, "z")
        assert len(app.text.layout_of_diff.parts) == 2
        await go(pilot, "z")
        assert len(app.text.layout_of_diff.parts) > 10


async def test_selected_lines_are_what_a_comment_is_about() -> None:
    app = DiffApp(Diff(edited(100, 50, before=2)))
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "J", "J", *"jjjj", "c")
        await go(pilot, "v", "j", "j", "c", "g", "c")

    first, second = app.messages
    assert isinstance(first, DiffView.CommentWanted)
    assert (first.path, first.side, first.first_line, first.last_line) == ("a.txt", DiffSide.OLD, 50, 50)
    assert first.text == "line 50"
    assert isinstance(second, DiffView.CommentWanted)
    assert (second.side, second.first_line, second.last_line) == (DiffSide.NEW, 52, 53)
    assert second.text == "edited 50\nline 51"


async def test_the_editor_and_the_taking_back_are_asked_for_where_the_cursor_is() -> None:
    gone = patch_of(["x\n"], [], "gone").replace("\n---", "\ndeleted file mode 100644\n---")
    diff = Diff(edited(100, 50, before=2) + gone)
    app = DiffApp(diff)
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "e", "J", "J", *"jjjj", "e", "j", "e", "u", "f", "u", "e", "j", "u")

    edits = [(m.path, m.line) for m in app.messages if isinstance(m, DiffView.EditWanted)]
    assert edits == [("a.txt", 1), ("a.txt", 52), ("a.txt", 52)]
    taken = [m for m in app.messages if isinstance(m, DiffView.TakeBackWanted)]
    assert [(m.path, m.patch is None) for m in taken] == [("a.txt", False), ("gone", True), ("gone", False)]
    assert taken[0].patch is not None
    assert b"+edited 50\n" in taken[0].patch
    assert b"new 0" not in taken[0].patch


async def test_a_search_goes_round_through_folded_lines_and_names_of_files() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        await go(pilot, "z", "slash", *"edited", "enter")
        await until(pilot, lambda: app.here() == (RowKind.LINE, "a.txt", None, 10))
        await go(pilot, "n", "n")
        assert app.here() == (RowKind.LINE, "a.txt", None, 90)
        await go(pilot, "n", "n")
        assert app.here() == (RowKind.LINE, "a.txt", None, 10)
        await go(pilot, "N")
        assert app.here() == (RowKind.LINE, "src/b.py", None, 20)
        await go(pilot, "slash", *"b.py", "enter")
        assert app.here() == (RowKind.FILE, "src/b.py", None, None)
        assert app.view.has_something_open
        await go(pilot, "slash", *"[", "enter")
        assert app.view.has_class("-asking")
        await go(pilot, "escape", "escape")
        assert not app.view.has_something_open


async def test_a_search_backwards_does_not_stay_on_a_line_that_matches_on_both_sides() -> None:
    app = DiffApp(Diff(patch_of(["value one\n", "same\n", "value two\n"], ["value 1\n", "same\n", "value 2\n"])))
    async with app.run_test(size=WIDE) as pilot:
        await go(pilot, "G", "slash", *"value", "enter")
        found = []
        for _ in range(4):
            await go(pilot, "N")
            assert app.text.row is not None
            found.append(app.text.row.place)

    assert len(set(found)) == 2
    assert found[0] != found[2]


async def test_lines_that_differ_in_blanks_alone_are_plain_when_blanks_are_ignored() -> None:
    app = DiffApp(Diff(patch_of(["if a:\n", "  b()\n"], ["if a:\n", "    b()\n"])))
    async with app.run_test(size=SMALL) as pilot:
        before = app.text.layout_of_diff.row_count(1)
        await go(pilot, "I")

        assert app.text.layout_of_diff.row_count(1) == before - 1
        assert not any(" + " in row or " - " in row for row in app.text.shown_text.split("\n"))


async def test_the_mouse_goes_to_files_lines_and_folds_and_the_wheel_scrolls() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=(120, 24)) as pilot:
        await pilot.click(DiffFiles, offset=(4, 1))
        await pilot.pause()
        assert app.here() == (RowKind.FILE, "src/b.py", None, None)
        await pilot.click(DiffFiles, offset=(4, 0))
        await pilot.click(DiffText, offset=(10, 4))
        assert app.here()[0] is RowKind.LINE
        await pilot.click(DiffText, offset=(10, 2))
        assert app.here()[0] is RowKind.HUNK
        assert app.text.layout_of_diff.row_count(app.text.row.place.part) == 1 if app.text.row else False
        await pilot._post_mouse_events([MouseScrollDown], DiffText)
        await pilot.pause()
        assert app.text.cursor_y == 0
        bar = app.text.query_one(LogScrollBar)
        await pilot.click(bar, offset=(0, bar.size.height - 1))
        await pilot.pause()
        assert app.here()[1] == "src/b.py"


async def test_no_control_code_reaches_the_terminal_and_none_is_hidden() -> None:
    nasty = "\x1b[31mred\x1b]0;owned\x07 \u202eevil \x9b2J\0\r tail\n"
    app = DiffApp(Diff(patch_of([nasty], [nasty * 2], "we\u202eird\x1b[1m.txt").replace("\n@@", "\n@@", 1)))
    async with app.run_test(size=WIDE) as pilot:
        await go(pilot, "j")
        shown = app.text.shown_text

        assert "\\u001b[31mred" in shown
        assert "\\u202e" in shown
        assert all(character == "\n" or character.isprintable() for character in shown)
        assert all(strip.cell_length == 200 for strip in app.screen._compositor.render_strips())


@pytest.mark.proof
@pytest.mark.parametrize("size", [(20, 6), (40, 10), SMALL, WIDE, (150, 1)])
async def test_any_patch_is_drawn_in_any_size(size: tuple[int, int]) -> None:
    wide = "".join(f"{number} 中文 👩‍💻 \t x{'y' * number}\n" for number in range(30))
    long = "z" * 200_000 + "\n"
    binary = "diff --git a/p.png b/p.png\nindex 1..2 100644\nBinary files a/p.png and b/p.png differ\n"
    mode = "diff --git a/run b/run\nold mode 100644\nnew mode 100755\n"
    app = DiffApp(
        Diff(patch_of([wide, long], [wide[:99] + "\n", long]) + binary + mode + "diff --git\n@@ -1 +1 @@\n-x")
    )
    async with app.run_test(size=size) as pilot:
        for key in ("j", "J", "l", "l", "j", "b", "v", "ctrl+d", "c", "f", "enter", "G", "I", "space", "g"):
            await go(pilot, key)
            assert all(strip.cell_length == size[0] for strip in app.screen._compositor.render_strips())
    assert app.failures == []


async def test_colours_of_the_language_come_behind_the_paint() -> None:
    app = DiffApp(Diff(patch_of(["x = 1\n"], ["import os  # why\n", "x = 1\n"], "src/a.py")))
    async with app.run_test(size=SMALL) as pilot:

        def styles() -> set[str]:
            strip = next(s for s in map(app.text.render_line, range(10)) if "import" in s.text)
            return {str(segment.style) for segment in strip if segment.text.strip() in {"import", "os", "# why"}}

        await until(pilot, lambda: len(styles()) == 3)


async def test_signs_are_there_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    app = DiffApp(Diff(patch_of(["say one thing of many\n"], ["say two things of many\n"])))
    async with app.run_test(size=SMALL):
        rows = app.text.shown_text.split("\n")
        assert any("- say one thing" in row for row in rows)
        assert any("+ say two things" in row for row in rows)
        strip = next(s for s in map(app.text.render_line, range(10)) if "two" in s.text)
        assert [segment.text for segment in strip if segment.style and segment.style.underline] == ["two", "things"]


async def test_a_line_of_a_file_is_gone_to_by_its_number() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        assert app.view.go_to("a.txt", 51)
        await pilot.pause()
        assert app.here() == (RowKind.LINE, "a.txt", 51, 51)
        assert app.view.go_to("src/b.py")
        assert not app.view.go_to("nowhere", 3)
        await pilot.pause()
        assert app.here() == (RowKind.FILE, "src/b.py", None, None)


async def test_commented_lines_and_hunks_that_are_news_are_marked() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=WIDE) as pilot:
        before = app.text.shown_text
        names = app.view.diff.hunk_digests(app.view.diff.files[0])
        app.view.commented = frozenset(
            {LineSpan("a.txt", DiffSide.NEW, 10, 11), LineSpan("src/b.py", DiffSide.OLD, 20, 20)}
        )
        await pilot.pause()
        marked = [row for row in app.text.shown_text.split("\n") if row not in before.split("\n")]
        assert [" ".join(row.split()[:2]) for row in marked] == ["● 10", "● 11", "● 20"]
        before = app.text.shown_text
        app.view.notes = {names[0]: "taken back"}
        await pilot.pause()
        news = [row for row in app.text.shown_text.split("\n") if row not in before.split("\n")]
        assert [row.count("taken back") for row in news] == [1, 1]


async def test_a_selection_that_reaches_into_another_file_is_about_the_one_that_it_began_in() -> None:
    app = DiffApp(Diff(TWO_FILES))
    async with app.run_test(size=SMALL) as pilot:
        app.view.go_to("a.txt", 93)
        await go(pilot, "v", *"jjjjj", "c")

    (message,) = app.messages
    assert isinstance(message, DiffView.CommentWanted)
    assert (message.path, message.first_line, message.last_line) == ("a.txt", 93, 93)


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 34), *(pytest.param(seed, 120, marks=pytest.mark.proof) for seed in range(1, 4))]
)
async def test_whatever_is_pressed_and_comes_the_cursor_is_in_view_and_nothing_fails(seed: int, steps: int) -> None:
    dice = random.Random(seed)

    def patch() -> str:
        files = dice.sample(["a.txt", "src/b.py", "c/d.md", "e"], dice.randint(0, 4))
        return "".join(
            edited(60, *dice.sample(range(1, 61), dice.randint(1, 9)), path=path, before=dice.randint(0, 3))
            for path in files
        )

    keys = [binding.key for binding in DiffApp.BINDINGS if isinstance(binding, Binding) and binding.key != "slash"]
    app = DiffApp(Diff(patch()))
    async with app.run_test(size=(90, 20)) as pilot:
        for step in range(steps):
            await pilot.press(dice.choice(keys))
            if step % 10 == 9:
                app.view.diff = Diff(patch())
            if step % 17 == 16:
                await pilot.resize_terminal(dice.choice((40, 90, 160)), dice.choice((8, 20)))
            for message in app.messages:
                if isinstance(message, DiffView.UnchangedWanted):
                    app.view.show_unchanged(message.path, "".join(numbered(dice.randint(0, 90))))
            app.messages.clear()
            if app.view.has_class("-asking"):
                app.view.step_back()
            await pilot.pause()
            row = app.text.row
            assert app.failures == []
            assert (row is None) == (not app.view.diff.files)
            if row is not None:
                places = [one.place for one in app.text._frame()]
                assert row.place in places
                assert places == sorted(places)
