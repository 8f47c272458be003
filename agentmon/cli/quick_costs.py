"""``agentmon costs --by … --json`` alone, which scripts ask often: without the services and all that they import.

Whatever else is asked for, or is out of order, is left to the long way.
"""

import os

from agentmon.cli.cost_documents import report_document
from agentmon.cli.output import say_document
from agentmon.domain.costs import CostGroup, CostSums
from agentmon.paths import find_paths
from agentmon.services.cost_reports import CostReport, buckets_of
from agentmon.store.money_setting import MONEY_KEYS, money_format, money_words_of
from agentmon.store.quick_costs import find_costs
from agentmon.worker.import_progress import find_running_import

_GROUPS = {
    group.value: group
    for group in (
        *(CostGroup.DAY, CostGroup.WEEK, CostGroup.MONTH),
        *(CostGroup.AGENT, CostGroup.MODEL, CostGroup.PROJECT),
    )
}
_ZONE_KEY = "costs.timezone"
_SYSTEM_ZONE = "system"
_OF_ENVIRONMENT = "AGENTMON_COSTS_"


def print_costs(words: list[str]) -> bool:
    """Print the costs as JSON, exactly as the long way does; False when that has to.

    Args:
        words: What follows ``costs`` on the command line.
    """
    group = _group_of(words)
    if group is None or any(name.startswith(_OF_ENVIRONMENT) for name in os.environ):
        return False
    paths = find_paths()
    if paths.settings_file.exists():
        return False
    costs = find_costs(paths.database_path, group)
    if costs is None or costs.settings.get(_ZONE_KEY, _SYSTEM_ZONE) not in (_SYSTEM_ZONE, costs.zone_name):
        return False
    buckets = buckets_of(group, costs.parts, {})
    report = CostReport(
        group=group,
        zone_name=costs.zone_name,
        since_day=None,
        until_day=None,
        buckets=buckets,
        totals=CostSums.of_all(bucket.sums for bucket in buckets),
        running_import=find_running_import(paths.import_progress),
    )
    stored = [(key, value) for key, value in costs.settings.items() if key in MONEY_KEYS]
    say_document(report_document(report, money_format(money_words_of(stored))))
    return True


def _group_of(words: list[str]) -> CostGroup | None:
    """Return by what costs are asked for, when nothing else but JSON is."""
    match [word for word in words if word != "--json"]:
        case []:
            return CostGroup.DAY
        case ["--by", name]:
            return _GROUPS.get(name)
        case [word] if word.startswith("--by="):
            return _GROUPS.get(word.removeprefix("--by="))
        case _:
            return None
