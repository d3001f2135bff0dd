"""The dimension `things`: its declaration, and loads of it."""

from typing import Any

from tests.support.lake import Row
from tests.support.landed import Landed


def declared(extra: str = "", schema: str = "id INT, v INT", key: str = "id") -> str:
    more = f", {extra}" if extra else ""
    return (
        f"dimensions:\n  things: {{path: landing/things/, format: json, schema: '{schema}', "
        f"key: [{key}]{more}}}\n"
    )


def landed(lake: Landed, *rows: Row) -> Any:
    """The report of a load of exactly these rows."""
    lake.land("things", a_json=list(rows))
    return lake.load()
