"""Settings as rows of a table, and what is told of the one under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from textual.content import Content

from agentmon.services.settings import SettingOrigin
from agentmon.widgets.row_table import Column, TableRow
from agentmon.widgets.text_rows import Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentmon.services.settings import SettingValue

SETTING_COLUMNS: Final = (
    Column("Setting", 28),
    Column("Value", 24),
    Column("Says", 12, from_width=70),
    Column("What it is", from_width=100),
)
_ORIGIN_WORDS: Final = {
    SettingOrigin.DEFAULT: "default",
    SettingOrigin.OUTSIDE: "file or env",
    SettingOrigin.STORED: "set here",
}


def value_text(value: float | str) -> str:
    """Return a value as it is written: ``true``, ``0.5``, ``none`` for an empty text."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if value != "" else "–"


def setting_rows(settings: Iterable[SettingValue]) -> tuple[TableRow, ...]:
    """Return a row for each setting; what is not the default stands out."""
    return tuple(
        TableRow(
            one.key,
            (
                Span(one.key),
                Span(value_text(one.value), "text" if one.value == one.default else "warning"),
                Span(_ORIGIN_WORDS[one.origin], "muted"),
                Span(one.help, "muted"),
            ),
        )
        for one in settings
    )


def has_words(setting: SettingValue, text: str) -> bool:
    """Return whether all words of the text are in the setting, in either case."""
    told = f"{setting.key} {value_text(setting.value)} {setting.help}".casefold()
    return all(word in told for word in text.casefold().split())


def setting_content(setting: SettingValue | None) -> Content:
    """Return what is told of a setting: what it is, its default, and who says what is in force."""
    if setting is None:
        return Content("")
    parts: list[tuple[str, str]] = [(f"{setting.help}\n", "")]
    parts.append((f"default {value_text(setting.default)}", "$text-muted"))
    if setting.origin is SettingOrigin.OUTSIDE:
        parts.append(("   the settings file or the environment says otherwise", "$text-muted"))
    elif setting.origin is SettingOrigin.STORED:
        parts.append(("   set here; ", "$text-muted"))
        parts.append(("d", "$primary bold"))
        parts.append((" lets the file, the environment or the default say it again", "$text-muted"))
    return Content.assemble(*parts)
