"""What a scan found, in words."""

from __future__ import annotations

from agentmon.domain.programs import ScanOutcome
from agentmon.domain.scan_words import outcome_line


def test_large_counts_are_grouped_as_in_the_list_of_programs() -> None:
    came = tuple(f"/bin/{number}" for number in range(1_050))

    assert outcome_line(ScanOutcome(programs=1402, folders=8, came=came)) == "1,402 programs in 8 folders; 1,050 came"
