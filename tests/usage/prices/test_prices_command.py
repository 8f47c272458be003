from __future__ import annotations

import tempfile
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.command_lines import CommandLine
from tests.usage.prices.billed_answers import a_price_list

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.forks import Forks


@pytest.fixture(scope="module")
def one_home(forks: Forks) -> Iterator[CommandLine]:
    with CommandLine(Path(tempfile.mkdtemp(prefix="am-")), forks) as command_line:
        yield command_line


@pytest.fixture
def cli(one_home: CommandLine) -> CommandLine:
    """Command lines over a home without prices of its own."""
    for file in (one_home.paths.prices_file, one_home.paths.price_data_file):
        file.unlink(missing_ok=True)
    return one_home


@contextmanager
def server_of(content: bytes, status: int = 200) -> Iterator[str]:
    """A server on this machine that answers every request with the content."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/data.json"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_price_of_a_model_is_shown_with_its_places(cli: CommandLine) -> None:
    shown = cli("prices", "show", "us.anthropic.claude-opus-4-6-v1:0", "--provider", "anthropic", "--at", "2026-03-01")

    assert shown.code == 0, shown.stderr
    assert "is priced as anthropic/claude-opus-4-6 on 2026-03-01" in shown.stdout
    assert "10 above 200,000" in shown.stdout
    assert "agentmon's overlay" in shown.stdout


def test_the_price_of_a_model_as_json_has_every_digit_as_text(cli: CommandLine) -> None:
    document = cli("prices", "show", "claude-opus-4-6", "--at", "2026-03-01", "--json").document()

    assert document["priced_as"] == "anthropic/claude-opus-4-6"
    assert document["rates"]["cache_write"]["rate"] == "6.25"
    assert document["rates"]["input"]["above"] == [{"prompt_tokens": 200000, "rate": "10"}]
    assert document["speeds"]["fast"]["rates"]["output"] == {"rate": "150", "above": [], "origin": "agentmon's overlay"}
    assert document["us_factor"] == "1.1"


def test_a_part_of_a_name_lists_the_models_that_have_it(cli: CommandLine) -> None:
    listed = cli("prices", "show", "haiku")
    everything = cli("prices", "--json").document()

    assert "anthropic/claude-haiku-5-5" in listed.stdout
    assert "opus" not in listed.stdout
    assert {"anthropic/claude-mythos-5", "openai/gpt-6-sol"} <= {model["priced_as"] for model in everything["models"]}


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("show", "nonsense"), "no price of nonsense is known"),
        (("show", "gpt-5", "--at", "soon"), "--at 'soon' is no day"),
        (("set", "m"), "which price?"),
        (("set", "m", "--input", "cheap"), "'cheap' is no price for input"),
        (("set", "m", "--input", "-1"), "'-1' is no price for input"),
        (("set", "m", "--input", "1", "--speed", "warp"), "there is no speed 'warp'"),
        (("set", "m", "--input", "1", "--from", "2026-02-30"), "--from '2026-02-30' is no day"),
        (("set", "m", "--input", "9e9"), "which no model costs"),
    ],
)
def test_what_cannot_be_used_is_told_with_the_next_step(cli: CommandLine, words: tuple[str, ...], what: str) -> None:
    finished = cli("prices", *words)

    assert finished.code == 2
    assert what in finished.stderr
    assert "hint: " in finished.stderr
    assert not cli.paths.prices_file.exists()


def test_a_price_that_is_set_counts_at_once_and_is_changed_by_the_next(cli: CommandLine) -> None:
    first = cli("prices", "set", "my-model", "--input", "1.50", "--output", "6", "--cache-read", "0.1", "--json")
    second = cli("prices", "set", "my-model", "--input", "$2", "--from", "2026-06-01")
    third = cli("prices", "set", "my-model", "--cache-write-1h", "5")

    assert first.document()["is_new"] is True
    assert second.stdout.startswith("set: my-model  input $2")
    assert third.stdout.startswith("changed: my-model")
    assert "`agentmon costs reprice`" in third.stderr
    early = cli("prices", "show", "my-model", "--at", "2026-05-31", "--json").document()
    late = cli("prices", "show", "my-model", "--at", "2026-06-01", "--json").document()
    assert (early["rates"]["input"]["rate"], late["rates"]["input"]["rate"]) == ("1.5", "2")
    assert late["rates"]["output"]["rate"] == "6"
    assert late["rates"]["cache_write_1h"] == {"rate": "5", "above": [], "origin": "your prices.toml"}
    assert late["is_own"] is True


def test_a_broken_file_is_told_and_the_list_is_shown_all_the_same(cli: CommandLine) -> None:
    cli.paths.config_dir.mkdir(parents=True, exist_ok=True)
    cli.paths.prices_file.write_text('[[price]]\nmodel = "x"\ninput = -3\n')

    shown = cli("prices", "show", "claude-opus-5-5")

    assert shown.code == 0
    assert f"note: {cli.paths.prices_file}, price 1 (x): input is below zero" in shown.stderr
    assert "anthropic/claude-opus-5-5" in shown.stdout


def test_the_newest_list_is_fetched_only_when_asked_and_then_counts(cli: CommandLine) -> None:
    with server_of(a_price_list(0.1)) as url:
        first = cli("prices", "update", environ={"AGENTMON_PRICES_URL": url}).stdout
        again = cli("prices", "update", "--json", environ={"AGENTMON_PRICES_URL": url}).document()

    assert first.startswith("new prices: 3 models")
    assert (again["is_new"], again["models"], again["url"]) == (False, 3, url)
    document = cli("prices", "show", "claude-next", "--json").document()
    assert document["rates"]["input"]["rate"] == "0.1"
    assert document["version"].startswith("fetched-")


@pytest.mark.parametrize(
    ("content", "status", "what"),
    [
        (b"<html>", 200, "cannot be used: it is not JSON"),
        (b"[]", 200, "cannot be used: it has no prices of"),
        (b"gone", 404, "could not be fetched"),
    ],
)
def test_an_answer_that_is_no_list_leaves_what_is_there(
    cli: CommandLine, content: bytes, status: int, what: str
) -> None:
    with server_of(content, status) as url:
        finished = cli("prices", "update", environ={"AGENTMON_PRICES_URL": url})

    assert finished.code == 1
    assert what in finished.stderr
    assert "stay in force" in finished.stderr
    assert not cli.paths.price_data_file.exists()


def test_without_a_network_the_update_says_so(cli: CommandLine) -> None:
    with server_of(b"") as url:
        pass

    finished = cli("prices", "update", environ={"AGENTMON_PRICES_URL": url})

    assert finished.code == 1
    assert "could not be fetched" in finished.stderr


@pytest.mark.parametrize("url", ["http://example.org/x", "file:///etc/passwd", "ftp://127.0.0.1/x", "nonsense"])
def test_prices_come_over_https_only(cli: CommandLine, url: str) -> None:
    finished = cli("prices", "update", environ={"AGENTMON_PRICES_URL": url})

    assert finished.code == 2
    assert "is no address to fetch prices from" in finished.stderr
