"""A stored table as of one version, read without Spark."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.delta.log.feed_size import table_size
from sluice.delta.log.position import Head
from sluice.limits import Limits
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import Snapshot


@dataclass(frozen=True)
class Stored:
    """A table as of one version."""

    name: str
    at: Head
    limits: Limits

    @cached_property
    def snapshot(self) -> Snapshot:
        return Snapshot.open(self.name, self.at.uri, self.at.version)

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.snapshot.schema}

    @cached_property
    def is_small(self) -> bool:
        return table_size(self.at.uri, self.at.version).bytes <= self.limits.swept_bytes

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all rows."""
        wanted = tuple(dict.fromkeys(columns))
        schema = pa.schema([self.snapshot.schema.field(c) for c in wanted])
        pages = Scan(self.snapshot).unordered(wanted)
        return pa.concat_tables([schema.empty_table(), *pages])

    def sum(self, column: str) -> Any:
        """Return a column's sum, page by page; None of no rows.

        Exact for whole numbers and decimals.
        """
        total = None
        for page in Scan(self.snapshot).unordered((column,)):
            part = pc.sum(page[column]).as_py()
            total = part if total is None else total + (part or 0)
        return total
