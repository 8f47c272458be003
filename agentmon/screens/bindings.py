"""Every key of the application: help, footer, palette and the keymap read these tables.

An id is unique over all tables and never changes its meaning, since a keymap names it. What the footer shows comes
first in a table, the most needed first: a narrow window cuts the footer from the right.
"""

from __future__ import annotations

from typing import Final

from textual.binding import Binding


def _row_keys(place: str) -> tuple[Binding, ...]:
    """Return the keys that go through the rows of a table."""
    return (
        Binding("j,down", "go_row(1)", "Next", show=False, id=f"{place}.next", tooltip="Select the next row."),
        Binding("k,up", "go_row(-1)", "Above", show=False, id=f"{place}.previous", tooltip="Select the row above."),
        Binding("g,home", "go_end(-1)", "First", show=False, id=f"{place}.first", tooltip="Select the first row."),
        Binding("G,end", "go_end(1)", "Last", show=False, id=f"{place}.last", tooltip="Select the last row."),
        Binding(
            "ctrl+d,pagedown",
            "go_page(1)",
            "Page down",
            show=False,
            id=f"{place}.page-down",
            tooltip="Select half a page down.",
        ),
        Binding(
            "ctrl+u,pageup",
            "go_page(-1)",
            "Page up",
            show=False,
            id=f"{place}.page-up",
            tooltip="Select half a page up.",
        ),
    )


APP: Final = [
    Binding("question_mark", "help", "Help", key_display="?", id="app.help", tooltip="Show all keys of this screen."),
    Binding("1", "show_place('board')", "Board", show=False, id="app.board", tooltip="Go to the board."),
    Binding(
        "2", "show_place('executions')", "Executions", show=False, id="app.executions", tooltip="Go to the executions."
    ),
    Binding("3", "show_place('costs')", "Costs", show=False, id="app.costs", tooltip="Go to the costs."),
    Binding("4", "show_place('agents')", "Agents", show=False, id="app.agents", tooltip="Go to the agents."),
    Binding(
        "5", "show_place('sessions')", "Sessions", show=False, id="app.sessions", tooltip="Go to the conversations."
    ),
    Binding("6", "show_place('inbox')", "Inbox", show=False, id="app.inbox", tooltip="Go to what waits for a person."),
    Binding("7", "show_place('settings')", "Settings", show=False, id="app.settings", tooltip="Go to the settings."),
    Binding(
        "w",
        "show_next_waiting",
        "Needs you",
        show=False,
        id="app.next-waiting",
        tooltip="Go to the next that needs you.",
    ),
    Binding("P", "toggle_pause", "Pause", show=False, id="app.pause", tooltip="Pause the queue; again lets it go on."),
    Binding("ctrl+l", "run_lost", "Lost", show=False, id="app.run-lost", tooltip="Run lost tasks again; asks first."),
    Binding(
        "B",
        "show_background",
        "Background work",
        show=False,
        id="app.background",
        tooltip="Show how the worker and the other background work go.",
    ),
    # Priority: a text field would take the key for itself.
    Binding(
        "ctrl+f",
        "search",
        "Search",
        show=False,
        priority=True,
        id="app.search",
        tooltip="Search tasks, conversations, tool calls, logs and documents.",
    ),
    # Priority: the palette must open from within a text field, where every other key is text.
    Binding(
        "ctrl+p",
        "command_palette",
        "Palette",
        key_display="ctrl+p",
        priority=True,
        id="app.palette",
        tooltip="Find any action by its name.",
    ),
    Binding("q", "quit", "Quit", id="app.quit", tooltip="Leave; what runs goes on running."),
    Binding("ctrl+c", "tell_quit_key", "Quit key", show=False, system=True, id="app.tell-quit-key"),
]
"""Keys that work everywhere, apart from text fields."""

BOARD: Final = [
    Binding("n", "new_task", "New", id="board.new", tooltip="Make a task in the Todo column."),
    Binding("e", "edit_task", "Edit", id="board.edit", tooltip="Change the selected task."),
    Binding(
        "E",
        "edit_description",
        "Description",
        show=False,
        id="board.edit-description",
        tooltip="Write the description of the selected task in your editor.",
    ),
    Binding(
        "N",
        "new_from_template",
        "From template",
        show=False,
        id="board.new-from-template",
        tooltip="Make a task from a template.",
    ),
    Binding(
        "plus",
        "quick_add",
        "Add",
        show=False,
        key_display="+",
        id="board.quick-add",
        tooltip="Make a task from one line: fix login !1 @claude #auth after:38.",
    ),
    Binding("r", "run", "Run", id="board.run", tooltip="Run the selected or marked tasks."),
    Binding(
        "U",
        "release_agent",
        "Release",
        id="board.release",
        tooltip="Let the parked program of the task start again.",
    ),
    Binding("a", "attach", "Attach", id="board.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding(
        "y", "show_request", "Answer", id="board.answer", tooltip="Show what its agent asks, with the keys to decide."
    ),
    Binding(
        "m", "send_message", "Message", id="board.message", tooltip="Write to its agent without entering its terminal."
    ),
    Binding("i", "interrupt", "Interrupt", show=False, id="board.interrupt", tooltip="Let its agent stop and listen."),
    Binding(
        "M", "change_agent", "Model", show=False, id="board.model", tooltip="Change the model or the permission mode."
    ),
    Binding(
        "d", "show_changes", "Changes", show=False, id="board.changes", tooltip="Show what the newest run changed."
    ),
    Binding("x", "stop", "Stop", id="board.stop", tooltip="Ask the program to end."),
    Binding(
        "enter",
        "open_task",
        "Open",
        key_display="enter",
        id="board.open",
        tooltip="Open the task; in Review, its changes.",
    ),
    Binding(
        "H,shift+left",
        "move_card(-1)",
        "Move",
        key_display="H/L",
        id="board.move-left",
        tooltip="Move the card to the column on the left.",
    ),
    Binding(
        "L,shift+right",
        "move_card(1)",
        "Move right",
        show=False,
        key_display="L",
        id="board.move-right",
        tooltip="Move the card to the column on the right.",
    ),
    Binding(
        "escape",
        "clear",
        "Clear",
        key_display="esc",
        id="board.clear",
        tooltip="Clear the marks, then the filter.",
    ),
    Binding(
        "slash",
        "filter",
        "Filter",
        key_display="/",
        id="board.filter",
        tooltip="Show only cards that fit: words, #label, @agent, !1, is:failed.",
    ),
    Binding(
        "f",
        "choose_filter",
        "Filters",
        show=False,
        id="board.filters",
        tooltip="Choose a saved or a common filter, or save this one.",
    ),
    Binding(
        "s",
        "sort",
        "Sort",
        show=False,
        id="board.sort",
        tooltip="Sort all columns by their own order, priority, due date, last change or state.",
    ),
    Binding("space", "mark", "Mark", id="board.mark", tooltip="Mark it; the next action takes all marked."),
    Binding(
        "R",
        "run_with",
        "Run with…",
        show=False,
        id="board.run-with",
        tooltip="Run once with another program or arguments.",
    ),
    Binding(
        "p",
        "toggle_preview",
        "Preview",
        show=False,
        id="board.preview",
        tooltip="Show or hide the log of the selected card.",
    ),
    Binding(
        "T",
        "show_worktrees",
        "Worktrees",
        show=False,
        id="board.worktrees",
        tooltip="Show the git worktrees, to open, restore or remove them.",
    ),
    Binding("X", "kill", "Kill", show=False, id="board.kill", tooltip="End the program by force; asks first."),
    Binding(
        "D,delete",
        "delete_task",
        "Delete",
        show=False,
        key_display="D",
        id="board.delete",
        tooltip="Delete the selected or marked tasks.",
    ),
    Binding(
        "Z",
        "archive",
        "Archive",
        show=False,
        id="board.archive",
        tooltip="Take the cards off the board with all kept; an archived card comes back.",
    ),
    Binding(
        "ctrl+z",
        "undo",
        "Undo",
        show=False,
        id="board.undo",
        tooltip="Take back the last move, edit, delete or archiving.",
    ),
    Binding(
        "W",
        "choose_workspace",
        "Workspace",
        show=False,
        id="board.workspace",
        tooltip="Choose whose board is shown, or that of all workspaces together.",
    ),
    Binding("z", "fold", "Fold", show=False, id="board.fold", tooltip="Fold or unfold the column."),
    Binding(
        "J,shift+down",
        "shift_card(1)",
        "Move down",
        show=False,
        key_display="J",
        id="board.move-down",
        tooltip="Move the card down in its column.",
    ),
    Binding(
        "K,shift+up",
        "shift_card(-1)",
        "Move up",
        show=False,
        key_display="K",
        id="board.move-up",
        tooltip="Move the card up in its column.",
    ),
    Binding(
        "h,left",
        "go_column(-1)",
        "Column left",
        show=False,
        id="board.column-left",
        tooltip="Select in the column on the left.",
    ),
    Binding(
        "l,right",
        "go_column(1)",
        "Column right",
        show=False,
        id="board.column-right",
        tooltip="Select in the column on the right.",
    ),
    Binding("j,down", "go_card(1)", "Next card", show=False, id="board.next", tooltip="Select the next card."),
    Binding("k,up", "go_card(-1)", "Card above", show=False, id="board.previous", tooltip="Select the card above."),
    Binding("g,home", "go_end(-1)", "First card", show=False, id="board.first", tooltip="Select the first card."),
    Binding("G,end", "go_end(1)", "Last card", show=False, id="board.last", tooltip="Select the last card."),
    Binding(
        "ctrl+d,pagedown",
        "go_page(1)",
        "Page down",
        show=False,
        id="board.page-down",
        tooltip="Select half a page down.",
    ),
    Binding(
        "ctrl+u,pageup", "go_page(-1)", "Page up", show=False, id="board.page-up", tooltip="Select half a page up."
    ),
]

