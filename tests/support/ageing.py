"""Commits made to look old, so that upkeep takes what they left for what nobody reads."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

TIMES = re.compile(r'("(?:timestamp|deletionTimestamp)": ?)\d+')


def age(uri: str, version: int, days: float) -> None:
    """A version of the table at `uri`, and what it took away, as if made so many days ago."""
    log = Path(uri, "_delta_log", f"{version:020d}.json")
    made = int((datetime.now(UTC) - timedelta(days=days)).timestamp() * 1000)
    log.write_text(TIMES.sub(rf"\g<1>{made}", log.read_text("utf-8")), "utf-8")
