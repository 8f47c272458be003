"""The set-up script's decisions, on machines made of stub tools: nothing is installed and no network is used."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

PROJECT: Final = Path(__file__).parents[1]
STANDARD_TOOLS: Final = ("sh", "cat", "cksum", "cp", "dirname", "env", "mkdir", "rm", "sed")

PYTHON_STUB: Final = """#!/bin/sh
echo "$*" >>"$MACHINE/python.log"
case "$*" in
*version_info*) cat "$MACHINE/version-$(sed -n 's/^# name //p' "$0")" ;;
*ensurepip*) [ ! -e "$MACHINE/no-venv" ] ;;
"-m venv -- "*)
    mkdir -p "$4/bin" && cp "$0" "$4/bin/python"
    echo "command = python -m venv -- $4" >"$4/pyvenv.cfg"
    ;;
*sys.prefix*) dirname "$(dirname "$0")" ;;
*pip.__version__*) [ ! -e "$MACHINE/old-pip" ] ;;
"-m pip install"*)
    if [ -e "$MACHINE/offline" ]; then
        echo "WARNING: Retrying after NewConnectionError: Failed to establish a new connection" >&2
        exit 1
    fi
    echo "WARNING: an index is slow" >&2
    ;;
esac
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A folder of tools that is the whole PATH, and a copy of the project in a folder with a blank in its name."""

    state: Path
    tools: Path
    project: Path

    def add_tool(self, name: str, script: str) -> None:
        path = self.tools / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def add_python(self, name: str, version: str) -> None:
        path = self.tools / name
        path.write_text(PYTHON_STUB + f"# name {name}\n")
        path.chmod(0o755)
        (self.state / f"version-{name}").write_text(f"{version}\n")

    def set_up(self, mode: str = "run", **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.project / "scripts" / "setup"), mode],
            env={"PATH": str(self.tools), "MACHINE": str(self.state), **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def python_calls(self) -> list[str]:
        """What Python was asked for since the last call of this method."""
        log = self.state / "python.log"
        calls = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return calls

    def installs(self) -> list[str]:
        return [call for call in self.python_calls() if call.startswith("-m pip install")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine with tmux, git and Python 3.11, where nothing may be installed."""
    made = Machine(state=tmp_path / "state", tools=tmp_path / "tools", project=tmp_path / "my project")
    for folder in (made.state, made.tools, made.project / "scripts"):
        folder.mkdir(parents=True)
    for name in STANDARD_TOOLS:
        found = shutil.which(name)
        assert found is not None
        (made.tools / name).symlink_to(os.path.realpath(found))
    shutil.copy(PROJECT / "scripts" / "setup", made.project / "scripts")
    (made.project / "pyproject.toml").write_text("[project]\n")
    made.add_tool("id", "echo 1000")
    made.add_tool("sudo", "exit 1")
    made.add_tool("tmux", "echo tmux 3.3a")
    made.add_tool("git", "exit 0")
    made.add_python("python3", "3.11")
    return made


@pytest.mark.parametrize(
    ("manager", "line"),
    [
        ("apt-get", "sudo apt-get update && sudo apt-get install -y tmux"),
        ("dnf", "sudo dnf install -y tmux"),
        ("pacman", "sudo pacman -S --noconfirm tmux"),
        ("zypper", "sudo zypper --non-interactive install tmux"),
    ],
)
def test_without_the_right_to_install_the_exact_line_for_tmux_is_printed(
    machine: Machine, manager: str, line: str
) -> None:
    (machine.tools / "tmux").unlink()
    machine.add_tool(manager, f"echo called >'{machine.state}/called'")

    done = machine.set_up()

    assert done.returncode == 1
    assert f"    {line}\n" in done.stderr
    assert "installing" not in done.stderr
    assert not (machine.state / "called").exists()
    assert not (machine.project / ".venv").exists()


def test_root_is_told_the_line_for_brew_which_refuses_to_run_as_root(machine: Machine) -> None:
    (machine.tools / "tmux").unlink()
    machine.add_tool("id", "echo 0")
    machine.add_tool("brew", "exit 1")

    done = machine.set_up()

    assert done.returncode == 1
    assert "    brew install tmux\n" in done.stderr
    assert "installing" not in done.stderr


def test_a_machine_without_a_known_package_manager_is_told_so(machine: Machine) -> None:
    (machine.tools / "tmux").unlink()

    done = machine.set_up()

    assert done.returncode == 1
    assert "tmux is missing" in done.stderr
    assert "apt-get, dnf, pacman, zypper and brew" in done.stderr


