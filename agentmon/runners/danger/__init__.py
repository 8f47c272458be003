"""The rules that say how dangerous a command line is: those that came with agentmon, and the person's own."""

from __future__ import annotations

from agentmon.runners.danger.rule_files import RULES_FILE, danger_rules_in_force, load_danger_rules, read_danger_rules

__all__ = ["RULES_FILE", "danger_rules_in_force", "load_danger_rules", "read_danger_rules"]
