from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agentmon.runners.protocols.registry import make_adapter
from agentmon.runners.protocols.stream_json.adapter import StreamJsonAdapter

REPOSITORY = Path(__file__).parents[3]


def test_a_launch_gets_the_adapter_of_its_protocol() -> None:
    assert isinstance(make_adapter({"protocol": "stream-json", "prompt": "go"}), StreamJsonAdapter)


@pytest.mark.parametrize("protocol", ["telepathy", "", None, 7])
def test_a_protocol_that_nobody_speaks_is_an_error(protocol: object) -> None:
    with pytest.raises(ValueError, match="No adapter speaks the protocol"):
        make_adapter({"protocol": protocol})


def _imported_by(module: str, *names: str) -> set[str]:
    program = f"import sys; import {module}; print(*[name for name in {names!r} if name in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY
    )
    return set(printed.stdout.split())


def test_the_registry_imports_no_adapter_before_it_is_asked() -> None:
    folder = "agentmon.runners.protocols"

    adapters = _imported_by(
        f"{folder}.registry", *(f"{folder}.{name}" for name in ("stream_json", "app_server", "acp"))
    )

    assert adapters == set()


def test_the_adapter_for_claude_imports_little_of_the_standard_library() -> None:
    heavy = _imported_by(
        "agentmon.runners.protocols.stream_json.adapter",
        "dataclasses",
        "decimal",
        "typing",
        "hashlib",
        "agentmon.domain.redaction",
    )

    assert heavy == set()
