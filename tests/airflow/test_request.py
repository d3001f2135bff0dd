"""What a person asks for in Airflow's form."""

from types import SimpleNamespace

from sluice.airflow.request import asked


def test_bounds_without_a_zone_are_of_the_pipelines() -> None:
    answers = {"start": "2024-01-01", "end": "2024-01-02T00:00:00Z"}
    context = {
        "run_id": "r",
        "dag_run": None,
        "params": answers,
        "dag": SimpleNamespace(dag_id="p"),
    }
    found = asked(context, "America/New_York").interval
    assert str(found) == "[2024-01-01T05:00:00+00:00, 2024-01-02)"
    assert found.shown("America/New_York") == (
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
        found = asked({**context, "dag_run": given, "params": answers}, "UTC")
        assert found.is_backfill == is_backfill
