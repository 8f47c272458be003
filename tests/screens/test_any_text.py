"""Text from outside in everything that shows it: rows stay as wide as the window, and nothing is markup."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as runs
from hypothesis import strategies as st

from agentmon.domain.agents import Agent, Capability
from agentmon.domain.ids import AgentId, CapabilityId, new_id
from agentmon.domain.programs import Program, ProgramKind
from agentmon.screens.dialogs.choice import Answer, ChoiceDialog
from agentmon.screens.dialogs.confirm import ConfirmDialog
from agentmon.screens.dialogs.menu_dialog import MenuDialog, MenuEntry
from agentmon.screens.dialogs.name_dialog import NameDialog
from agentmon.screens.dialogs.text_dialog import TextDialog
from agentmon.screens.failure import FailureScreen
from agentmon.screens.welcome import WelcomeScreen
from agentmon.store.programs import ProgramRepository
from agentmon.widgets.cells import cells, even_line
from tests.screen_stage import screen_text
from tests.screens.agent_places import on_agents, table
from tests.screens.machines import fixed_machine
from tests.screens.scenes import DEEDS, NOW, scene

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.screen import Screen

    from tests.screens.boards import Board
    from tests.screens.scenes import Deed

pytestmark = pytest.mark.proof

EXAMPLES = 12
ROWS = 24
STRANGE = "a1 \u0301\u200d\ufe0f👩🏽🇩🇪é שלום中文ｱ🎉\t\x07\x1b[]31m/=\x9b\u202e\u2066"
ANY_TEXT = st.text(min_size=1, max_size=90) | st.text(alphabet=STRANGE, min_size=1, max_size=60)
MARKUP = (
    "fix [/] bug",
    "see [b + x",
    "[link=x]y[/link]",
    "[@click=q]go[/]",
    "[red]a[/red]",
    '["a", 1]',
)
DIALOGS: dict[str, Callable[[str], Screen[Any]]] = {
    "choice": lambda text: ChoiceDialog(text, detail=text, answers=[Answer("yes", "Yes")]),
    "confirm": lambda text: ConfirmDialog(text, loss=text, yes="Yes"),
    "text": lambda text: TextDialog(text, note=text, obstacle=text),
    "name": lambda text: NameDialog(text, command=text, danger=text),
    "menu": lambda text: MenuDialog(text, [MenuEntry("model", text), MenuEntry("model", text)], free_kind="model"),
    "failure": lambda text: FailureScreen(text, text),
    "welcome": lambda text: WelcomeScreen([("Agents", text)]),
}


def collected() -> list[str]:
    """Return as many texts as there are examples, whatever hypothesis thinks of."""
    texts: list[str] = []

    @runs(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(ANY_TEXT.filter(lambda text: bool(even_line(text).strip())))
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


def deeds_with(texts: list[str]) -> tuple[Deed, ...]:
    """Return the cards of the pictures, with these texts in their titles, descriptions, last lines and errors."""
    deeds = []
    for deed, text in zip(DEEDS, texts, strict=False):
        run = deed.run
        if run is not None:
            run = run._replace(output=text.encode() + b"\n", columns={"error": text} if run.exit_code else {})
        deeds.append(deed._replace(title=text, description=text, run=run))
    return tuple(deeds)


async def assert_straight(board: Board, what: str) -> None:
    def crooked() -> list[str]:
        width = board.app.size.width
        return [row for row in screen_text(board.app).split("\n") if cells(row) != width]

    # Between two frames a row may have no cells yet.
    with suppress(AssertionError):
        await board.until(lambda: not crooked())
    assert not crooked(), (what, crooked())


async def look(board: Board, what: str) -> None:
    await board.settled()
    await assert_straight(board, what)


async def test_every_row_is_as_wide_as_the_window_for_any_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*MARKUP, *collected()]

    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=deeds_with(texts[-11:]), has_toasts=True) as board:
        for size in ((80, 24), (120, 40), (200, 60)):
            await board.pilot.resize_terminal(*size)
            await look(board, f"board {size}")
        await board.press("l")
        await board.press("enter")
        await look(board, "details")
        for tab in "LCOA":
            await board.press(tab)
            await look(board, tab)
        await board.press("D", "escape", "2")
        await look(board, "executions")
        await board.press("1", "ctrl+p")
        await look(board, "palette")
        await board.press("escape", "e")
        await look(board, "editor")
        await board.press("escape")
        await board.settled()
        for text in MARKUP:
            board.app.notify(text, title=text)
            await board.pilot.pause()
            await assert_straight(board, f"toast {text!r}")
            board.app.clear_notifications()


async def test_nothing_in_a_dialog_is_markup_and_its_rows_stay_straight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with scene(tmp_path, monkeypatch, size=(80, 24), deeds=(), has_toasts=True) as board:
        for name, dialog in DIALOGS.items():
            for text in MARKUP:
                screen = dialog(text)
                await board.app.push_screen(screen)
                await board.until(lambda: screen_text(board.app).count("\n") == ROWS - 1, name)
                await board.pilot.pause()
                await assert_straight(board, f"{name} {text!r}")
                if text in MARKUP:
                    assert text in screen_text(board.app), name
                await board.app.pop_screen()
        for text in MARKUP:
            board.app.notify(text)
            await board.until(lambda: text in screen_text(board.app), f"toast {text}")  # noqa: B023 - awaited here
            board.app.clear_notifications()


async def test_agents_and_programs_of_any_text_stay_straight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*MARKUP, *collected()]
    fixed_machine(tmp_path, monkeypatch)

    async with scene(tmp_path, monkeypatch, size=(120, 40), deeds=(), has_toasts=True) as board:
        services = await board.app.services()
        for number, text in enumerate(texts):
            await services.agents.add(agent_with(number, text))
        programs = [program_with(number, text) for number, text in enumerate(texts)]
        await ProgramRepository(services.database).record(programs, unread=(), at=NOW)
        await on_agents(board)
        await board.until(lambda: len(table(board).rows) > len(texts), "the agents")
        for number in range(len(texts)):
            await board.press("j")
            await board.pilot.pause()
            await assert_straight(board, f"agent {number}")
        for size in ((80, 24), (140, 40)):
            await board.pilot.resize_terminal(*size)
            await board.press("g", "j", "enter")
            await board.until(lambda: bool(table(board).rows), "the page")
            await assert_straight(board, f"page {size}")
            await board.press("escape", "tab")
            await board.until(lambda: len(table(board).rows) == len(texts), "the programs")
            await assert_straight(board, f"programs {size}")
            await board.press("escape")


def agent_with(number: int, text: str) -> Agent:
    facts = dict.fromkeys(("name", "version", "package_name", "role", "model", "instructions", "description"), text)
    agent_id = AgentId(new_id())
    able = Capability(
        id=CapabilityId(new_id()),
        agent_id=agent_id,
        key=f"k{number}",
        label=text,
        description=text,
        command_tokens=(text,),
    )
    return Agent(
        id=agent_id,
        slug=f"a-{number}",
        binary_path="sh",
        base_args=(text,),
        env_allowlist=(text,),
        capabilities=(able,),
        **facts,  # type: ignore[arg-type] # all are texts
    )


def program_with(number: int, text: str) -> Program:
    path = f"/usr/bin/{number}-{text}"
    return Program(
        path=path,
        name=f"{number}{text}",
        real_path=text,
        kind=ProgramKind.BINARY,
        package_manager="x",
        package_name=text,
    )
