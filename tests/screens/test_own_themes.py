from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agentmon.app import AgentmonApp
from agentmon.domain.errors import NotFoundError, UsageError
from agentmon.screens.settings.own_themes import read_own_theme
from agentmon.screens.settings.themes import LIGHT, THEMES
from agentmon.services.theme_names import AGENTMON_THEMES, own_theme_names
from agentmon.store.look_setting import Look
from tests.screens.scenes import scene
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path


def test_a_theme_of_ones_own_stands_over_one_of_agentmons(tmp_path: Path) -> None:
    (tmp_path / "pink.toml").write_text('base = "light"\nprimary = "#aa00aa"\n[variables]\nborder = "#ff0000"\n')
    (tmp_path / "no theme.toml").write_text("")

    theme = read_own_theme(tmp_path, "pink")

    assert own_theme_names(tmp_path) == ["pink"]
    assert (theme.name, theme.primary, theme.background, theme.dark) == ("pink", "#aa00aa", LIGHT.background, False)
    assert theme.variables["border"] == "#ff0000"
    assert theme.variables["text-muted"] == LIGHT.variables["text-muted"]
    assert LIGHT.primary != "#aa00aa"


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("base = 'grey'", "unknown base"),
        ("primary = 'mauvish'", "primary = 'mauvish' is no colour"),
        ("primry = '#fff'", "says 'primry'"),
        ("variables = 3", "says 'variables'"),
        ("[variables]\nborder = 'nonsense'", "border = 'nonsense' cannot be used"),
        ("[variables]\nborder = '@@;}'", "cannot be used"),
        ("[variables]\nfooter-background = 12", "footer-background = '12' cannot be used"),
        ("[variables]\nblock-cursor-text-style = 'loud'", "cannot be used"),
        ("[variables]\nblock-cursor-text-style = 'red'", "cannot be used"),
        ("[", "cannot be read"),
    ],
)
def test_a_theme_that_cannot_be_used_says_why(tmp_path: Path, written: str, problem: str) -> None:
    (tmp_path / "bad.toml").write_text(written)

    with pytest.raises(UsageError, match=problem):
        read_own_theme(tmp_path, "bad")


def test_variables_may_be_colours_and_words_of_styles(tmp_path: Path) -> None:
    told = {
        "border": "red",
        "block-cursor-text-style": "bold underline",
        "link-color": "auto 80%",
        "link-background": "#123456",
        "my-own": "#fff",
    }
    lines = [f"{name} = '{value}'\n" for name, value in told.items()]
    (tmp_path / "mine.toml").write_text("".join(["[variables]\n", *lines]))

    assert told.items() <= read_own_theme(tmp_path, "mine").variables.items()


@pytest.mark.parametrize("name", ["missing", "../secret", ""])
def test_a_theme_that_is_not_there_is_not_found(tmp_path: Path, name: str) -> None:
    with pytest.raises(NotFoundError):
        read_own_theme(tmp_path, name)


def test_every_theme_of_agentmon_can_be_chosen() -> None:
    assert [theme.name for theme in THEMES] == list(AGENTMON_THEMES)


async def test_the_chosen_theme_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    themes = tmp_path / "agentmon" / "themes"
    themes.mkdir(parents=True)
    (themes / "pink.toml").write_text('primary = "#aa00aa"\n')
    (themes / "bad.toml").write_text("[")
    async with scene(tmp_path, monkeypatch, size=(80, 24)) as board:
        await board.told("cannot be read")
        board.app.theme = "pink"
        services = await board.app.services()

        async def is_kept() -> bool:
            return (await services.settings.get("app.theme")).value == "pink"

        await until(is_kept)
        with pytest.raises(UsageError, match="no theme 'pinker'") as refused:
            await services.settings.set("app.theme", "pinker", actor=services.actor)

    assert "agentmon-light, agentmon-high-contrast, bad, pink;" in refused.value.hint


def test_the_app_begins_with_the_theme_that_was_chosen(tmp_path: Path) -> None:
    from agentmon.paths import find_paths

    paths = find_paths({"AGENTMON_HOME": str(tmp_path)})

    assert AgentmonApp(paths, tmp_path, look=Look(theme=LIGHT.name)).theme == LIGHT.name
