"""Rows of large tables that match a few others, found here before Spark joins them.

A batch of some thousand facts matches a small part of a large dimension. A changed dimension row
matches few of many facts. Finding them in this process takes tens of milliseconds; sending or
scanning the whole table by Spark takes seconds. The result may hold too many rows, never too few:
the join itself is Spark's. Values are compared by plain equality, so only exact types are searched.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from sluice.delta.log.files import FeedSize, active_files, size_of
from sluice.delta.log.opened import open_version
from sluice.delta.places.folders import local_path
from sluice.delta.reading.found import FoundRows, Span, TypeMismatch, WantedValues, keep
from sluice.delta.reading.live import rows_of_files
from sluice.delta.reading.local import arrow_schema, is_bare, plain, types_of
from sluice.delta.reading.searching import FileSearch, files_of
from sluice.limits import Limits

MOST = 16
EXACT = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
)
KeyBounds = tuple[int, int]


def clusters(values: pa.ChunkedArray | pa.Array) -> list[KeyBounds]:
    """Return the least and greatest value of at most MOST clusters, in order; nulls are ignored.

    They are split at the widest gaps, because new keys are often far from the changed ones. One
    span from the least to the greatest would admit all files in between.
    """
    known = pc.unique(values).drop_null()
    ordered = known.take(pc.sort_indices(known)).to_numpy(zero_copy_only=False)
    if not len(ordered):
        return []
    gaps = ordered[1:] - ordered[:-1]
    ends = sorted(gaps.argsort()[::-1][: MOST - 1])
    firsts = [0, *(int(end) + 1 for end in ends)]
    lasts = [*(int(end) for end in ends), len(ordered) - 1]
    return [(int(ordered[a]), int(ordered[b])) for a, b in zip(firsts, lasts, strict=True)]


@dataclass(frozen=True)
class SearchedVersion:
    """One version of a table that is searched, and the columns wanted from it; none means all."""

    uri: str
    version: int
    limits: Limits
    columns: Sequence[str] = ()

    @property
    def is_large(self) -> bool:
        """True if Spark would scan it; smaller tables are read here in any case."""
        return self.bytes > self.limits.read_here_bytes

    @property
    def may_search(self) -> bool:
        """True if it is small enough to be searched here, by polars or by Arrow."""
        by_polars = local_path(self.uri) is not None and can_search()
        most = self.limits.searched_bytes if by_polars else self.limits.scanned_bytes
        return self.bytes <= most

    @property
    def types(self) -> StructType:
        """Columns of the table in Spark's types."""
        return types_of(self.uri, self.version)

    @cached_property
    def _table(self) -> DeltaTable:
        return open_version(self.uri, self.version)

    @property
    def _schema(self) -> pa.Schema:
        return arrow_schema(self.uri, self.version)

    @cached_property
    def bytes(self) -> int:
        """Bytes of its files."""
        return size_of(self._table).bytes

    def rows(self, wanted: Iterable[WantedValues], span: Span | None = None) -> pa.Table | None:
        """Return the rows whose values all match one of `wanted`, and are within `span`.

        None if they can't be determined, or are too many.
        """
        if not self.may_search:
            return None
        return self.few(wanted, self.limits.handed_rows, span)

    def near(self, wanted: Iterable[WantedValues]) -> FeedSize | None:
        """Return the size of the files that may hold such rows; None if values can't be compared.

        Read from the log alone.
        """
        known = _all_exact(self._schema, wanted)
        return None if known is None else size_of(self._table, files_far(self._table, known))

    def few(
        self, wanted: Iterable[WantedValues], most: int, span: Span | None = None
    ) -> pa.Table | None:
        """Return rows like `rows`, of a table that may be searched; None if more than `most`."""
        schema = self._schema
        known = _all_exact(schema, wanted)
        if known is None:
            return None
        chosen = pa.schema([schema.field(name) for name in self.columns or schema.names])
        if is_bare():
            return chosen.empty_table()
        folder = local_path(self.uri)
        if folder is not None and can_search():
            far = files_far(self._table, known)
            files = files_of(self._table, folder, far)
            parts = self._table.metadata().partition_columns
            search = FileSearch(folder, schema, known, parts, most + 1, span)
            with suppress(TypeMismatch):
                pages: dict[Path, pa.Table] = {}
                found = search.rows(files, chosen.names)
                rows = _join_pages((pages.setdefault(*one) for one in found), chosen, most)
                if rows is not None and not self.columns and len(known) == 1 and not span:
                    keep(self.uri, self.version, FoundRows(known[0], pages))
                return rows
        if self.bytes > self.limits.scanned_bytes:
            return None
        return _join_pages(self._scan(known, chosen.names, span), chosen, most)

    def _scan(
        self, wanted: Sequence[WantedValues], columns: Sequence[str], span: Span | None
    ) -> Iterator[pa.Table]:
        """Yield the wanted rows, found by Arrow in the files that may hold some.

        Texts are not compared in the scan: files of delta-rs have them in another type.
        """
        texts = {field.name for field in self._schema if pa.types.is_string(field.type)}
        near = [{n: v for n, v in values.items() if n not in texts} for values in wanted]
        far = files_far(self._table, wanted)
        files = rows_of_files(self._table, self.uri, lambda path: path not in far, self._schema)
        test = _any_of(near) & span.in_arrow if span else _any_of(near)
        for batch in files.to_batches(columns=columns, filter=test):
            if batch.num_rows:
                yield plain(pa.Table.from_batches([batch])).filter(_any_of(wanted))