TASK_PAGE: Final = [
    Binding("escape,backspace", "close", "Back", key_display="esc", id="task.close", tooltip="Go back."),
    Binding("r", "run", "Run", id="task.run", tooltip="Run the task."),
    Binding(
        "R", "run_with", "Run with…", id="task.run-with", tooltip="Run with another program, capability or arguments."
    ),
    Binding(
        "U",
        "release_agent",
        "Release",
        id="task.release",
        tooltip="Let the parked program of the task start again.",
    ),
    Binding("e", "edit_task", "Edit", id="task.edit", tooltip="Change the task."),
    Binding(
        "E",
        "edit_description",
        "Description",
        show=False,
        id="task.edit-description",
        tooltip="Write the description in your editor.",
    ),
    Binding("a", "attach", "Attach", id="task.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding(
        "y", "show_request", "Answer", id="task.answer", tooltip="Show what its agent asks, with the keys to decide."
    ),
    Binding(
        "m", "send_message", "Message", id="task.message", tooltip="Write to its agent without entering its terminal."
    ),
    Binding("i", "interrupt", "Interrupt", show=False, id="task.interrupt", tooltip="Let its agent stop and listen."),
    Binding(
        "M", "change_agent", "Model", show=False, id="task.model", tooltip="Change the model or the permission mode."
    ),
    Binding("d", "show_changes", "Changes", id="task.changes", tooltip="Show what the run changed, line by line."),
    Binding(
        "T",
        "show_worktrees",
        "Worktrees",
        show=False,
        id="task.worktrees",
        tooltip="Show the git worktrees, to open, restore or remove them.",
    ),
    Binding(
        "u",
        "undo_call",
        "Undo call",
        id="task.undo-call",
        tooltip="Undo what the selected tool call changed, or redo it; shows first what that does.",
    ),
    Binding("V", "verify", "Verify", show=False, id="task.verify", tooltip="Run the verification command again."),
    Binding("x", "stop", "Stop", id="task.stop", tooltip="Ask the program to end."),
    Binding("X", "kill", "Kill", show=False, id="task.kill", tooltip="End the program by force; asks first."),
    Binding(
        "Z",
        "archive",
        "Archive",
        show=False,
        id="task.archive",
        tooltip="Take the task off the board with all kept; again brings it back.",
    ),
    Binding(
        "right_square_bracket",
        "next_tab(1)",
        "Next tab",
        key_display="]",
        id="task.next-tab",
        tooltip="Show the next tab.",
    ),
    Binding(
        "left_square_bracket",
        "next_tab(-1)",
        "Tab before",
        show=False,
        key_display="[",
        id="task.previous-tab",
        tooltip="Show the tab before.",
    ),
    Binding("D", "show_tab('details')", "Details", show=False, id="task.details", tooltip="Show what the task is."),
    Binding("L", "show_tab('log')", "Log", show=False, id="task.log", tooltip="Show what the program wrote."),
    Binding(
        "C",
        "show_tab('conversation')",
        "Conversation",
        show=False,
        id="task.conversation",
        tooltip="Show what was said and done.",
    ),
    Binding(
        "O",
        "show_tab('operations')",
        "Operations",
        show=False,
        id="task.operations",
        tooltip="Show the tool calls as a table.",
    ),
    Binding(
        "F",
        "show_tab('changes')",
        "Changed files",
        show=False,
        id="task.changed-files",
        tooltip="Show the files that the run changed, with their lines.",
    ),
    Binding("A", "show_tab('audit')", "Audit", show=False, id="task.audit", tooltip="Show who changed what, and when."),
    Binding(
        "enter",
        "pick",
        "Look",
        key_display="enter",
        id="task.pick-run",
        tooltip="Show the log of the run, or unfold it.",
    ),
    Binding("slash", "search", "Search", key_display="/", id="task.search", tooltip="Search the log."),
    Binding("n", "find(1)", "Next match", show=False, id="task.find-next", tooltip="Go to the next match below."),
    Binding("N", "find(-1)", "Match above", show=False, id="task.find-previous", tooltip="Go to the next match above."),
    Binding(
        "ampersand",
        "filter_log",
        "Filter",
        key_display="&",
        id="task.filter",
        tooltip="Show only log lines that match.",
    ),
    Binding(
        "colon",
        "go_to",
        "Go to",
        key_display=":",
        id="task.go-to",
        tooltip="Go to a line, a percentage or a time of the log.",
    ),
    Binding(
        "v", "mark_log", "Mark", show=False, id="task.mark", tooltip="Mark the log line at the top, to copy from there."
    ),
    Binding(
        "c", "copy_log", "Copy", id="task.copy", tooltip="Copy the log lines that are selected, marked or in view."
    ),
    Binding("S", "save_log", "Save", id="task.save", tooltip="Save the log, or what the filter shows, to a file."),
    Binding("W", "wrap", "Wrap", id="task.wrap", tooltip="Wrap the long lines of the log, or scroll them sideways."),
    Binding("t", "show_times", "Times", id="task.times", tooltip="Show when each line of the log had come, or not."),
    Binding(
        "s",
        "next_stream",
        "Stream",
        show=False,
        id="task.stream",
        tooltip="Show the screen, all output, the errors alone, or the protocol.",
    ),
    Binding(
        "b",
        "beside",
        "Beside",
        id="task.beside",
        tooltip="Show conversation and log side by side, or change over at the same place.",
    ),
    Binding("z", "unfold_all", "Unfold all", id="task.unfold-all", tooltip="Unfold all that was said, or fold it."),
    Binding("j,down", "go_row(1)", "Down", show=False, id="task.down", tooltip="Go down by a row."),
    Binding("k,up", "go_row(-1)", "Up", show=False, id="task.up", tooltip="Go up by a row."),
    Binding("h,left", "go_sideways(-1)", "Left", show=False, id="task.left", tooltip="Scroll the log to the left."),
    Binding("l,right", "go_sideways(1)", "Right", show=False, id="task.right", tooltip="Scroll the log to the right."),
    Binding("g,home", "go_end(-1)", "Beginning", show=False, id="task.first", tooltip="Go to the beginning."),
    Binding("G,end", "go_end(1)", "End", show=False, id="task.last", tooltip="Go to the end; a log is followed there."),
    Binding("ctrl+d,pagedown", "go_page(1)", "Page down", show=False, id="task.page-down", tooltip="Go down a page."),
    Binding("ctrl+u,pageup", "go_page(-1)", "Page up", show=False, id="task.page-up", tooltip="Go up a page."),
]

