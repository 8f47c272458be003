from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import agentmon

SCAN = """
import json, os, sys

from agentmon.runners.discovery.packages import with_packages
from agentmon.runners.discovery.path_scan import path_folders, scan_path
from agentmon.runners.discovery.places import find_places
from agentmon.runners.discovery.shell_aliases import find_aliases
from agentmon.runners.presets import find_installed

broken = []

def watch(event, arguments):
    if event.startswith(("subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.system", "os.spawn", "socket.")):
        broken.append(f"{event} {arguments}")
    elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
        broken.append(f"{event} {arguments}")
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.utime"):
        broken.append(f"{event} {arguments}")

sys.addaudithook(watch)
scan = scan_path([*path_folders(os.environ), *find_places(os.environ)])
programs = [*with_packages(scan.programs), *find_aliases(os.environ)]
find_installed(os.environ)
print(json.dumps([[one.path, one.kind, one.real_path, one.package_name] for one in programs]))
print(json.dumps(broken))
"""


@pytest.mark.proof
def test_a_scan_of_this_machine_runs_and_writes_nothing() -> None:
    root = Path(agentmon.__file__).parents[1]
    environ = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/bin:/bin"}

    scanned = subprocess.run(
        [sys.executable, "-c", SCAN], cwd=root, env=environ, capture_output=True, text=True, check=True, timeout=60
    )

    programs, broken = map(json.loads, scanned.stdout.splitlines())
    assert broken == []
    found = {path: (kind, real_path, package) for path, kind, real_path, package in programs}
    assert len(found) == len(programs) > 100
    shell = next(path for path in ("/usr/bin/sh", "/bin/sh") if path in found)
    assert found[shell][0] == "binary"
    assert all(Path(real_path).is_absolute() for kind, real_path, _package in found.values() if kind != "wrapper")
    if Path("/var/lib/dpkg/status").exists():
        named = sum(
            package is not None for path, (_kind, _real, package) in found.items() if path.startswith("/usr/bin/")
        )
        assert named > 0.9 * sum(path.startswith("/usr/bin/") for path in found)
