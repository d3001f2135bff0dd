"""Reports to Airflow about a table that changed."""

from typing import Any

from sluice.airflow.scheduling import event_fields


def report(table: str, **counts: int) -> dict[str, Any]:
    return {"table": table, "version": 3, "inserted": 0, "updated": 0, "deleted": 0, **counts}


def test_quarantined_rows_are_reported_for_the_table_that_they_were_meant_for() -> None:
    delivered = report("shop.sales__deliveries", quarantined=2, inserted=9)
    latest, other = report("shop.sales", inserted=8), report("shop.visits", quarantined=5)
    told = event_fields(latest, [delivered, latest, other])
    assert (told["quarantined"], told["rows_out"], told["version"]) == (2, 8, 3)
    assert event_fields(other, [delivered, latest, other])["quarantined"] == 5
