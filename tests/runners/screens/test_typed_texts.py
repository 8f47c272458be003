from __future__ import annotations

import pytest

from agentmon.runners.screens.rules import NO_RULES, find_rules


@pytest.mark.parametrize("agent", ["claude", "gemini", "opencode"])
def test_a_text_that_an_agent_would_run_in_a_shell_gets_a_blank_in_front(agent: str) -> None:
    assert find_rules(agent).typed("!rm -r x") == " !rm -r x"


@pytest.mark.parametrize("text", ["!rm -r x", " !rm -r x", "\n\t!rm -r x"])
def test_codex_takes_blanks_away_and_gets_one_without_width(text: str) -> None:
    assert find_rules("codex").typed(text) == f"\u200b{text}"


@pytest.mark.parametrize("text", ["- [ ] do it", "--help", "/etc/hosts", "#1", "@a", "do x;", "a\n!b", ""])
def test_any_other_text_is_typed_as_it_is(text: str) -> None:
    assert find_rules("claude").typed(text) == text
    assert NO_RULES.typed(f"!{text}") == f"!{text}"
