"""What the host costs: start, memory, and how fast it moves a million lines. ``python benchmarks/host.py``."""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import pty
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from agentmon.domain.sandboxes import Sandbox
from agentmon.paths import find_paths
from agentmon.runners.sandbox.plan import plan_sandbox
from agentmon.settings import SandboxSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HOST_FOLDER = Path(__file__).resolve().parents[1] / "agentmon" / "runners" / "host"
_LINES = 1_000_000
_LINE_BYTES = 98
_REPEATS = 15
_DEADLINE_S = 300.0

Row = tuple[str, str, str]


def measure() -> list[Row]:
    """Return rows of name, measured value and goal; takes about half a minute and needs tmux and Linux."""
    compileall.compile_dir(_HOST_FOLDER.parents[1], quiet=1, maxlevels=3)
    folder = Path(tempfile.mkdtemp(prefix="am-bench-", dir="/tmp"))
    try:
        return [*_measure_start(folder), *_measure_memory(folder), *_measure_throughput(folder)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path, *argv: str, sandbox: Sandbox = Sandbox.OFF) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    layout = plan_sandbox(
        sandbox,
        paths=find_paths({"AGENTMON_HOME": str(folder / "home")}),
        environ=os.environ,
        working_dir=str(_HOST_FOLDER),
        program=argv[0],
        settings=SandboxSettings.model_validate({}),
        folder=folder,
    )
    spec = {"execution_id": f"bench-{folder.name}", "argv": argv, "working_dir": "/", "sandbox": layout}
    (folder / "spec.json").write_text(json.dumps(spec))
    (folder / "launch-environment.json").write_text(json.dumps({"PATH": os.environ["PATH"]}))
    return folder


def _command(folder: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(_HOST_FOLDER / "__main__.py"), str(folder)]


def _entries(folder: Path) -> dict[str, dict[str, object]]:
    try:
        lines = (folder / "journal.jsonl").read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return {}
    entries = [json.loads(line) for line in lines]
    return {entry["type"]: entry for entry in entries}


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > end:
            message = f"nothing within {_DEADLINE_S:g} s"
            raise TimeoutError(message)
        time.sleep(0.005)


