"""What stays the same of a repository wherever its folder is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryIdentity:
    """By what a repository is known again; a copy of it has the same, a fork another remote."""

    first_commit: str
    remote: str = ""
    """Its address without what is secret in it; empty when there is none."""
