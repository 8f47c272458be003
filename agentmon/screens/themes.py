"""The two themes of agentmon; every text colour has a contrast of at least 4.5 to 1 on every ground it is used on."""

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

THEMES: Final = (DARK, LIGHT)
