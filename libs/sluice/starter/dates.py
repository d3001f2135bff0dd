"""Days, months and years in the paths of files, and their placeholders."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, datetime

YEAR, MONTH, DAY = r"(?:19|20)\d\d", r"(?:0[1-9]|1[0-2])", r"[0-3]\d"
# Forms of a date in a path, the finest first. Only whole parts of a path are years.
FORMS: Mapping[str, str] = {
    "%Y-%m-%d": rf"(?<!\d){YEAR}-{MONTH}-{DAY}(?!-?\d)",
    "%Y/%m/%d": rf"(?<![^/]){YEAR}/{MONTH}/{DAY}(?![^/.])",
    "%Y-%m": rf"(?<!\d){YEAR}-{MONTH}(?!-?\d)",
    "%Y/%m": rf"(?<![^/]){YEAR}/{MONTH}(?![^/.])",
    "%Y": rf"(?<![^/]){YEAR}(?![^/.])",
}
PLACEHOLDER = re.compile(r"\{interval_start:([^}]*)\}")
SCHEDULES: Mapping[str, str] = {"%d": "@daily", "%m": "@monthly", "%Y": "@yearly"}


def day_of(path: str) -> date | None:
    """Return the day in a path, or the first one of the month or of the year in it."""
    for form, looks in FORMS.items():
        for text in re.findall(looks, path):
            with suppress(ValueError):
                return datetime.strptime(text, form).date()  # noqa: DTZ007
    return None


def dated(path: str) -> str:
    """Return the path with placeholders for its day, and for the month and the year of that day."""
    day = day_of(path)
    for form, looks in FORMS.items() if day else ():
        parts = re.split(f"({looks})", path)
        parts[1::2] = [
            f"{{interval_start:{form}}}" if p == f"{day:{form}}" else p for p in parts[1::2]
        ]
        path = "".join(parts)
    return path


def schedule_of(path: str) -> str:
    """Return the schedule at which a path's placeholders change; nothing if it has none."""
    codes = "".join(PLACEHOLDER.findall(path))
    return next((schedule for code, schedule in SCHEDULES.items() if code in codes), "")


def as_regex(path: str) -> str:
    """Return a regular expression of the files at a path with placeholders and `*`."""
    texts = PLACEHOLDER.split(path)
    texts[::2] = [re.escape(text).replace(r"\*", ".*") for text in texts[::2]]
    texts[1::2] = [FORMS[form] for form in texts[1::2]]
    return "".join(texts)


def without_dates(path: str) -> str:
    """Return a path without its placeholders."""
    return PLACEHOLDER.sub("", path)
