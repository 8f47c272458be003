"""Costs as people and programs read them: tables, the JSON that ccusage prints, CSV."""

import csv
import io
from decimal import Decimal

from agentmon.cli.columns import fill, fit
from agentmon.domain.amounts import NANO, MoneyFormat, count_text, duration_text, size_text
from agentmon.domain.costs import CostGroup, CostSums
from agentmon.domain.letters import columns_of
from agentmon.domain.plain_text import plain_line
from agentmon.services.cost_reports import CostBucket, CostReport
from agentmon.services.costs import ExplainedAnswer
from agentmon.worker.import_progress import ImportProgress

_NOTHING = {
    CostGroup.PROJECT: "no project known",
    CostGroup.TASK: "outside of tasks",
    CostGroup.EXECUTION: "outside of agentmon",
}
_FIRST_WIDTH = 44


def exact_dollars(cost_nano: int) -> str:
    """Return an amount in dollars with all its decimals, without zeros at the end."""
    text = f"{Decimal(cost_nano) / NANO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def cost_cell(sums: CostSums, money: MoneyFormat) -> str:
    """Return the cost of a row; with a mark when it is only what is known of it."""
    if not sums.unpriced_answers:
        return money.fine_text(sums.cost_nano)
    unpriced = f"{sums.unpriced_answers:,} unpriced"
    return unpriced if sums.known_cost_nano is None else f"{money.fine_text(sums.cost_nano)} + {unpriced}"


def source_words(sums: CostSums) -> str:
    """Return in one sentence where the costs come from."""
    listed = sums.answers - sums.unpriced_answers - sums.reported_answers
    parts = [
        f"{listed:,} by list price" if listed else "",
        f"{sums.reported_answers:,} as the agent reported" if sums.reported_answers else "",
        f"{sums.unpriced_answers:,} unpriced, in no sum of money" if sums.unpriced_answers else "",
    ]
    noun = "answer" if sums.answers == 1 else "answers"
    return f"{sums.answers:,} {noun}: {'; '.join(part for part in parts if part)}"


def report_table(report: CostReport, width: int, money: MoneyFormat) -> list[str]:
    """Return the lines of a table with its sums last."""
    rows = [_cells(bucket.label, bucket.sums, bucket, report.group, money) for bucket in report.buckets]
    total = (*_cells("total", report.totals, None, report.group, money)[:-1], "")
    last = "AGENTS" if report.group is CostGroup.MODEL else "MODELS"
    headings = (report.group.value.upper(), "INPUT", "CACHE WRITE", "CACHE READ", "OUTPUT", "COST", last)
    all_rows = [headings, *rows, total]
    widths = [min(_FIRST_WIDTH, max(columns_of(row[0]) for row in all_rows))]
    widths += [max(columns_of(row[index]) for row in all_rows) for index in range(1, len(headings) - 1)]
    rest = max(10, width - sum(widths) - 2 * len(widths))
    lines = []
    for row in all_rows:
        cells = [fill(row[0], widths[0])]
        cells += [
            " " * (columns - columns_of(cell)) + cell for cell, columns in zip(row[1:-1], widths[1:], strict=True)
        ]
        lines.append("  ".join([*cells, fit(row[-1], rest)]).rstrip())
    return lines


def report_csv(report: CostReport) -> str:
    """Return the report as CSV with a line of names; without the line feed at its end."""
    written = io.StringIO()
    table = csv.writer(written, lineterminator="\n")
    names = ("input", "output", "reasoning", "cache_write_5m", "cache_write_1h", "cache_read", "total")
    table.writerow(
        [
            *(report.group.value, "label", "agents", "models", "answers", *(f"{name}_tokens" for name in names)),
            *("web_searches", "cost_usd", "unpriced_answers", "reported_answers", "timezone"),
        ]
    )
    for bucket in report.buckets:
        sums = bucket.sums
        known = sums.known_cost_nano
        table.writerow(
            [
                *(_safe(bucket.group), _safe(bucket.label), " ".join(bucket.agents)),
                _safe(" ".join(name for name, _ in bucket.models)),
                *(sums.answers, sums.prompt_tokens, sums.response_tokens, sums.reasoning_tokens),
                *(sums.cache_write_5m_tokens, sums.cache_write_1h_tokens, sums.cache_read_tokens, sums.total_tokens),
                *(sums.web_searches, "" if known is None else exact_dollars(known)),
                *(sums.unpriced_answers, sums.reported_answers, report.zone_name),
            ]
        )
    return written.getvalue().rstrip("\n")


