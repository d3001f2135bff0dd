"""A source of messages: its declaration, its reader, and the deliveries that its batches are."""

from datetime import datetime
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import INTERVALS
from sluice.language.interval import Interval
from sluice.sources.delivery import Delivery
from sluice.sources.kafka.formats.records import FormatReader
from sluice.sources.kafka.offsets import INSTANT
from sluice.sources.kafka.rows import reader_of, rows_of
from sluice.sources.spec import Source
from sluice.sources.topic import Topic


class MessageSource(NamedTuple):
    """A source of messages: its table, declaration, topic, and the reader of its format."""

    project: Project
    table: Table
    spec: Source
    topic: Topic
    reader: FormatReader

    @classmethod
    def of(cls, project: Project, table: Table) -> "MessageSource":
        """Return the source with a reader. Raises UsageError without the registry's connection."""
        spec = table.spec
        assert isinstance(spec, Source)
        assert spec.kafka
        assert spec.value
        key = () if spec.change and not spec.value.is_debezium else spec.key
        return cls(project, table, spec, spec.kafka, reader_of(spec.value, key, table.id))

    @property
    def kept_uri(self) -> str:
        return layout(self.project).uri(self.table.delivered_to)

    @property
    def intervals_uri(self) -> str:
        return layout(self.project).uri(self.table.id, INTERVALS)

    def rows(self, messages: pa.Table, at: Interval, session: SparkSession) -> DataFrame:
        return rows_of(session, self.spec, messages, self.reader, at)

    def delivery(self, moment: datetime, read: str) -> Delivery:
        """Return the delivery of a moment; `read`: the fingerprint of what its batch has read."""
        return Delivery(
            *(self.table, self.spec, Interval(moment, moment + INSTANT), self.topic.topic, ()),
            fingerprint=read,
            replaced=(),
        )