CHANGES: Final = [
    Binding(
        "escape",
        "close",
        "Back",
        key_display="esc",
        id="changes.close",
        tooltip="Go back; ends a search or a selection first.",
    ),
    Binding(
        "space",
        "view('look')",
        "Looked at",
        key_display="space",
        id="changes.look",
        tooltip="Mark the lines or the file as looked at, or not yet.",
    ),
    Binding(
        "c",
        "view('comment')",
        "Comment",
        id="changes.comment",
        tooltip="Comment on the line, or on the selected lines.",
    ),
    Binding(
        "m",
        "send_comments",
        "Send",
        id="changes.send",
        tooltip="Send all comments to the agent as one message.",
    ),
    Binding(
        "M",
        "merge",
        "Merge",
        id="changes.merge",
        tooltip="Merge the task's branch into its base.",
    ),
    Binding(
        "u",
        "view('take_back')",
        "Undo",
        id="changes.take-back",
        tooltip="Undo these lines, or the file on whose head the cursor is; asks first.",
    ),
    Binding(
        "U",
        "undo_run",
        "Undo run",
        id="changes.undo-run",
        tooltip="Undo the run or all runs of the task, or redo; shows first what that does.",
    ),
    Binding(
        "equals_sign",
        "compare",
        "Compare",
        key_display="=",
        id="changes.compare",
        tooltip="Compare with another run or alternative; again ends that.",
    ),
    Binding(
        "e",
        "view('edit')",
        "Edit",
        id="changes.edit",
        tooltip="Open the file at this line in your editor.",
    ),
    Binding(
        "b",
        "view('toggle_sides')",
        "Beside",
        id="changes.beside",
        tooltip="Show old and new lines side by side, or one below the other.",
    ),
    Binding(
        "slash",
        "view('search')",
        "Search",
        key_display="/",
        id="changes.search",
        tooltip="Search the changes.",
    ),
    Binding(
        "n",
        "view('find', 1)",
        "Next match",
        show=False,
        id="changes.find-next",
        tooltip="Go to the next match below.",
    ),
    Binding(
        "N",
        "view('find', -1)",
        "Match above",
        show=False,
        id="changes.find-previous",
        tooltip="Go to the next match above.",
    ),
    Binding(
        "J",
        "view('go_hunk', 1)",
        "Next lines",
        show=False,
        id="changes.next-hunk",
        tooltip="Go to the next changed lines.",
    ),
    Binding(
        "K",
        "view('go_hunk', -1)",
        "Lines above",
        show=False,
        id="changes.previous-hunk",
        tooltip="Go to the changed lines above.",
    ),
    Binding(
        "o",
        "view('go_note')",
        "Next comment",
        show=False,
        id="changes.next-comment",
        tooltip="Go to the next lines with a comment, or changed or undone since.",
    ),
    Binding(
        "tab",
        "view('go_file', 1)",
        "Next file",
        key_display="tab",
        id="changes.next-file",
        tooltip="Go to the next file.",
    ),
    Binding(
        "shift+tab",
        "view('go_file', -1)",
        "File above",
        show=False,
        key_display="shift+tab",
        id="changes.previous-file",
        tooltip="Go to the file above.",
    ),
    Binding(
        "enter",
        "view('fold')",
        "Fold",
        show=False,
        key_display="enter",
        id="changes.fold",
        tooltip="Fold the file or the lines, or unfold them.",
    ),
    Binding(
        "z",
        "view('fold_all')",
        "Fold all",
        show=False,
        id="changes.fold-all",
        tooltip="Fold all files, or unfold them.",
    ),
    Binding(
        "v",
        "view('mark')",
        "Select",
        show=False,
        id="changes.mark",
        tooltip="Select lines from here on, to comment on.",
    ),
    Binding(
        "I",
        "view('toggle_blanks')",
        "Ignore blanks",
        show=False,
        id="changes.blanks",
        tooltip="Ignore lines that differ in blanks alone, or show them.",
    ),
    Binding(
        "j,down",
        "view('move', 1)",
        "Down",
        show=False,
        id="changes.down",
        tooltip="Go down by a line.",
    ),
    Binding(
        "k,up",
        "view('move', -1)",
        "Up",
        show=False,
        id="changes.up",
        tooltip="Go up by a line.",
    ),
    Binding(
        "h,left",
        "view('sideways', -1)",
        "Left",
        show=False,
        id="changes.left",
        tooltip="Scroll to the left.",
    ),
    Binding(
        "l,right",
        "view('sideways', 1)",
        "Right",
        show=False,
        id="changes.right",
        tooltip="Scroll to the right.",
    ),
    Binding(
        "g,home",
        "view('go_end', -1)",
        "Beginning",
        show=False,
        id="changes.first",
        tooltip="Go to the beginning.",
    ),
    Binding(
        "G,end",
        "view('go_end', 1)",
        "End",
        show=False,
        id="changes.last",
        tooltip="Go to the end.",
    ),
    Binding(
        "ctrl+d,pagedown",
        "view('move_page', 1)",
        "Page down",
        show=False,
        id="changes.page-down",
        tooltip="Go down half a page.",
    ),
    Binding(
        "ctrl+u,pageup",
        "view('move_page', -1)",
        "Page up",
        show=False,
        id="changes.page-up",
        tooltip="Go up half a page.",
    ),
]

UNDO_DIALOG: Final = [
    # Priority: the table would take the key to open a row.
    Binding("enter", "confirm", "Do it", key_display="enter", priority=True, id="undo.confirm", tooltip="Do it."),
    Binding(
        "space",
        "choose_side",
        "Choose side",
        key_display="space",
        id="undo.choose-side",
        tooltip="Choose a side of the conflict: as before, as now, or left alone.",
    ),
    Binding("escape,q", "cancel", "Cancel", key_display="esc", id="undo.cancel", tooltip="Cancel; nothing changes."),
    Binding("j,down", "go_row(1)", "Next", show=False, id="undo.next", tooltip="Go to the next file."),
    Binding("k,up", "go_row(-1)", "Above", show=False, id="undo.previous", tooltip="Go to the file above."),
    Binding(
        "ctrl+d,pagedown", "scroll(1)", "Scroll", show=False, id="undo.page-down", tooltip="Scroll down in the lines."
    ),
    Binding("ctrl+u,pageup", "scroll(-1)", "Scroll up", show=False, id="undo.page-up", tooltip="Scroll up in them."),
]