def explained_document(explained: ExplainedAnswer) -> dict[str, object]:
    """Return an answer with the way to its cost as JSON."""
    source, price = explained.source, explained.price
    answer = source.answer
    return {
        "id": source.id,
        "key": answer.key,
        "agent": source.agent_slug,
        "model": answer.model,
        "provider": answer.provider,
        "sessionId": source.session_id,
        "executionId": source.execution_id,
        "date": source.day_local,
        "atMs": answer.at_ms,
        "project": answer.cwd,
        "inputTokens": answer.prompt_tokens,
        "outputTokens": answer.response_tokens,
        "reasoningTokens": answer.reasoning_tokens,
        "cacheWrite5mTokens": answer.cache_write_5m_tokens,
        "cacheWrite1hTokens": answer.cache_write_1h_tokens,
        "cacheReadTokens": answer.cache_read_tokens,
        "webSearches": answer.web_searches,
        "speed": answer.speed,
        "geo": answer.geo,
        "isSubagent": answer.is_subagent,
        "success": not source.error,
        "error": source.error or None,
        "errorStatus": source.error_status,
        "confidence": answer.confidence.value,
        "isProvisional": source.is_provisional,
        "costNano": source.cost_nano,
        "costUsd": None if source.cost_nano is None else exact_dollars(source.cost_nano),
        "costSource": source.cost_source,
        "reportedCostNano": answer.reported_cost_nano,
        "priceVersion": source.price_version,
        "file": source.path,
        "offset": answer.offset if source.path is not None else None,
        "pricedAs": price.priced_as,
        "tier": price.tier,
        "whyNot": price.why_not,
        "formula": list(price.formula),
    }


def explained_lines(explained: ExplainedAnswer, when: str, money: MoneyFormat) -> list[str]:
    """Return an answer with the way to its cost as lines for a person; rates are in dollars, as vendors tell them."""
    source, price = explained.source, explained.price
    answer = source.answer
    place = "told live, in no file yet" if source.path is None else f"{source.path}:{answer.offset}"
    cost = "unpriced" if source.cost_nano is None else f"${exact_dollars(source.cost_nano)}"
    if source.cost_nano is not None and money.is_converted:
        cost = f"{money.fine_text(source.cost_nano)}, which is {cost}"
    said = "" if answer.reported_cost_nano is None else f", reported ${exact_dollars(answer.reported_cost_nano)}"
    facts = [
        f"cost {cost} ({source.cost_source or 'none'}{said})",
        f"confidence {answer.confidence.value}" + (", provisional" if source.is_provisional else ""),
    ]
    lines = [
        f"{source.id}  {when}  {source.agent_slug}  {plain_line(answer.model, max_characters=80) or 'model not known'}",
        f"    from {plain_line(place, max_characters=500)}",
        f"    {'; '.join(facts)}",
    ]
    if source.error:
        status = "" if source.error_status is None else f" ({source.error_status})"
        return [*lines[:2], f"    failed{status}, not billed: {plain_line(source.error, max_characters=300)}"]
    if source.cost_nano != price.cost_nano:
        lines.append("    prices have changed since; `agentmon costs reprice` takes over what follows")
    return [*lines, *(f"    {plain_line(line, max_characters=300)}" for line in price.formula)]


def progress_words(progress: ImportProgress) -> str:
    """Return how far an import is."""
    left = progress.seconds_left
    rest = "" if left is None else f", {duration_text(left)} left"
    return (
        f"{progress.files:,} of {progress.all_files:,} files, "
        f"{size_text(progress.read_bytes)} of {size_text(progress.all_bytes)}{rest}"
    )


def _cells(
    label: str, sums: CostSums, bucket: CostBucket | None, group: CostGroup, money: MoneyFormat
) -> tuple[str, ...]:
    named = () if bucket is None else bucket.agents if group is CostGroup.MODEL else [name for name, _ in bucket.models]
    return (
        plain_line(label or _NOTHING.get(group, "not known"), max_characters=200),
        count_text(sums.prompt_tokens),
        count_text(sums.cache_write_5m_tokens + sums.cache_write_1h_tokens),
        count_text(sums.cache_read_tokens),
        count_text(sums.response_tokens),
        cost_cell(sums, money),
        plain_line(", ".join(name or "?" for name in named), max_characters=200),
    )


def _safe(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
