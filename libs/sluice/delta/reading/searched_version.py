"""Rows of large tables that match a few others, found here before Spark joins them.

A batch of some thousand facts matches a small part of a large dimension. A changed dimension row
matches few of many facts. Finding them in this process takes tens of milliseconds; sending or
scanning the whole table by Spark takes seconds. The result may hold too many rows, never too few:
the join itself is Spark's.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql.types import StructType

from sluice.delta.log.files import FeedSize, size_of
from sluice.delta.log.opened import open_version
from sluice.delta.reading.found import FoundRows, TypeMismatch, keep
from sluice.delta.reading.local import arrow_schema, is_bare, plain, types_of
from sluice.delta.reading.searching import FileSearch, files_of
from sluice.delta.reading.wanted import Span, WantedValues, files_far, is_exact
from sluice.limits import Limits


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
        """True if it is small enough to be searched here."""
        return self.bytes <= self.limits.searched_bytes

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
        """Return rows like `rows`; None if more than `most`."""
        if is_bare():
            return self._chosen.empty_table()
        pages = self.pages(wanted, most, span)
        if pages is None:
            return None
        found = [as_stored(page, self._chosen) for page in pages.values()]
        return plain(pa.concat_tables([self._chosen.empty_table(), *found]))

    def pages(
        self, wanted: Iterable[WantedValues], most: int, span: Span | None = None
    ) -> Mapping[str, pa.Table] | None:
        """Return such rows by their file, with their numbers in it as ROW; or None."""
        schema = self._schema
        known = _all_exact(schema, wanted) if self.may_search else None
        if known is None:
            return None
        parts = self._table.metadata().partition_columns
        with suppress(TypeMismatch):
            return self._find(FileSearch(self.uri, schema, known, parts, most + 1, span), most)
        return None

    def _find(self, search: FileSearch, most: int) -> Mapping[str, pa.Table] | None:
        """Return the rows of a search by file; None if they are more than `most`."""
        pages, count = dict[str, pa.Table](), 0
        files = files_of(self._table, files_far(self._table, search.wanted))
        for path, page in search.rows(files, self._chosen.names):
            pages[path] = page
            count += page.num_rows
            if count > most:
                return None
        if not self.columns and len(search.wanted) == 1 and not search.span:
            keep(self.uri, self.version, FoundRows(search.wanted[0], pages))
        return pages

    @property
    def _chosen(self) -> pa.Schema:
        """The wanted columns in the table's types."""
        return pa.schema([self._schema.field(name) for name in self.columns or self._schema.names])


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