def _time_command(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def _measure_start(folder: Path) -> list[Row]:
    bare_s, total_s = [], []
    start_s: dict[Sandbox, list[float]] = {sandbox: [] for sandbox in Sandbox}
    for _ in range(_REPEATS):
        bare_s.append(_time_command([sys.executable, "-I", "-S", "-c", "pass"]))
        for sandbox in Sandbox:
            run = _prepare(folder / "true", "true", sandbox=sandbox)
            began_ns = time.time_ns()
            took_s = _time_command(_command(run))
            # From before the fork of the interpreter to the program running; the journal has whole milliseconds.
            start_s[sandbox].append(int(str(_entries(run)["agent_started"]["at_ms"])) / 1000 - began_ns / 1e9)
            if sandbox is Sandbox.OFF:
                total_s.append(took_s)
    start_ms, *sandboxed_ms = (1000 * statistics.median(start_s[sandbox]) for sandbox in Sandbox)
    bare_ms, total_ms = (1000 * statistics.median(times) for times in (bare_s, total_s))
    sandboxed = zip(list(Sandbox)[1:], sandboxed_ms, strict=True)
    return [
        *(
            (f"host: start in the sandbox {name}, more", f"{took - start_ms:.0f} ms", "≤ 30 ms")
            for name, took in sandboxed
        ),
        ("python -I -S -c pass", f"{bare_ms:.0f} ms", ""),
        ("host: start to program running", f"{start_ms:.0f} ms", "≤ 30 ms"),
        ("host: `true` in all", f"{total_ms:.0f} ms", "≤ 60 ms"),
    ]


def _measure_memory(folder: Path) -> list[Row]:
    run = _prepare(folder / "memory", "sh", "-c", "seq 200000; exec sleep 1000")
    with subprocess.Popen(_command(run), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as host:
        _wait_for(lambda: _entries(run).get("output", {}).get("lines") == 200_000)
        fields = {}
        for line in Path(f"/proc/{host.pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, kilobytes, _ = line.split()
            fields[name.rstrip(":")] = int(kilobytes)
        host.terminate()
    # Own memory: anonymous pages and written copies of file pages, which nobody shares; the rest of the resident set
    # is the interpreter's code, one copy for all hosts.
    own = fields.get("Pss_Anon", 0) + max(0, fields["Private_Dirty"] - fields.get("Pss_Anon", 0))
    return [
        ("host: own memory after 1.3 MB of output", f"{own / 1024:.1f} MB", "≤ 6 MB"),
        ("host: resident, shared code included", f"{fields['Rss'] / 1024:.1f} MB", ""),
    ]


@contextmanager
def _tmux(folder: Path) -> Iterator[list[str]]:
    command = ["tmux", "-S", str(folder / "s"), "-f", "/dev/null"]
    subprocess.run([*command, "new-session", "-d", "-s", "first", "-x", "120", "-y", "40", "sleep 1000"], check=True)
    subprocess.run([*command, "set-option", "-g", "remain-on-exit", "on"], check=True)
    try:
        yield command
    finally:
        subprocess.run([*command, "kill-server"], check=False, capture_output=True)


@contextmanager
def _client(tmux: list[str]) -> Iterator[None]:
    """Attach somebody who looks at the session, in a terminal whose output is read and thrown away."""
    outer, inner = os.openpty()
    environ = {**os.environ, "TERM": "xterm-256color"}
    environ.pop("TMUX", None)
    client = subprocess.Popen(
        [*tmux, "attach-session", "-t", "run"],
        stdin=inner,
        stdout=inner,
        stderr=inner,
        env=environ,
        start_new_session=True,
    )
    os.close(inner)

    def drain() -> None:
        with suppress(OSError):
            while os.read(outer, 65536):
                pass

    reader = threading.Thread(target=drain)
    reader.start()
    try:
        while client.poll() is None and _ask(tmux, "#{session_attached}") != "1":
            time.sleep(0.02)
        yield
    finally:
        client.kill()
        client.wait()
        reader.join()
        os.close(outer)


def _ask(tmux: list[str], question: str) -> str:
    answer = subprocess.run(
        [*tmux, "display-message", "-p", "-t", "run", question], check=False, capture_output=True, text=True
    )
    return answer.stdout.strip()


def _read_bare(source: Path) -> float:
    """Return the seconds that a reader takes which throws away what the program writes to its terminal."""
    start = time.perf_counter()
    pid, outer = pty.fork()
    if pid == 0:
        os.execvp("cat", ["cat", str(source)])
    buffer = bytearray(256 * 1024)
    with suppress(OSError):
        while os.readv(outer, (buffer,)):
            pass
    os.waitpid(pid, 0)
    os.close(outer)
    return time.perf_counter() - start


def _measure_throughput(folder: Path) -> list[Row]:
    source = folder / "lines"
    line = b"x" * (_LINE_BYTES - 1) + b"\n"
    with source.open("wb") as file:
        for _ in range(100):
            file.write(line * (_LINES // 100))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    megabytes = _LINES * _LINE_BYTES / 1e6
    rows: list[Row] = [("terminal alone, read by nobody but a loop", f"{megabytes / _read_bare(source):.0f} MB/s", "")]
    with _tmux(folder) as tmux:
        for name, is_attached, goal in (("nobody attached", False, "≥ 50 MB/s"), ("attached", True, "≥ 15 MB/s")):
            run = _prepare(folder / "throughput", "sh", "-c", f"read go; cat {shlex.quote(str(source))}")
            seconds = _time_in_pane(tmux, shlex.join(_command(run)), run / "journal.jsonl", is_attached=is_attached)
            # The terminal echoes the key that started it all: one empty line.
            log = (run / "output.log").read_bytes().removeprefix(b"\n")
            is_exact = hashlib.sha256(log).hexdigest() == digest and _entries(run)["ended"]["exit_code"] == 0
            rows.append((f"host: {_LINES:,} lines, {name}", f"{megabytes / seconds:.0f} MB/s", goal))
            rows.append((f"host: every byte in the log, {name}", "yes" if is_exact else "NO", "yes"))
        done = folder / "done"
        command = f"touch {done}; read go; cat {source}; printf ended >> {done}"
        seconds = _time_in_pane(tmux, f"sh -c {shlex.quote(command)}", done, is_attached=True)
        rows.append(("tmux alone, attached", f"{megabytes / seconds:.0f} MB/s", ""))
    return rows


def _time_in_pane(tmux: list[str], command: str, record: Path, *, is_attached: bool) -> float:
    """Return the seconds from the key that lets the command in the pane go on to ``ended`` in its record."""
    subprocess.run([*tmux, "new-session", "-d", "-s", "run", "-x", "120", "-y", "40", command], check=True)
    try:
        _wait_for(lambda: record.exists() and (record.suffix == "" or b"agent_started" in record.read_bytes()))
        with _client(tmux) if is_attached else nullcontext():
            start = time.perf_counter()
            subprocess.run([*tmux, "send-keys", "-t", "run", "Enter"], check=True)
            _wait_for(lambda: b"ended" in record.read_bytes())
            return time.perf_counter() - start
    finally:
        subprocess.run([*tmux, "kill-session", "-t", "run"], check=False)


def main() -> None:
    """Print the table."""
    for name, measured, goal in measure():
        print(f"{name:<45} {measured:>10}   {goal}")


if __name__ == "__main__":
    main()
