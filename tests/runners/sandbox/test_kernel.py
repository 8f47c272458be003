"""A sandbox is what the kernel makes of it: real programs behind real mounts."""

from __future__ import annotations

import os
import pty
import shlex
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agentmon.runners.sandbox.plan import in_sandbox
from agentmon.runners.sandbox.trial import find_sandbox_problem
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(bool(find_sandbox_problem()), reason="this machine gives an ordinary user no sandbox")


def layout(**parts: object) -> dict[str, object]:
    nothing: dict[str, object] = {name: [] for name in ("hidden", "emptied", "copied", "kept")}
    return nothing | {"writable": None, "socket": None, "has_network": True} | parts


def tell(parts: dict[str, object], script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = in_sandbox(layout(**parts), ("sh", "-c", script, "sh", *words))
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "own"
    (folder / "below").mkdir(parents=True)
    (folder / "secret").write_text("sesame")
    (folder / "below" / "work").write_text("work")
    return folder


_WAYS_TO_A_SECRET = {
    "by its name": "cat {secret}",
    "by a link": "ln -s {folder} {outside}/link; cat {outside}/link/secret",
    "by its parent's root": "cat /proc/$PPID/root{secret}",
    "by any process's root": 'for p in /proc/[0-9]*; do cat "$p/root{secret}" 2>/dev/null; done; false',
    "by any process's folder": 'for p in /proc/[0-9]*; do cat "$p/cwd/secret" 2>/dev/null; done; false',
    "by taking the sandbox away": "umount {folder}; cat {secret}",
    "by a namespace": "unshare --user --map-root-user --mount sh -c 'umount -l {folder}; cat {secret}'",
    "by the namespace of its parent": "nsenter --mount=/proc/$PPID/ns/mnt cat {secret}",
    "by a chroot": "unshare --user --map-root-user --mount sh -c 'mount --rbind / /mnt; cat /mnt{secret}'",
    "by its folder's place": "mv {folder} {outside}/moved; cat {outside}/moved/secret",
}


@pytest.mark.parametrize("way", _WAYS_TO_A_SECRET.values(), ids=_WAYS_TO_A_SECRET)
def test_what_is_hidden_cannot_be_read(secret: Path, tmp_path: Path, way: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    script = way.format(secret=secret / "secret", folder=secret, outside=outside)

    told = tell({"hidden": [str(secret)]}, f"cd {shlex.quote(str(outside))}; {script}")

    assert "sesame" not in told.stdout
    assert (secret / "secret").read_text() == "sesame"


@pytest.mark.parametrize("writable", [None, ["/tmp"]])
def test_nothing_above_what_is_hidden_can_be_put_aside(secret: Path, writable: list[str] | None) -> None:
    script = 'mv "$1" "$1.aside"; mkdir -p "$2"; echo forged > "$2/secret"'

    tell({"hidden": [str(secret)], "writable": writable}, script, str(secret.parent), str(secret))

    assert (secret / "secret").read_text() == "sesame"
    assert not secret.parent.with_name(f"{secret.parent.name}.aside").exists()


def test_what_has_become_a_link_since_it_was_planned_is_not_followed(secret: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(secret)
    parts: dict[str, object] = {"hidden": [str(secret)], "kept": [str(tmp_path / "link")]}

    assert tell(parts, 'cat "$1/secret" "$2/secret"', str(secret), str(tmp_path / "link")).stdout == ""


def test_what_is_to_be_hidden_and_was_moved_keeps_a_run_from_starting(secret: Path, tmp_path: Path) -> None:
    secret.rename(tmp_path / "moved")
    secret.symlink_to(tmp_path / "moved")

    told = tell({"hidden": [str(secret)]}, "echo started")

    assert (told.stdout, told.returncode) == ("", 1)


def test_what_is_hidden_cannot_be_written_and_nothing_is_made_there(secret: Path) -> None:
    script = 'echo x > "$1/secret"; mkdir "$1/new"; rm -rf "$1"; ls -A "$1"'

    told = tell({"hidden": [str(secret)]}, script, str(secret))

    assert told.stdout == ""
    assert sorted(one.name for one in secret.iterdir()) == ["below", "secret"]


def test_what_is_kept_below_a_hidden_folder_is_as_it_was(secret: Path) -> None:
    kept = secret / "below"

    told = tell(
        {"hidden": [str(secret)], "kept": [str(kept)]},
        'cat "$1/work"; echo more >> "$1/work"; ls -A "$1/.."',
        str(kept),
    )

    assert told.stdout == "workbelow\n"
    assert (kept / "work").read_text() == "workmore\n"


def test_what_is_kept_is_written_only_where_that_is_allowed(secret: Path) -> None:
    (secret / "below" / "own").mkdir()
    kept, own = secret / "below", secret / "below" / "own"
    parts: dict[str, object] = {"hidden": [str(secret)], "kept": [str(kept)], "writable": [str(own)]}

    tell(parts, 'cat "$1/work"; echo x > "$1/work"; echo x > "$2/new"', str(kept), str(own))

    assert (kept / "work").read_text() == "work"
    assert (own / "new").exists()


def test_a_hidden_file_reads_empty_and_stays(secret: Path) -> None:
    told = tell({"hidden": [str(secret / "secret")]}, 'cat "$1"; echo x > "$1"', str(secret / "secret"))

    assert told.stdout == ""
    assert (secret / "secret").read_text() == "sesame"


def test_what_is_missing_is_passed_over(tmp_path: Path) -> None:
    missing = str(tmp_path / "nowhere" / "at" / "all")

    told = tell({name: [missing] for name in ("hidden", "emptied", "copied", "kept", "writable")}, "echo fine")

    assert told.stdout == "fine\n"


def test_an_emptied_folder_can_be_filled_and_nobody_else_sees_that(secret: Path) -> None:
    told = tell({"emptied": [str(secret)]}, 'ls -A "$1"; echo x > "$1/new"; ls "$1"', str(secret))

    assert told.stdout == "new\n"
    assert not (secret / "new").exists()


def test_files_of_a_copied_folder_belong_to_the_user(secret: Path) -> None:
    told = tell({"copied": [str(secret)]}, 'cat "$1/secret"; stat -c "%u %a" "$1/secret"', str(secret))

    assert told.stdout == f"sesame{os.getuid()} 644\n"


def test_only_what_is_writable_is_written(secret: Path, tmp_path: Path) -> None:
    script = 'echo x > "$1/below/new"; echo x > "$1/new"; echo x > /dev/null && echo x > "$2" && echo written'

    told = tell({"writable": [str(secret / "below"), "/dev"]}, script, str(secret), str(tmp_path / "other"))

    assert told.stdout == ""
    assert (secret / "below" / "new").exists()
    assert not (secret / "new").exists()
    assert not (tmp_path / "other").exists()


def test_a_writable_folder_that_holds_a_hidden_one_shows_nothing_of_it(secret: Path) -> None:
    parts: dict[str, object] = {"writable": [str(secret.parent)], "hidden": [str(secret)]}

    told = tell(parts, 'echo x > "$1/../new" && echo written; ls -A "$1"', str(secret))

    assert told.stdout == "written\n"


def test_without_a_network_a_program_speaks_to_itself_alone() -> None:
    script = """import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print("itself")
try:
    socket.create_connection(("127.0.0.1", int(__import__("sys").argv[1])), 5)
    print("others")
except OSError:
    pass
"""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        command = in_sandbox(layout(has_network=False), (sys.executable, "-c", script, port))
        told = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert told.stdout == "itself\n"


def test_a_sandbox_of_an_agent_works_within() -> None:
    script = "unshare --user --map-root-user --mount sh -c 'mount -t tmpfs none /mnt && echo within'"
    if "within" not in subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False).stdout:
        pytest.skip("no namespace can be had here at all")

    assert tell({"hidden": ["/opt"]}, script).stdout == "within\n"
    assert tell({"writable": ["/tmp", "/proc"]}, script).stdout == "within\n"


def test_it_is_the_same_process_and_takes_the_signals_of_its_terminal(tmp_path: Path) -> None:
    script = 'trap "echo heard" INT; echo $$ > "$1"; while :; do sleep 0.05; done'
    told = tmp_path / "pid"
    pid, terminal = pty.fork()
    if pid == 0:
        command = in_sandbox(layout(hidden=["/opt"]), ("sh", "-c", script, "sh", str(told)))
        os.execvp(command[0], command)
    try:
        wait_for(lambda: told.exists() and bool(told.read_text().strip()))
        assert told.read_text().strip() == str(pid)

        os.write(terminal, b"\x03")

        heard = bytearray()
        while b"heard" not in heard:
            heard += os.read(terminal, 1000)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def test_it_ends_with_the_pipe_that_it_writes_to() -> None:
    told = tell({}, "yes | head -1")

    assert (told.stdout, told.stderr) == ("y\n", "")
