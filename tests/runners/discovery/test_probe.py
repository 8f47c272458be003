from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.discovery import probe
from agentmon.runners.discovery.probe import MOST_BYTES, ask
from agentmon.runners.host.process_table import read_processes
from tests.waiting import until, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

BOXES = (2, 1, 0)


@pytest.fixture
def stub(tmp_path: Path) -> Callable[..., str]:
    def make(script: str, interpreter: str = "/bin/sh") -> str:
        path = tmp_path / "stub"
        path.write_text(f"#!{interpreter}\n{script}\n", encoding="utf-8")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.fixture(params=BOXES)
def _box(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_MOST_OF_BOX", request.param)


@pytest.fixture(autouse=True)
def own_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def living(mark: str) -> list[int]:
    return [process.pid for process in read_processes(f"STUB_MARK={mark}".encode()) if process.has_marker]


async def test_a_program_is_asked_and_told_what_it_may_have(stub: Callable[..., str], own_tmp: Path) -> None:
    path = stub('echo out; echo err >&2; pwd; echo "$HOME|$MY_TOKEN|$SSH_AUTH_SOCK|$PATH|$HTTPS_PROXY"; exit 1')
    environ = {"PATH": "/bin:/usr/bin", "MY_TOKEN": "secret", "SSH_AUTH_SOCK": "/agent", "TMPDIR": str(own_tmp)}

    answer = await ask(path, ["--version"], environ=environ)

    assert answer.problem is None
    assert answer.exit_code == 1
    assert answer.output.splitlines()[:2] == ["out", "err"]
    home, token, agent, search_path, proxy = answer.output.splitlines()[3].split("|")
    assert home == answer.output.splitlines()[2]
    assert Path(home).parent == own_tmp
    assert (token, agent, search_path, proxy) == ("", "", f"/bin:/usr/bin:{Path(path).parent}", "http://127.0.0.1:9")
    assert not list(own_tmp.iterdir())
    assert not list(Path(os.environ["HOME"]).iterdir())


@pytest.mark.usefixtures("_box")
async def test_nothing_that_a_program_starts_outlives_its_answer(stub: Callable[..., str], own_tmp: Path) -> None:
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    path = stub(
        f"export STUB_MARK={mark}\n"
        "setsid sleep 300 &\n"
        "(setsid sh -c 'trap \"\" HUP TERM; sleep 300 & sleep 300' >/dev/null 2>&1 &)\n"
        "(env -i PATH=$PATH setsid sleep 301 &)\n"
        "touch file; mkdir -p $HOME/.stub $XDG_CACHE_HOME/stub; echo 1.2.3"
    )

    answer = await ask(path, ["--version"], timeout_s=10)

    assert (answer.output, answer.exit_code, answer.problem) == ("1.2.3\n", 0, None)
    assert living(mark) == []
    assert not list(own_tmp.iterdir())


@pytest.mark.usefixtures("_box")
async def test_a_program_that_hangs_is_ended_with_all_it_started(stub: Callable[..., str], own_tmp: Path) -> None:
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    path = stub(f"export STUB_MARK={mark}\ntrap '' TERM INT HUP\nsetsid sleep 300 &\necho begun\nsleep 300\nsleep 300")

    answer = await ask(path, [], timeout_s=0.7)

    assert answer.output == "begun\n"
    assert answer.exit_code is None
    assert answer.problem == "did not answer within 0.7 s"
    assert living(mark) == []
    assert not list(own_tmp.iterdir())


@pytest.mark.parametrize(
    ("script", "code", "problem", "output"),
    [
        pytest.param('read answer; echo "<$answer>"; exit 3', 3, None, "<>\n", id="asks"),
        pytest.param("kill -SEGV $$", 139, "was ended by SIGSEGV", "", id="crashes"),
        pytest.param("exec 2>/dev/null; (: </dev/tty) || echo none", 0, None, "none\n", id="needs a terminal"),
        pytest.param("[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || echo none", 0, None, "none\n", id="looks for a terminal"),
        pytest.param("printf 'a\\377b'", 0, None, "a\ufffdb", id="says what is no text"),
    ],
)
async def test_whatever_a_program_does_there_is_an_answer(
    stub: Callable[..., str], script: str, code: int, problem: str | None, output: str
) -> None:
    answer = await ask(stub(script), [])

    assert (answer.exit_code, answer.problem) == (code, problem)
    assert answer.output.endswith(output)


async def test_a_program_that_says_too_much_is_cut_off(stub: Callable[..., str]) -> None:
    answer = await ask(stub("head -c 10000000 /dev/zero | tr '\\0' x; echo; sleep 300"), [])

    assert len(answer.output) == MOST_BYTES
    assert answer.problem == "says more than 256 KiB; the rest is left out"


async def test_what_is_no_program_is_told(tmp_path: Path, stub: Callable[..., str]) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="utf-8")

    assert (await ask(str(plain), [])).problem == "could not be started: Permission denied"
    assert (await ask(str(tmp_path / "none"), [])).problem == "could not be started: No such file or directory"
    assert (await ask("no-such-program-anywhere", [])).problem == "is not on the PATH"
    assert "could not be started" in str((await ask(stub("", "/no/interpreter"), [])).problem)
    assert "could not be started" in str((await ask(stub(""), ["a\0b"])).problem)


