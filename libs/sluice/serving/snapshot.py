"""One version of one Delta table, opened without Spark: its columns, its files, what is in them.

A snapshot never changes: commits that come later are not in it. A table that uses a feature which
this reader would read wrongly is refused by that feature's name. Columns starting with `_sluice`
are read where an order or an identity needs them, and never shown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from sluice.errors import Retryable, UsageError
from sluice.serving import parquet
from sluice.serving.bounds import Bounds, from_log
from sluice.specs.names import RESERVED_PREFIX, unknown

READABLE = frozenset({"timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})


QUARANTINE = "__quarantine"


class SnapshotExpired(Retryable):
    """A file of the version being read was vacuumed while it was read."""


class NotBuilt(UsageError):
    """A table that the configuration names, and that no run has made yet."""


@dataclass(frozen=True)
class DataFile:
    """One Parquet file of a snapshot, with what the log says about it."""

    path: str
    rows: int | None
    bounds: Mapping[str, Bounds]
    partition: Mapping[str, Any]


@dataclass(frozen=True)
class RowGroup:
    """One row group of a file, with what the file's footer says about it."""

    file: DataFile
    index: int
    rows: int
    bounds: Mapping[str, Bounds]


@dataclass(frozen=True)
class Snapshot:
    """A table as of `version`."""

    name: str
    uri: str
    version: int
    schema: pa.Schema
    partitions: frozenset[str]
    actions: pa.Table

    @classmethod
    def open(
        cls, name: str, uri: str, version: int | None = None, *, build: str = ""
    ) -> "Snapshot":
        """The table at `uri`, at its head or at `version`; `build` is the command that makes it."""
        table = open_delta(name, uri, version, build=build)
        refuse_unreadable(name, table)
        schema = pa.schema(table.schema().to_arrow())
        # Not pa.table(): that imports pandas, 0.2 s, to see whether it was given a frame of it.
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
        partitions = frozenset(table.metadata().partition_columns)
        return cls(name, uri, table.version(), schema, partitions, actions)

    @property
    def visible(self) -> tuple[str, ...]:
        """The columns that a reader sees."""
        return tuple(n for n in self.schema.names if not n.startswith(RESERVED_PREFIX))

    def kind(self, column: str) -> pa.DataType:
        """The column's type."""
        return self.schema.field(column).type

    def check_columns(self, columns: Iterable[str]) -> tuple[str, ...]:
        """The columns themselves, if readers may name each of them."""
        columns = tuple(columns)
        for column in columns:
            if column not in self.visible:
                raise UsageError(f"{self.name}: {unknown('column', column, self.visible)}")
        return columns

    def count(self) -> int:
        """The number of rows, from statistics; only files without them are opened."""
        return sum(
            f.rows if f.rows is not None else parquet.footer(self.uri, f.path).num_rows
            for f in self.files(())
        )

    def files(self, columns: Iterable[str]) -> list[DataFile]:
        """Every data file, with the bounds of these columns."""
        columns = tuple(columns)
        wanted = {f"{kind}.{c}" for c in columns for kind in ("min", "max", "null_count")}
        wanted |= {"path", "num_records", *(f"partition.{p}" for p in self.partitions)}
        kept = [name for name in self.actions.column_names if name in wanted]
        return [self._file(row, columns) for row in self.actions.select(kept).to_pylist()]

    def row_groups(self, file: DataFile, columns: Iterable[str]) -> list[RowGroup]:
        """The file's row groups with the bounds of these columns; opens its footer."""
        try:
            footer = parquet.footer(self.uri, file.path)
        except FileNotFoundError:
            raise self._expired() from None
        kinds = {c: self.kind(c) for c in columns if c not in file.partition}
        fixed = {c: file.bounds[c] for c in columns if c in file.partition}
        groups = [footer.row_group(i) for i in range(footer.num_row_groups)]
        return [
            RowGroup(file, i, group.num_rows, fixed | parquet.group_bounds(group, kinds))
            for i, group in enumerate(groups)
        ]

    def read(self, group: RowGroup, columns: Iterable[str]) -> pa.Table:
        """The row group's rows, in the table's types; columns that the file lacks are null."""
        fields = [self.schema.field(c) for c in columns]
        stored = [f.name for f in fields if f.name not in group.file.partition]
        try:
            found = parquet.row_group(self.uri, group.file.path, group.index, stored)
        except FileNotFoundError:
            raise self._expired() from None
        columns = [_column(found, group, field) for field in fields]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _file(self, stats: dict[str, Any], columns: tuple[str, ...]) -> DataFile:
        bounds = {c: from_log(self.kind(c), stats, c) for c in columns}
        partition = {p: stats[f"partition.{p}"] for p in self.partitions}
        return DataFile(unquote(stats["path"]), stats.get("num_records"), bounds, partition)

    def _expired(self) -> SnapshotExpired:
        return SnapshotExpired(
            f"version {self.version} of {self.name!r} can't be read any more: "
            "a file of it was vacuumed",
            hint="open the table again to read its newest version",
        )


def _column(found: pa.Table, group: RowGroup, field: pa.Field) -> Any:
    if field.name in found.column_names:
        values = found[field.name]
        return values if values.type == field.type else values.cast(field.type)
    return pa.repeat(pa.scalar(group.file.partition.get(field.name), field.type), group.rows)


def open_delta(name: str, uri: str, version: int | None = None, *, build: str = "") -> DeltaTable:
    """The Delta table; what is missing is told with the command that makes it."""
    try:
        return DeltaTable(uri, version=version)
    except TableNotFoundError:
        if name.endswith(QUARANTINE):
            raise NotBuilt(f"{name} is empty: no row was ever set aside") from None
        hint = f"run `{build}`" if build else ""
        raise NotBuilt(f"table {name!r} has not been built yet", hint=hint) from None
    except DeltaError as error:
        if version is None:
            raise
        head = DeltaTable(uri).version()
        why = "there is none yet" if version > head else "its log is gone"
        raise UsageError(
            f"version {version} of table {name!r} can't be read: {why}",
            hint=f"the newest version is {head}",
        ) from error


def refuse_unreadable(name: str, table: DeltaTable) -> None:
    """Raise for a table whose files don't hold its rows in the plain way that is read here."""
    protocol, properties = table.protocol(), table.metadata().configuration
    features = set(protocol.reader_features or ()) - READABLE
    if properties.get("delta.columnMapping.mode", "none") != "none":
        features.add("columnMapping")
    if features:
        raise UsageError(
            f"table {name!r} uses {', '.join(sorted(features))}, which is not read without Spark",
            hint="read it with Spark, or rewrite it without that table feature",
        )
