from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.color import Color

from agentmon.screens.settings.themes import THEMES

if TYPE_CHECKING:
    from textual.theme import Theme

TEXTS = ["foreground", "text-muted", "primary", "secondary", "success", "warning", "error"]
GROUNDS = ["background", "surface", "panel", "card-cursor", "footer-background"]
LEAST_CONTRAST = 4.5


def colours(theme: Theme) -> dict[str, str]:
    return theme.to_color_system().generate() | theme.variables


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
@pytest.mark.parametrize("ground", GROUNDS)
@pytest.mark.parametrize("text", [*TEXTS, "footer-key-foreground", "footer-description-foreground"])
def test_text_can_be_read_on_every_ground_of_a_theme(theme: Theme, ground: str, text: str) -> None:
    variables = colours(theme)

    contrast = contrast_ratio(Color.parse(variables[text]), Color.parse(variables[ground]))

    assert contrast >= LEAST_CONTRAST, f"{text} on {ground}: {contrast:.2f}"


def contrast_ratio(first: Color, second: Color) -> float:
    """Return the ratio of the two relative luminances. Source: WCAG 2.2, contrast ratio."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: Color) -> float:
    parts = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in color.rgb)
    ]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
