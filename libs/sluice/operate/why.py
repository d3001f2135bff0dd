"""Tables that a row comes from, as people and programs see them."""

from dataclasses import dataclass

import pyarrow as pa

from sluice.language.names import RESERVED_PREFIX
from sluice.operate.delivered import Delivered, delivered
from sluice.operate.lineage import lineage
from sluice.read.changes import Changelog
from sluice.read.origin import Origin
from sluice.read.scan import Scan


@dataclass(frozen=True)
class Source:
    """Rows of one table that a row comes from, and the deliveries that brought them.

    Rows that were delivered have their marks: interval, position and identity.
    """

    table: str
    version: int | None
    rows: pa.Table
    deliveries: tuple[Delivered, ...]


def sources_of(changelog: Changelog, found: Origin) -> list[Source]:
    """Return what a row comes from, the nearest tables first.

    Raises HistoryLost if a version that it was made from is gone, and UsageError if the rows can't
    be found without Spark.
    """
    table, stored = changelog.table, changelog.lake.project.graph.table(changelog.name)
    assert found.after is not None
    key = table.key.exactly([found.after[name] for name in table.key.names])
    scan = Scan(table.snapshot, (key,))
    rows = pa.concat_tables(scan.unordered(tuple(table.snapshot.schema.names)))
    project = changelog.lake.project
    sources = []
    for part in lineage(project, stored, table.version, rows):
        brought = tuple(delivered(project, part))
        sources.append(Source(part.table, part.version, _shown(part.rows, bool(brought)), brought))
    return sources


def _shown(rows: pa.Table, with_marks: bool) -> pa.Table:
    hidden = () if with_marks else (RESERVED_PREFIX,)
    return rows.select([name for name in rows.column_names if not name.startswith(hidden)])
