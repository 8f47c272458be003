from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from agentmon.domain.programs import Program, ProgramKind
from agentmon.runners.discovery.packages import forget_packages, with_packages

HEADER = Path(__file__).with_name("hello-tool.header")
"""Of a package that rpmbuild 4.18 made, as rpm keeps it."""


def program(path: str, real_path: str | None = None, kind: ProgramKind = ProgramKind.BINARY) -> Program:
    return Program(path=path, name=path.rpartition("/")[2], real_path=real_path or path, kind=kind)


def package_of(found: Program) -> tuple[str | None, ...]:
    return (found.package_manager, found.package_name, found.package_section, found.package_version)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_system_s_packages_are_read_from_their_lists(tmp_path: Path) -> None:
    dpkg = tmp_path / "var/lib/dpkg"
    put(dpkg / "info/git.list", "/.\n/usr/bin\n/usr/bin/git\n/usr/lib/git-core/git\n")
    put(dpkg / "info/dash:amd64.list", "/bin/dash\n/bin/sh.distrib\n")
    put(dpkg / "diversions", "/bin/sh\n/bin/sh.distrib\ndash\n")
    put(
        dpkg / "status",
        "Package: git\nStatus: install ok installed\nSection: vcs\nVersion: 1:2.39.5\n\n"
        "Package: dash\nVersion: 0.5\nDescription: a\n shell\n",
    )
    put(tmp_path / "var/lib/pacman/local/jq-1.7-1/files", "%FILES%\nusr/bin/\nusr/bin/jq\n")
    put(tmp_path / "var/lib/pacman/local/jq-1.7-1/desc", "%NAME%\njq\n\n%VERSION%\n1.7-1\n")
    put(tmp_path / "lib/apk/db/installed", "P:busybox\nV:1.36\nF:bin\nR:busybox\n\nP:curl\nV:8.0\nF:usr/bin\nR:curl\n")
    rpm = tmp_path / "usr/lib/sysimage/rpm/rpmdb.sqlite"
    rpm.parent.mkdir(parents=True)
    with closing(sqlite3.connect(rpm)) as database, database:
        database.execute("CREATE TABLE Packages (hnum INTEGER PRIMARY KEY, blob BLOB NOT NULL)")
        for header in (b"", b"\0" * 64, HEADER.read_bytes()):
            database.execute("INSERT INTO Packages (blob) VALUES (?)", (header,))

    found = with_packages(
        [
            program("/usr/bin/git"),
            program("/usr/bin/dash"),
            program("/bin/sh"),
            program("/usr/bin/jq"),
            program("/bin/busybox"),
            program("/usr/local/bin/c", "/usr/bin/curl"),
            program("/bin/hello-tool"),
            program("/usr/bin/none"),
            program("alias:git", "/usr/bin/git", ProgramKind.ALIAS),
        ],
        root=tmp_path,
    )

    assert [package_of(one) for one in found] == [
        ("dpkg", "git", "vcs", "1:2.39.5"),
        ("dpkg", "dash", None, "0.5"),
        ("dpkg", "dash", None, "0.5"),
        ("pacman", "jq", None, "1.7-1"),
        ("apk", "busybox", None, "1.36"),
        ("apk", "curl", None, "8.0"),
        ("rpm", "hello-tool", "Development/Tools", "2.10-3"),
        (None, None, None, None),
        (None, None, None, None),
    ]


def test_other_managers_are_told_by_places_and_their_own_notes(tmp_path: Path) -> None:
    forget_packages()
    node = tmp_path / "lib/node_modules/@openai/codex"
    put(node / "package.json", json.dumps({"version": "0.144.4"}))
    venv = tmp_path / ".local/share/pipx/venvs/black"
    put(venv / "lib/python3.11/site-packages/black-24.1.0.dist-info/RECORD", "../../../bin/black,sha256=x,1\n")
    site = tmp_path / "py/lib/python3.11/site-packages"
    put(site / "ruff-0.9.0.dist-info/RECORD", "ruff/x.py,,\n../../../bin/ruff,sha256=x,1\n")
    put(
        tmp_path / ".cargo/.crates2.json",
        json.dumps({"installs": {"ripgrep 14.1.0 (registry+https://x)": {"bins": ["rg"]}, "odd": {"bins": "no"}}}),
    )

    found = with_packages(
        [
            program("/x/bin/codex", f"{node}/bin/codex.js"),
            program("/x/bin/black", f"{venv}/bin/black"),
            program(f"{tmp_path}/py/bin/ruff"),
            program(f"{tmp_path}/.cargo/bin/rg"),
            program("/opt/homebrew/bin/gh", "/opt/homebrew/Cellar/gh/2.50.0/bin/gh"),
            program("/run/bin/jq", f"/nix/store/{'a' * 32}-jq-1.7.1-bin/bin/jq"),
            program("/h/.asdf/shims/go", "/h/.asdf/installs/golang/1.22/bin/go", ProgramKind.SHIM),
            program("/h/.pyenv/shims/python", "/h/.pyenv/versions/3.11.7/bin/python", ProgramKind.SHIM),
            program("/h/.cargo/bin/cargo", "/h/.rustup/toolchains/stable/bin/cargo", ProgramKind.SHIM),
            program("/snap/bin/code", "/usr/bin/snap"),
            program("/x/bin/w", "/h/node_modules/.bin/w", ProgramKind.WRAPPER),
        ],
        root=tmp_path / "nothing",
    )

    assert [package_of(one) for one in found] == [
        ("npm", "@openai/codex", None, "0.144.4"),
        ("pipx", "black", None, "24.1.0"),
        ("pip", "ruff", None, "0.9.0"),
        ("cargo", "ripgrep", None, "14.1.0"),
        ("brew", "gh", None, "2.50.0"),
        ("nix", "jq", None, "1.7.1-bin"),
        ("asdf", "golang", None, "1.22"),
        ("pyenv", "python", None, "3.11.7"),
        ("rustup", "stable", None, None),
        ("snap", "code", None, None),
        (None, None, None, None),
    ]
