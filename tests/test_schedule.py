from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentmon import schedule
from agentmon.domain.errors import UsageError
from agentmon.schedule import check_cron, check_zone, local_zone_name, next_time, next_times

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BERLIN, NEW_YORK = "Europe/Berlin", "America/New_York"


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type] # the parts are year, month, day, hour and so on


@pytest.mark.parametrize(
    ("line", "normal"),
    [
        ("  0  7 * *\tmon-fri ", "0 7 * * mon-fri"),
        ("*/15 9-17 * * 1-5", "*/15 9-17 * * 1-5"),
        ("0 0 L * *", "0 0 L * *"),
        ("0 0 * * MON#1", "0 0 * * MON#1"),
        ("0 0 29 2 *", "0 0 29 2 *"),
        ("0 0 31 JAN,MAR 7", "0 0 31 JAN,MAR 7"),
        (" @Daily ", "@daily"),
        *((word, word) for word in ("@hourly", "@weekly", "@monthly", "@yearly")),
    ],
)
def test_a_line_is_told_with_one_blank_between_its_fields(line: str, normal: str) -> None:
    assert check_cron(line) == normal


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("60 7 * * *", "the minute '60'"),
        ("0 24 * * *", "the hour '24'"),
        ("0 7 0 * *", "the day of the month '0'"),
        ("0 7 * 13 *", "the month '13'"),
        ("0 7 * * FRI-MON", "the day of the week 'FRI-MON'"),
        ("*/0 * * * *", "the minute"),
        ("a b c d e", "the minute 'a'"),
        ("\x1b[31m 7 * * *", "the minute"),
        (f"{'9' * 150} * * * *", "the minute"),
        ("", "is empty"),
        ("0 7 * *", "has 4 fields"),
        ("0 0 7 * * *", "seconds"),
        ("0 7 * * * * *", "has 7 fields"),
        ("1," * 200 + "1 * * * *", "not five short ones"),
        ("@reboot", "is none of @hourly"),
        ("@daily 5", "is none of"),
        ("0 0 30 2 *", "never comes"),
        ("0 0 31 4,6,9,11 *", "never comes"),
        ("0 0 */30 2 1#5", "never comes"),
    ],
)
def test_a_wrong_line_is_refused_with_the_field_and_an_example(line: str, wrong: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_cron(line)

    assert wrong in str(refused.value)
    assert "such as" in refused.value.hint
    assert "\x1b" not in str(refused.value)


@pytest.mark.parametrize("line", ["0 0 7 * * *", "x * * * *", "0 0 30 2 *"])
def test_the_next_time_of_a_wrong_line_is_refused_too(line: str) -> None:
    with pytest.raises(UsageError):
        next_time(line, "UTC", utc(2026, 1, 1))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (" europe/berlin ", "Europe/Berlin"),
        ("America/new york", NEW_YORK),
        ("utc", "UTC"),
    ],
)
def test_a_zone_is_told_by_its_own_name(typed: str, name: str) -> None:
    assert check_zone(typed) == name


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("Europe/Berln", "Europe/Berlin"),
        ("Berlin", "did you mean Europe/Berlin?"),
        ("new york", "did you mean America/New_York?"),
        ("Europe", "Europe/"),
        ("", "zones are named like"),
        ("../../etc/passwd", "zones are named like"),
        ("\x00", "zones are named like"),
    ],
)
def test_an_unknown_zone_is_refused_with_near_names(typed: str, hint: str) -> None:
    with pytest.raises(UsageError, match="no time zone") as refused:
        check_zone(typed)
    with pytest.raises(UsageError, match="no time zone"):
        next_time("@daily", typed, utc(2026, 1, 1))

    assert hint in refused.value.hint


def test_the_file_of_the_local_zone_is_no_name_of_a_zone() -> None:
    with pytest.raises(UsageError, match="no time zone"):
        check_zone("localtime")


@pytest.mark.parametrize(
    ("line", "zone", "after", "times"),
    [
        ("30 7 * * 1-5", BERLIN, utc(2026, 11, 27, 6, 30), [utc(2026, 11, 30, 6, 30), utc(2026, 12, 1, 6, 30)]),
        ("30 7 * * *", BERLIN, utc(2026, 11, 27, 6, 29, 59), [utc(2026, 11, 27, 6, 30)]),
        ("@daily", NEW_YORK, utc(2026, 11, 27, 12), [utc(2026, 11, 28, 5)]),
        ("@yearly", "UTC", utc(2026, 1, 1), [utc(2027, 1, 1), utc(2028, 1, 1)]),
        ("0 0 L * *", "UTC", utc(2027, 1, 31), [utc(2027, 2, 28), utc(2027, 3, 31)]),
        ("0 0 31 * *", "UTC", utc(2026, 1, 31), [utc(2026, 3, 31), utc(2026, 5, 31)]),
        ("0 12 29 2 *", BERLIN, utc(2026, 1, 1), [utc(2028, 2, 29, 11), utc(2032, 2, 29, 11)]),
        ("0 0 * * MON#1", "UTC", utc(2026, 12, 1), [utc(2026, 12, 7), utc(2027, 1, 4)]),
        # the clocks go forward: what they skip comes once, right after the gap
        ("30 2 * * *", BERLIN, utc(2026, 3, 28, 12), [utc(2026, 3, 29, 1), utc(2026, 3, 30, 0, 30)]),
        ("0,30 2 * * *", BERLIN, utc(2026, 3, 28, 12), [utc(2026, 3, 29, 1), utc(2026, 3, 30, 0)]),
        ("30 2,3 * * *", BERLIN, utc(2026, 3, 28, 12), [utc(2026, 3, 29, 1), utc(2026, 3, 29, 1, 30)]),
        ("30 2 * * *", NEW_YORK, utc(2026, 3, 7, 12), [utc(2026, 3, 8, 7), utc(2026, 3, 9, 6, 30)]),
        ("0 9 * * *", NEW_YORK, utc(2026, 3, 7, 12), [utc(2026, 3, 7, 14), utc(2026, 3, 8, 13)]),
        ("0 * * * *", BERLIN, utc(2026, 3, 29, 0), [utc(2026, 3, 29, 1), utc(2026, 3, 29, 2)]),
        # the clocks go back: what they show twice comes once
        ("30 2 * * *", BERLIN, utc(2026, 10, 24, 12), [utc(2026, 10, 25, 0, 30), utc(2026, 10, 26, 1, 30)]),
        ("30 2 * * *", BERLIN, utc(2026, 10, 25, 1, 10), [utc(2026, 10, 26, 1, 30)]),
        ("30 1 * * *", NEW_YORK, utc(2026, 11, 1, 4), [utc(2026, 11, 1, 5, 30), utc(2026, 11, 2, 6, 30)]),
        ("30 1 * * *", NEW_YORK, utc(2026, 11, 1, 5, 30), [utc(2026, 11, 2, 6, 30)]),
        # a star goes by the time that passes
        ("30 * * * *", BERLIN, utc(2026, 10, 25, 0), [utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30)]),
    ],
)
def test_times_come_as_cron_has_them(line: str, zone: str, after: datetime, times: list[datetime]) -> None:
    assert list(next_times(line, zone, after, len(times))) == times