EXECUTIONS: Final = [
    Binding("enter", "open_task", "Open", key_display="enter", id="executions.open", tooltip="Show the task."),
    Binding("a", "attach", "Attach", id="executions.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding(
        "y",
        "show_request",
        "Answer",
        id="executions.answer",
        tooltip="Show what its agent asks, with the keys to decide.",
    ),
    Binding(
        "m",
        "send_message",
        "Message",
        id="executions.message",
        tooltip="Write to its agent without entering its terminal.",
    ),
    Binding(
        "i", "interrupt", "Interrupt", show=False, id="executions.interrupt", tooltip="Let its agent stop and listen."
    ),
    Binding(
        "M",
        "change_agent",
        "Model",
        show=False,
        id="executions.model",
        tooltip="Change the model or the permission mode.",
    ),
    Binding(
        "d", "show_changes", "Changes", id="executions.changes", tooltip="Show what the run changed, line by line."
    ),
    Binding("x", "stop", "Stop", id="executions.stop", tooltip="Ask the program to end."),
    Binding("X", "kill", "Kill", id="executions.kill", tooltip="End the program by force; asks first."),
    Binding(
        "slash", "filter", "Filter", key_display="/", id="executions.filter", tooltip="Show only rows with a text."
    ),
    Binding("s", "sort", "Sort", id="executions.sort", tooltip="Sort by the next column."),
    Binding(
        "S", "reverse", "Reverse", show=False, id="executions.reverse", tooltip="Turn the order of the rows round."
    ),
    Binding("c", "choose_columns", "Columns", id="executions.columns", tooltip="Choose the columns and their order."),
    Binding("escape", "clear", "Clear", show=False, id="executions.clear", tooltip="Clear the filter, then the order."),
    *_row_keys("executions"),
]

AGENTS: Final = [
    Binding("enter", "open_agent", "Open", key_display="enter", id="agents.open", tooltip="Show all about the agent."),
    Binding("o", "turn", "On/off", id="agents.turn", tooltip="Turn the selected or marked agents on or off."),
    Binding("e", "edit", "Edit", id="agents.edit", tooltip="Change the agent: limits, model, tools, instructions."),
    Binding(
        "n",
        "add",
        "Add",
        id="agents.add",
        tooltip="Make an agent of a program of this machine: type its name, or its path.",
    ),
    Binding(
        "p,tab",
        "show_programs",
        "Programs",
        key_display="tab",
        id="agents.programs",
        tooltip="Show what is on this machine.",
    ),
    Binding("r", "scan", "Scan", id="agents.scan", tooltip="Look which programs came, changed and went."),
    Binding("slash", "filter", "Filter", key_display="/", id="agents.filter", tooltip="Show only rows with a text."),
    Binding("t", "test", "Test", id="agents.test", tooltip="Ask the program for its version and its login."),
    Binding(
        "L",
        "learn",
        "Learn",
        id="agents.learn",
        tooltip="Learn what it can be asked to do, from its help, its manual and its completions.",
    ),
    Binding("x", "stop_scan", "Stop", id="agents.stop-scan", tooltip="Stop the scan."),
    Binding("U", "release_agent", "Release", id="agents.release", tooltip="Let the parked agent start again."),
    Binding(
        "space", "mark", "Mark", key_display="space", id="agents.mark", tooltip="Mark it; o and D take all marked."
    ),
    Binding("T", "trust", "Trust", id="agents.trust", tooltip="Show the agents that this workspace's own file names."),
    Binding("s", "sort", "Sort", show=False, id="agents.sort", tooltip="Sort by the next column."),
    Binding("S", "reverse", "Reverse", show=False, id="agents.reverse", tooltip="Turn the order of the rows round."),
    Binding("c", "copy", "Copy", show=False, id="agents.copy", tooltip="Make a copy of the agent under another name."),
    Binding(
        "D,delete",
        "remove",
        "Remove",
        show=False,
        key_display="D",
        id="agents.remove",
        tooltip="Take the selected or marked agents out of the list; what they did stays.",
    ),
    Binding("ctrl+z", "undo", "Undo", show=False, id="agents.undo", tooltip="Take back the last change of an agent."),
    Binding(
        "escape",
        "clear",
        "Clear",
        show=False,
        key_display="esc",
        id="agents.clear",
        tooltip="Clear the marks, then the filter, then the order.",
    ),
    *_row_keys("agents"),
]

AGENT_PAGE: Final = [
    Binding("escape,backspace", "close", "Back", key_display="esc", id="agent.close", tooltip="Go back."),
    Binding(
        "enter",
        "change_capability",
        "Change",
        key_display="enter",
        id="agent.change-capability",
        tooltip="Change what the row says: words, arguments, danger, limits.",
    ),
    Binding(
        "n", "new_capability", "New", id="agent.new-capability", tooltip="Add something that it can be asked to do."
    ),
    Binding("o", "turn_capability", "On/off", id="agent.turn-capability", tooltip="Turn the capability on or off."),
    Binding(
        "L",
        "learn",
        "Learn",
        id="agent.learn",
        tooltip="Learn what it can be asked to do, from its help, its manual and its completions.",
    ),
    Binding(
        "e", "edit", "Edit agent", id="agent.edit", tooltip="Change the agent: limits, model, tools, instructions."
    ),
    Binding("t", "test", "Test", id="agent.test", tooltip="Ask the program for its version and its login."),
    Binding("O", "turn", "Agent on/off", show=False, id="agent.turn", tooltip="Turn the whole agent on or off."),
    Binding("U", "release_agent", "Release", id="agent.release", tooltip="Let the parked agent start again."),
    Binding(
        "D,delete",
        "remove_capability",
        "Remove",
        show=False,
        key_display="D",
        id="agent.remove-capability",
        tooltip="Remove the capability.",
    ),
    Binding("ctrl+z", "undo", "Undo", show=False, id="agent.undo", tooltip="Take back the last change."),
    Binding(
        "J,shift+down",
        "scroll_facts(1)",
        "Facts down",
        show=False,
        id="agent.facts-down",
        tooltip="Scroll the facts down.",
    ),
    Binding(
        "K,shift+up", "scroll_facts(-1)", "Facts up", show=False, id="agent.facts-up", tooltip="Scroll the facts up."
    ),
    *_row_keys("agent"),
]

PROGRAMS: Final = [
    Binding(
        "escape,backspace",
        "back",
        "Back",
        key_display="esc",
        id="programs.back",
        tooltip="Clear the marks, then the filter; then go back to the agents.",
    ),
    Binding(
        "enter",
        "add",
        "Add",
        key_display="enter",
        id="programs.add",
        tooltip="Make agents of the selected or marked programs; one that is an agent already is shown.",
    ),
    Binding("slash", "filter", "Filter", key_display="/", id="programs.filter", tooltip="Show only rows with a text."),
    Binding(
        "f",
        "show_kind",
        "Show",
        id="programs.kind",
        tooltip="Show only what is new, gone, broken or hidden; then all again.",
    ),
    Binding(
        "space", "mark", "Mark", key_display="space", id="programs.mark", tooltip="Mark it; enter takes all marked."
    ),
    Binding("p,tab", "close", "Agents", key_display="tab", id="programs.close", tooltip="Go back to the agents."),
    Binding("r", "scan", "Scan", id="programs.scan", tooltip="Look which programs came, changed and went."),
    Binding("x", "stop_scan", "Stop", id="programs.stop-scan", tooltip="Stop the scan."),
    Binding("s", "sort", "Sort", id="programs.sort", tooltip="Sort by the next column."),
    Binding("S", "reverse", "Reverse", show=False, id="programs.reverse", tooltip="Turn the order of the rows round."),
    Binding("ctrl+z", "undo", "Undo", show=False, id="programs.undo", tooltip="Take back the last change of an agent."),
    *_row_keys("programs"),
]

