"""The last task of a run, which ends as the run did."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluice.airflow.dag_factory import QualityTask, dags
from sluice.airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from .conftest import Configured

RUN = "backfill__2014-11-28T00:00:00+00:00"


def ending(config: Path, states: dict[str, Any]) -> None:
    """Execute the last task of a run whose tasks have these states, by run."""
    (task,) = (dag.get_task("quality") for dag in dags(config) if dag.dag_id == "shop")
    assert isinstance(task, QualityTask)
    instance = SimpleNamespace(get_task_states=lambda *_, **__: states)
    task.execute({"run_id": RUN, "ti": instance, "params": {}})


def test_a_run_whose_tasks_were_all_skipped_is_skipped(configured: Configured) -> None:
    with pytest.raises(AirflowSkipException, match="nothing new came in"):
        ending(configured(), {RUN: {"ingest": "skipped", "quality": "running"}})


@pytest.mark.parametrize("states", [{}, {RUN: {}}, {"another": {"ingest": "success"}}])
def test_a_run_of_which_airflow_names_no_task_is_tried_again_with_the_reason(
    configured: Configured, states: dict[str, Any]
) -> None:
    with pytest.raises(AirflowException, match=r"no task of the run backfill__2014-11-28T") as e:
        ending(configured(), states)
    assert not isinstance(e.value, AirflowFailException | AirflowSkipException)
    assert "hint: the next attempt asks again" in str(e.value)
