"""Sums of costs by group, as people and programs read them; imports little, since a command may want nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentmon.domain.costs import CostGroup, CostSums

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentmon.domain.costs import CostPart
    from agentmon.worker.import_progress import RunningImport


@dataclass(frozen=True, slots=True, kw_only=True)
class CostBucket:
    """The sums of one group."""

    group: str
    """A day, the first day of a week, a month, a slug, a model, a folder, or the id of a row; empty for none."""
    label: str
    """What people call it."""
    agents: tuple[str, ...]
    models: tuple[tuple[str, CostSums], ...]
    """The dearest first."""
    sums: CostSums


@dataclass(frozen=True, slots=True, kw_only=True)
class CostReport:
    """Costs by group."""

    group: CostGroup
    zone_name: str
    """IANA name of the zone whose days count."""
    since_day: str | None
    until_day: str | None
    buckets: tuple[CostBucket, ...]
    """By time the oldest first, else the dearest first."""
    totals: CostSums
    running_import: RunningImport | None
    """Not all is there yet while one goes on."""


def buckets_of(group: CostGroup, parts: Sequence[CostPart], labels: Mapping[str, str]) -> tuple[CostBucket, ...]:
    """Return the parts put together by group: by time in their order, else the dearest first."""
    by_name: dict[str, list[CostPart]] = {}
    for part in parts:
        by_name.setdefault(part.group, []).append(part)
    buckets = [_bucket(name, labels.get(name, name), own) for name, own in by_name.items()]
    if group not in (CostGroup.DAY, CostGroup.WEEK, CostGroup.MONTH):
        buckets.sort(key=lambda bucket: (-bucket.sums.cost_nano, -bucket.sums.total_tokens, bucket.group))
    return tuple(buckets)


def _bucket(name: str, label: str, own: list[CostPart]) -> CostBucket:
    models: dict[str, CostSums] = {}
    for part in own:
        present = models.get(part.model)
        models[part.model] = part.sums if present is None else present + part.sums
    return CostBucket(
        group=name,
        label=label,
        agents=tuple(sorted({part.agent_slug for part in own})),
        models=tuple(sorted(models.items(), key=lambda one: (-one[1].cost_nano, -one[1].total_tokens, one[0]))),
        sums=CostSums.of_all(models.values()),
    )