TASK_EDITOR: Final = [
    # Priority: these must work from within the text fields of the dialog.
    Binding("ctrl+s", "save", "Save", priority=True, id="editor.save", tooltip="Save the task."),
    Binding(
        "ctrl+r",
        "save_and_run",
        "Save and run",
        priority=True,
        id="editor.save-and-run",
        tooltip="Save the task and run it.",
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="editor.cancel", tooltip="Leave without saving."),
    Binding(
        "ctrl+g",
        "toggle_more",
        "More",
        priority=True,
        id="editor.more",
        tooltip="Show or hide retries, budget, schedule, environment and additions to the prompt.",
    ),
    # Priority: while a field offers something, these are for the list below it.
    Binding(
        "down",
        "go_way(1)",
        "Next",
        show=False,
        priority=True,
        id="editor.next-offer",
        tooltip="Mark the next of what a field offers.",
    ),
    Binding(
        "up",
        "go_way(-1)",
        "Above",
        show=False,
        priority=True,
        id="editor.previous-offer",
        tooltip="Mark the one above of what a field offers.",
    ),
    Binding(
        "enter",
        "take_way",
        "Take",
        show=False,
        priority=True,
        id="editor.take-offer",
        tooltip="Take what is marked of what a field offers.",
    ),
    Binding(
        "tab",
        "complete",
        "Complete",
        show=False,
        priority=True,
        id="editor.complete",
        tooltip="Complete what is typed with what a field offers; without that, go to the next field.",
    ),
    Binding(
        "ctrl+n",
        "save_template",
        "Template",
        show=False,
        priority=True,
        id="editor.save-template",
        tooltip="Save what is filled in as a template for new tasks.",
    ),
    Binding(
        "ctrl+o",
        "edit_outside",
        "Editor",
        priority=True,
        id="editor.edit-outside",
        tooltip="Write the description in your editor, as $VISUAL or $EDITOR name it.",
    ),
    Binding(
        "ctrl+t",
        "take_suggestion",
        "Take the suggestion",
        priority=True,
        id="editor.take-suggestion",
        tooltip="Put the suggested command line into the field.",
    ),
]

AGENT_EDITOR: Final = [
    # Priority: these must work from within the text fields of the dialog.
    Binding("ctrl+s", "save", "Save", priority=True, id="agent-editor.save", tooltip="Save the agent."),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="agent-editor.cancel", tooltip="Leave without saving."),
    Binding(
        "ctrl+g",
        "toggle_more",
        "More",
        priority=True,
        id="agent-editor.more",
        tooltip="Show or hide description, icon, colour and what else is seldom needed.",
    ),
    Binding(
        "ctrl+o",
        "edit_outside",
        "Editor",
        priority=True,
        id="agent-editor.edit-outside",
        tooltip="Write the instructions in your editor, as $VISUAL or $EDITOR name it.",
    ),
]

CAPABILITY_EDITOR: Final = [
    # Priority: these must work from within the text fields of the dialog.
    Binding("ctrl+s", "save", "Save", priority=True, id="capability-editor.save", tooltip="Save the capability."),
    Binding(
        "escape", "cancel", "Cancel", key_display="esc", id="capability-editor.cancel", tooltip="Leave without saving."
    ),
    Binding(
        "ctrl+n",
        "add_argument",
        "New argument",
        priority=True,
        id="capability-editor.add-argument",
        tooltip="Describe one argument more.",
    ),
    Binding(
        "ctrl+o",
        "edit_outside",
        "Editor",
        priority=True,
        id="capability-editor.edit-outside",
        tooltip="Write the message in your editor, as $VISUAL or $EDITOR name it.",
    ),
    Binding(
        "enter",
        "change_argument",
        "Change",
        key_display="enter",
        id="capability-editor.change-argument",
        tooltip="Change the argument under the cursor.",
    ),
    Binding(
        "d,delete",
        "remove_argument",
        "Remove",
        key_display="d",
        id="capability-editor.remove-argument",
        tooltip="Take the argument away, and the words of the command that name it.",
    ),
    Binding(
        "J,shift+down",
        "move_argument(1)",
        "Move",
        key_display="J/K",
        id="capability-editor.move-down",
        tooltip="Take the argument further down.",
    ),
    Binding(
        "K,shift+up",
        "move_argument(-1)",
        "Move up",
        show=False,
        id="capability-editor.move-up",
        tooltip="Take the argument further up.",
    ),
    Binding("j,down", "go_row(1)", "Next", show=False, id="capability-editor.next", tooltip="Go to the next argument."),
    Binding(
        "k,up", "go_row(-1)", "Above", show=False, id="capability-editor.previous", tooltip="Go to the argument above."
    ),
]

ARGUMENT_DIALOG: Final = [
    # Priority: this must work from within the text fields of the dialog.
    Binding("ctrl+s", "save", "Keep", priority=True, id="argument.save", tooltip="Keep the argument."),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="argument.cancel", tooltip="Leave it as it was."),
]

PROPOSALS: Final = [
    Binding(
        "ctrl+s,enter",
        "accept",
        "Accept",
        key_display="enter",
        id="proposals.accept",
        tooltip="Store what is marked; without a mark, what is under the cursor.",
    ),
    Binding("space", "toggle_mark", "Mark", key_display="space", id="proposals.mark", tooltip="Mark it, or unmark it."),
    Binding(
        "a", "mark_all", "All", id="proposals.mark-all", tooltip="Mark all that is new or changed; again marks none."
    ),
    Binding(
        "l",
        "learn_deeper",
        "Look inside",
        id="proposals.learn-deeper",
        tooltip="Read the help of the subcommand itself.",
    ),
    Binding("m", "ask_server", "MCP", id="proposals.ask-server", tooltip="Start it as a server of tools and ask it."),
    Binding(
        "A", "ask_agent", "Ask an agent", id="proposals.ask-agent", tooltip="Let an AI agent describe the program."
    ),
    Binding(
        "escape,q", "cancel", "Cancel", key_display="esc", id="proposals.cancel", tooltip="Leave; nothing is stored."
    ),
    *_row_keys("proposals"),
]

TRUST_DIALOG: Final = [
    Binding("y", "trust", "Trust", id="trust.trust", tooltip="Let its agents be used as they are shown here."),
    Binding("u", "untrust", "Take back", id="trust.untrust", tooltip="Trust it no more; what its agents did stays."),
    Binding("escape,n,q", "close", "Leave", key_display="esc", id="trust.close", tooltip="Leave it as it is."),
    Binding("j,down", "scroll(1)", "Scroll", key_display="j/k", id="trust.down", tooltip="Scroll down."),
    Binding("k,up", "scroll(-1)", "Up", show=False, id="trust.up", tooltip="Scroll up."),
    Binding(
        "ctrl+d,pagedown", "scroll_page(1)", "Page down", show=False, id="trust.page-down", tooltip="Go down a page."
    ),
    Binding("ctrl+u,pageup", "scroll_page(-1)", "Page up", show=False, id="trust.page-up", tooltip="Go up a page."),
]