@pytest.mark.parametrize("count", [0, 1, 5])
def test_as_many_times_come_as_are_asked_for(count: int) -> None:
    assert len(next_times("@hourly", BERLIN, utc(2026, 1, 1), count)) == count


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23) | st.just("*"),
    day=st.integers(1, 28) | st.just("*"),
    month=st.integers(1, 12) | st.just("*"),
    seconds=st.integers(0, 10 * 365 * 86400),
    zone=st.sampled_from([BERLIN, NEW_YORK, "UTC", "Australia/Lord_Howe", "Asia/Kathmandu", "Africa/Casablanca"]),
)
def test_every_time_is_later_and_matches_its_line(
    minute: int, hour: int | str, day: int | str, month: int | str, seconds: int, zone: str
) -> None:
    after = utc(2024, 1, 1) + timedelta(seconds=seconds)
    line = check_cron(f"{minute} {hour} {day} {month} *")

    first, second = next_times(line, zone, after, 2)

    there = first.astimezone(ZoneInfo(zone))
    assert after < first < second
    assert first.utcoffset() == timedelta(0)
    follows_gap = (first - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).utcoffset() != there.utcoffset()
    if not follows_gap:
        assert (there.minute, there.second) == (minute, 0)
        assert hour in (there.hour, "*")
        assert day in (there.day, "*")
        assert month in (there.month, "*")


@given(line=st.text(max_size=30) | st.lists(st.text("0123456789*,-/L#MON@ ", max_size=8), max_size=6).map(" ".join))
def test_any_line_is_taken_or_refused(line: str) -> None:
    try:
        normal = check_cron(line)
    except UsageError:
        return

    assert check_cron(normal) == normal
    assert next_time(normal, BERLIN, utc(2026, 1, 1)) > utc(2026, 1, 1)


@pytest.fixture
def clock_of_machine() -> Iterator[None]:
    yield
    os.environ["TZ"] = "UTC"
    time.tzset()


@pytest.mark.usefixtures("clock_of_machine")
@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/Asia/Tokyo", "Asia/Tokyo"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("<+03>-3", "Etc/GMT-3"),
        ("", "UTC"),
        ("Nonsense/Zone", "UTC"),
        ("../../etc/passwd", "UTC"),
    ],
)
def test_the_local_zone_is_the_one_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, setting: str, name: str
) -> None:
    monkeypatch.setenv("TZ", setting)
    time.tzset()

    assert local_zone_name() == name


@pytest.mark.usefixtures("clock_of_machine")
@pytest.mark.parametrize(
    "rule",
    ["CET-1CEST,M3.5.0,M10.5.0/3", "EST5EDT,M3.2.0,M11.1.0", "<+0530>-5:30", "AEST-10AEDT,M10.1.0,M4.1.0/3"],
)
def test_a_rule_in_the_environment_becomes_a_zone_that_keeps_the_same_time(
    monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    monkeypatch.setenv("TZ", rule)
    time.tzset()

    zone = ZoneInfo(local_zone_name())

    for week in range(52):
        moment = datetime.now(UTC) + timedelta(weeks=week)
        assert moment.astimezone(zone).utcoffset() == moment.astimezone().utcoffset()


def test_without_the_environment_the_link_of_the_system_names_the_zone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(schedule, "_LOCALTIME", link)

    assert local_zone_name() == "Asia/Tokyo"


def test_a_copy_instead_of_a_link_is_recognised_by_its_clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    copy, name = tmp_path / "localtime", tmp_path / "timezone"
    copy.write_bytes(b"TZif")
    name.write_text("Etc/UCT\n")
    monkeypatch.delenv("TZ")
    monkeypatch.setattr(schedule, "_LOCALTIME", copy)
    monkeypatch.setattr(schedule, "_TIMEZONE", name)

    assert local_zone_name() == "Etc/UCT"


def test_importing_schedules_loads_no_zones_and_no_cron() -> None:
    script = "import sys, agentmon.schedule; print({'cronsim', 'zoneinfo', 'difflib'} & set(sys.modules))"

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert loaded.stdout.strip() == "set()"
