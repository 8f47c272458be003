"""Reports of costs as JSON, near what ccusage prints; imports little, since a command may want nothing else."""

from agentmon.domain.amounts import NANO, MoneyFormat
from agentmon.domain.costs import CostGroup, CostSums
from agentmon.services.cost_reports import CostBucket, CostReport
from agentmon.worker.import_progress import ImportProgress

# The names of lists and of what stands in them, as ccusage 20 has them where it has such a list.
_LISTS = {
    CostGroup.DAY: ("daily", "date"),
    CostGroup.WEEK: ("weekly", "week"),
    CostGroup.MONTH: ("monthly", "month"),
    CostGroup.AGENT: ("agents", "agent"),
    CostGroup.MODEL: ("models", "model"),
    CostGroup.PROJECT: ("projects", "project"),
    CostGroup.TASK: ("tasks", "taskId"),
    CostGroup.SESSION: ("sessions", "sessionId"),
    CostGroup.EXECUTION: ("executions", "executionId"),
}
_OF_ROWS = (CostGroup.TASK, CostGroup.SESSION, CostGroup.EXECUTION)


def report_document(report: CostReport, money: MoneyFormat) -> dict[str, object]:
    """Return the report as JSON, near the shape of ``ccusage --json``; amounts in dollars, whatever the text shows."""
    list_name, _ = _LISTS[report.group]
    running = report.running_import
    return {
        list_name: [_bucket_form(bucket, report.group) for bucket in report.buckets],
        "totals": _sums_form(report.totals),
        "timezone": report.zone_name,
        "since": report.since_day,
        "until": report.until_day,
        "importing": None if running is None else progress_form(running.progress),
        **currency_form(money),
    }


def currency_form(money: MoneyFormat) -> dict[str, object]:
    """Return in which currency the text would show amounts; empty for dollars."""
    return {"currency": money.currency, "exchangeRate": money.exchange_rate} if money.is_converted else {}


def progress_form(progress: ImportProgress) -> dict[str, object]:
    """Return how far an import is as JSON."""
    return {
        "files": progress.files,
        "allFiles": progress.all_files,
        "readBytes": progress.read_bytes,
        "allBytes": progress.all_bytes,
        "elapsedSeconds": progress.elapsed_s,
        "secondsLeft": progress.seconds_left,
    }


def _bucket_form(bucket: CostBucket, group: CostGroup) -> dict[str, object]:
    _, name = _LISTS[group]
    return {
        name: bucket.group or None,
        **({"label": bucket.label} if group in _OF_ROWS else {}),
        **_sums_form(bucket.sums),
        "agents": list(bucket.agents),
        "modelsUsed": [model for model, _ in bucket.models],
        "modelBreakdowns": [{"modelName": model, **_sums_form(sums)} for model, sums in bucket.models],
    }


def _sums_form(sums: CostSums) -> dict[str, object]:
    known = sums.known_cost_nano
    return {
        "inputTokens": sums.prompt_tokens,
        "outputTokens": sums.response_tokens,
        "cacheCreationTokens": sums.cache_write_5m_tokens + sums.cache_write_1h_tokens,
        "cacheReadTokens": sums.cache_read_tokens,
        "totalTokens": sums.total_tokens,
        "totalCost": None if known is None else known / NANO,
        "costNano": known,
        "answers": sums.answers,
        "unpricedAnswers": sums.unpriced_answers,
        "reportedAnswers": sums.reported_answers,
        "listPricedAnswers": sums.answers - sums.unpriced_answers - sums.reported_answers,
        "reasoningTokens": sums.reasoning_tokens,
        "cacheWrite5mTokens": sums.cache_write_5m_tokens,
        "cacheWrite1hTokens": sums.cache_write_1h_tokens,
        "webSearches": sums.web_searches,
    }
