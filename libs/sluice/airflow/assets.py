"""Tables as Airflow assets, and what the event of a change says.

A pipeline with `schedule: assets` runs when a table of another pipeline changes. So a task records
an event only for the tables that its run changed.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from airflow.sdk import Asset, AssetAny

from sluice.language.internal import declared

GROUP = "sluice"
IN_EVENT = (
    "version",
    "batch",
    "rows_in",
    "inserted",
    "updated",
    "deleted",
    "quarantined",
    "refills",
)


def asset(table: str) -> Asset:
    """Return the asset of the table with that id."""
    return Asset(name=table, uri=f"sluice://{table.replace('.', '/', 1)}", group=GROUP)


def whenever(triggers: Iterable[str]) -> AssetAny:
    """Return the schedule of a pipeline that runs when any of those tables changes.

    Tables that others write are given by their addresses; their writers record the events.
    """
    return AssetAny(*(Asset(uri=one) if "://" in one else asset(one) for one in triggers))


def has_changed(report: Mapping[str, Any]) -> bool:
    """True if the reported batch changed its table's rows."""
    return any(report.get(count) for count in ("inserted", "updated", "deleted"))


def event_fields(report: Mapping[str, Any], others: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of the event of a change.

    `others` includes the reports of internal tables: rows are quarantined where they are delivered,
    which may be such a table.
    """
    changed = sum(int(report.get(count) or 0) for count in ("inserted", "updated", "deleted"))
    behind = (r for r in others if declared(r["table"]) == report["table"])
    quarantined = sum(int(r.get("quarantined") or 0) for r in behind)
    known = {name: report[name] for name in IN_EVENT if name in report}
    return known | {"quarantined": quarantined, "rows_out": changed}
