"""What Airflow hands to a task that it runs."""

from types import SimpleNamespace
from typing import Any

from sluice.language.interval import Interval


class Events:
    """What a task adds to the events of its outlets, which Airflow 3.1 can't hash."""

    def __init__(self) -> None:
        self._by_uri: dict[str, SimpleNamespace] = {}

    def __getitem__(self, outlet: Any) -> SimpleNamespace:
        return self._by_uri.setdefault(outlet.uri, SimpleNamespace(extra={}))


def context(day: Interval) -> dict[str, Any]:
    """As far as it is looked at."""
    bounds = {"data_interval_start": day.start, "data_interval_end": day.end}
    run = SimpleNamespace(**bounds, start_date=day.end)
    named = {"dag_id": "shop", "task_id": "t", "run_id": "r1", "try_number": 1}
    ti = SimpleNamespace(xcom_pull=lambda **_: [], xcom_push=lambda *_: None, **named)
    return {"run_id": "r1", "dag_run": run, "ti": ti, "outlet_events": Events()}
