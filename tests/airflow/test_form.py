"""The form of the trigger dialog, and what its answers mean."""

from types import SimpleNamespace
from typing import Any

from sluice.airflow.jobs import form, requested_run


def test_only_a_pipeline_with_intervals_may_empty_one_or_deliver_what_changed() -> None:
    for name in ("allow_empty", "changed"):
        assert form(["shop.sales"], has_intervals=True)[name] is False
        assert name not in form(["shop.sales"], has_intervals=False)


def test_what_was_allowed_is_asked_of_the_job() -> None:
    run = SimpleNamespace(data_interval_start=None, data_interval_end=None)
    context: dict[str, Any] = {
        "dag_run": run,
        "run_id": "r1",
        "dag": SimpleNamespace(dag_id="shop"),
    }
    assert not requested_run(context, "UTC").allow_empty
    assert requested_run({**context, "params": {"allow_empty": True}}, "UTC").allow_empty
