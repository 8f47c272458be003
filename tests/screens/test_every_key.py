"""Every key of every screen, pressed, with what it does; a key that nobody presses is named."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from textual.command import CommandPalette
from textual.widgets import OptionList

from agentmon import app
from agentmon.domain.background_loops import LoopState
from agentmon.domain.clock import FakeClock
from agentmon.domain.conversation import AskChoice, AskKind, AskNews, AskQuestion
from agentmon.domain.task_status import TaskStatus
from agentmon.screens.agents.screen import AgentsScreen
from agentmon.screens.background_dialog import BackgroundDialog, BackgroundPicture
from agentmon.screens.bindings import TABLES
from agentmon.screens.board.quick_add import QuickAddDialog
from agentmon.screens.board.screen import BoardScreen
from agentmon.screens.costs.answers_dialog import AnswersDialog
from agentmon.screens.costs.screen import CostsScreen
from agentmon.screens.dialogs.choice import ChoiceDialog
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.menu_dialog import MenuDialog
from agentmon.screens.dialogs.name_dialog import NameDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.executions.columns_dialog import ColumnsDialog
from agentmon.screens.executions.screen import ExecutionsScreen
from agentmon.screens.help import HelpScreen
from agentmon.screens.inbox import request_dialog, request_screen
from agentmon.screens.inbox.request_dialog import RequestDialog
from agentmon.screens.inbox.rule_dialog import RuleDialog
from agentmon.screens.inbox.screen import InboxScreen
from agentmon.screens.sessions.conversation_page import ConversationPage
from agentmon.screens.sessions.screen import SessionsScreen
from agentmon.screens.settings.screen import SettingsScreen
from agentmon.screens.settings.setting_dialog import SettingDialog
from agentmon.screens.tasks.operation_dialog import OperationDialog
from agentmon.screens.tasks.run_dialog import RunDialog
from agentmon.screens.tasks.task_editor import TaskEditor
from agentmon.screens.tasks.task_page import TaskPage
from agentmon.screens.welcome import WelcomeScreen
from agentmon.services.background import WorkerHealth
from agentmon.widgets.block_view import BlockView
from tests.screen_stage import screen_text
from tests.screens import agent_places
from tests.screens import test_cost_pictures as costs_ways
from tests.screens import test_pictures as ways
from tests.screens.agent_dialog_places import AGENT_DIALOGS
from tests.screens.key_effects import (
    Effect,
    Place,
    hides,
    leaves,
    opens,
    press_all,
    row_effects,
    says,
    selects,
    shows,
    types_into,
)
from tests.screens.machines import fill_machine, fixed_machine
from tests.screens.scenes import DEEDS, NOW, WAITING_DEEDS, scene
from tests.screens.talks import make_talks, wants_command
from tests.screens.test_cost_pictures import known_home

if TYPE_CHECKING:
    from agentmon.widgets.board_column import BoardColumn
    from tests.screens.boards import Board
    from tests.screens.key_effects import Holds

pytestmark = pytest.mark.proof

TESTS = Path(__file__).parent
__all__ = ["known_home"]  # a fixture

PRESSED_ELSEWHERE = {
    ("test_changes_screen.py", "test_the_keys_move_through_the_files_and_their_lines"): (
        *("changes.down", "changes.up", "changes.next-hunk", "changes.previous-hunk", "changes.next-file"),
        *("changes.previous-file", "changes.first", "changes.last", "changes.page-down", "changes.page-up"),
        *("changes.fold", "changes.fold-all", "changes.beside", "changes.blanks", "changes.left", "changes.right"),
        "changes.mark",
    ),
    ("test_changes_screen.py", "test_a_search_goes_from_match_to_match"): (
        *("changes.search", "changes.find-next", "changes.find-previous", "changes.close"),
    ),
    ("test_changes_screen.py", "test_what_was_looked_at_stays_so"): ("changes.look", "board.changes"),
    ("test_changes_screen.py", "test_comments_become_one_message"): ("changes.comment", "changes.send"),
    (
        "test_changes_screen.py",
        "test_comments_are_kept_until_they_are_sent_and_changed_or_removed_before",
    ): ("changes.next-comment",),
    ("test_changes_screen.py", "test_the_tab_shows_the_same_with_the_same_keys_and_opens_the_whole"): (
        "task.changed-files",
    ),
    ("test_changes_screen.py", "test_a_run_is_undone_and_redone_by_one_key"): (
        *("changes.undo-run", "undo.confirm", "undo.cancel", "undo.next", "undo.previous"),
        *("undo.page-down", "undo.page-up"),
    ),
    ("test_changes_screen.py", "test_a_tool_call_is_undone_and_redone_where_it_is_shown"): (
        *("task.undo-call", "conversation.undo-call"),
    ),
    (
        "test_changes_screen.py",
        "test_a_conflict_shows_both_sides_and_is_left_alone_until_one_is_chosen",
    ): ("undo.choose-side",),
    ("test_task_page.py", "test_a_run_is_verified_by_one_key_also_when_its_page_is_left"): ("task.verify",),
    ("test_changes_screen.py", "test_two_runs_are_compared"): ("changes.compare",),
    ("test_merge_dialog.py", "test_a_branch_is_merged_with_the_message_that_was_edited"): (
        *("changes.merge", "merge.save"),
    ),
    ("test_merge_dialog.py", "test_conflicts_can_be_given_to_the_agent_and_are_not_merged"): ("merge.solve",),
    ("test_merge_dialog.py", "test_leaving_merges_nothing"): ("merge.cancel",),
    ("test_changes_screen.py", "test_lines_are_taken_back_when_one_is_sure"): ("changes.take-back",),
    ("test_changes_screen.py", "test_the_file_is_opened_at_its_line"): ("changes.edit",),
    ("test_changes_screen.py", "test_the_changes_are_shown_from_the_page_and_from_executions"): (
        *("task.changes", "executions.changes"),
    ),
    ("test_worktrees_dialog.py", "test_a_worktree_is_opened_restored_and_removed_by_the_name_of_its_branch"): (
        *("board.worktrees", "worktrees.shell", "worktrees.editor", "worktrees.restore", "worktrees.remove"),
        *("worktrees.next", "worktrees.previous"),
    ),
    ("test_worktrees_dialog.py", "test_those_that_lose_nothing_are_removed_and_pruned"): (
        *("task.worktrees", "worktrees.prune", "worktrees.close"),
    ),
    ("test_board_runs.py", "test_leaving_says_how_many_runs_go_on"): ("app.quit",),
    ("test_board_runs.py", "test_a_run_takes_its_card_and_the_selection_along_and_shows_its_log"): (
        "board.run",
        "board.stop",
    ),
    ("test_board.py", "test_moves_in_quick_succession_are_all_stored_in_their_order"): (
        "board.move-left",
        "board.move-right",
    ),
    ("test_board.py", "test_a_card_is_shifted_inside_its_column"): ("board.move-down", "board.move-up"),
    ("test_board.py", "test_a_delete_is_taken_back_by_ctrl_z"): ("board.delete", "board.undo"),
    ("test_board.py", "test_escape_clears_the_marks"): ("board.clear",),
    (
        "test_external_editor.py",
        "test_a_description_is_edited_from_the_board_and_what_cannot_be_stored_stays_in_its_file",
    ): ("board.edit-description",),
    ("test_external_editor.py", "test_the_text_of_the_editor_comes_back_into_the_field_even_when_it_is_killed"): (
        "editor.edit-outside",
    ),
    ("test_task_page.py", "test_r_runs_the_task_and_its_log_comes_in_live"): ("task.run",),
    ("test_task_page.py", "test_search_finds_marks_and_goes_on_round_the_end"): ("task.search", "task.find-previous"),
    ("test_task_page.py", "test_the_page_opens_at_a_place_of_a_log_with_words_marked"): ("task.find-next",),
    ("test_task_page.py", "test_capital_w_wraps_long_lines_and_arrows_scroll_them"): (
        "task.wrap",
        "task.right",
        "task.left",
    ),
    ("test_task_page.py", "test_c_copies_the_lines_in_view_and_from_a_mark_on"): ("task.copy", "task.mark"),
    ("test_task_editor.py", "test_a_title_and_a_command_make_a_task"): ("editor.save",),
    ("test_task_editor.py", "test_enter_in_the_title_saves_and_ctrl_r_runs"): ("editor.save-and-run",),
    ("test_task_editor.py", "test_escape_leaves_at_once_when_nothing_was_typed"): ("editor.cancel",),
    ("test_task_editor.py", "test_the_shell_line_that_would_work_is_taken_with_one_key"): ("editor.take-suggestion",),
    ("test_task_editor.py", "test_errors_stand_at_their_fields_and_the_first_has_the_focus"): ("editor.more",),
    ("test_editor_offers.py", "test_tasks_are_picked_by_letters_by_number_and_with_the_mouse"): (
        "editor.next-offer",
        "editor.previous-offer",
        "editor.take-offer",
        "editor.complete",
    ),
    ("test_quick_add.py", "test_a_line_makes_a_task_and_says_while_it_is_typed_what_it_means"): (
        "quick-add.add",
        "quick-add.complete",
    ),
    ("test_quick_add.py", "test_a_wrong_line_stays_and_escape_leaves_without_a_task"): (
        "quick-add.run",
        "quick-add.cancel",
    ),
    ("test_task_editor.py", "test_a_run_with_other_arguments_leaves_the_task_as_it_is"): ("run-dialog.run",),
    ("test_task_editor.py", "test_the_run_dialog_tells_what_is_wrong_and_leaves_on_escape"): (
        "run-dialog.cancel",
        "run-dialog.take-suggestion",
    ),
    ("test_inbox_screen.py", "test_a_request_is_shown_whole_and_y_allows_it_once"): ("request.allow",),
    ("test_inbox_screen.py", "test_capital_y_allows_it_for_the_session"): ("request.allow-session",),
    ("test_inbox_screen.py", "test_always_shows_the_rule_first_and_it_can_be_changed"): (
        "request.allow-always",
        "rule.save",
    ),
    ("test_inbox_screen.py", "test_what_destroys_things_is_allowed_by_its_name_alone"): ("name.save",),
    ("test_inbox_screen.py", "test_deny_asks_why_and_the_reason_may_be_empty"): ("request.deny", "request.deny-stop"),
    ("test_inbox_screen.py", "test_the_input_can_be_edited_and_nonsense_is_refused"): (
        "request.edit",
        "text-dialog.save",
    ),
    ("test_inbox_screen.py", "test_enter_opens_a_question_in_which_digits_space_and_enter_answer"): (
        "request.submit",
        "request.toggle",
        "request.choose-1",
        "request.choose-2",
        "request.choice-down",
    ),
    ("test_inbox_screen.py", "test_a_question_before_can_be_answered_anew"): ("request.question-before",),
    ("test_executions.py", "test_attach_asks_the_application_for_what_runs_only"): ("executions.attach",),
    ("test_executions.py", "test_x_takes_a_queued_execution_out_of_the_queue"): ("executions.stop",),
    ("test_settings_screen.py", "test_what_is_true_or_false_turns_round_and_can_be_reset"): ("settings.reset",),
    ("test_settings_screen.py", "test_a_value_is_asked_for_and_a_wrong_one_stays_with_its_reason"): ("setting.save",),
    ("test_settings_screen.py", "test_leaving_the_dialog_changes_nothing"): ("setting.cancel",),
    ("test_costs_screen.py", "test_a_row_is_followed_to_its_sessions_and_their_answers_and_back"): (
        "costs.open",
        "costs.back",
    ),
    ("test_costs_screen.py", "test_each_group_has_its_rows_and_the_dearest_is_first"): (
        "costs.group-next",
        "costs.group-previous",
    ),
    ("test_costs_screen.py", "test_the_chart_covers_days_weeks_or_months_in_money_or_tokens"): (
        "costs.period",
        "costs.tokens",
    ),
    ("test_costs_screen.py", "test_rows_are_sorted_by_a_key_or_by_a_click_on_a_heading"): (
        "costs.sort",
        "costs.reverse",
    ),
    ("test_conversation_screens.py", "test_interrupt_asks_nothing_and_tells"): ("task.interrupt",),
    ("test_search_screen.py", "test_what_is_typed_is_found_and_enter_goes_there"): (
        "app.search",
        "search.open",
        "search.close",
        "search.next-kind",
        "search.previous-kind",
        "search.next",
        "search.previous",
        "search.page-down",
        "search.page-up",
        "search.everywhere",
    ),
    ("test_templates.py", "test_a_task_is_made_from_a_template_and_saved_as_one"): (
        "board.new-from-template",
        "editor.save-template",
        "templates.choose",
        "templates.next",
        "templates.previous",
    ),
    ("test_templates.py", "test_without_templates_the_menu_says_how_to_make_one_and_escape_leaves"): (
        "templates.cancel",
    ),
    ("test_log_beside.py", "test_conversation_and_log_stand_side_by_side_and_follow_each_other"): ("task.beside",),
    ("test_log_beside.py", "test_times_stand_beside_the_lines_and_streams_are_told_apart"): (
        "task.times",
        "task.stream",
    ),
    ("test_log_beside.py", "test_all_that_was_said_unfolds_at_once"): ("task.unfold-all",),
    ("test_conversation_screens.py", "test_a_conversation_goes_on_forks_restarts_and_is_renamed"): (
        "sessions.fork",
        "sessions.restart",
    ),
    ("test_conversation_screens.py", "test_thoughts_calls_and_changes_are_one_row_until_they_are_unfolded"): (
        "conversation.unfold",
    ),
    ("test_inbox_screen.py", "test_attach_asks_the_application"): ("inbox.attach",),
    ("test_execution_columns.py", "test_columns_are_chosen_put_in_order_kept_and_reset"): (
        "columns.toggle",
        "columns.reset",
    ),
    ("test_board_runs.py", "test_killing_asks_first_and_names_the_card"): ("confirm.yes",),
    ("test_waiting.py", "test_running_a_card_that_waits_for_tasks_offers_to_start_it_after_them"): ("choice.choose",),
    ("test_agent_editor.py", "test_every_wrong_field_says_so_and_the_first_has_the_focus_even_below_the_fold"): (
        "agent-editor.save",
        "agent-editor.more",
    ),
    ("test_agent_editor.py", "test_leaving_asks_only_when_something_was_typed"): ("agent-editor.cancel",),
    ("test_agent_editor.py", "test_instructions_are_written_in_the_persons_own_editor"): ("agent-editor.edit-outside",),
    ("test_capability_editor.py", "test_a_capability_is_made_by_keys_alone_with_its_command_line_in_view"): (
        "capability-editor.add-argument",
    ),
    (
        "test_capability_editor.py",
        "test_arguments_are_changed_moved_and_removed_in_the_table_and_the_command_follows",
    ): (
        "argument.save",
        "capability-editor.change-argument",
        "capability-editor.remove-argument",
        "capability-editor.move-down",
        "capability-editor.move-up",
        "capability-editor.next",
        "capability-editor.previous",
    ),
    ("test_capability_editor.py", "test_what_is_wrong_stands_at_its_field_and_leaving_asks"): (
        "capability-editor.save",
        "capability-editor.cancel",
    ),
    ("test_capability_editor.py", "test_a_message_to_an_agent_is_shown_as_it_is_said"): (
        "capability-editor.edit-outside",
    ),
    ("test_capability_proposals.py", "test_what_is_learned_is_shown_marked_looked_into_and_stored"): (
        "proposals.accept",
        "proposals.mark",
        "proposals.mark-all",
        "proposals.ask-server",
        "proposals.ask-agent",
    ),
    **agent_places.PRESSED_ELSEWHERE,
    ("../test_app.py", "test_a_failure_to_open_is_shown_with_its_hint"): ("failure.quit",),
}
"""Keys that change what is stored, end things or need a worker, by the tests that press them."""


# Where keys are pressed.


async def todo(board: Board) -> None:
    await board.press("escape", "h", "h", "h", "h", "g")


async def running(board: Board) -> None:
    await board.press("h", "h", "h", "h", "l", "g")


def column(board: Board) -> BoardColumn:
    return board.screen._current


def in_column(status: TaskStatus, *first: str) -> Effect:
    return Effect(lambda board: column(board).status is status, first)


def has(words: str) -> Holds:
    return lambda board: words in screen_text(board.app)


async def until_seen(board: Board, words: str) -> None:
    await board.until(lambda: words in screen_text(board.app), words)


TODO = ("h", "h", "h", "h")
FIRST, SECOND, LAST = "Rate limit per key", "Document the error codes", "Release notes for 2.0"
EVERYWHERE = Place(
    BoardScreen,
    todo,
    TABLES["Everywhere"],
    {
        "app.help": opens(HelpScreen),
        "app.board": opens(BoardScreen, "2"),
        "app.executions": opens(ExecutionsScreen),
        "app.costs": opens(CostsScreen),
        "app.agents": opens(AgentsScreen),
        "app.sessions": opens(SessionsScreen),
        "app.inbox": opens(InboxScreen),
        "app.settings": opens(SettingsScreen),
        "app.next-waiting": says("nothing needs you"),
        "app.pause": opens(ChoiceDialog),
        "app.run-lost": says("No run was lost"),
        "app.background": opens(BackgroundDialog),
        "app.palette": opens(CommandPalette),
        "app.tell-quit-key": says("q leaves agentmon"),
    },
)
BOARD = Place(
    BoardScreen,
    todo,
    TABLES["Board"],
    {
        "board.new": opens(TaskEditor),
        "board.edit": opens(TaskEditor),
        "board.quick-add": opens(QuickAddDialog),
        "board.release": says("is not parked", "h", "h", "h", "g"),
        "board.attach": says("does not run", "h", "h", "h", "g"),
        "board.answer": says("asks nothing"),
        "board.open": opens(TaskPage),
        "board.filter": types_into("filter"),
        "board.filters": opens(MenuDialog),
        "board.sort": says("sorted by"),
        "board.mark": Effect(lambda board: len(board.screen._marked) == 1),
        "board.run-with": opens(RunDialog),
        "board.preview": says("needs a window"),
        "board.kill": opens(ConfirmDialog, "h", "h", "h", "l", "g"),
        "board.workspace": opens(MenuDialog),
        "board.fold": Effect(lambda board: column(board).is_folded, (*TODO, "l", "l")),
        "board.archive": says("rchived", *TODO, "l", "l", "l", "l", "g"),
        "board.column-left": in_column(TaskStatus.TODO, "h", "h", "h", "h", "l"),
        "board.column-right": in_column(TaskStatus.IN_PROGRESS, "h", "h", "h", "h"),
        "board.next": selects(SECOND, "h", "h", "h", "h", "g"),
        "board.previous": selects(FIRST, "h", "h", "h", "h", "g", "j"),
        "board.first": selects(FIRST, "G"),
        "board.last": selects(LAST, "g"),
        "board.page-down": Effect(lambda board: column(board).cursor > 1, (*TODO, "g")),
        "board.page-up": Effect(lambda board: column(board).cursor <= 1, (*TODO, "G")),
    },
    base=lambda board: not board.screen._marked,
)


# The page of a task, on the card that runs.


async def on_page(board: Board) -> None:
    await running(board)
    await board.press("enter")
    await until_seen(board, "It fails about")


def tab(name: str, *first: str) -> Effect:
    return Effect(lambda board: isinstance(board.app.screen, TaskPage) and board.app.screen._tab == name, first)


def log_row(board: Board) -> str:
    return screen_text(board.app)


TASK = Place(
    TaskPage,
    on_page,
    TABLES["Task"],
    {
        "task.close": opens(BoardScreen, "D"),
        "task.run-with": opens(RunDialog),
        "task.attach": says(""),
        "task.stop": shows("stopping"),
        "task.edit-description": says(""),
        "task.archive": says("#1"),
        "task.release": says("is not parked"),
        "task.edit": opens(TaskEditor),
        "task.kill": opens(ConfirmDialog),
        "task.next-tab": tab("log", "D"),
        "task.previous-tab": tab("audit", "D"),
        "task.details": tab("details", "L"),
        "task.log": tab("log", "D"),
        "task.conversation": tab("conversation", "D"),
        "task.operations": tab("operations", "D"),
        "task.audit": tab("audit", "D"),
        "task.pick-run": tab("log", "D"),
        "task.first": shows("test_case_01", "L", "G"),
        "task.last": shows("test_case_48", "L", "g"),
        "task.down": hides("test_case_01", "L", "g"),
        "task.up": shows("test_case_01", "L", "g", "j"),
        "task.page-down": hides("test_case_01", "L", "g"),
        "task.page-up": hides("test_case_48", "L", "G"),
        "task.filter": types_into("log-prompt", "L"),
        "task.go-to": types_into("log-prompt", "L"),
        "task.save": types_into("log-prompt", "L"),
    },
)


# Tables.


async def on_executions(board: Board) -> None:
    await board.press("2")
    await until_seen(board, "6 in all")


EXECUTIONS = Place(
    ExecutionsScreen,
    on_executions,
    TABLES["Executions"],
    {
        "executions.open": opens(TaskPage),
        "executions.kill": opens(ConfirmDialog, "g"),
        "executions.filter": types_into("filter"),
        "executions.sort": shows(", rising"),
        "executions.reverse": shows(", rising", "escape"),
        "executions.columns": opens(ColumnsDialog),
        "executions.clear": hides(", rising", "s"),
        **row_effects("executions"),
    },
)


async def on_columns(board: Board) -> None:
    await on_executions(board)
    await board.press("c")


def lit(row: int, *first: str) -> Effect:
    return Effect(lambda board: board.app.screen.query_one(OptionList).highlighted == row, first)


COLUMNS = Place(
    ColumnsDialog,
    on_columns,
    TABLES["Columns"],
    {
        "columns.next": lit(1, "home"),
        "columns.previous": lit(0, "home", "j"),
        "columns.move-right": lit(1, "home"),
        "columns.move-left": lit(0, "home", "j"),
        "columns.keep": leaves(ColumnsDialog),
        "columns.cancel": leaves(ColumnsDialog),
    },
)


async def on_settings(board: Board) -> None:
    await board.press("7")
    await until_seen(board, "worker.max_running")


SETTINGS = Place(
    SettingsScreen,
    on_settings,
    TABLES["Settings"],
    {
        "settings.change": opens(SettingDialog, "g"),
        "settings.search": types_into("search"),
        "settings.clear": hides("nothing has these words", "slash", *"zzz", "enter"),
        **row_effects("settings"),
    },
)


# Dialogs over the board.


async def on_help(board: Board) -> None:
    await board.press("question_mark")


def scrolled(is_down: bool, *first: str) -> Effect:
    return Effect(lambda board: (board.app.screen.query_one("#help").scroll_y > 0) is is_down, first)


HELP = Place(
    HelpScreen,
    on_help,
    TABLES["Help"],
    {
        "help.close": leaves(HelpScreen),
        "help.down": scrolled(True, "k", "k", "k"),
        "help.up": scrolled(False, "k", "k", "k", "j"),
    },
)


async def on_menu(board: Board) -> None:
    await board.press("f")


MENU = Place(
    MenuDialog,
    on_menu,
    TABLES["Menu"],
    {
        "menu.cancel": leaves(MenuDialog),
        "menu.next": lit(1, "home"),
        "menu.previous": lit(0, "home", "j"),
    },
)


async def on_confirm(board: Board) -> None:
    await running(board)
    await board.press("X")


def lit_button(name: str, *first: str) -> Effect:
    return Effect(lambda board: board.app.focused is not None and board.app.focused.id == name, first)


CONFIRM = Place(
    ConfirmDialog,
    on_confirm,
    TABLES["Question"],
    {
        "confirm.other": lit_button("yes"),
        "confirm.no": leaves(ConfirmDialog),
    },
    base=lambda board: board.app.focused is not None and board.app.focused.id == "no",
)


async def on_welcome(board: Board) -> None:
    await ways.welcome(board)


WELCOME = Place(WelcomeScreen, on_welcome, TABLES["Welcome"], {"welcome.close": leaves(WelcomeScreen)})


# What waits.


async def on_choice(board: Board) -> None:
    await board.press("P")


CHOICE = Place(
    ChoiceDialog,
    on_choice,
    TABLES["Choice"],
    {
        "choice.next": lit_button("answer-halt"),
        "choice.previous": lit_button("cancel"),
        "choice.leave": leaves(ChoiceDialog),
    },
    base=lambda board: board.app.focused is not None and board.app.focused.id == "answer-finish",
)


# Conversations.


async def on_sessions(board: Board) -> None:
    await board.press("5")
    await until_seen(board, "3 in all")


SESSIONS = Place(
    SessionsScreen,
    on_sessions,
    TABLES["Sessions"],
    {
        "sessions.open": opens(ConversationPage),
        "sessions.message": opens(TextDialog),
        "sessions.attach": says(""),
        "sessions.rename": opens(TextDialog),
        "sessions.task": opens(TaskPage),
        "sessions.search": types_into("search"),
        "sessions.clear": hides("nothing has these words", "slash", *"zzz", "enter"),
        **row_effects("sessions"),
    },
    base=lambda board: all(f"#{number}" in screen_text(board.app) for number in (1, 2, 3)),
)


async def on_conversation(board: Board) -> None:
    await on_sessions(board)
    await board.press("G", "enter")
    await until_seen(board, "The clock is frozen now")


CONVERSATION = Place(
    ConversationPage,
    on_conversation,
    TABLES["Conversation"],
    {
        "conversation.close": opens(SessionsScreen),
        "conversation.answer": opens(RequestDialog),
        "conversation.message": opens(TextDialog),
        "conversation.model": opens(MenuDialog),
        "conversation.interrupt": says("asked to stop"),
        "conversation.attach": says(""),
        "conversation.unfold-all": Effect(lambda board: view(board)._unfolds_all),
        "conversation.fork": opens(TextDialog),
        "conversation.page-down": hides("It fails once in", "g"),
        "conversation.page-up": shows("It fails once in", "g", "ctrl+d"),
        "conversation.task": opens(TaskPage),
        "conversation.first": Effect(lambda board: block(board) == blocks(board)[0], ("G",)),
        "conversation.last": Effect(lambda board: block(board) == blocks(board)[-1], ("g",)),
        "conversation.next": Effect(lambda board: block(board) == blocks(board)[1], ("g",)),
        "conversation.previous": Effect(lambda board: block(board) == blocks(board)[0], ("g", "j")),
    },
)


def view(board: Board) -> BlockView:
    return next(one for one in board.app.screen.query(BlockView) if one.can_focus)


def block(board: Board) -> str | None:
    return view(board).selected_key


def blocks(board: Board) -> list[str]:
    return [one.key for one in view(board).blocks]


async def on_talk(board: Board) -> None:
    await ways.talking_board(board)


TALK = {
    "answer": opens(RequestDialog),
    "message": opens(TextDialog),
    "interrupt": says("asked to stop"),
    "model": opens(MenuDialog),
}
"""What the keys for an agent do on every screen that has them."""
TALK_ON_BOARD = Place(BoardScreen, on_talk, TABLES["Board"], {f"board.{name}": effect for name, effect in TALK.items()})


async def on_talk_page(board: Board) -> None:
    await ways.page_of_talk(board)
    await until_seen(board, "needs you")


TALK_ON_PAGE = Place(TaskPage, on_talk_page, TABLES["Task"], {f"task.{name}": effect for name, effect in TALK.items()})


async def on_talk_row(board: Board) -> None:
    await board.press("2")
    await until_seen(board, "3 in all")


TALK_ON_ROW = Place(
    ExecutionsScreen,
    on_talk_row,
    TABLES["Executions"],
    {f"executions.{name}": effect for name, effect in TALK.items()},
)


async def on_inbox(board: Board) -> None:
    await board.press("6")
    await board.until(lambda: isinstance(board.app.screen, InboxScreen), "the inbox")
    if isinstance(inbox := board.app.screen, InboxScreen) and inbox._is_history:
        await board.press("h")
    await until_seen(board, "3 wait for you")


INBOX = Place(
    InboxScreen,
    on_inbox,
    TABLES["Inbox"],
    {
        "inbox.answer": opens(RequestDialog, "g", "j"),
        "inbox.open": opens(TaskPage, "g"),
        "inbox.message": opens(TextDialog),
        "inbox.task": opens(TaskPage),
        "inbox.history": shows("h goes back", "g"),
        "inbox.next": Effect(lambda board: block(board) == blocks(board)[1], ("g",)),
        "inbox.previous": Effect(lambda board: block(board) == blocks(board)[0], ("g", "j")),
        "inbox.first": Effect(lambda board: block(board) == blocks(board)[0], ("G",)),
        "inbox.last": Effect(lambda board: block(board) == blocks(board)[-1], ("g",)),
        "inbox.page-down": hides("Edit src/login.py", "g", "ctrl+u", "ctrl+u"),
        "inbox.page-up": shows("Edit src/login.py", "g", "ctrl+d"),
    },
    base=has("wait for you"),
)


async def on_request(board: Board) -> None:
    await on_inbox(board)
    await board.press("g", "j", "enter")


REQUEST_DIALOG = Place(
    RequestDialog,
    on_request,
    TABLES["Request of the card"],
    {"request-dialog.close": leaves(RequestDialog)},
)


async def on_digits(board: Board) -> None:
    """Ask for one of nine."""
    services, workspace = await board.app.services(), await board.app.workspace()
    listings = await services.approvals.inbox(workspace.id)
    listing = next(one for one in listings if one.approval.title == DIGITS.title)
    await board.app.push_screen(
        RequestDialog(listing, services=board.app.services, workspace=board.app.workspace, clock=FakeClock(NOW))
    )


LONG = wants_command("\n".join(f"echo {number}" for number in range(1, 60)), request_id="r8", digest="d8")


async def on_long(board: Board) -> None:
    """Show a request that is longer than the window."""
    services, workspace = await board.app.services(), await board.app.workspace()
    listings = await services.approvals.inbox(workspace.id)
    listing = next(one for one in listings if one.approval.request_id == LONG.request_id)
    await board.app.push_screen(
        RequestDialog(listing, services=board.app.services, workspace=board.app.workspace, clock=FakeClock(NOW))
    )
    await until_seen(board, "permission")


LONG_REQUEST = Place(
    RequestDialog,
    on_long,
    TABLES["Request of the card"],
    {
        "request-dialog.down": Effect(lambda board: first_row(board) != (0, 0), ("k", "k", "k")),
        "request-dialog.up": Effect(lambda board: first_row(board) == (0, 0), ("k", "k", "k", "j")),
    },
)


def first_row(board: Board) -> tuple[int, int]:
    """Return the block and its row on top of the request."""
    place, _row = board.app.screen.query_one(BlockView)._frame()[0]
    return place.block, place.row


def chooses(number: int, *first: str) -> Effect:
    return Effect(lambda board: board.app.screen._choices._chosen[0] == [str(number)], first)  # type: ignore[attr-defined]


DIGITS = AskNews(
    request_id="r9",
    ask_kind=AskKind.QUESTION,
    title="Which of nine?",
    input_digest="d9",
    questions=(
        AskQuestion(
            question="Which of nine?",
            header="Nine",
            choices=tuple(AskChoice(key=str(number), label=f"number {number}") for number in range(1, 10)),
        ),
    ),
)
DIGIT_CHOICES = Place(
    RequestDialog,
    on_digits,
    TABLES["Choices of a question"],
    {f"request.choose-{number}": chooses(number) for number in range(1, 10)}
    | {
        "request.choice-up": Effect(lambda board: lit_choice(board) == "number 1", ("1", "j")),
    },
)


def lit_choice(board: Board) -> str:
    choices = board.app.screen._choices  # type: ignore[attr-defined]
    return f"number {choices._cursor + 1}"


QUESTION = Place(
    RequestDialog,
    on_request,
    TABLES["Choices of a question"],
    {
        "request.type": opens(TextDialog),
        "request.question-next": Effect(
            lambda board: board.app.screen._choices._current == 1,  # type: ignore[attr-defined] # private
            ("h", "h"),
        ),
    },
)


async def on_rule(board: Board) -> None:
    await on_inbox(board)
    await board.press("G", "A")


async def on_name(board: Board) -> None:
    board.app.push_screen(NameDialog("rm", command="rm -rf /", danger="level 3"))
    await board.until(lambda: isinstance(board.app.screen, NameDialog), "the dialog")


NAME = Place(NameDialog, on_name, TABLES["Name"], {"name.cancel": leaves(NameDialog)})
RULE = Place(RuleDialog, on_rule, TABLES["Rule"], {"rule.cancel": leaves(RuleDialog)})


async def on_operation(board: Board) -> None:
    await ways.operations(board)
    await board.press("enter")


async def on_loops(board: Board) -> None:
    """Show more loops than fit."""
    loops = tuple(LoopState(name=f"loop {number}", ok_at=NOW) for number in range(60))

    async def look() -> BackgroundPicture:
        return BackgroundPicture(of_app=loops, health=WorkerHealth(is_running=False), troubles=(), now=NOW)

    await board.app.push_screen(BackgroundDialog(look))
    await until_seen(board, "loop 3")


def scrolled_to(is_down: bool, *first: str) -> Effect:
    return Effect(lambda board: (board.app.screen.query_one("#loops").scroll_y > 0) is is_down, first)


LOOPS = Place(
    BackgroundDialog,
    on_loops,
    TABLES["Tool call"],
    {
        "detail.down": scrolled_to(True, "ctrl+u", "ctrl+u", "ctrl+u"),
        "detail.up": scrolled_to(False, "ctrl+u", "ctrl+u", "ctrl+u", "j"),
        "detail.page-down": scrolled_to(True, "ctrl+u", "ctrl+u", "ctrl+u"),
        "detail.page-up": scrolled_to(False, "ctrl+u", "ctrl+u", "ctrl+u", "j"),
    },
)
DETAIL = Place(OperationDialog, on_operation, TABLES["Tool call"], {"detail.close": leaves(OperationDialog)})


async def on_text(board: Board) -> None:
    await on_sessions(board)
    await board.press("m")


TEXT = Place(TextDialog, on_text, TABLES["Text"], {"text-dialog.cancel": leaves(TextDialog)})


# Costs, over a history of ten weeks.


async def on_costs(board: Board) -> None:
    await costs_ways.costs(board)


async def on_answers(board: Board) -> None:
    await costs_ways.costs(board)
    shown = board.app.screen
    assert isinstance(shown, CostsScreen)
    if len(shown._trail) == 1:
        await costs_ways.sorted_sessions(board)
    await costs_ways.answers(board)


COSTS = Place(CostsScreen, on_costs, TABLES["Costs"], {"costs.filter-by": opens(MenuDialog), **row_effects("costs")})
ANSWERS = Place(
    AnswersDialog,
    on_answers,
    TABLES["Answers of a session"],
    {"answers.close": leaves(AnswersDialog), **row_effects("answers")},
)

COST_PLACES = (ANSWERS, COSTS)
PLACES = {
    "board": (EVERYWHERE, BOARD),
    "task": (TASK,),
    "tables": (EXECUTIONS, COLUMNS, SETTINGS),
    "dialogs": (HELP, MENU, CONFIRM, WELCOME),
    "agent dialogs": AGENT_DIALOGS,
    "waiting": (CHOICE,),
    "talks": (SESSIONS, CONVERSATION, TEXT, TALK_ON_BOARD, TALK_ON_PAGE, TALK_ON_ROW),
    "requests": (INBOX, REQUEST_DIALOG, QUESTION, RULE, NAME, DETAIL, LOOPS),
    "digits": (DIGIT_CHOICES, LONG_REQUEST),
}


@pytest.mark.parametrize("name", PLACES)
async def test_a_key_does_what_it_says(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_screen, "GUARD_S", 0.0)
    monkeypatch.setattr(request_dialog, "OPENING_GUARD_S", 0.0)
    monkeypatch.setattr(app, "_TOAST_REPEAT_S", 0.0)
    has_talks = name in {"talks", "requests"}
    deeds = () if has_talks or name == "digits" else WAITING_DEEDS if name == "waiting" else DEEDS

    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=deeds) as board:
        if has_talks:
            await ways.fill_talks(board)
        if name == "digits":
            talks = await make_talks(await board.app.services(), await board.app.workspace())
            await talks.ask("Choose a number", ask=DIGITS)
            await talks.ask("Say sixty numbers", ask=LONG)
        for place in PLACES[name]:
            await press_all(board, place)


async def test_a_key_of_the_costs_does_what_it_says(
    known_home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AGENTMON_COSTS_TIMEZONE", "UTC")
    shutil.copytree(known_home, tmp_path / "agentmon")

    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=()) as board:
        for place in COST_PLACES:
            await press_all(board, place)


async def test_a_key_of_the_agents_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_TOAST_REPEAT_S", 0.0)
    fixed_machine(tmp_path, monkeypatch)

    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=()) as board:
        await fill_machine(await board.app.services())
        for place in agent_places.AGENT_PLACES:
            await press_all(board, place)


def test_no_key_is_without_a_test() -> None:
    pressed = {
        name
        for places in [*PLACES.values(), COST_PLACES, agent_places.AGENT_PLACES]
        for place in places
        for name in place.effects
    }
    pressed |= {name for names in PRESSED_ELSEWHERE.values() for name in names}

    assert {str(one.id) for table in TABLES.values() for one in table} <= pressed


@pytest.mark.parametrize(("file", "test"), PRESSED_ELSEWHERE)
def test_the_tests_that_are_named_press_the_keys(file: str, test: str) -> None:
    source = (TESTS / file).read_text()
    found = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == test
    ]
    words = {
        word.value
        for node in found
        for word in ast.walk(node)
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    }
    bindings = {str(one.id): one for table in TABLES.values() for one in table}

    for name in PRESSED_ELSEWHERE[file, test]:
        assert words & set(bindings[name].key.split(",")), f"{test} does not press {bindings[name].key}"
