from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.errors import TmuxUnavailableError
from agentmon.runners.tmux import SessionHandle, Tmux
from agentmon.runners.tmux.pane_looks import PaneQuestion
from tests.runners.tmux_servers import RawTmux, short_folder
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def folder() -> Iterator[Path]:
    with short_folder() as path:
        yield path


@pytest.fixture
def tmux(folder: Path) -> Iterator[Tmux]:
    server = Tmux(folder / "s", environ={"PATH": os.environ["PATH"], "HOME": "/", "LANG": "C.UTF-8"})
    yield server
    server.close()


async def start(tmux: Tmux, folder: Path, name: str, words: str) -> SessionHandle:
    script = f"printf '\\033]2;title of {name}\\007%s' '{words}'; sleep 600"
    return await tmux.start_session(name=name, command=("sh", "-c", script), working_dir=folder, title="t")


async def until_shown(tmux: Tmux, handle: SessionHandle, words: str) -> None:
    async def is_shown() -> bool:
        looks = await tmux.look_at_panes([handle.pane_id])
        return any(words in line for line in looks.screens.get(handle.pane_id, ()))

    await until(is_shown)


async def test_titles_and_screens_of_several_panes_come_in_one_call(tmux: Tmux, folder: Path) -> None:
    first = await start(tmux, folder, "am-1", "é one")
    second = await start(tmux, folder, "am-2", "two | 2")
    await until_shown(tmux, first, "é one")
    await until_shown(tmux, second, "two | 2")

    looks = await tmux.look_at_panes([first.pane_id, second.pane_id])

    assert {name: (pane.pane_id, pane.title) for name, pane in looks.panes.items()} == {
        "am-1": (first.pane_id, "title of am-1"),
        "am-2": (second.pane_id, "title of am-2"),
    }
    assert looks.screens[first.pane_id][0] == "é one"
    assert looks.screens[second.pane_id][0] == "two | 2"


async def test_a_pane_shows_its_screen_however_many_there_were_before(tmux: Tmux, folder: Path) -> None:
    for number in range(12):
        handle = await start(tmux, folder, f"am-{number}", f"words of {number}")
        await until_shown(tmux, handle, f"words of {number}")

    looks = await tmux.look_at_panes([pane.pane_id for pane in (await tmux.look_at_panes([])).panes.values()])

    assert sorted(looks.screens) == sorted(pane.pane_id for pane in looks.panes.values())
    assert {looks.screens[pane.pane_id][0] for pane in looks.panes.values()} == {
        f"words of {number}" for number in range(12)
    }


async def test_the_pane_of_the_agent_is_followed_whatever_a_person_does_to_its_session(
    tmux: Tmux, folder: Path
) -> None:
    handle = await start(tmux, folder, "am-1", "agent")
    await until_shown(tmux, handle, "agent")
    raw = RawTmux(folder / "s")
    raw("split-window", "-t", handle.pane_id, "echo mine; sleep 600")
    raw("new-window", "-t", handle.session_id, "sleep 600")
    raw("rename-session", "-t", handle.session_id, "renamed")
    raw("resize-pane", "-Z")

    looks = await tmux.look_at_panes([handle.pane_id])

    assert list(looks.panes) == ["am-1"]
    assert looks.panes["am-1"].pane_id == handle.pane_id
    assert looks.screens[handle.pane_id][0] == "agent"


async def test_a_pane_that_is_gone_leaves_those_before_it(tmux: Tmux, folder: Path) -> None:
    handle = await start(tmux, folder, "am-1", "here")
    await until_shown(tmux, handle, "here")

    looks = await tmux.look_at_panes([handle.pane_id, "%99"])

    assert looks.screens[handle.pane_id][0] == "here"
    assert "%99" not in looks.screens


async def test_without_a_server_nothing_can_be_told(tmux: Tmux) -> None:
    with pytest.raises(TmuxUnavailableError):
        await tmux.look_at_panes(["%0"])


def test_what_a_pane_shows_cannot_pass_for_another() -> None:
    question = PaneQuestion(["%1"])
    own_mark = question.commands[-1][2].removesuffix("=end")

    looks = question.read(
        [f"{own_mark}|%1|am-1|a | title", f"{own_mark}=0", "agentmon-look-0=%2", "", f"{own_mark}=end"]
    )

    assert looks.panes["am-1"].title == "a | title"
    assert looks.screens == {"%1": ("agentmon-look-0=%2", "")}
