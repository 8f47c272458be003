"""Real hosts as subprocesses, and how to look at what they recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tests.waiting import DEADLINE_S, wait_for

HOST_PATH = Path(__file__).parents[3] / "agentmon" / "runners" / "host" / "__main__.py"

Document = dict[str, Any]
T = TypeVar("T")


def host_command(folder: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(HOST_PATH), str(folder)]


def impatient_host_command(folder: Path) -> list[str]:
    """Return the command of a host that waits for a full disk no longer than a second."""
    script = (
        f"import os, sys; sys.path.append({str(HOST_PATH.parents[3])!r})\n"
        "from agentmon.runners.host import host, supervisor\n"
        "supervisor._STORAGE_PATIENCE_S = 1.0\n"
        "os._exit(host.main(sys.argv[1:]))"
    )
    return [sys.executable, "-I", "-S", "-c", script, str(folder)]


def find_processes_with(text: str) -> list[int]:
    """Return the living processes that carry the text in their environment or command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                is_one = any(text.encode() in (entry / name).read_bytes() for name in ("environ", "cmdline"))
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if is_one and state != "Z":
                found.append(int(entry.name))
    return found


@dataclass
class HostRun:
    """One execution folder and the host that works on it."""

    folder: Path
    spec: Document
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _commands: int = 0
    _read_bytes: int = field(default=0, repr=False)
    _read: list[Document] = field(default_factory=list, repr=False)

    @classmethod
    def prepare(cls, folder: Path, *argv: str, environment: dict[str, str] | None = None, **spec: object) -> HostRun:
        folder.mkdir(mode=0o700, exist_ok=True)
        whole: Document = {
            "execution_id": f"run-{uuid.uuid4().hex}",
            "argv": list(argv),
            "working_dir": str(folder.parent),
            "timeout_s": 0,
            "max_output_bytes": 0,
            "grace_s": 5.0,
            "notify_socket": "",
            "columns": 80,
            "rows": 24,
            **spec,
        }
        (folder / "spec.json").write_text(json.dumps(whole))
        variables = {"PATH": os.environ["PATH"]} if environment is None else environment
        (folder / "launch-environment.json").write_text(json.dumps(variables))
        return cls(folder, whole)

    def start(self, command: list[str] | None = None, **options: Any) -> HostRun:
        environ = {name: text for name, text in os.environ.items() if name not in {"TMUX", "TMUX_PANE", "TERM"}}
        with (self.folder / "host-errors").open("wb") as errors:
            self.process = subprocess.Popen(
                command or host_command(self.folder),
                **{
                    "stdin": subprocess.DEVNULL,
                    "stdout": subprocess.DEVNULL,
                    "stderr": errors,
                    "env": environ,
                    **options,
                },
            )
        return self

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def execution_id(self) -> str:
        return str(self.spec["execution_id"])

    @property
    def output(self) -> bytes:
        return (self.folder / "output.log").read_bytes()

    def entries(self, entry_type: str | None = None) -> list[Document]:
        """Return what the journal holds so far; each line is read once, since tests look again and again."""
        try:
            with (self.folder / "journal.jsonl").open("rb") as file:
                file.seek(self._read_bytes)
                fresh = file.read()
        except FileNotFoundError:
            return []
        *lines, rest = fresh.split(b"\n")
        self._read += [json.loads(line) for line in lines]
        self._read_bytes += len(fresh) - len(rest)
        return [document for document in self._read if entry_type in {None, document["type"]}]

    def types(self) -> list[str]:
        return [entry["type"] for entry in self.entries()]

    def wait_for_entry(self, entry_type: str) -> Document:
        return wait_for(lambda: self.entries(entry_type), f"{entry_type} in {self.entries()}")[0]

    def wait_for_output(self, text: bytes) -> None:
        log = self.folder / "output.log"
        wait_for(lambda: log.exists() and text in log.read_bytes(), f"{text!r} in the output")

    def wait_for_end(self) -> Document:
        """Return the last entry once the host has gone."""
        if self.process is not None:
            errors = self.folder / "host-errors"
            assert self.process.wait(DEADLINE_S) == 0, errors.read_text()
        return self.wait_for_entry("ended")

    def command(self, kind: str, *, wakes: bool = True, command_id: str | None = None) -> None:
        self._commands += 1
        with (self.folder / "control.jsonl").open("a") as file:
            file.write(json.dumps({"id": command_id or f"c{self._commands}", "type": kind}) + "\n")
        if wakes:
            with (self.folder / "wake").open("wb", buffering=0) as wake:
                wake.write(b"!")

    def end(self) -> None:
        """Leave nothing of the run alive; never raises."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in find_processes_with(self.execution_id):
            try:
                os.kill(pid, 9)
            except OSError:
                continue