TEMPLATE_MENU: Final = [
    # Priority: these must work from within the filter.
    Binding("enter", "choose", "Choose", key_display="enter", priority=True, id="templates.choose", tooltip="Take it."),
    Binding("down", "go_row(1)", "Next", key_display="↓", priority=True, id="templates.next", tooltip="Mark the next."),
    Binding(
        "up", "go_row(-1)", "Above", show=False, priority=True, id="templates.previous", tooltip="Mark the one above."
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="templates.cancel", tooltip="Make no task."),
]

QUICK_ADD: Final = [
    # Priority: these must work from within the line.
    Binding("enter", "add", "Add", key_display="enter", priority=True, id="quick-add.add", tooltip="Make the task."),
    Binding(
        "ctrl+r,ctrl+enter,shift+enter",
        "add_and_run",
        "Add and run",
        key_display="ctrl+r",
        priority=True,
        id="quick-add.run",
        tooltip="Make the task and run it.",
    ),
    Binding(
        "tab",
        "complete",
        "Complete",
        priority=True,
        id="quick-add.complete",
        tooltip="Complete the last word; again takes the next way.",
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="quick-add.cancel", tooltip="Make no task."),
]

RUN_DIALOG: Final = [
    # Priority: this must work from within the text fields of the dialog.
    Binding("ctrl+r", "run", "Run", priority=True, id="run-dialog.run", tooltip="Run with these choices."),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="run-dialog.cancel", tooltip="Leave without running."),
    Binding(
        "ctrl+t",
        "take_suggestion",
        "Take the suggestion",
        priority=True,
        id="run-dialog.take-suggestion",
        tooltip="Put the suggested command line into the field.",
    ),
]

REQUEST: Final = [
    Binding("y", "allow", "Allow", id="request.allow", tooltip="Allow this once."),
    Binding("Y", "allow_session", "For session", id="request.allow-session", tooltip="Allow it for this conversation."),
    Binding(
        "A", "allow_always", "Always", id="request.allow-always", tooltip="Allow it always, by a rule shown first."
    ),
    Binding("n", "deny", "Deny", id="request.deny", tooltip="Deny it; a reason can be given."),
    Binding("N", "deny_and_interrupt", "Deny, stop", id="request.deny-stop", tooltip="Deny it and let the agent stop."),
    Binding("e", "edit_input", "Edit", id="request.edit", tooltip="Change what the tool gets, then allow it."),
]
"""Keys of a request that is shown whole."""

QUESTION: Final = [
    Binding(
        "enter", "submit_answer", "Answer", key_display="enter", id="request.submit", tooltip="Send what is chosen."
    ),
    Binding(
        "j,down",
        "go_choice(1)",
        "Next",
        key_display="j/k",
        id="request.choice-down",
        tooltip="Go to the next choice.",
    ),
    Binding(
        "k,up",
        "go_choice(-1)",
        "Choice above",
        show=False,
        key_display="k",
        id="request.choice-up",
        tooltip="Go to the choice above.",
    ),
    Binding("space", "toggle_choice", "Choose", key_display="space", id="request.toggle", tooltip="Choose the answer."),
    Binding("t", "type_answer", "Type", id="request.type", tooltip="Answer in your own words."),
    Binding(
        "l,right,tab",
        "go_question(1)",
        "Next question",
        show=False,
        key_display="l",
        id="request.question-next",
        tooltip="Go to the next question.",
    ),
    Binding(
        "h,left,shift+tab",
        "go_question(-1)",
        "Question before",
        show=False,
        key_display="h",
        id="request.question-before",
        tooltip="Go to the question before.",
    ),
    *(
        Binding(
            str(number),
            f"choose({number})",
            f"Choice {number}",
            show=False,
            id=f"request.choose-{number}",
            tooltip=f"Choose answer {number} of a question.",
        )
        for number in range(1, 10)
    ),
]
"""Keys of the dialog of a question: the places are out of reach there, and digits choose."""

INBOX: Final = [
    Binding("y", "answer", "Answer", id="inbox.answer", tooltip="Answer the question."),
    Binding("enter", "open_item", "Open", id="inbox.open", tooltip="Show the question to answer it; else the task."),
    Binding("a", "attach", "Attach", id="inbox.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding("m", "send_message", "Message", id="inbox.message", tooltip="Write to the agent."),
    Binding("h", "toggle_history", "History", id="inbox.history", tooltip="Show what was decided; again what waits."),
    Binding("o", "open_task", "Task", show=False, id="inbox.task", tooltip="Show the task, of a question too."),
    Binding("j,down", "go_item(1)", "Next", show=False, id="inbox.next", tooltip="Select the next one."),
    Binding("k,up", "go_item(-1)", "Above", show=False, id="inbox.previous", tooltip="Select the one above."),
    Binding("g,home", "go_end(-1)", "First", show=False, id="inbox.first", tooltip="Select the first one."),
    Binding("G,end", "go_end(1)", "Last", show=False, id="inbox.last", tooltip="Select the last one."),
    Binding(
        "ctrl+d,pagedown",
        "scroll_request(1)",
        "Down",
        show=False,
        id="inbox.page-down",
        tooltip="Scroll the request down.",
    ),
    Binding(
        "ctrl+u,pageup", "scroll_request(-1)", "Up", show=False, id="inbox.page-up", tooltip="Scroll the request up."
    ),
]

REQUEST_DIALOG: Final = [
    Binding("escape,q", "close", "Later", key_display="esc", id="request-dialog.close", tooltip="Leave it undecided."),
    Binding("j,down", "scroll_request(1)", "Down", show=False, id="request-dialog.down", tooltip="Scroll down."),
    Binding("k,up", "scroll_request(-1)", "Up", show=False, id="request-dialog.up", tooltip="Scroll up."),
]

SESSIONS: Final = [
    Binding("enter", "open_session", "Open", key_display="enter", id="sessions.open", tooltip="Show the conversation."),
    Binding("m", "send_message", "Message", id="sessions.message", tooltip="Go on with it: write to its agent."),
    Binding("F", "fork", "Fork", id="sessions.fork", tooltip="Go on with a copy of it."),
    Binding("R", "restart", "Restart", id="sessions.restart", tooltip="Begin anew with the same first words."),
    Binding(
        "slash",
        "search",
        "Search",
        key_display="/",
        id="sessions.search",
        tooltip="Search titles, messages and tool calls.",
    ),
    Binding("e", "rename", "Rename", id="sessions.rename", tooltip="Give the conversation another title."),
    Binding("o", "open_task", "Task", id="sessions.task", tooltip="Show the task of the conversation."),
    Binding("a", "attach", "Attach", id="sessions.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding("escape", "clear", "Clear", show=False, id="sessions.clear", tooltip="Clear the search."),
    *_row_keys("sessions"),
]

SEARCH: Final = [
    # Priority: a text field would take the key for itself.
    Binding(
        "enter",
        "open_hit",
        "Go there",
        key_display="enter",
        priority=True,
        id="search.open",
        tooltip="Go to what is under the cursor.",
    ),
    Binding("escape", "close", "Back", key_display="esc", id="search.close", tooltip="Go back; what was typed stays."),
    Binding("tab", "go_kind(1)", "Next kind", key_display="tab", id="search.next-kind", tooltip="Go to the next kind."),
    Binding(
        "shift+tab",
        "go_kind(-1)",
        "Kind before",
        show=False,
        id="search.previous-kind",
        tooltip="Go to the kind before.",
    ),
    Binding(
        "ctrl+o",
        "search_everywhere",
        "Workspaces",
        key_display="ctrl+o",
        id="search.everywhere",
        tooltip="Search all workspaces, or this one alone again.",
    ),
    Binding("down", "go_row(1)", "Next", show=False, id="search.next", tooltip="Select the next row."),
    Binding("up", "go_row(-1)", "Above", show=False, id="search.previous", tooltip="Select the row above."),
    Binding(
        "pagedown", "go_page(1)", "Page down", show=False, id="search.page-down", tooltip="Select half a page down."
    ),
    Binding("pageup", "go_page(-1)", "Page up", show=False, id="search.page-up", tooltip="Select half a page up."),
]

SETTINGS: Final = [
    Binding(
        "enter,space", "change", "Change", key_display="enter", id="settings.change", tooltip="Give it another value."
    ),
    Binding(
        "d", "reset", "Reset", id="settings.reset", tooltip="Let the file, the environment or the default say it again."
    ),
    Binding("slash", "search", "Search", key_display="/", id="settings.search", tooltip="Show only what has a text."),
    Binding("escape", "clear", "Clear", show=False, id="settings.clear", tooltip="Clear the search."),
    *_row_keys("settings"),
]

WELCOME: Final = [
    Binding("enter,escape,space,q", "close", "Go on", key_display="enter", id="welcome.close", tooltip="Go on."),
]

SETTING_DIALOG: Final = [
    # Priority: a text field would take the key for itself.
    Binding("enter", "save", "Keep", key_display="enter", priority=True, id="setting.save", tooltip="Keep the value."),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="setting.cancel", tooltip="Leave it as it is."),
]

NAME_DIALOG: Final = [
    # Priority: a text field would take the key for itself.
    Binding("enter", "save", "Allow", key_display="enter", priority=True, id="name.save", tooltip="Allow it once."),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="name.cancel", tooltip="Decide nothing."),
]
"""Keys of the dialog in which the name of what destroys things is typed."""

