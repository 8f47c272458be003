"""The themes of agentmon; every text colour has a contrast of at least 4.5 to 1 on every ground it is used on."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = Theme(
    name="agentmon-dark",
    primary="#82aaff",
    secondary="#7fdbca",
    warning="#e6b450",
    error="#ff7b85",
    success="#8fcf7f",
    accent="#e6b450",
    foreground="#d4d8e0",
    background="#14171d",
    surface="#1a1e26",
    panel="#242a35",
    dark=True,
    variables={
        "text-muted": "#98a1b2",
        "foreground-muted": "#98a1b2",
        "border": "#3d4657",
        "border-blurred": "#3d4657",
        "card-cursor": "#2b3445",
        "block-cursor-background": "#2b3445",
        "block-cursor-foreground": "#f2f5fa",
        "block-cursor-text-style": "none",
        "footer-background": "#1a1e26",
        "footer-key-foreground": "#82aaff",
        "footer-description-foreground": "#aab2c2",
        "button-color-foreground": "#14171d",
        "input-selection-background": "#3b4f7a",
        "scrollbar": "#3d4657",
        "scrollbar-hover": "#556178",
        "scrollbar-active": "#82aaff",
        "scrollbar-background": "#14171d",
        "scrollbar-background-hover": "#14171d",
        "scrollbar-background-active": "#14171d",
    },
)

LIGHT: Final = Theme(
    name="agentmon-light",
    primary="#1f55b5",
    secondary="#0d6b63",
    warning="#8a5300",
    error="#b3202f",
    success="#2c6b1f",
    accent="#8a5300",
    foreground="#22262e",
    background="#fafafa",
    surface="#f1f3f6",
    panel="#e4e8ee",
    dark=False,
    variables={
        "text-muted": "#555e6e",
        "foreground-muted": "#555e6e",
        "border": "#b6bfcc",
        "border-blurred": "#b6bfcc",
        "card-cursor": "#d9e3f5",
        "block-cursor-background": "#d9e3f5",
        "block-cursor-foreground": "#14171d",
        "block-cursor-text-style": "none",
        "footer-background": "#f1f3f6",
        "footer-key-foreground": "#1f55b5",
        "footer-description-foreground": "#454e5d",
        "button-color-foreground": "#fafafa",
        "input-selection-background": "#b9cdf2",
        "scrollbar": "#b6bfcc",
        "scrollbar-hover": "#8d99ab",
        "scrollbar-active": "#1f55b5",
        "scrollbar-background": "#fafafa",
        "scrollbar-background-hover": "#fafafa",
        "scrollbar-background-active": "#fafafa",
    },
)

HIGH_CONTRAST: Final = Theme(
    name="agentmon-high-contrast",
    primary="#6fd3ff",
    secondary="#7dffd8",
    warning="#ffd75f",
    error="#ff9e9e",
    success="#a8ff8f",
    accent="#ffd75f",
    foreground="#ffffff",
    background="#000000",
    surface="#0b0b0b",
    panel="#161616",
    dark=True,
    variables={
        "text-muted": "#d8d8d8",
        "foreground-muted": "#d8d8d8",
        "border": "#9a9a9a",
        "border-blurred": "#9a9a9a",
        "card-cursor": "#003a6b",
        "block-cursor-background": "#003a6b",
        "block-cursor-foreground": "#ffffff",
        "block-cursor-text-style": "bold",
        "footer-background": "#0b0b0b",
        "footer-key-foreground": "#6fd3ff",
        "footer-description-foreground": "#e4e4e4",
        "button-color-foreground": "#000000",
        "input-selection-background": "#005a9e",
        "scrollbar": "#9a9a9a",
        "scrollbar-hover": "#d8d8d8",
        "scrollbar-active": "#6fd3ff",
        "scrollbar-background": "#000000",
        "scrollbar-background-hover": "#000000",
        "scrollbar-background-active": "#000000",
    },
)

THEMES: Final = (DARK, LIGHT, HIGH_CONTRAST)

_CURSORS: Final = ("card-cursor", "block-cursor-background", "input-selection-background")
CURSORS_OF_16_COLOURS: Final = {
    is_dark: dict.fromkeys(_CURSORS, colour) for is_dark, colour in ((True, "#000080"), (False, "#00ffff"))
}
"""By whether a theme is dark: among 16 colours its own grounds become the grey of its text."""
