"""What a person asks for in Airflow's form."""

from types import SimpleNamespace

import pytest

from sluice.airflow.jobs import requested_run
from sluice.errors import UsageError
from sluice.language.interval import Interval


def test_bounds_without_a_zone_are_of_the_pipelines() -> None:
    answers = {"start": "2024-01-01", "end": "2024-01-02T00:00:00Z"}
    context = {
        "run_id": "r",
        "dag_run": None,
        "params": answers,
        "dag": SimpleNamespace(dag_id="p"),
    }
    found = requested_run(context, "America/New_York").interval
    assert str(found) == "[2024-01-01T05:00:00+00:00, 2024-01-02)"
    assert found.format("America/New_York") == (
        "[2024-01-01T00:00:00-05:00, 2024-01-01T19:00:00-05:00)"
    )


def test_a_backfill_and_a_time_of_ones_own_read_messages_again() -> None:
    run = {"data_interval_start": None, "data_interval_end": None}
    context = {"run_id": "r", "dag": SimpleNamespace(dag_id="p")}
    for kind, answers, is_backfill in (
        ("scheduled", {}, False),
        ("manual", {}, False),
        ("backfill", {}, True),
        ("manual", {"start": "2024-01-01", "end": "2024-01-02"}, True),
    ):
        given = SimpleNamespace(run_type=kind, **run)
        found = requested_run({**context, "dag_run": given, "params": answers}, "UTC")
        assert found.is_backfill == is_backfill


def test_a_run_that_delivers_what_changed_has_no_interval_of_its_own() -> None:
    day = Interval.parse("2024-01-01", "2024-01-02")
    run = SimpleNamespace(
        run_type="manual", data_interval_start=day.start, data_interval_end=day.end
    )
    context = {"run_id": "r", "dag": SimpleNamespace(dag_id="p"), "dag_run": run}
    found = requested_run({**context, "params": {"changed": True}}, "UTC")
    assert found.is_about_news
    assert found.interval is None
    assert requested_run({**context, "params": {"changed": False}}, "UTC").interval == day
    for bound in ("start", "end"):
        with pytest.raises(UsageError, match="finds its intervals itself"):
            requested_run({**context, "params": {"changed": True, bound: "2024-01-01"}}, "UTC")
