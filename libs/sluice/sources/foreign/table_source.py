"""A source that follows a table: its declaration, and the deliveries that its batches are."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.commit_range import CommitRange
from sluice.delta.log.foreign_table import Foreign
from sluice.delta.places.lake_layout import layout
from sluice.engine.advance import Run
from sluice.engine.batch_report import BatchReport
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.sources.delivery import Delivery, judged
from sluice.sources.followed_table import ForeignTable
from sluice.sources.foreign.rows import rows_of
from sluice.sources.foreign.versions import VersionRange, check_columns, check_files
from sluice.sources.ingest import replace_interval
from sluice.sources.spec import Source
from sluice.spark.session import Spark

INSTANT = timedelta(microseconds=1)


class TableSource(NamedTuple):
    """A source that follows a table."""

    project: Project
    table: Table
    spec: Source
    foreign: ForeignTable
    uri: str

    @classmethod
    def of(cls, project: Project, table: Table) -> "TableSource":
        spec = table.spec
        assert isinstance(spec, Source)
        assert spec.delta
        return cls(project, table, spec, spec.delta, project.resolve(spec.delta.path))

    @property
    def kept_uri(self) -> str:
        return layout(self.project).uri(self.table.delivered_to)

    @property
    def intervals_uri(self) -> str:
        return layout(self.project).uri(self.table.id, INTERVALS)

    def found(self) -> Foreign:
        return Foreign.at(self.uri, self.table.id)

    def delivered(
        self,
        spark: Spark,
        found: Foreign,
        commits: CommitRange,
        versions: VersionRange,
        run: Run,
        after: Mapping[str, Any] | None = None,
    ) -> BatchReport:
        """Deliver a span of commits as the batch of a place.

        `after`: the place that the table's position holds until then; None if it does not move.
        """
        assert versions.at
        check_columns(found, commits.upto, self.spec.of_files, self.table.id)
        check_files(found, commits, self.table.id)
        delivery = Delivery(
            *(self.table, self.spec, _instant(versions.at), self.uri, ()),
            fingerprint=versions.fingerprint(),
            replaced=(),
            message_bytes=commits.bytes,
            topic={} if after is None else versions.plain(),
            after=after or {},
        )
        arrived = partial(self._arrived, found, commits, delivery)
        return replace_interval(spark, self.project, delivery, run, arrived=arrived)

    def _arrived(
        self, found: Foreign, commits: CommitRange, delivery: Delivery, session: SparkSession
    ) -> DataFrame:
        limits = self.project.limits
        return judged(rows_of(session, self.spec, found, commits, limits), delivery)


def _instant(at: datetime) -> Interval:
    return Interval(at, at + INSTANT)