def _join_pages(pages: Iterator[pa.Table], schema: pa.Schema, most: int) -> pa.Table | None:
    """Return the pages as one table of these columns; None if they have more than `most` rows."""
    found, count = [schema.empty_table()], 0
    for page in pages:
        found.append(as_stored(page, schema))
        count += page.num_rows
        if count > most:
            return None
    return plain(pa.concat_tables(found))


def as_stored(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return the rows' columns in a table's types."""
    chosen = rows.select(schema.names)
    return chosen if chosen.schema.equals(schema) else plain(chosen).cast(schema)


def _all_exact(schema: pa.Schema, wanted: Iterable[WantedValues]) -> list[WantedValues] | None:
    exact = [_exact(schema, values) for values in wanted]
    known = [values for values in exact if values]
    return known if len(known) == len(exact) else None


def _exact(schema: pa.Schema, wanted: WantedValues) -> WantedValues | None:
    """Return the values in the table's types; None if Spark may treat different ones as equal."""
    found = {}
    for name, values in wanted.items():
        type_ = schema.field(name).type
        if pa.types.is_integer(type_) and pa.types.is_integer(values.type):
            values = values.cast(type_, safe=False)  # noqa: PLW2901 - at most it finds too much
        if type_ != values.type or not is_exact(type_):
            return None
        found[name] = values
    return found


def can_search() -> bool:
    """True if polars is installed, which comes with the extra `spark`."""
    return find_spec("polars") is not None


def files_far(table: DeltaTable, wanted: Sequence[WantedValues]) -> set[str]:
    """Return the files whose partitions or bounds of whole numbers exclude all wanted rows."""
    spans = [
        {
            name: clusters(some)
            for name, some in values.items()
            if pa.types.is_integer(some.type) and not some.null_count and len(some)
        }
        for values in wanted
    ]
    files = active_files(table).to_pylist()
    return {f["path"] for f in files if not any(_meets(f, of_one) for of_one in spans)}


def _meets(file: Mapping[str, Any], spans: Mapping[str, list[KeyBounds]]) -> bool:
    """True unless a column is known to have no value within its spans."""
    for name, of_column in spans.items():
        filed = file.get(f"partition.{name}")
        first, last = file.get(f"min.{name}", filed), file.get(f"max.{name}", filed)
        if first is None or last is None:
            continue
        if not any(first <= most and last >= least for least, most in of_column):
            return False
    return True


def _any_of(wanted: Sequence[WantedValues]) -> pc.Expression:
    found = pc.scalar(False)
    for values in wanted:
        tests = (_is_in(pc.field(name), pc.unique(some)) for name, some in values.items())
        found = found | reduce(pc.Expression.__and__, tests, pc.scalar(True))
    return found


def _is_in(column: pc.Expression, values: pa.Array) -> pc.Expression:
    if values.null_count or not len(values):
        return column.isin(values)
    is_whole = pa.types.is_integer(values.type)
    spans = clusters(values) if is_whole else [tuple(pc.min_max(values).values())]
    near = [(column >= least) & (column <= most) for least, most in spans]
    return reduce(pc.Expression.__or__, near) & column.isin(values)  # the spans skip files


def is_exact(type_: pa.DataType) -> bool:
    """True if equal values of the type are the same value, in Arrow and in Spark."""
    return any(is_a(type_) for is_a in EXACT)
