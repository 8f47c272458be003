from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.domain.programs import ProgramKind
from agentmon.runners.discovery.path_scan import FolderScan, path_folders, read_folder, scan_path
from agentmon.runners.discovery.shell_aliases import find_aliases

if TYPE_CHECKING:
    from agentmon.domain.programs import Program

ELF = b"\x7fELF\x02\x01\x01" + b"\0" * 64


def put(path: Path, content: str | bytes = "#!/bin/sh\nexit 0\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    path.chmod(mode)
    return path


def found(*folders: Path) -> dict[str, Program]:
    return {program.path: program for program in scan_path(folders).programs}


def test_what_stands_on_the_path_is_told_by_its_bytes_and_links(tmp_path: Path) -> None:
    bin_dir = tmp_path / "bin"
    real = put(tmp_path / "lib/tool-2.0", ELF)
    put(bin_dir / "plain", ELF)
    put(bin_dir / "script", "#!/usr/bin/env python3\nprint(1)\n")
    put(bin_dir / "bare", "echo no first line\n")
    put(bin_dir / "hidden", ELF, 0o111)
    (bin_dir / "linked").symlink_to(real)
    (bin_dir / "dangling").symlink_to(tmp_path / "nowhere")
    (bin_dir / "round").symlink_to(bin_dir / "round")
    put(bin_dir / "no-leave", "#!/bin/sh\n", 0o644)
    put(bin_dir / "README.md", "read me", 0o644)
    put(bin_dir / "notes", "no program", 0o644)
    (bin_dir / "folder").mkdir()
    os.mkfifo(bin_dir / "pipe", 0o755)

    programs = found(bin_dir)

    assert {Path(path).name: program.kind.value for path, program in programs.items()} == {
        "plain": "binary",
        "script": "script",
        "bare": "script",
        "hidden": "binary",
        "linked": "binary",
        "dangling": "broken",
        "round": "broken",
        "no-leave": "broken",
    }
    assert programs[str(bin_dir / "linked")].real_path == str(real)
    assert programs[str(bin_dir / "linked")].size_bytes == len(ELF)
    assert programs[str(bin_dir / "dangling")].real_path == str(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("script", "target"),
    [
        pytest.param('#!/bin/sh\nexec /opt/tool/run "$@"\n', "/opt/tool/run", id="exec"),
        pytest.param(
            '#!/bin/bash\n# made by npm\nset -e\nexport A="b c"\n/opt/tool/run "$@"\n', "/opt/tool/run", id="calls"
        ),
        pytest.param('#!/bin/sh\nexec env A=b /opt/tool/run --flag "$@"\n', "/opt/tool/run", id="env"),
        pytest.param('#!/bin/sh\nexec grep -E "$@"\n', "grep", id="name"),
        pytest.param('#!/bin/sh\nexec "${0%/*}/../lib/run" "$@"\n', "{lib}", id="beside"),
        pytest.param('#!/bin/sh\nrm -f x\nexec /opt/tool/run "$@"\n', None, id="does more"),
        pytest.param('#!/bin/sh\nexec "$TOOL" "$@"\n', None, id="whatever a variable says"),
        pytest.param("#!/bin/sh\n/opt/tool/run one; /opt/tool/run two\n", None, id="two"),
        pytest.param("#!/bin/sh\necho \"it's\n", None, id="no whole line"),
        pytest.param('#!/usr/bin/python3\nexec /opt/tool/run "$@"\n', None, id="no shell"),
    ],
)
def test_a_script_that_only_starts_another_program_is_a_wrapper(
    tmp_path: Path, script: str, target: str | None
) -> None:
    path = put(tmp_path / "bin/tool", script)

    (program,) = found(path.parent).values()

    assert program.kind is (ProgramKind.SCRIPT if target is None else ProgramKind.WRAPPER)
    assert program.real_path == (str(path) if target is None else target.format(lib=tmp_path / "lib/run"))


def test_a_shim_leads_to_what_its_manager_would_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUSTUP_HOME", raising=False)
    pyenv, volta, cargo = tmp_path / ".pyenv", tmp_path / ".volta", tmp_path / ".cargo"
    for version in ("3.9.1", "3.11.7", "3.12.0"):
        put(pyenv / "versions" / version / "bin/ruff", ELF)
    shim = put(pyenv / "shims/ruff", '#!/bin/sh\nexec "/opt/pyenv" exec "$0" "$@"\n')
    manager = put(volta / "bin/volta-shim", ELF)
    (volta / "bin/tsc").symlink_to(manager)
    put(volta / "tools/image/packages/typescript/bin/tsc", ELF)
    rustup = put(cargo / "bin/rustup", ELF)
    (cargo / "bin/cargo").symlink_to("rustup")
    put(tmp_path / ".rustup/toolchains/nightly/bin/cargo", ELF)
    put(tmp_path / ".rustup/toolchains/stable/bin/cargo", ELF)
    put(tmp_path / ".rustup/settings.toml", 'default_toolchain = "nightly"\n')

    newest = found(shim.parent)[str(shim)]
    put(pyenv / "version", "3.9.1\n")
    chosen = found(shim.parent, volta / "bin", cargo / "bin")

    assert (newest.kind, newest.real_path) == (ProgramKind.SHIM, str(pyenv / "versions/3.12.0/bin/ruff"))
    assert chosen[str(shim)].real_path == str(pyenv / "versions/3.9.1/bin/ruff")
    assert chosen[str(volta / "bin/tsc")].real_path == str(volta / "tools/image/packages/typescript/bin/tsc")
    assert chosen[str(cargo / "bin/cargo")].real_path == str(tmp_path / ".rustup/toolchains/nightly/bin/cargo")
    assert chosen[str(rustup)].kind is ProgramKind.BINARY


def test_what_comes_first_on_the_path_hides_the_others(tmp_path: Path) -> None:
    first, second, same, none = tmp_path / "1", tmp_path / "2", tmp_path / "same", tmp_path / "none"
    put(second / "tool")
    put(second / "other")
    first.mkdir()
    (first / "tool").symlink_to(tmp_path / "nowhere")
    put(first / "other")
    put(first / "starts", '#!/bin/sh\nexec tool "$@"\n')
    same.symlink_to(second)

    scan = scan_path([first, second, same, none])

    hidden = {program.path: program.shadowed_by for program in scan.programs}
    assert hidden == {
        str(first / "tool"): None,
        str(first / "other"): None,
        str(first / "starts"): None,
        str(second / "tool"): None,
        str(second / "other"): str(first / "other"),
    }
    assert next(one for one in scan.programs if one.name == "starts").real_path == str(second / "tool")
    assert scan.folders == (str(first), str(second), str(none))


def test_names_that_are_no_text_are_left_out(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/odd\xff"))
    real = put(odd / "inside")
    good = tmp_path / "good"
    put(Path(f"{good}/line\nfeed"))
    put(Path(os.fsdecode(os.fsencode(good) + b"/name\xff")))
    (good / "tool").symlink_to(real)
    (good / "broken").symlink_to(odd / "none")

    programs = found(odd, good)

    assert {path: program.real_path for path, program in programs.items()} == {
        str(good / "tool"): str(good / "tool"),
        str(good / "broken"): str(good / "broken"),
    }


def test_a_folder_that_does_not_answer_holds_up_nobody(tmp_path: Path) -> None:
    is_over = threading.Event()
    put(tmp_path / "good/tool")

    def read(folder: Path) -> FolderScan:
        if folder.name == "dead":
            is_over.wait()
        return read_folder(folder)

    scan = scan_path([tmp_path / "dead", tmp_path / "good"], read=read, patience_s=0.05)
    is_over.set()

    assert [program.name for program in scan.programs] == ["tool"]
    assert scan.unread == (str(tmp_path / "dead"),)
    assert scan.problems == (f"{tmp_path / 'dead'} did not answer within 0.05 s and is left out",)


def test_only_whole_folders_of_the_path_count() -> None:
    assert path_folders({"PATH": "bin:/usr/bin::.:/bin:/usr/bin"}) == (Path("/usr/bin"), Path("/bin"))
    in_windows = {"PATH": "/bin:/mnt/c/Windows/System32:/mnt/data/bin", "WSL_DISTRO_NAME": "Debian"}
    assert path_folders(in_windows) == (Path("/bin"), Path("/mnt/data/bin"))


def test_aliases_are_read_and_never_run(tmp_path: Path) -> None:
    put(
        tmp_path / ".bashrc",
        "alias ll='ls -l'\n# alias no='x'\nif true; then\n  alias gs=\"git status\"\nfi\nalias bad='\n",
    )
    put(tmp_path / ".zshrc", f"alias claude=~/.claude/local/claude\nalias ll='exa -l' # own\ntouch {tmp_path}/ran\n")
    put(tmp_path / ".config/fish/config.fish", "alias k 'sudo -E env A=b kubectl'\n")

    aliases = find_aliases({"HOME": str(tmp_path)})

    assert {alias.path: alias.real_path for alias in aliases} == {
        "alias:claude": f"{tmp_path}/.claude/local/claude",
        "alias:gs": "git",
        "alias:k": "kubectl",
        "alias:ll": "exa",
    }
    assert not (tmp_path / "ran").exists()
