"""Intervals that Airflow schedules, those that `sluice run` finds due, and clocks that are set."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from airflow.sdk import DAG
from airflow.timetables.base import TimeRestriction, Timetable
from airflow.timetables.interval import CronDataIntervalTimetable
from pendulum import instance
from tests.support.airflow_versions import DagSerialization

from sluice.airflow.dag_factory import dags
from sluice.airflow.scheduling import Grid
from sluice.declare.project import load
from sluice.language.interval import Schedule

from .conftest import Configured

Span = tuple[datetime, datetime]
INSTANT = timedelta(microseconds=1)
FAR = datetime(2030, 1, 1, tzinfo=UTC)
CHANGES = {
    "UTC": ("2024-03-31",),
    "Europe/Berlin": ("2024-03-31", "2024-10-27"),
    "America/New_York": ("2024-03-10", "2024-11-03"),
    "Asia/Kolkata": ("2024-03-31",),
    "Australia/Lord_Howe": ("2024-04-07", "2024-10-06"),
    "America/Santiago": ("2024-04-07", "2024-09-08"),
    "Africa/Casablanca": ("2024-03-10", "2024-04-14"),
}
GRIDS = (
    "@hourly",
    "*/15 * * * *",
    "30 * * * *",
    "0 */6 * * *",
    "@daily",
    "30 2 * * *",
    "0 1 * * *",
)
LONG = ("@weekly", "@monthly", "0 9 * * 1", "0 0 1,15 * *")
# Airflow's own timetable does not get past these changes, or leaves its own grid.
JAMS = {("Australia/Lord_Howe", "@hourly"), ("Australia/Lord_Howe", "30 * * * *")}
EVERY = [(zone, grid) for zone in CHANGES for grid in (*GRIDS, *LONG)]
IN_DAGS = [(zone, grid) for zone in CHANGES for grid in ("@hourly", "@daily", "30 2 * * *")]


def scheduled(timetable: Timetable, first: datetime, last: datetime) -> Iterator[Span]:
    """The intervals of a DAG between these dates that makes up for all of them."""
    restriction = TimeRestriction(instance(first), instance(last), catchup=True)
    info = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    while info:
        span = info.data_interval
        yield span.start, span.end
        info = timetable.next_dagrun_info(
            last_automated_data_interval=span, restriction=restriction
        )


def around(change: str, zone: str, grid: str) -> Span:
    """Bounds of the grid before and behind a change of clocks."""
    schedule = Schedule(expression=grid, timezone=zone)
    middle = datetime.fromisoformat(change).replace(tzinfo=ZoneInfo(zone))
    span = timedelta(days=70 if grid in LONG else 2)
    return schedule.last_until(middle - span), schedule.next_after(middle + span)


def dag_of(configured: Configured, **header: object) -> tuple[DAG, list[Span]]:
    """A pipeline's DAG, and what `sluice run` finds due of it."""
    lines = "\n".join(f'{key}: "{value}"' for key, value in header.items())
    config = configured("", shop=f"pipeline: shop\n{lines}\n")
    pipeline = load(config).pipelines["shop"]
    due = pipeline.complete_intervals(FAR)
    (dag,) = dags(config)
    return dag, [(i.start, i.end) for i in due]


@pytest.mark.parametrize(("zone", "grid"), IN_DAGS)
def test_airflow_and_a_run_agree_on_the_intervals_around_a_change_of_clocks(
    configured: Configured, zone: str, grid: str
) -> None:
    for change in CHANGES[zone]:
        first, last = around(change, zone, grid)
        bounds = {"start_date": first.isoformat(), "end_date": last.isoformat()}
        dag, due = dag_of(configured, schedule=grid, timezone=zone, **bounds)
        assert list(scheduled(dag.timetable, dag.start_date, dag.end_date)) == due
        assert (due[0][0], due[-1][1]) == (first, last)
        assert all(before[1] == after[0] for before, after in pairwise(due))


@pytest.mark.parametrize(("zone", "grid"), sorted(set(EVERY) - JAMS))
def test_the_grid_is_that_of_airflows_own_timetable(zone: str, grid: str) -> None:
    for change in CHANGES[zone]:
        first, last = around(change, zone, grid)
        found = Schedule(expression=grid, timezone=zone).intervals(first, last)
        own = CronDataIntervalTimetable(grid, timezone=zone)
        assert [(i.start, i.end) for i in found] == list(scheduled(own, first, last - INSTANT))


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"])
def test_every_day_from_a_date_to_a_date_is_due(configured: Configured, zone: str) -> None:
    dates = {"start_date": "2024-01-01", "end_date": "2024-01-04"}
    dag, due = dag_of(configured, schedule="@daily", timezone=zone, **dates)
    local = [start.astimezone(ZoneInfo(zone)).isoformat()[:16] for start, _ in due]
    assert local == ["2024-01-01T00:00", "2024-01-02T00:00", "2024-01-03T00:00"]
    assert list(scheduled(dag.timetable, dag.start_date, dag.end_date)) == due


def test_hours_pass_a_change_of_half_an_hour() -> None:
    zone = ZoneInfo("Australia/Lord_Howe")
    bounds = [datetime(2024, 4, 7, hour, tzinfo=zone) for hour in (0, 5)]
    found = list(scheduled(Grid("@hourly", zone.key), bounds[0], bounds[1]))
    assert [(end - start).total_seconds() / 3600 for start, end in found] == [1, 1.5, 1, 1, 1, 1]


def test_times_in_the_hour_that_is_skipped_move_behind_it_and_none_is_lost() -> None:
    schedule = Schedule(expression="15,45 2 * * *", timezone="Europe/Berlin")
    start = schedule.last_until(datetime(2024, 3, 30, 12, tzinfo=UTC))
    found = schedule.intervals(start, schedule.next_after(datetime(2024, 3, 31, 12, tzinfo=UTC)))
    zone = ZoneInfo("Europe/Berlin")
    assert [i.start.astimezone(zone).isoformat()[5:16] for i in found] == [
        *("03-30T02:45", "03-31T03:15", "03-31T03:45")
    ]


def test_airflow_stores_a_timetable_and_finds_it_again(configured: Configured) -> None:
    dag, _ = dag_of(
        configured, schedule="@daily", timezone="Europe/Berlin", start_date="2024-01-01"
    )
    again = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable
    assert (type(again), again) == (Grid, dag.timetable)
    last = again.infer_manual_data_interval(run_after=instance(datetime(2024, 7, 9, 5, tzinfo=UTC)))
    assert last.end == datetime(2024, 7, 8, 22, tzinfo=UTC)
