"""A run whose sources fail goes on for the others, and what is missing is named afterwards."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.support.landed import Landed, NewLanded, day, folder_of

from sluice.delta.failures import stored_failures
from sluice.delta.places.lake_layout import layout
from sluice.engine import BatchReport
from sluice.errors import Retryable, SeveralFailed, Unforeseen
from sluice.operate import run as running
from sluice.operate.doctor import examine
from sluice.operate.explain import explain
from sluice.read.status import status
from sluice.sources.kind import SourceKind

SOURCE = '{path: "landing/%s/{interval_start:%%Y-%%m-%%d}/", format: json, schema: "id INT"}'
COUNTED = "{kind: cogroup, key: [id], streams: {s: {from: %s, aggregates: {n: count(*)}}}}"
DECLARED = f"""sources:
  flights: {SOURCE % "flights"}
  weather: {SOURCE % "weather"}
views:
  delays: {COUNTED % "flights"}
  gusts: {COUNTED % "weather"}
"""
BAD = [{"id": "x"}] * 20


@pytest.fixture
def lake(new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch) -> Landed:
    """Three days in rounds of one; the second of weather can't be read."""
    lake = new_landed(DECLARED)
    monkeypatch.setattr("sluice.operate.run.ROUND_INTERVALS", 1)
    for nth in range(3):
        lake.land(f"flights/{folder_of(nth)}", a_json=[{"id": 1}])
        lake.land(f"weather/{folder_of(nth)}", a_json=BAD if nth == 1 else [{"id": 1}])
    return lake


def ran(lake: Landed, *days: int) -> tuple[list[BatchReport], Exception | None]:
    reports: list[BatchReport] = []
    pipeline = lake.project.pipelines["shop"]
    try:
        running.run(lake.spark, lake.project, pipeline, map(day, days), reports.append)
    except (SeveralFailed, Retryable, Exception) as error:  # noqa: BLE001 the test looks at it
        return reports, error
    return reports, None


def test_rounds_go_on_for_sources_that_are_well(lake: Landed) -> None:
    reports, error = ran(lake, 0, 1, 2)
    assert "column id" in str(error)
    assert [row["n"] for row in lake.rows("delays")] == [3]
    assert [row["n"] for row in lake.rows("gusts")] == [1]
    (failed,) = (r for r in reports if r.outcome == "failed")
    lacking = [day(nth) for nth in (1, 2)]
    assert failed.undelivered == tuple((d.start.isoformat(), d.end.isoformat()) for d in lacking)
    assert list(stored_failures(layout(lake.project))) == ["shop.weather"]


def test_views_follow_keyed_sources_until_their_failure(new_landed: NewLanded) -> None:
    keyed = SOURCE.replace('"id INT"', '"id INT", key: [id]') % "weather"
    lake = new_landed(f"sources:\n  weather: {keyed}\nviews:\n  gusts: {COUNTED % 'weather'}\n")
    for nth in range(3):
        lake.land(f"weather/{folder_of(nth)}", a_json=BAD if nth == 1 else [{"id": nth}])
    _, error = ran(lake, 0, 1, 2)
    assert "column id" in str(error)
    assert [row["id"] for row in lake.rows("weather")] == [0]
    assert [row["id"] for row in lake.rows("gusts")] == [0]


def test_what_is_missing_between_delivered_days_is_listed(lake: Landed) -> None:
    ran(lake, 0)
    ran(lake, 2)
    (weather,) = status(lake.project, [lake.table("weather")])
    assert list(map(str, weather.missing)) == ["[2024-01-02, 2024-01-03) (1 interval)"]
    steps = explain(lake.project, lake.table("weather"))
    assert "missing between them: [2024-01-02, 2024-01-03)" in steps[0].reason
    found = examine(lake.project, [lake.table("weather")], datetime.now(UTC))
    (gap,) = (one for one in found if one.name == "missing-intervals")
    assert not gap.stops
    assert gap.repair == "`sluice run shop --start 2024-01-02 --end 2024-01-03`"


def test_unforeseen_errors_harm_no_other(lake: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    real = SourceKind.deliver

    def broken(*args: object) -> Iterator[BatchReport]:
        if args[3] == lake.table("weather"):
            raise RuntimeError("a bug")
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(SourceKind, "deliver", broken)
    reports, error = ran(lake, 0)
    assert isinstance(error, Unforeseen)
    assert error.message == "shop.weather: RuntimeError: a bug"
    assert Counter(r.outcome for r in reports) == {"committed": 3, "failed": 1, "skipped": 1}
    monkeypatch.undo()
    assert ran(lake, 0)[1] is None
    assert stored_failures(layout(lake.project)) == {}


def test_several_failures_are_one_error_with_the_exit_code_of_the_worst(lake: Landed) -> None:
    lake.land(f"flights/{folder_of(0)}", a_json=BAD)
    lake.land(f"weather/{folder_of(0)}", a_json=BAD)
    _, error = ran(lake, 0)
    assert isinstance(error, SeveralFailed)
    assert (sorted(error.errors), int(error.exit_code)) == (["shop.flights", "shop.weather"], 4)
    assert str(error).count("\nhint: ") == 2
