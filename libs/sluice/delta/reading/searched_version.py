"""Rows of large tables that match a few others, found here before Spark joins them.

A batch of some thousand facts matches a small part of a large dimension. A changed dimension row
matches few of many facts. Finding them in this process takes tens of milliseconds; sending or
scanning the whole table by Spark takes seconds. The result may hold too many rows, never too few:
the join itself is Spark's. Values are compared by plain equality, so only exact types are searched.

Dense spans of whole numbers, by which files are skipped.

New keys are often far from the changed ones. One span from the least to the greatest would admit
all files in between.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from sluice.delta.log.files import FeedSize, active_files, size_of
from sluice.delta.log.opened import open_version
from sluice.delta.places.folders import local_path
from sluice.delta.reading.found import FoundRows, TypeMismatch, WantedValues, keep
from sluice.delta.reading.live import LiveRows, live_rows
from sluice.delta.reading.local import is_bare, plain, spark_schema
from sluice.limits import Limits

if TYPE_CHECKING:
    import pyarrow.dataset as ds

MOST = 16

KeyBounds = tuple[int, int]


def clusters(values: pa.ChunkedArray | pa.Array) -> list[KeyBounds]:
    """Return the least and greatest value of at most MOST clusters, in order; nulls are ignored.

    They are split at the widest gaps.
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


EXACT = (
    *(pa.types.is_integer, pa.types.is_string, pa.types.is_boolean),
    *(pa.types.is_date, pa.types.is_timestamp, pa.types.is_decimal),
)


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
        return spark_schema(self._table)

    @cached_property
    def _table(self) -> DeltaTable:
        return open_version(self.uri, self.version)

    @property
    def _schema(self) -> pa.Schema:
        return plain(pa.schema(self._table.schema().to_arrow()).empty_table()).schema

    @cached_property
    def bytes(self) -> int:
        """Bytes of its files."""
        return size_of(self._table).bytes

    def rows(self, wanted: Iterable[WantedValues]) -> pa.Table | None:
        """Return the rows whose values all match one of `wanted`.

        None if they can't be determined, or are too many.
        """
        if not self.may_search:
            return None
        return self.few(wanted, self.limits.matched_rows)

    def near(self, wanted: Iterable[WantedValues]) -> FeedSize | None:
        """Return the size of the files that may hold such rows; None if values can't be compared.

        Read from the log alone.
        """
        known = _all_exact(self._schema, wanted)
        return None if known is None else size_of(self._table, files_far(self._table, known))

    def few(self, wanted: Iterable[WantedValues], most: int) -> pa.Table | None:
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
            from sluice.delta.reading import searching  # imports polars, which takes a moment

            far = files_far(self._table, known)
            files = searching.files_of(self._table, folder, far)
            search = searching.FileSearch(schema, known, self.limits, most + 1)
            with suppress(TypeMismatch):
                pages: dict[Path, pa.Table] = {}
                rows = _join_pages(
                    _note_pages(search.rows(files, chosen.names), pages), chosen, most
                )
                if rows is not None and not self.columns and len(known) == 1:
                    keep(self.uri, self.version, FoundRows(known[0], pages), self.limits)
                return rows
        if self.bytes > self.limits.scanned_bytes:
            return None
        return _join_pages(_scan(self._table, self.uri, known, chosen.names), chosen, most)


def _note_pages(
    found: Iterable[tuple[Path, pa.Table]], pages: dict[Path, pa.Table]
) -> Iterator[pa.Table]:
    for path, page in found:
        pages[path] = page
        yield page


def _join_pages(pages: Iterator[pa.Table], schema: pa.Schema, most: int) -> pa.Table | None:
    """Return the pages as one table of these columns; None if they have more than `most` rows."""
    found, count = [schema.empty_table()], 0
    for page in pages:
        found.append(plain(page.select(schema.names)).cast(schema))
        count += page.num_rows
        if count > most:
            return None
    return plain(pa.concat_tables(found))


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


def _scan(
    table: DeltaTable, uri: str, wanted: Sequence[WantedValues], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the wanted rows, found by Arrow."""
    where, near = _any_of(wanted), _any_of([_comparable(values) for values in wanted])
    for batch in _dataset(table, uri, wanted).to_batches(columns=columns, filter=near):
        if batch.num_rows:
            page = plain(pa.Table.from_batches([batch]))
            yield page.filter(where)


def _dataset(table: DeltaTable, uri: str, wanted: Sequence[WantedValues]) -> LiveRows:
    """Return the files that may hold wanted rows, judged by their partitions and whole numbers.

    The log's other statistics can't be compared here.
    """
    import pyarrow.dataset as ds  # imports pandas, which takes a moment

    rows, parts = live_rows(table, uri), table.metadata().partition_columns
    found, far = rows.dataset, files_far(table, wanted)
    fragments = [
        file.format.make_fragment(file.path, file.filesystem, _partition(file, parts))
        for file in found.get_fragments()
        if file.path.lstrip("/") not in far
    ]
    schema = plain(found.schema.empty_table()).schema
    near = ds.FileSystemDataset(fragments, schema, found.format, found.filesystem)
    return replace(rows, dataset=near)


def can_search() -> bool:
    """True if polars is installed, which comes with the extra `spark`."""
    return find_spec("polars") is not None


def files_far(table: DeltaTable, wanted: Sequence[WantedValues]) -> set[str]:
    """Return the files whose partitions or bounds of whole numbers exclude all wanted rows."""
    spans = [_spans(values) for values in wanted]
    files = active_files(table).to_pylist()
    return {f["path"] for f in files if not any(_meets(f, of_one) for of_one in spans)}


def _spans(values: WantedValues) -> Mapping[str, list[KeyBounds]]:
    """Return the spans of the wanted values of each column of whole numbers."""
    whole = {name: v for name, v in values.items() if pa.types.is_integer(v.type)}
    return {n: clusters(v) for n, v in whole.items() if not v.null_count and len(v)}


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


def _partition(file: "ds.ParquetFileFragment", parts: Sequence[str]) -> pc.Expression:
    from pyarrow.dataset import get_partition_keys

    known = get_partition_keys(file.partition_expression)
    values = {name: value for name, value in known.items() if name in parts}
    tests = [pc.field(n).is_null() if v is None else pc.field(n) == v for n, v in values.items()]
    return reduce(pc.Expression.__and__, tests, pc.scalar(True))


def _comparable(values: WantedValues) -> WantedValues:
    """Drop texts: files of delta-rs have them in a type that a scan does not compare."""
    return {name: some for name, some in values.items() if not pa.types.is_string(some.type)}


def _any_of(wanted: Sequence[WantedValues]) -> pc.Expression:
    tests = [_all_in(values) for values in wanted]
    return reduce(pc.Expression.__or__, tests, pc.scalar(False))


def _all_in(values: WantedValues) -> pc.Expression:
    tests = [_is_in(pc.field(name), pc.unique(some)) for name, some in values.items()]
    return reduce(pc.Expression.__and__, tests, pc.scalar(True))


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