async def test_a_program_can_write_nowhere_but_into_its_home(stub: Callable[..., str], tmp_path: Path) -> None:
    if (await ask("/bin/sh", ["-c", "echo $PPID"])).output.strip() != "1":
        pytest.skip("this kernel gives an ordinary user no box")
    kept = tmp_path / "kept"
    kept.write_text("as it was", encoding="utf-8")

    answer = await ask(stub(f"echo mine > inside && cat inside; echo x > {kept}; rm -rf {tmp_path}; ls /proc"), [])

    assert answer.output.startswith("mine\n")
    assert "Read-only file system" in answer.output
    assert kept.read_text(encoding="utf-8") == "as it was"
    assert str(os.getpid()) not in answer.output.split()


@pytest.mark.parametrize("is_linked", [False, True])
async def test_a_program_finds_no_more_of_a_home_than_where_programs_are(tmp_path: Path, is_linked: bool) -> None:
    if (await ask("/bin/sh", ["-c", "echo $PPID"])).output.strip() != "1":
        pytest.skip("this kernel gives an ordinary user no box")
    home = tmp_path / "homes" / "person"
    home.mkdir(parents=True)
    if is_linked:
        (tmp_path / "linked").symlink_to(home.parent)
        home = tmp_path / "linked" / "person"
    program, linked = home / ".local/bin/tool", home / ".local/share/tool/versions/1/tool"
    interpreter = home / ".node/bin/reader"
    (home / "dotfiles/bin").mkdir(parents=True)
    (home / ".local").mkdir()
    program.parent.symlink_to("../dotfiles/bin")
    for folder in (linked.parent, interpreter.parent, home / ".local/share/keys", home / "own/bin"):
        folder.mkdir(parents=True)
    for name in (".netrc", ".local/share/keys/key", ".profile"):
        (home / name).write_text("kept", encoding="utf-8")
    (home / "own/bin/other").touch()
    interpreter.symlink_to("/bin/sh")
    linked.write_text('#!/usr/bin/env reader\ncd "$1"; find . | sort; cat .netrc; echo x > new', encoding="utf-8")
    linked.chmod(0o755)
    program.symlink_to(linked)
    search_path = f"{interpreter.parent}:/bin:/usr/bin:{home}/own/bin"

    answer = await ask(str(program), [str(home)], environ={"PATH": search_path, "HOME": str(home)})

    found = answer.output.splitlines()
    assert {"./dotfiles/bin/tool", "./.local/share/tool/versions/1/tool", "./.node/bin/reader", "./own/bin/other"} <= {
        *found
    }
    assert not [line for line in found if "key" in line or "profile" in line or line == "kept"]
    assert "Read-only file system" in answer.output
    assert (home / ".netrc").read_text(encoding="utf-8") == "kept"


@pytest.mark.skipif(sys.platform != "linux", reason="nothing else keeps a program from sockets")
@pytest.mark.usefixtures("_box")
async def test_a_program_speaks_to_no_socket(stub: Callable[..., str], tmp_path: Path) -> None:
    place = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(place))
        listening.listen()
        script = f"""import socket
a, b = socket.socketpair()
a.sendall(b"pair ")
print(b.recv(9).decode(), end="")
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    try:
        socket.socket(socket.AF_UNIX, kind).connect({str(place)!r})
        print("reached")
    except PermissionError:
        print("refused", end=" ")"""
        answer = await ask(stub(script, sys.executable), [])

    assert answer.output == "pair refused refused "


async def test_who_no_longer_wants_to_know_ends_the_program(stub: Callable[..., str], own_tmp: Path) -> None:
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    asking = asyncio.ensure_future(ask(stub(f"export STUB_MARK={mark}; setsid sleep 300"), [], timeout_s=60))

    async def begun() -> bool:
        return bool(living(mark))

    async def ended() -> bool:
        return not living(mark) and not list(own_tmp.iterdir())

    await until(begun)
    asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(ended)


@pytest.mark.usefixtures("_box")
def test_a_program_ends_when_agentmon_is_killed(stub: Callable[..., str], own_tmp: Path) -> None:
    mark = f"{os.getpid()}-{os.urandom(4).hex()}"
    path = stub(f"export STUB_MARK={mark}; setsid sleep 300")
    code = (
        "import asyncio; from agentmon.runners.discovery import probe; "
        f"probe._MOST_OF_BOX = {probe._MOST_OF_BOX}; asyncio.run(probe.ask({path!r}, [], timeout_s=60))"
    )
    pid = os.posix_spawn(
        sys.executable, [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    wait_for(lambda: living(mark))

    os.kill(pid, 9)
    os.waitpid(pid, 0)

    wait_for(lambda: not living(mark) and not list(own_tmp.iterdir()))
