"""A task as the parent of its batches' lineage events, as OpenLineage names it.

With Airflow's own provider for OpenLineage, it is the run of that provider's events. Without it,
each try of a task has a separate id.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import NAMESPACE_URL, uuid5

PARENT = "OPENLINEAGE_PARENT_ID"  # namespace/job/run


def name_parent(context: Mapping[str, Any]) -> None:
    """Name the task's try in the environment, for its job; only where events are set up at all."""
    if any(name.startswith("OPENLINEAGE_") for name in os.environ):
        os.environ[PARENT] = _parent_of(context["ti"])


def _parent_of(task: Any) -> str:
    with suppress(Exception):  # without a provider, or one that can't name the task, it is left out
        from airflow.providers.openlineage.plugins.macros import lineage_parent_id

        return str(lineage_parent_id(task))
    namespace = os.environ.get("OPENLINEAGE_NAMESPACE", "default")
    place = f"{task.dag_id}.{task.task_id}"
    return f"{namespace}/{place}/{uuid5(NAMESPACE_URL, f'{place}/{task.run_id}/{task.try_number}')}"
