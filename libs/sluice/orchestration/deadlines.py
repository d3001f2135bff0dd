"""When a pipeline is late: a scheduled run that has not ended some time after it was due.

A run on a schedule, or by a change of assets, is due as soon as it is there; so a pipeline that
catches up is late only if it stands still. Backfills and manual runs have no deadline: somebody
looks at those.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseDeadlineReference, DeadlineAlert, SyncCallback

from sluice.orchestration.alerts import late
from sluice.specs.settings import AirflowSettings

WATCHED = frozenset({"scheduled", "asset_triggered"})


class Due(BaseDeadlineReference):  # type: ignore[misc]
    """The moment at which a run that is watched was made."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: Any, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models import DagRun  # the scheduler's side, which asks

        query = session.query(DagRun.run_type).filter_by(dag_id=dag_id, run_id=run_id)
        return datetime.now(UTC) if str(query.scalar()) in WATCHED else None


def deadline(settings: AirflowSettings) -> DeadlineAlert | None:
    """The alert of a pipeline with these settings."""
    if settings.deadline is None:
        return None
    told = SyncCallback(late, {"limit": settings.deadline.text})
    return DeadlineAlert(Due(), settings.deadline.timedelta, told, name="late")
