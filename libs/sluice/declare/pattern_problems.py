"""Patterns of dates and times that Spark would refuse, or read as another day or hour.

Letters are those of Spark's datetime patterns. Spark sets what a pattern lacks itself: the year to
1970, the month to January, the half of the day to the morning.
"""

import re
from collections.abc import Iterator

OPTIONS = ("dateFormat", "timestampFormat", "timestampNTZFormat")
LETTERS = frozenset("GyMLdDQqEFahHKkmsSOXxZVz")
EXAMPLE = "Spark's patterns look like yyyy-MM-dd HH:mm:ss"


def problems(pattern: str) -> Iterator[str]:
    """Yield what is wrong with a pattern."""
    bare = re.sub("'[^']*'", "", pattern)
    letters = set(re.findall("[A-Za-z]", bare))
    if "'" in bare:
        yield "a quote is not closed"
    if unknown := sorted(letters - LETTERS):
        yield f"it knows no letter {', '.join(unknown)}; {EXAMPLE}, with other text in '…'"
    elif "y" not in letters:
        yield f"it has no year; {EXAMPLE}"
    elif "m" in letters and not letters & set("MLDQq"):
        yield "it has no month: m is a minute, M a month"
    if letters & set("Vz"):
        yield (
            "with V or z, Spark would move a time that the zone skips, and read EST in July as "
            "EDT; an offset is X or Z, and a region behind a time is read without a pattern"
        )
    if letters & set("hK") and "a" not in letters:
        yield "h and K count to twelve and need an a (am, pm); H counts to 23"