def test_root_gets_tmux_installed_after_the_package_lists_were_fetched(machine: Machine) -> None:
    (machine.tools / "tmux").rename(machine.state / "tmux")
    machine.add_tool("id", "echo 0")
    machine.add_tool(
        "apt-get",
        'echo "$DEBIAN_FRONTEND $*" >>"$MACHINE/apt.log"; case $1 in update) echo >"$MACHINE/lists" ;; '
        f'install) [ -e "$MACHINE/lists" ] && cp "$MACHINE/tmux" \'{machine.tools}/tmux\' ;; esac',
    )

    done = machine.set_up()

    assert done.returncode == 0, done.stderr
    assert (machine.state / "apt.log").read_text().splitlines() == [
        "noninteractive install -y tmux",
        " update",
        "noninteractive install -y tmux",
    ]


def test_a_person_whose_sudo_asks_for_no_password_gets_tmux_installed(machine: Machine) -> None:
    (machine.tools / "tmux").rename(machine.state / "tmux")
    machine.add_tool("true", "exit 0")
    machine.add_tool("sudo", '[ "$1" = -n ] && shift && "$@"')
    machine.add_tool("dnf", f"[ \"$*\" = 'install -y tmux' ] && cp \"$MACHINE/tmux\" '{machine.tools}/tmux'")

    done = machine.set_up()

    assert done.returncode == 0, done.stderr
    assert "installing tmux with dnf" in done.stderr


def test_a_failed_installation_shows_the_package_managers_own_words(machine: Machine) -> None:
    (machine.tools / "tmux").unlink()
    machine.add_tool("id", "echo 0")
    machine.add_tool("dnf", "echo the mirror is on fire; exit 7")

    done = machine.set_up()

    assert done.returncode == 1
    assert "the mirror is on fire" in done.stderr
    assert "    sudo dnf install -y tmux\n" in done.stderr


@pytest.mark.parametrize("version", ["tmux 1.8", "tmux 2.9a", "tmux 3.0", "tmux 3.1c", "tmux 3.2"])
def test_an_old_tmux_is_refused_with_the_version_needed_and_the_one_found(machine: Machine, version: str) -> None:
    machine.add_tool("tmux", f"echo {version}")

    done = machine.set_up()

    assert done.returncode == 1
    assert "tmux 3.2a or newer is needed" in done.stderr
    assert version in done.stderr


@pytest.mark.parametrize("version", ["tmux 3.2a", "tmux 3.3", "tmux 3.10", "tmux 10.0", "tmux next-3.6", "tmux master"])
def test_a_new_enough_tmux_is_taken(machine: Machine, version: str) -> None:
    machine.add_tool("tmux", f"echo {version}")

    done = machine.set_up()

    assert done.returncode == 0, done.stderr


def test_an_old_python_is_refused_with_the_version_needed_and_the_one_found(machine: Machine) -> None:
    machine.add_python("python3", "3.9")

    done = machine.set_up()

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed" in done.stderr
    assert f"{machine.tools}/python3 is 3.9" in done.stderr


def test_a_machine_without_python_is_told_the_version_needed(machine: Machine) -> None:
    (machine.tools / "python3").unlink()

    done = machine.set_up()

    assert done.returncode == 1
    assert "Python 3.11 or newer is needed; none that runs was found" in done.stderr


def test_a_newer_python_is_preferred_and_one_that_does_not_run_is_passed_over(machine: Machine) -> None:
    machine.add_tool("python3.14", "echo 'pyenv: python3.14: command not found' >&2; exit 127")
    machine.add_python("python3.13", "3.13")
    machine.add_python("python3.12", "3.12")

    done = machine.set_up()

    assert done.returncode == 0, done.stderr
    assert "with Python 3.13" in done.stderr


def test_a_person_may_name_the_python(machine: Machine) -> None:
    machine.add_python("my-python", "3.14")

    done = machine.set_up(PYTHON="my-python")

    assert done.returncode == 0, done.stderr
    assert "with Python 3.14" in done.stderr


def test_a_debian_python_without_its_venv_module_leads_to_the_exact_line(machine: Machine) -> None:
    machine.add_tool("apt-get", "exit 1")
    (machine.state / "no-venv").touch()

    done = machine.set_up()

    assert done.returncode == 1
    assert "    sudo apt-get update && sudo apt-get install -y python3.11-venv\n" in done.stderr


