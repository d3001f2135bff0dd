"""Texts become moments as in Spark."""

import datetime as dt

import pytest

from sluice.interpreter.local_session import Session, interpreting


@pytest.mark.parametrize(
    ("zone", "hours"),
    [
        ("Z", 0),
        ("+05:30", -5.5),
        ("-18:00", 18),
        ("+18:00", -18),
        ("+18:01", None),
        ("+19:00", None),
        ("+01:60", None),
    ],
)
def test_a_time_has_a_zone_of_at_most_18_hours(zone: str, hours: float | None) -> None:
    session = Session()
    with interpreting(session):
        cast = f"TRY_CAST('2024-02-29 12:00:00{zone}' AS TIMESTAMP) AS found"
        found = session.range(1).selectExpr(cast).toArrow()["found"][0].as_py()
    noon = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
    assert found == (None if hours is None else noon + dt.timedelta(hours=hours))
