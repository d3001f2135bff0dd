"""Other writers' Delta tables in a new project: folders with a log, which sources follow."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from sluice.delta.log.feed_size import table_size
from sluice.delta.log.foreign_table import Foreign, naming_refusals
from sluice.delta.log.opened import opened
from sluice.delta.places.folders import LOG
from sluice.delta.reading.foreign_rows import needs_spark
from sluice.delta.reading.live import live_rows
from sluice.delta.reading.local import arrow_schema
from sluice.limits import Limits


def folders(matches: Iterable[Path]) -> list[Path]:
    """Return the Delta tables at these places and below them, each once."""
    logs = (log for match in matches for log in [match / LOG, *sorted(match.rglob(LOG))])
    return list(dict.fromkeys(log.parent.resolve() for log in logs if log.is_dir()))


def rows_of(uri: str) -> pa.Table:
    """Return a table's rows; only the columns if it is large or only Spark can read it."""
    version = Foreign.at(uri, uri).version
    table = opened(uri, version)
    if needs_spark(table) or table_size(uri, version).bytes > Limits.handed_bytes:
        return arrow_schema(uri, version).empty_table()
    with naming_refusals(uri):
        return live_rows(table, uri).to_table()


def comparable(rows: pa.Table) -> pa.Table:
    """Return the columns that a source may follow: a MAP can't be compared."""
    return rows.select([field.name for field in rows.schema if "map<" not in str(field.type)])