def test_a_debian_python_gets_its_venv_module_installed_where_that_is_allowed(machine: Machine) -> None:
    machine.add_tool("id", "echo 0")
    machine.add_tool("apt-get", '[ "$3" = python3.11-venv ] && rm "$MACHINE/no-venv"')
    (machine.state / "no-venv").touch()

    done = machine.set_up()

    assert done.returncode == 0, done.stderr
    assert (machine.project / ".venv" / "bin" / "python").exists()


def test_the_first_run_installs_what_the_app_needs_quietly_and_compiles_it(machine: Machine) -> None:
    done = machine.set_up(PYTHONDONTWRITEBYTECODE="1")

    assert done.returncode == 0, done.stderr
    assert "an index is slow" not in done.stderr
    assert done.stdout == ""
    calls = machine.python_calls()
    assert "-m pip install --quiet --editable ." in calls
    assert calls[-1] == "-m compileall -q agentmon"


def test_a_second_run_installs_nothing_and_says_nothing(machine: Machine) -> None:
    machine.set_up()
    machine.python_calls()

    done = machine.set_up()

    assert (done.returncode, done.stderr, machine.installs()) == (0, "", [])


def test_a_changed_project_file_is_installed_again(machine: Machine) -> None:
    machine.set_up()
    machine.python_calls()
    (machine.project / "pyproject.toml").write_text("[project]\nname = 'other'\n")

    machine.set_up()

    assert machine.installs() == ["-m pip install --quiet --editable ."]


def test_only_the_checks_need_git(machine: Machine) -> None:
    (machine.tools / "git").unlink()
    machine.add_tool("apt-get", "exit 0")

    app = machine.set_up("run")
    checks = machine.set_up("test")

    assert app.returncode == 0
    assert checks.returncode != 0
    assert "sudo apt-get update && sudo apt-get install -y git" in checks.stderr


def test_the_checks_bring_their_own_packages_and_the_app_needs_no_more_after_them(machine: Machine) -> None:
    (machine.state / "old-pip").touch()

    machine.set_up("test")
    for_the_checks = machine.installs()
    machine.set_up("run")

    assert for_the_checks == [
        "-m pip install --quiet --upgrade pip>=25.1",
        "-m pip install --quiet --editable . --group dev",
    ]
    assert machine.installs() == []


def test_the_checks_after_the_app_install_only_once(machine: Machine) -> None:
    machine.set_up("run")
    machine.python_calls()

    machine.set_up("test")
    first = machine.installs()
    machine.set_up("test")

    assert first == ["-m pip install --quiet --editable . --group dev"]
    assert machine.installs() == []


def test_a_moved_project_gets_a_new_virtual_environment(machine: Machine) -> None:
    machine.set_up()
    moved = Machine(state=machine.state, tools=machine.tools, project=machine.project.with_name("moved"))
    machine.project.rename(moved.project)
    (moved.project / ".venv" / "left-over").touch()

    done = moved.set_up()

    assert done.returncode == 0, done.stderr
    assert "it was made in another folder" in done.stderr
    assert not (moved.project / ".venv" / "left-over").exists()


def test_a_virtual_environment_whose_python_is_gone_is_made_again(machine: Machine) -> None:
    machine.set_up()
    (machine.project / ".venv" / "bin" / "python").unlink()

    done = machine.set_up()

    assert done.returncode == 0, done.stderr
    assert "its Python does not run" in done.stderr
    assert (machine.project / ".venv" / "bin" / "python").exists()


def test_without_a_network_the_failure_is_named_and_the_next_run_tries_again(machine: Machine) -> None:
    (machine.state / "offline").touch()

    offline = machine.set_up()
    (machine.state / "offline").unlink()
    online = machine.set_up()

    assert offline.returncode == 1
    assert "pip does not reach the package index" in offline.stderr
    assert online.returncode == 0, online.stderr
    assert (machine.project / ".venv" / ".ready-run").exists()


def test_a_failed_installation_is_done_again_even_when_the_project_file_is_as_before(machine: Machine) -> None:
    machine.set_up()
    (machine.project / "pyproject.toml").write_text("[project]\nname = 'other'\n")
    (machine.state / "offline").touch()
    machine.set_up()
    (machine.state / "offline").unlink()
    (machine.project / "pyproject.toml").write_text("[project]\n")
    machine.python_calls()

    machine.set_up()

    assert machine.installs() == ["-m pip install --quiet --editable ."]


def test_an_unknown_mode_is_refused(machine: Machine) -> None:
    done = machine.set_up("walk")

    assert done.returncode == 2
    assert done.stderr == "usage: scripts/setup run|test\n"