COSTS: Final = [
    Binding(
        "enter",
        "open_row",
        "Open",
        key_display="enter",
        id="costs.open",
        tooltip="Follow the row: to its sessions, their answers, or the task.",
    ),
    Binding(
        "escape,backspace",
        "back",
        "Back",
        key_display="esc",
        id="costs.back",
        tooltip="Go back to all of it; then clear the filter, then the order.",
    ),
    Binding(
        "l,right,tab", "go_group(1)", "By", key_display="l", id="costs.group-next", tooltip="Sum up by the next thing."
    ),
    Binding(
        "h,left,shift+tab",
        "go_group(-1)",
        "By the one before",
        show=False,
        key_display="h",
        id="costs.group-previous",
        tooltip="Sum up by the thing before.",
    ),
    Binding("p", "change_period", "Period", id="costs.period", tooltip="Show the next time: days, weeks, months, all."),
    Binding(
        "f",
        "filter_by",
        "Filter by…",
        id="costs.filter-by",
        tooltip="Show only an agent, a workspace, a project, a model or a time.",
    ),
    Binding("s", "sort", "Sort", id="costs.sort", tooltip="Sort by the next column."),
    Binding("S", "reverse", "Reverse", show=False, id="costs.reverse", tooltip="Turn the order of the rows round."),
    Binding("t", "toggle_tokens", "Tokens", id="costs.tokens", tooltip="Compare tokens instead of money, and back."),
    *_row_keys("costs"),
]

ANSWERS: Final = [
    Binding("escape,q,enter", "close", "Back", key_display="esc", id="answers.close", tooltip="Go back."),
    *_row_keys("answers"),
]

CONVERSATION: Final = [
    Binding("escape,backspace", "close", "Back", key_display="esc", id="conversation.close", tooltip="Go back."),
    Binding(
        "enter",
        "unfold",
        "Unfold",
        key_display="enter",
        id="conversation.unfold",
        tooltip="Unfold the tool call, the thought or the change; again folds it.",
    ),
    Binding(
        "y",
        "show_request",
        "Answer",
        id="conversation.answer",
        tooltip="Show what its agent asks, with the keys to decide.",
    ),
    Binding(
        "m",
        "send_message",
        "Message",
        id="conversation.message",
        tooltip="Write to its agent without entering its terminal.",
    ),
    Binding(
        "i", "interrupt", "Interrupt", show=False, id="conversation.interrupt", tooltip="Let its agent stop and listen."
    ),
    Binding(
        "M",
        "change_agent",
        "Model",
        show=False,
        id="conversation.model",
        tooltip="Change the model or the permission mode.",
    ),
    Binding(
        "z",
        "unfold_all",
        "Unfold all",
        show=False,
        id="conversation.unfold-all",
        tooltip="Unfold all that was said, or fold it.",
    ),
    Binding(
        "u",
        "undo_call",
        "Undo call",
        id="conversation.undo-call",
        tooltip="Undo what the selected tool call changed, or redo it; shows first what that does.",
    ),
    Binding("F", "fork", "Fork", id="conversation.fork", tooltip="Go on with a copy of it."),
    Binding("o", "open_task", "Task", id="conversation.task", tooltip="Show the task of the conversation."),
    Binding("a", "attach", "Attach", id="conversation.attach", tooltip="Enter its terminal; ctrl+q comes back."),
    Binding("j,down", "go_row(1)", "Next", show=False, id="conversation.next", tooltip="Go down."),
    Binding("k,up", "go_row(-1)", "Above", show=False, id="conversation.previous", tooltip="Go up."),
    Binding("g,home", "go_end(-1)", "Beginning", show=False, id="conversation.first", tooltip="Go to the beginning."),
    Binding("G,end", "go_end(1)", "End", show=False, id="conversation.last", tooltip="Go to the end and follow it."),
    Binding(
        "ctrl+d,pagedown", "go_page(1)", "Page down", show=False, id="conversation.page-down", tooltip="Go down a page."
    ),
    Binding("ctrl+u,pageup", "go_page(-1)", "Page up", show=False, id="conversation.page-up", tooltip="Go up a page."),
]

TEXT_DIALOG: Final = [
    # Priority: these must work from within the text field of the dialog.
    Binding(
        "ctrl+s,ctrl+enter",
        "save",
        "Send",
        key_display="ctrl+s",
        priority=True,
        id="text-dialog.save",
        tooltip="Take the text.",
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="text-dialog.cancel", tooltip="Leave it undone."),
]

MENU: Final = [
    Binding("escape,q", "cancel", "Cancel", key_display="esc", id="menu.cancel", tooltip="Leave all as it is."),
    Binding("j", "go_row(1)", "Next", show=False, id="menu.next", tooltip="Go to the next one."),
    Binding("k", "go_row(-1)", "Above", show=False, id="menu.previous", tooltip="Go to the one above."),
]

COLUMNS_DIALOG: Final = [
    Binding("space", "toggle_column", "Show", key_display="space", id="columns.toggle", tooltip="Show or hide it."),
    Binding(
        "J,shift+down", "move(1)", "Move", key_display="J/K", id="columns.move-right", tooltip="Take it further right."
    ),
    Binding("K,shift+up", "move(-1)", "Left", show=False, id="columns.move-left", tooltip="Take it further left."),
    Binding("d", "reset", "Default", id="columns.reset", tooltip="Choose the usual columns."),
    # Priority: the list would take the key to choose a row, and the footer would not say so.
    Binding("enter", "keep", "Keep", key_display="enter", priority=True, id="columns.keep", tooltip="Keep the choice."),
    Binding("escape,q", "cancel", "Cancel", key_display="esc", id="columns.cancel", tooltip="Leave all as it is."),
    Binding("j", "go_row(1)", "Next", show=False, id="columns.next", tooltip="Go to the next one."),
    Binding("k", "go_row(-1)", "Above", show=False, id="columns.previous", tooltip="Go to the one above."),
]

