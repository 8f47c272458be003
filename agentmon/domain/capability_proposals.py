"""Proposals: what a scan would make of a program's capabilities, shown to a person before anything of it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from agentmon.domain.agents import CapabilitySource

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentmon.domain.agents import Capability

SCAN_SOURCES: Final = (
    CapabilitySource.SCAN_HELP,
    CapabilitySource.SCAN_MAN,
    CapabilitySource.SCAN_FIG,
    CapabilitySource.SCAN_COMPLETION,
    CapabilitySource.SCAN_MCP,
    CapabilitySource.LLM_GENERATED,
)
"""What a scan can ask, in the order in which their words count when several tell of one command."""

SCANNED_FIELDS: Final = (
    "label",
    "description",
    "source",
    "command_tokens",
    "args_schema",
    "danger_level",
    "requires_approval",
)
"""The fields of a capability that a scan fills; all others belong to the person."""


class ProposalChange(StrEnum):
    """What accepting a proposal would do."""

    NEW = "new"
    CHANGED = "changed"
    SAME = "same"
    """Nothing: the capability is stored like that already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapabilityProposal:
    """One capability as a scan would have it."""

    capability: Capability
    """As it would be stored: what a person edited in the stored one is in it already."""
    stored: Capability | None = None
    """The one that it would change."""
    change: ProposalChange = ProposalChange.NEW
    sources: tuple[CapabilitySource, ...] = ()
    """Who told of it, the one whose words count first."""
    argument_sources: Mapping[str, tuple[CapabilitySource, ...]] = field(default_factory=dict)
    """Who told of each argument, by its name in ``args_schema``."""
    changed_fields: tuple[str, ...] = ()
    """The fields of the stored one that would change, in the order of ``SCANNED_FIELDS``."""
    kept_fields: tuple[str, ...] = ()
    """The fields that the scan sees otherwise and leaves alone, since a person edited them."""
    danger_reasons: tuple[str, ...] = ()
    """Why its danger level is what it is, as sentences."""

    @property
    def new_arguments(self) -> tuple[str, ...]:
        """The names of the arguments that the stored capability does not have."""
        known = () if self.stored is None else _arguments(self.stored)
        return tuple(name for name in _arguments(self.capability) if name not in known)

    @property
    def lost_arguments(self) -> tuple[str, ...]:
        """The names of the stored arguments that the scan knows nothing of, as one of fewer sources may."""
        known = _arguments(self.capability)
        return () if self.stored is None else tuple(name for name in _arguments(self.stored) if name not in known)


def propose(
    found: Capability,
    stored: Capability | None,
    *,
    sources: tuple[CapabilitySource, ...],
    argument_sources: Mapping[str, tuple[CapabilitySource, ...]],
    danger_reasons: tuple[str, ...] = (),
) -> CapabilityProposal:
    """Return the proposal to make the stored capability what a scan found, or to add it when there is none."""
    if stored is None:
        return CapabilityProposal(
            capability=found, sources=sources, argument_sources=argument_sources, danger_reasons=danger_reasons
        )
    wanted = merge_into(stored, found)
    changed = tuple(name for name in SCANNED_FIELDS if getattr(wanted, name) != getattr(stored, name))
    differing = {name for name in SCANNED_FIELDS if getattr(found, name) != getattr(stored, name)}
    return CapabilityProposal(
        capability=wanted,
        stored=stored,
        change=ProposalChange.CHANGED if changed else ProposalChange.SAME,
        sources=sources,
        argument_sources=argument_sources,
        changed_fields=changed,
        kept_fields=tuple(name for name in SCANNED_FIELDS if name in differing and name in _edited(stored)),
        danger_reasons=danger_reasons,
    )


def merge_into(stored: Capability, found: Capability) -> Capability:
    """Return the stored capability as a scan found it, but for what a person edited."""
    edited = _edited(stored)
    return replace(stored, **{name: getattr(found, name) for name in SCANNED_FIELDS if name not in edited})


def _arguments(capability: Capability) -> tuple[str, ...]:
    described = capability.args_schema.get("properties")
    return tuple(described) if isinstance(described, dict) else ()


def _edited(stored: Capability) -> frozenset[str]:
    # Who says how dangerous it is says with that whether it has to be asked for.
    further = {"requires_approval"} if "danger_level" in stored.edited_fields else set()
    return frozenset(stored.edited_fields) | further
