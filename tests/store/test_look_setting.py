from __future__ import annotations

from typing import TYPE_CHECKING

from agentmon.bootstrap import open_services
from agentmon.store.look_setting import Look, find_look

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live_home import LiveHome


def test_without_anything_said_the_look_is_the_usual_one(tmp_path: Path) -> None:
    assert find_look(tmp_path / "a.db", tmp_path / "config.toml", {}) == Look(welcome=True)


async def test_the_database_counts_more_than_the_environment_and_that_more_than_the_file(live_home: LiveHome) -> None:
    paths = live_home.paths
    paths.config_dir.mkdir(parents=True, exist_ok=True)
    paths.settings_file.write_text('[app]\ntheme = "a"\nascii = true\nmouse = false\n')
    environ = {"AGENTMON_APP_WELCOME": "no", "AGENTMON_APP_THEME": "b", "AGENTMON_APP_REDUCED_MOTION": "true"}
    before = find_look(paths.database_path, paths.settings_file, environ)
    async with open_services(paths) as services:
        await services.settings.set("app.theme", "agentmon-light", actor=services.actor)
        await services.settings.set("app.mouse", "true", actor=services.actor)

    after = find_look(paths.database_path, paths.settings_file, environ)

    assert before == Look(theme="b", reduced_motion=True, ascii=True, mouse=False)
    assert after == Look(theme="agentmon-light", reduced_motion=True, ascii=True, mouse=True)


def test_what_makes_no_sense_is_left_out(tmp_path: Path) -> None:
    database, file = tmp_path / "a.db", tmp_path / "config.toml"
    database.write_bytes(b"no database at all")
    file.write_text("[app\n")

    assert find_look(database, file, {"AGENTMON_APP_ASCII": "perhaps"}) == Look(welcome=True)
