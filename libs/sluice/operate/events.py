"""Lineage events of a run: START, COMPLETE and FAIL of each table's batches, for OpenLineage.

They are sent only if the environment has settings of OpenLineage's client. A thread sends them in
order, so no batch waits. After an event that can't be sent, which the client has tried several
times, the process sends no more; a batch never fails of it.
"""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.engine import BatchReport
from sluice.errors import SluiceError
from sluice.extras import MODULES, is_installed
from sluice.operate.preview import is_preview

log = logging.getLogger(__name__)
SETTINGS = ("OPENLINEAGE_URL", "OPENLINEAGE_CONFIG")
PREFIX = "OPENLINEAGE__"  # of any setting of the client
LONGEST_WAIT = 10.0  # seconds at a run's end


def are_wanted() -> bool:
    """True if the environment has settings of OpenLineage, and does not disable it."""
    if os.environ.get("OPENLINEAGE_DISABLED", "").strip().lower() == "true":
        return False
    return any(os.environ.get(name) for name in SETTINGS) or any(
        name.startswith(PREFIX) for name in os.environ
    )


class Events:
    """Events of one run's tables. Without settings, nothing is done and nothing imported."""

    def __init__(self, project: Project, are_sent: bool = True) -> None:
        self.project = project
        self._thread: ThreadPoolExecutor | None = None
        self._last: Future[None] | None = None
        self._client: Any = None
        self._has_failed = False
        if are_sent and are_wanted() and not is_preview(project):
            if is_installed("lineage"):
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="lineage")
            else:
                log.warning(
                    "no lineage events are sent: %s is not installed; run: pip install "
                    "'sluice-views[lineage]'",
                    MODULES["lineage"][1],
                )

    @property
    def are_on(self) -> bool:
        return self._thread is not None

    def begin(self, table: Table) -> "StepEvents":
        """Send the START of a table's first batch, and return what sends the events of its step."""
        step = StepEvents(self, table)
        step.start(datetime.now(UTC))
        return step

    def send(self, make: Callable[[], Any]) -> None:
        """Send the event that `make` returns, after those before it."""
        if self._thread:
            self._last = self._thread.submit(self._send, make)

    def flush(self) -> None:
        """Wait until the events are sent, but not for long."""
        if self._last:
            wait([self._last], LONGEST_WAIT)

    def _send(self, make: Callable[[], Any]) -> None:
        if self._has_failed:
            return
        try:
            from openlineage.client import OpenLineageClient

            self._client = self._client or OpenLineageClient()  # by its own settings
            self._client.emit(make())
        except Exception as error:  # noqa: BLE001 a batch never fails because of its event
            self._has_failed = True
            first = str(error).strip().partition("\n")[0]
            log.warning(
                "a lineage event can't be sent, nor will this run's later ones be: %s: %s",
                type(error).__name__,
                first,
            )


@dataclass
class StepEvents:
    """One table's step in a run. Reports of the tables behind a view come before its own."""

    events: Events
    table: Table
    run: str = ""
    began: datetime | None = None
    behind: list[BatchReport] = field(default_factory=list)

    def start(self, at: datetime) -> None:
        """Send the START of a batch that has begun then."""
        if self.events.are_on:
            from openlineage.client.uuid import generate_new_uuid

            from sluice.operate.openlineage import start_event

            self.run, self.began = str(generate_new_uuid()), at
            self._send(start_event, at)

    def complete(self, report: object) -> None:
        """Send the COMPLETE of a batch; for a view's state, the view's report sends it."""
        if not self.events.are_on or not isinstance(report, BatchReport):
            return
        if report.table != self.table.id and report.interval is None:
            self.behind.append(report)
            return
        from sluice.operate.openlineage import complete_event

        behind, self.behind = tuple(self.behind), []
        self._finish(complete_event, report, behind)

    def end(self) -> None:
        """Complete a step that had nothing to do."""
        if self.began:
            self.complete(BatchReport(self.table.id, self.table.declared_kind, "unchanged"))

    def fail(self, error: SluiceError) -> None:
        """Send the FAIL of the batch at work."""
        if self.events.are_on:
            from sluice.operate.openlineage import fail_event

            self._finish(fail_event, str(error))

    def _finish(self, make: Callable[..., Any], *told: object) -> None:
        """Send the event that ends a batch, after a START if none was sent."""
        if self.began is None:
            self.start(datetime.now(UTC))
        self.began = None
        self._send(make, datetime.now(UTC), *told)

    def _send(self, make: Callable[..., Any], *told: object) -> None:
        project, table, run = self.events.project, self.table, self.run
        self.events.send(lambda: make(project, table, run, *told))
