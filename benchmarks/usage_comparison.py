"""What agentmon and other tools say that the samples of agents' files cost, beside the right figures, as Markdown.

    npm install --prefix TOOLS ccusage@20.0.24 tokscale@1.4.3 bun
    python3 -m venv TOOLS/py && TOOLS/py/bin/pip install claude-monitor
    python -m benchmarks.usage_comparison TOOLS --litellm-prices model_prices_and_context_window.json

Nothing here needs a network; a tool that is not in the folder is told and left out. tokscale fetches its prices from
one: it gets LiteLLM's list from a file, in the place where it would have kept it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES: Final = Path("tests/usage/samples")
AGENTS: Final = ("claude", "codex", "gemini")
_PLACES: Final = {"claude": ".claude", "claude-xdg": ".config/claude", "codex": ".codex", "gemini": ".gemini"}
_TIMEOUT_S: Final = 120.0
_SHOWN_WITHIN_S: Final = 15.0
_CENT: Final = Decimal("0.01")
_FINEST: Final = Decimal("0.000001")
_DAY_ROW: Final = re.compile(r"^│ (\d{4}-\d\d-\d\d) ")

Place = tuple[str, str, str]
"""An agent; ``total``, ``model`` or ``day``; and its name, which is empty for a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What a tool tells of one place."""

    tokens: int
    cost: Decimal
    """In dollars."""
    step: Decimal = _FINEST
    """How finely the tool tells it."""


Figures = dict[Place, Figure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A home with the samples, and where the tools are."""

    home: Path
    tools: Path

    def run(self, *command: str | Path, ends: bool = True) -> str:
        """Return what a command writes; one that does not end by itself is ended after some seconds.

        Raises:
            RuntimeError: It failed.
        """
        environ = {
            "PATH": f"{self.tools / 'node_modules/.bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "AGENTMON_HOME": str(self.home / "agentmon"),
            "TZ": "UTC",
            "LANG": "C.UTF-8",
            "COLUMNS": "240",
            "NO_COLOR": "1",
        }
        try:
            done = subprocess.run(
                command,
                env=environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S if ends else _SHOWN_WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            if ends:
                raise
            shown: object = error.stdout
            return shown.decode() if isinstance(shown, bytes) else str(shown or "")
        if done.returncode:
            message = f"{command[0]} ended with {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
            raise RuntimeError(message)
        return done.stdout


def expected() -> tuple[Figures, dict[Place, list[str]]]:
    """Return the right figures, and the cases that are in each."""
    written: Any = json.loads((SAMPLES / "expected.json").read_text())
    figures: Figures = {}
    cases: dict[Place, list[str]] = {}
    for answer in written["ledger"]:
        places = [
            (answer["agent"], "total", ""),
            (answer["agent"], "model", answer["model"]),
            (answer["agent"], "day", answer["ts"][:10]),
        ]
        if answer["case"] == "C23z11":
            # Its time is written in another zone: 23:30 at +02:00 is 21:30 UTC, on the same day.
            places[2] = (answer["agent"], "day", "2026-11-30")
        kinds = ("input", "output", "cache_read", "cache_write_5m", "cache_write_1h")
        tokens, cost = sum(answer[kind] for kind in kinds), Decimal(answer["cost_usd"] or 0)
        for place in places:
            before = figures.get(place, Figure(tokens=0, cost=Decimal(0)))
            figures[place] = Figure(tokens=before.tokens + tokens, cost=before.cost + cost)
            name = re.sub(r"(?<=\d)(?:[a-c]|z\d+)$", "", answer["case"])
            if name not in cases.setdefault(place, []):
                cases[place].append(name)
    for agent, sums in written["by_agent"].items():
        told = figures[agent, "total", ""]
        if (told.tokens, told.cost) != (sums["total_tokens"], Decimal(sums["cost_usd"])):
            message = f"the single answers of {agent} and its sums do not agree"
            raise RuntimeError(message)
    return figures, cases


def ask_agentmon(bench: Bench) -> tuple[str, Figures]:
    """Import, and ask by agent, model and day."""
    agentmon = (sys.executable, "-P", "-m", "agentmon")
    bench.run(*agentmon, "costs", "import", "--json")
    figures: Figures = {}
    for agent in AGENTS:
        for kind, group in (("total", "agent"), ("model", "model"), ("day", "day")):
            command = (*agentmon, "costs", "--by", group, "--agent", agent, "--timezone", "UTC", "--json")
            told = json.loads(bench.run(*command))
            rows = next(rows for rows in told.values() if isinstance(rows, list))
            for row in rows:
                name = "" if kind == "total" else row["model" if kind == "model" else "date"]
                figures[agent, kind, name] = _figure(row["totalTokens"], row["totalCost"])
    return bench.run(*agentmon, "--version").split()[-1], figures


def ask_ccusage(bench: Bench) -> tuple[str, Figures]:
    """Ask by agent and day, with the models of each."""
    figures: Figures = {}
    for agent in AGENTS:
        # List prices are asked for: otherwise it takes what an old record says that it cost.
        mode = ("--mode", "calculate") if agent == "claude" else ()
        told = json.loads(bench.run("ccusage", agent, "daily", "--offline", "--json", "-z", "UTC", *mode))
        figures[agent, "total", ""] = _figure(*_tokens_and_cost(told["totals"]))
        for day in told["daily"]:
            _add(figures, (agent, "day", day["date"]), *_tokens_and_cost(day))
            models = day.get("modelBreakdowns") or [{"modelName": name, **of} for name, of in day["models"].items()]
            if "modelBreakdowns" not in day and len(models) > 1:
                # Costs of Codex are told by day alone.
                models = [model | {"cost": None} for model in models]
            for model in models:
                tokens = model.get("totalTokens") or sum(
                    model[kind] for kind in ("inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens")
                )
                cost = model.get("cost", _tokens_and_cost(day)[1])
                # It tells the fast speed as a model of its own.
                _add(figures, (agent, "model", model["modelName"].removesuffix("-fast")), tokens, cost)
    return _npm_version(bench, "ccusage"), figures


def ask_tokscale(bench: Bench) -> tuple[str, Figures]:
    """Ask by agent for models and days."""
    figures: Figures = {}
    for agent in AGENTS:
        told = json.loads(bench.run("tokscale", "models", "--json", "--no-spinner", f"--{agent}"))
        for model in told["entries"]:
            tokens = sum(model[kind] for kind in ("input", "output", "cacheRead", "cacheWrite", "reasoning"))
            _add(figures, (agent, "model", model["model"]), tokens, model["cost"])
            _add(figures, (agent, "total", ""), tokens, model["cost"])
        file = bench.home / "graph.json"
        bench.run("tokscale", "graph", "--no-spinner", f"--{agent}", "--output", file)
        for day in json.loads(file.read_text())["contributions"]:
            if day["totals"]["tokens"]:
                _add(figures, (agent, "day", day["date"]), day["totals"]["tokens"], day["totals"]["cost"])
        figures.setdefault((agent, "total", ""), Figure(tokens=0, cost=Decimal(0)))
    return _npm_version(bench, "tokscale"), figures


def ask_claude_monitor(bench: Bench) -> tuple[str, Figures]:
    """Read its table of days, which stays open; its JSON has none."""
    program = bench.tools / "py" / "bin" / "claude-monitor"
    figures: Figures = {}
    for line in bench.run(program, "--view", "daily", "--timezone", "UTC", ends=False).splitlines():
        named = _DAY_ROW.match(line)
        if named:
            *_, tokens, cost, _ = (cell.strip() for cell in line.split("│"))
            for place in (("claude", "day", named[1]), ("claude", "total", "")):
                _add(figures, place, int(tokens.replace(",", "")), cost.lstrip("$"), _CENT)
    return bench.run(program, "--version").split()[-1], figures


TOOLS: Final[dict[str, Callable[[Bench], tuple[str, Figures]]]] = {
    "agentmon": ask_agentmon,
    "ccusage": ask_ccusage,
    "tokscale": ask_tokscale,
    "claude-monitor": ask_claude_monitor,
}


def compare(tools: Path, litellm_prices: Path | None) -> list[str]:
    """Return the lines of the table, and below it which tools did not run."""
    right, cases = expected()
    answers: dict[str, tuple[str, Figures]] = {}
    failures = []
    with tempfile.TemporaryDirectory(prefix="amu-") as folder:
        bench = Bench(home=Path(folder), tools=tools.absolute())
        _lay_out(bench.home, litellm_prices)
        for name, ask in TOOLS.items():
            try:
                answers[name] = ask(bench)
            except (OSError, RuntimeError, ValueError, subprocess.TimeoutExpired) as error:
                failures.append(f"{name} did not run: {error}")
    heads = ["what", "cases", "right", *(f"{name} {version}" for name, (version, _) in answers.items())]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for place in sorted(right, key=lambda place: (AGENTS.index(place[0]), "total model day".index(place[1]), place[2])):
        told = [_cell(right[place], place, figures) for _, figures in answers.values()]
        cells = [_name(place), ", ".join(cases[place]) if place[2] else "all", _words(right[place]), *told]
        lines.append("| " + " | ".join(cells) + " |")
    counts = [_count_right(right, figures) for _, figures in answers.values()]
    lines.append(f"| right, of what it tells | | | {' | '.join(counts)} |")
    return [*lines, "", *failures] if failures else lines


def _lay_out(home: Path, litellm_prices: Path | None) -> None:
    for name, place in _PLACES.items():
        shutil.copytree(SAMPLES / name, home / place)
    prices = home / ".cache" / "tokscale"
    prices.mkdir(parents=True)
    listed = {} if litellm_prices is None else json.loads(litellm_prices.read_text())
    for name, of in (("litellm", listed), ("openrouter", {})):
        (prices / f"pricing-{name}.json").write_text(json.dumps({"timestamp": int(time.time()), "data": of}))


def _add(figures: Figures, place: Place, tokens: int, cost: object, step: Decimal = _FINEST) -> None:
    before = figures.get(place, Figure(tokens=0, cost=Decimal(0)))
    added = Decimal("NaN") if cost is None else Decimal(str(cost))
    figures[place] = Figure(tokens=before.tokens + tokens, cost=before.cost + added, step=step)


def _figure(tokens: int, cost: object) -> Figure:
    return Figure(tokens=tokens, cost=Decimal(str(cost or 0)))


def _tokens_and_cost(row: dict[str, Any]) -> tuple[int, object]:
    return row["totalTokens"], row.get("totalCost", row.get("costUSD"))


def _npm_version(bench: Bench, package: str) -> str:
    described: Any = json.loads((bench.tools / "node_modules" / package / "package.json").read_text())
    return str(described["version"])


def _name(place: Place) -> str:
    agent, kind, name = place
    return f"**{agent}**" if kind == "total" else f"{agent}, {name}"


def _words(figure: Figure) -> str:
    return f"{figure.tokens:,}; {_money(figure.cost)}"


def _money(cost: Decimal) -> str:
    return "no cost" if cost.is_nan() else f"${float(cost):.6g}"


def _has_right_cost(right: Figure, told: Figure) -> bool:
    # Sums of rounded days differ by half a step each.
    return told.cost.is_nan() or abs(told.cost - right.cost) <= max(told.step, _FINEST)


def _is_right(right: Figures, place: Place, figures: Figures) -> bool:
    told = figures.get(place)
    return told is not None and told.tokens == right[place].tokens and _has_right_cost(right[place], told)


def _count_right(right: Figures, figures: Figures) -> str:
    told = [place for place in right if _tells(figures, place)]
    return f"{sum(_is_right(right, place, figures) for place in told)} of {len(told)}"


def _tells(figures: Figures, place: Place) -> bool:
    """Return whether the tool tells such figures of that agent at all."""
    return any(known[0] == place[0] for known in figures) and any(known[1] == place[1] for known in figures)


def _cell(right: Figure, place: Place, figures: Figures) -> str:
    told = figures.get(place)
    if told is None:
        return "missing" if _tells(figures, place) else "–"
    tokens = "" if told.tokens == right.tokens else f"{told.tokens:,} tokens"
    cost = "" if _has_right_cost(right, told) else _money(told.cost) if told.cost else "no price"
    return "; ".join(part for part in (tokens, cost) if part) or "right"


def main() -> None:
    """Compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tools", type=Path, help="the folder in which they are installed")
    parser.add_argument(
        "--litellm-prices", type=Path, help="the price list for tokscale; without it, it knows no price"
    )
    chosen = parser.parse_args()
    print("\n".join(compare(chosen.tools, chosen.litellm_prices)))


if __name__ == "__main__":
    main()
