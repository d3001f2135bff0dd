"""Days and months in the paths of files, and the placeholders that stand for them."""

import re
from datetime import date

DATE = re.compile(r"(?<!\d)(20\d\d|19\d\d)-(0[1-9]|1[0-2])(?:-([0-3]\d))?(?!-?\d)")
DAILY, MONTHLY = "{interval_start:%Y-%m-%d}", "{interval_start:%Y-%m}"


def dated(path: str, most: int = 0) -> str:
    """Return the path with placeholders for its days and months: for all, or for the first ones."""
    return DATE.sub(lambda found: DAILY if found[3] else MONTHLY, path, most)


def placeholder(path: str) -> str:
    """Return the first placeholder in a path, or nothing."""
    return min((p for p in (DAILY, MONTHLY) if p in path), key=path.index, default="")


def day_of(path: str) -> date | None:
    """Return the day in a path, or the first one of the month in it."""
    found = DATE.search(path)
    try:
        return date(*(int(part or 1) for part in found.groups())) if found else None
    except ValueError:
        return None
