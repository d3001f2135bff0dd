"""When a pipeline is late: a scheduled run that has not ended some time after it was due.

A run on a schedule, or by a change of assets, is due as soon as it is there; so a pipeline that
catches up is late only if it stands still. Backfills and manual runs have no deadline: somebody
looks at those.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import BaseDeadlineReference, DeadlineAlert

from sluice.orchestration.alerts import late
from sluice.orchestration.blueprint import Policy

WATCHED = frozenset({"scheduled", "asset_triggered"})


class Due(BaseDeadlineReference):  # type: ignore[misc]
    """The moment at which a run that is watched was made."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def _evaluate_with(self, *, session: Any, dag_id: str, run_id: str) -> datetime | None:
        from airflow.models import DagRun  # the scheduler's side, which asks

        query = session.query(DagRun.run_type).filter_by(dag_id=dag_id, run_id=run_id)
        return datetime.now(UTC) if str(query.scalar()) in WATCHED else None


def deadline(policy: Policy) -> DeadlineAlert | None:
    """The alert of a pipeline with that policy."""
    if policy.deadline is None:
        return None
    told = SyncCallback(late, {"limit": policy.deadline_text})
    return DeadlineAlert(Due(), policy.deadline, told, name="late")
