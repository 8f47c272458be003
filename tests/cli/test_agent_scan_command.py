from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.command_lines import CommandLine


@pytest.mark.proof
def test_a_scan_tells_what_there_is_and_then_what_is_different(cli: CommandLine, tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    folder.mkdir()
    environ = {"PATH": str(folder)}

    def put(name: str, text: str = "#!/bin/sh\nexit 0\n") -> None:
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)

    put("zz-old")
    put("zz-kept")
    first = cli("agents", "scan", environ=environ)
    put("zz-new", '#!/bin/sh\nexec zz-kept "$@"\n')
    put("zz-kept", "#!/bin/sh\nexit 100\n")
    (folder / "zz-old").unlink()
    second = cli("agents", "scan", environ=environ)
    third = cli("agents", "scan", "--json", environ=environ).document()
    found = cli("agents", "scan", "zz-", environ=environ)
    listed = cli("agents", "scan", "zz-new", "--json", environ=environ).document()

    # The machine's own programs may be told of: the scan looks beyond the PATH.
    assert (first.code, str(folder) in first.stderr) == (0, False)
    assert "programs in" in first.stdout
    assert "came" not in first.stdout
    lines = second.stdout.splitlines()
    assert "1 came, 1 changed, 1 went" in lines[0]
    assert lines[1:] == [f"+ {folder}/zz-new", f"~ {folder}/zz-kept", f"- {folder}/zz-old"]
    assert (third["came"], third["changed"], third["went"], third["is_first"]) == ([], [], [], False)
    assert [line.split()[:2] for line in found.stdout.splitlines()] == [
        ["NAME", "KIND"],
        ["zz-kept", "script"],
        ["zz-new", "wrapper"],
    ]
    assert listed["found"][0]["real_path"] == f"{folder}/zz-kept"
    assert cli("agents", "scan", "zz-nothing", environ=environ).stdout == "no program has all of these words\n"