WORKTREES: Final = [
    # Priority: the list would take the key to choose a row, and the footer would not say so.
    Binding(
        "enter",
        "open_shell",
        "Shell",
        key_display="enter",
        priority=True,
        id="worktrees.shell",
        tooltip="Start your shell in it; its end comes back.",
    ),
    Binding("e", "open_editor", "Editor", id="worktrees.editor", tooltip="Open it in your editor."),
    Binding(
        "u", "restore", "Restore", id="worktrees.restore", tooltip="Restore it from its branch and what was last seen."
    ),
    Binding("x", "remove", "Remove", id="worktrees.remove", tooltip="Remove it; asks first, names what would be lost."),
    Binding("p", "prune", "Prune", id="worktrees.prune", tooltip="Remove those of closed tasks that lose nothing."),
    Binding("escape,q", "close", "Close", key_display="esc", id="worktrees.close", tooltip="Go back."),
    Binding("j", "go_row(1)", "Next", show=False, id="worktrees.next", tooltip="Select the next row."),
    Binding("k", "go_row(-1)", "Above", show=False, id="worktrees.previous", tooltip="Select the row above."),
]

RULE_DIALOG: Final = [
    # Priority: this must work from within the text fields of the dialog.
    Binding(
        "ctrl+s", "save", "Make the rule and allow", priority=True, id="rule.save", tooltip="Make the rule, allow."
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="rule.cancel", tooltip="Make no rule, decide nothing."),
]

MERGE_DIALOG: Final = [
    # Priority: these must work from within the text fields of the dialog.
    Binding("ctrl+s", "save", "Merge", priority=True, id="merge.save", tooltip="Merge the branch, all or nothing."),
    Binding(
        "ctrl+g",
        "solve",
        "Ask the agent",
        priority=True,
        id="merge.solve",
        tooltip="Ask the agent to resolve the conflicts in its worktree.",
    ),
    Binding("escape", "cancel", "Cancel", key_display="esc", id="merge.cancel", tooltip="Cancel; nothing changes."),
]

DETAIL: Final = [
    Binding("escape,q,enter", "close", "Back", key_display="esc", id="detail.close", tooltip="Go back."),
    Binding("j,down", "scroll(1)", "Scroll", key_display="j/k", id="detail.down", tooltip="Scroll down."),
    Binding("k,up", "scroll(-1)", "Up", show=False, id="detail.up", tooltip="Scroll up."),
    Binding(
        "ctrl+d,pagedown", "scroll_page(1)", "Page down", show=False, id="detail.page-down", tooltip="Go down a page."
    ),
    Binding("ctrl+u,pageup", "scroll_page(-1)", "Page up", show=False, id="detail.page-up", tooltip="Go up a page."),
]

CONFIRM: Final = [
    Binding("y", "answer('yes')", "Yes", id="confirm.yes", tooltip="Do it."),
    Binding("n,escape,q", "answer('no')", "No", key_display="n", id="confirm.no", tooltip="Leave all as it is."),
    Binding(
        "left,h,right,l",
        "other_button",
        "Other button",
        show=False,
        id="confirm.other",
        tooltip="Go to the other button.",
    ),
]

CHOICE: Final = [
    # Priority: the binding of the button itself would be the one that counts, and the footer does not show that.
    Binding("enter", "choose", "Choose", key_display="enter", priority=True, id="choice.choose", tooltip="Do it."),
    Binding(
        "right,l,down,j",
        "other_button(1)",
        "Next",
        key_display="→",
        id="choice.next",
        tooltip="Go to the next answer.",
    ),
    Binding(
        "left,h,up,k",
        "other_button(-1)",
        "Before",
        show=False,
        id="choice.previous",
        tooltip="Go to the answer before.",
    ),
    Binding("escape,n,q", "leave", "Cancel", key_display="esc", id="choice.leave", tooltip="Leave all as it is."),
]

HELP: Final = [
    Binding("escape,q,question_mark", "close", "Close", key_display="esc", id="help.close", tooltip="Close the help."),
    Binding("j,down", "scroll(1)", "Scroll", key_display="j/k", id="help.down", tooltip="Scroll down."),
    Binding("k,up", "scroll(-1)", "Up", show=False, id="help.up", tooltip="Scroll up."),
]

FAILURE: Final = [
    Binding("q,escape,ctrl+c", "app.quit", "Quit", key_display="q", id="failure.quit", tooltip="Leave."),
]

_KEY_NAMES: Final = {
    "question_mark": "?",
    "plus": "+",
    "slash": "/",
    "ampersand": "&",
    "colon": ":",
    "escape": "esc",
    "pageup": "page up",
    "pagedown": "page down",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}


HARMFUL_ACTIONS: Final = frozenset(
    {
        "allow",
        "allow_always",
        "allow_session",
        "answer",
        "archive",
        "attach",
        "choose",
        "delete_task",
        "deny",
        "deny_and_interrupt",
        "interrupt",
        "kill",
        "move_card",
        "remove",
        "remove_argument",
        "remove_capability",
        "reset",
        "restart",
        "run",
        "stop",
        "toggle_pause",
        "trust",
        "turn",
        "turn_capability",
        "untrust",
    }
)
"""What decides, deletes, starts or ends at once: a letter that may have been meant otherwise does none of it."""


def key_words(key: str) -> str:
    """Return the keys of a binding as people call them: ``h · ←``."""
    return " · ".join(key_word(part.strip()) for part in key.split(","))


def key_word(key: str) -> str:
    """Return one key as people call it: ``ctrl+p``, ``shift+←``, ``esc``; the same words everywhere."""
    *modifiers, name = key.split("+")
    return "+".join([*modifiers, _KEY_NAMES.get(name, name)])


TABLES: Final = {
    "Everywhere": APP,
    "Board": BOARD,
    "Task": TASK_PAGE,
    "Changes": CHANGES,
    "Undo": UNDO_DIALOG,
    "Executions": EXECUTIONS,
    "Costs": COSTS,
    "Agents": AGENTS,
    "Agent": AGENT_PAGE,
    "Programs of this machine": PROGRAMS,
    "Answers of a session": ANSWERS,
    "Search": SEARCH,
    "Sessions": SESSIONS,
    "Conversation": CONVERSATION,
    "Request": REQUEST,
    "Inbox": INBOX,
    "Choices of a question": QUESTION,
    "Request of the card": REQUEST_DIALOG,
    "Task editor": TASK_EDITOR,
    "Agent editor": AGENT_EDITOR,
    "Capability": CAPABILITY_EDITOR,
    "Argument": ARGUMENT_DIALOG,
    "What a program can do": PROPOSALS,
    "Agents of a workspace": TRUST_DIALOG,
    "Task on one line": QUICK_ADD,
    "Templates": TEMPLATE_MENU,
    "Run with": RUN_DIALOG,
    "Tool call": DETAIL,
    "Text": TEXT_DIALOG,
    "Menu": MENU,
    "Columns": COLUMNS_DIALOG,
    "Worktrees": WORKTREES,
    "Rule": RULE_DIALOG,
    "Merge": MERGE_DIALOG,
    "Name": NAME_DIALOG,
    "Question": CONFIRM,
    "Choice": CHOICE,
    "Settings": SETTINGS,
    "Setting": SETTING_DIALOG,
    "Welcome": WELCOME,
    "Help": HELP,
    "Failure": FAILURE,
}
"""All tables under the names of their screens, in the order of the help."""
