"""A difference to read and judge: the files on the left, or above in a narrow window, and their lines beside it.

It knows no store and no git: values go in, messages come out.

In:  ``DiffView(placeholder="No changes.")``
     ``view.diff = Diff(patch)``  again at any time, such as while an agent works: the cursor stays on its line
     ``view.looked = frozenset(digests)``  what a person has looked at: what ``LookedAt`` named, kept by the owner
     ``view.commented = frozenset(spans)``  lines with comments
     ``view.notes = {digest: text}``  what is said of hunks and of files without any, such as "undone"
     ``view.text.sizes = {path: (before, after)}``  bytes of binary files, set before the difference
     ``view.show_unchanged(path, text)``  answers ``UnchangedWanted`` with the whole new text of a file
     ``view.go_to(path, line, side)``, ``view.focus_text()``, ``view.has_something_open``, ``view.step_back()``
Out: ``LookedAt``, ``CommentWanted``, ``EditWanted``, ``TakeBackWanted``, ``UnchangedWanted``; with paths as in git

Keys are bound by the screen to actions of the view (``action_…``), as those of a log are; each is meant to be

    j k, arrows   ``move(±1)``           space  ``look``            c   ``comment``       /    ``search``
    ctrl+d ctrl+u ``move_page(±1)``      enter  ``fold``            v   ``mark``          n N  ``find(±1)``
    g G           ``go_end(±1)``         z      ``fold_all``        e   ``edit``          b    ``toggle_sides``
    J K           ``go_hunk(±1)``        h l    ``sideways(±1)``    u   ``take_back``     I    ``toggle_blanks``
    tab shift+tab ``go_file(±1)``        o      ``go_note``         esc ``step_back``
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Static

from agentmon.domain.diffs import ChangeKind, Diff, DiffSide
from agentmon.domain.errors import UsageError
from agentmon.logs.pattern import LogPattern
from agentmon.widgets.cells import even_line
from agentmon.widgets.diff_files import DiffFiles
from agentmon.widgets.diff_rows import Anchor, Place, RowKind, marks_of
from agentmon.widgets.diff_text import SIDE_BY_SIDE_COLUMNS, DiffText, search_slice, side_of
from agentmon.widgets.form import LineInput
from agentmon.widgets.guarded import Guarded
from agentmon.widgets.log_view import SLICE_REST_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from textual import events
    from textual.app import ComposeResult
    from textual.widgets import Input

    from agentmon.domain.diffs import Hunk, LineSpan
    from agentmon.widgets.diff_rows import DiffRow

_NARROW_COLUMNS: Final = 110
_LONGEST_SHOWN: Final = 60


class DiffView(Guarded, Vertical):
    """Shows a difference; see the module for what goes in and comes out."""

    DEFAULT_CSS = """
    DiffView {
        height: 1fr;
        & > Horizontal { height: 1fr; }
        & > #diff-place { height: 1; color: $text-muted; text-wrap: nowrap; text-overflow: ellipsis; }
        & > #diff-prompt { display: none; background: $panel; padding: 0 1; }
        & DiffFiles { width: auto; min-width: 28; max-width: 25%; height: 1fr; border-right: solid $border; }
        &.-narrow > Horizontal { layout: vertical; }
        &.-narrow DiffFiles {
            width: 1fr;
            max-width: 100%;
            height: auto;
            max-height: 25%;
            border-right: none;
            border-bottom: solid $border;
        }
        &.-single DiffFiles { display: none; }
        &.-asking > #diff-prompt { display: block; }
    }
    """

    diff: reactive[Diff] = reactive(Diff, layout=False, repaint=False, init=False)
    """What is shown."""
    looked: reactive[frozenset[str]] = reactive(frozenset, layout=False, repaint=False, init=False)
    """Digests of the hunks, and of the files without hunks, that a person has looked at."""
    commented: reactive[frozenset[LineSpan]] = reactive(frozenset, layout=False, repaint=False, init=False)
    """Lines with a comment."""
    notes: reactive[Mapping[str, str]] = reactive(dict, layout=False, repaint=False, init=False)
    """What is said of hunks, and of files without any, by their digests."""

    @dataclass
    class LookedAt(Message):
        """A person has looked at hunks or a file, or wants to look at them again."""

        view: DiffView
        path: str
        digests: frozenset[str]
        is_looked: bool

    @dataclass
    class CommentWanted(Message):
        """A person wants to say something about lines, counted from 1 in the text of one side; ``text`` is theirs."""

        view: DiffView
        path: str
        side: DiffSide
        first_line: int
        last_line: int
        text: str
        digest: str
        """Of the hunk of the first line; empty for one that the patch leaves out."""

    @dataclass
    class EditWanted(Message):
        """A person wants to edit a file at a line, counted from 1."""

        view: DiffView
        path: str
        line: int

    @dataclass
    class TakeBackWanted(Message):
        """A person wants a hunk taken back, or the whole file on whose head the cursor is. Nothing is asked here."""

        view: DiffView
        path: str
        patch: bytes | None
        """Of the hunk, which ``git apply -R`` takes; None for the file."""

    @dataclass
    class UnchangedWanted(Message):
        """A person wants to see lines that the patch leaves out; ``show_unchanged`` shows them."""

        view: DiffView
        path: str

    def __init__(self, *, placeholder: str = "No changes.", id: str | None = None) -> None:  # noqa: A002 - Textual's
        super().__init__(id=id)
        self.text = DiffText(placeholder=placeholder)
        self._files = DiffFiles()
        self._box = LineInput(id="diff-prompt", placeholder="search: a regular expression")
        self._pattern: LogPattern | None = None
        self._steps: Iterator[tuple[int, int, int] | None] | None = None
        self._direction = 1
        self._note = ""
        self._is_error = False

    def compose(self) -> ComposeResult:
        """Yield the files and the text, the line for typing and the line below."""
        with Horizontal():
            yield self._files
            yield self.text
        yield self._box
        yield Static(id="diff-place")

    # What the owner calls

    @property
    def has_something_open(self) -> bool:
        """Whether there is something that ``step_back`` would end."""
        return self._pattern is not None or self.has_class("-asking") or self.text.has_mark

    def focus_text(self) -> None:
        """Give the keys to the text."""
        self.screen.set_focus(self.text)

    def show_unchanged(self, path: str, text: str) -> None:
        """Take the whole new text of a file, from which its folded lines are shown."""
        lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")] if text else []
        self.text.show_unchanged(path, lines)

    def go_to(self, path: str, line: int = 0, side: DiffSide = DiffSide.NEW) -> bool:
        """Go to a line of a file, or to the nearest one that is shown; False when no such file was changed."""
        layout = self.text.layout_of_diff
        at = next((number for number, file in enumerate(self.diff.files) if file.path == path), None)
        if at is None:
            return False
        if side is DiffSide.OLD:
            line = _new_number(self.diff.files[at].hunks, line)
        kind = RowKind.LINE if line else RowKind.FILE
        place = layout.find(Anchor(path, at, kind, "?" if line else "", number=line))
        self.text.go_to(place, at_top=True)
        return True

    def step_back(self) -> None:
        """End the newest of: what is being typed, the selection, the search."""
        if self.has_class("-asking"):
            self._close_prompt()
        elif self.text.has_mark:
            self.text.toggle_mark()
        else:
            self._end_search()
            self._pattern = None
            self.text.highlight(None)
        self.say("")

    def say(self, text: str, *, is_error: bool = False) -> None:
        """Say something below the text until the next thing is said; nothing takes it away."""
        self._note, self._is_error = text, is_error
        self._show_place()

    # Actions, bound to keys by the screens

    def action_move(self, count: int) -> None:
        """Move the cursor by rows, up when negative."""
        self.text.move_by(count)

    def action_move_page(self, direction: int) -> None:
        """Move by half a page."""
        self.text.move_pages(direction / 2)

    def action_go_end(self, direction: int) -> None:
        """Go to the first row, or to the last one."""
        layout = self.text.layout_of_diff
        if layout.parts:
            self.text.go_to(Place(0, 0) if direction < 0 else layout.last)
            self.text.move_by(0)

    def action_go_hunk(self, direction: int) -> None:
        """Go to the next hunk, or to the one before."""
        self.text.go_to_part(RowKind.HUNK, direction)

    def action_go_file(self, direction: int) -> None:
        """Go to the next file, or to the one before."""
        self.text.go_to_part(RowKind.FILE, direction)

    def action_sideways(self, direction: int) -> None:
        """Scroll long lines sideways."""
        self.text.go_sideways(direction)

    def action_fold(self) -> None:
        """Fold or unfold the file, the hunk or the unchanged lines under the cursor."""
        layout, row = self.text.layout_of_diff, self.text.row
        if row is None:
            return
        part = layout.parts[row.place.part]
        if part.kind in {RowKind.NOTE, RowKind.BLANK}:
            part = layout.parts[layout.first_parts[part.file]]
        if part.kind is RowKind.GAP and row.file.path not in self.text.unchanged_paths:
            self.post_message(self.UnchangedWanted(self, row.file.path))
        self.text.toggle_fold(frozenset({layout.fold_name(part)}))

    def action_fold_all(self) -> None:
        """Fold all files, or unfold them when all are folded."""
        layout = self.text.layout_of_diff
        heads = [layout.parts[at] for at in layout.first_parts]
        unfolded = frozenset(layout.fold_name(head) for head in heads if not layout.is_folded(head))
        self.text.toggle_fold(unfolded or frozenset(layout.fold_name(head) for head in heads))

    def action_toggle_sides(self) -> None:
        """Show old and new lines side by side, or one below the other."""
        if self.size.width < SIDE_BY_SIDE_COLUMNS:
            self.say(f"Side by side needs {SIDE_BY_SIDE_COLUMNS} columns.", is_error=True)
            return
        self.text.wants_sides = not self.text.wants_sides
        self.text.show()

    def action_toggle_blanks(self) -> None:
        """Take lines that differ in blanks alone for unchanged, or not."""
        self.text.ignores_blanks = not self.text.ignores_blanks
        self.text.show()

    def action_mark(self) -> None:
        """Select lines from here on, or none."""
        self.text.toggle_mark()
        self._show_place()

    def action_look(self) -> None:
        """Say that the hunk under the cursor, or the file on whose head it is, was looked at, or not yet."""
        layout, row = self.text.layout_of_diff, self.text.row
        if row is None:
            return
        part = layout.parts[row.place.part]
        is_hunk = part.kind in {RowKind.HUNK, RowKind.GAP} and part.hunk < len(row.file.hunks)
        digests = frozenset({layout.hunk_name(part)} if is_hunk else marks_of(self.diff, row.file))
        is_looked = not self.looked.issuperset(digests)
        self.post_message(self.LookedAt(self, row.file.path, digests, is_looked))

    def action_comment(self) -> None:
        """Ask for a comment on the selected lines, or on the one under the cursor."""
        layout = self.text.layout_of_diff
        found = side_of(self.text.selected(), layout)
        if found is None:
            self.say("No line to comment on here.", is_error=True)
            return
        side, rows, first, last = found
        text = "\n".join(_content(self.text, row, side) for row in rows)
        part = layout.parts[rows[0].place.part]
        digest = layout.hunk_name(part) if part.kind is RowKind.HUNK else ""
        if self.text.has_mark:
            self.text.toggle_mark()
        self.post_message(self.CommentWanted(self, rows[0].file.path, side, first, last, text, digest))

    def action_go_note(self) -> None:
        """Go to the next hunk with a comment, or of which anything is said."""
        if not self.text.go_to_next_note():
            self.say("No comments, and nothing changed since.", is_error=True)

    def action_edit(self) -> None:
        """Ask for the editor at the line under the cursor."""
        layout, row = self.text.layout_of_diff, self.text.row
        if row is None:
            return
        if row.file.kind is ChangeKind.DELETED:
            self.say("The file was deleted.", is_error=True)
            return
        self.post_message(self.EditWanted(self, row.file.path, max(1, layout.anchor(row.place).number)))

    def action_take_back(self) -> None:
        """Ask for the hunk under the cursor to be taken back, or for the file on whose head it is."""
        row = self.text.row
        if row is None or row.kind in {RowKind.GAP, RowKind.KEPT} or (row.hunk is not None and row.hunk.parents > 1):
            self.say("Nothing to undo here.", is_error=True)
            return
        patch = None if row.hunk is None else self.diff.hunk_patch(row.file, row.hunk)
        self.post_message(self.TakeBackWanted(self, row.file.path, patch))

    def action_search(self) -> None:
        """Let the person type what is looked for."""
        self._box.value = ""
        self.add_class("-asking")
        # At once, not after what was typed behind the key.
        self.screen.set_focus(self._box)

    def action_find(self, direction: int) -> None:
        """Go to the next match below, or above, round the ends; asks for a pattern when there is none."""
        if self._pattern is None:
            self.action_search()
            return
        self._steps = self.text.matches(self._pattern, direction)
        self._direction = direction
        self._search_on()

    def action_step_back(self) -> None:
        """End the newest of: what is being typed, the selection, the search."""
        self.step_back()

    # What Textual calls

    def watch_diff(self, before: Diff, diff: Diff) -> None:
        """Show it; the same content changes nothing."""
        if before.content == diff.content:
            return
        self._end_search()
        patches = {file.path: diff.file_patch(file) for file in diff.files if file.path in self.text.unchanged_paths}
        self.text.forget_unchanged(self.text.unchanged_paths - patches.keys())
        self.text.show(diff)
        for file in before.files:
            if file.path in patches and before.file_patch(file) != patches[file.path]:
                self.post_message(self.UnchangedWanted(self, file.path))
        self.set_class(len(diff.files) <= 1, "-single")

    def watch_looked(self, before: frozenset[str], looked: frozenset[str]) -> None:
        """Mark what was looked at; the cursor goes on from what now was."""
        layout, row = self.text.layout_of_diff, self.text.row
        part = None if row is None else layout.parts[row.place.part]
        self.text.show(looked=looked)
        if row is None or part is None:
            return
        names = {layout.hunk_name(part)} if part.kind is RowKind.HUNK else set(marks_of(self.diff, row.file))
        if names <= looked and not names <= before:
            self.text.go_to_next_unseen()

    def watch_commented(self) -> None:
        """Mark the lines."""
        self.text.note(self.commented, self.notes)

    def watch_notes(self) -> None:
        """Mark hunks and files."""
        self.text.note(self.commented, self.notes)

    def on_mount(self) -> None:
        """Show what was set before."""
        self.text.note(self.commented, self.notes)
        self.text.show(self.diff, looked=self.looked, columns=self.size.width)
        self.set_class(len(self.diff.files) <= 1, "-single")
        self._show_place()

    def on_resize(self, event: events.Resize) -> None:
        """Put the files on the left or above, and the sides beside each other where there is room."""
        self.set_class(event.size.width < _NARROW_COLUMNS, "-narrow")
        self.text.show(columns=event.size.width)

    def on_diff_text_moved(self, message: DiffText.Moved) -> None:
        """Show where the cursor is."""
        message.stop()
        self._show_place()

    def on_diff_text_fold_wanted(self, message: DiffText.FoldWanted) -> None:
        """Fold or unfold what was clicked."""
        message.stop()
        self.action_fold()

    def on_diff_files_clicked(self, message: DiffFiles.Clicked) -> None:
        """Go to the file."""
        message.stop()
        parts = self.text.layout_of_diff.first_parts
        if message.number < len(parts):
            self.text.go_to(Place(parts[message.number], 0), at_top=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for what was typed, or say what is wrong with it."""
        event.stop()
        try:
            self._pattern = LogPattern(event.value) if event.value else None
        except UsageError as error:
            self.say(str(error), is_error=True)
            return
        self.text.highlight(self._pattern)
        self._close_prompt()
        self.say("")
        if self._pattern is not None:
            self.action_find(1)

    # Inside

    def _close_prompt(self) -> None:
        self.remove_class("-asking")
        self.focus_text()

    def _search_on(self) -> None:
        steps = self._steps
        if steps is None:
            return
        is_over, spot = search_slice(steps)
        if not is_over:
            self.say("searching…")
            # Whatever waits comes first, such as keys: they take more than one turn to arrive.
            self.set_timer(SLICE_REST_S, self._search_on)
            return
        self._steps = None
        if spot is None:
            self.say("not found", is_error=True)
            return
        before = self.text.spot
        self.say("went round the end" if (spot <= before if self._direction > 0 else spot >= before) else "")
        self.text.go_to_spot(spot)

    def _end_search(self) -> None:
        self._steps = None

    def _show_place(self) -> None:
        if not self.is_mounted:
            return
        layout, row = self.text.layout_of_diff, self.text.row
        current = 0 if row is None else layout.parts[row.place.part].file
        self._files.show(layout, current, self.notes)
        parts: list[Content] = []
        if row is not None:
            part = layout.parts[row.place.part]
            parts.append(Content(f"file {current + 1:,} of {len(self.diff.files):,}"))
            if row.file.hunks:
                parts.append(
                    Content(f"hunk {min(max(part.hunk, 0) + 1, len(row.file.hunks)):,} of {len(row.file.hunks):,}")
                )
            parts.append(Content(f"+{self.diff.added:,} −{self.diff.removed:,}"))
        if self._note:
            parts.append(Content.styled(even_line(self._note), "$warning" if self._is_error else ""))
        if self.text.ignores_blanks:
            parts.append(Content("blanks ignored"))
        if self.text.has_mark:
            parts.append(Content("marked"))
        if self._pattern is not None:
            shown = even_line(self._pattern.expression, max_characters=_LONGEST_SHOWN)
            parts.append(Content.assemble("/", (shown, "$foreground")))
        self.query_one("#diff-place", Static).update(Content("   ").join(parts), layout=False)


def _content(text: DiffText, row: DiffRow, side: DiffSide) -> str:
    """Return the line of a row as it is in its file."""
    line = row.old if side is DiffSide.OLD else row.new
    if row.hunk is None or line is None:
        return text.layout_of_diff.kept_text(row)
    return text.layout_of_diff.diff.lines(row.hunk).text(line)


def _new_number(hunks: tuple[Hunk, ...], line: int) -> int:
    """Return about which line of the new text stands where this one of the old text stood."""
    before = [hunk for hunk in hunks if hunk.old_start <= line]
    return line + (before[-1].new_start - before[-1].old_start if before else 0)
