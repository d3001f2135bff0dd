"""Deadlines of pipelines: a scheduled run is late if it has not ended some time after it was due.

A run on a schedule, or by a change of assets, is due as soon as it exists. So a pipeline that
catches up is late only if it makes no progress. Backfills and manual runs have no deadline, because
a person watches those.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import BaseDeadlineReference, DeadlineAlert

from sluice.airflow.alerts import late
from sluice.airflow.blueprint import Policy

WATCHED = frozenset({"scheduled", "asset_triggered"})


class Due(BaseDeadlineReference):  # type: ignore[misc]
    """Moment at which a watched run was created."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: Any, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models import DagRun  # only the scheduler asks

        query = session.query(DagRun.run_type).filter_by(dag_id=dag_id, run_id=run_id)
        return datetime.now(UTC) if str(query.scalar()) in WATCHED else None


def deadline(policy: Policy) -> DeadlineAlert | None:
    """Return the deadline of a pipeline with that policy, as an alert."""
    if policy.deadline is None:
        return None
    alert = SyncCallback(late, {"limit": policy.deadline_text})
    return DeadlineAlert(Due(), policy.deadline, alert, name="late")
