"""A top-k for its readers: by key, as rankings, and what each version changed as whole rankings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from sluice.errors import UsageError
from sluice.kinds.topk import TopK
from sluice.language.expression import SortKey
from sluice.language.names import COMMIT_VERSION, Row, unknown
from sluice.read.changelog import Changelog
from sluice.read.key_order import KeyColumns, KeyOrder, KeyRange, only
from sluice.read.keyed import KeyedTable
from sluice.read.lake import Lake
from sluice.read.naming import Given, NamingOption, not_so, values_of
from sluice.read.values import from_text, values_of_columns

PartitionValue = Any  # one column's value, or a tuple for several columns
Ranks = dict[int, Row] | dict[int, list[Row]]
UNNAMED = "rank"  # the rank's column for views without one
NAMING_OPTIONS = {"rank": NamingOption(int, "N", "Rank of the row in its --partition.")}


@dataclass(frozen=True)
class Ranking:
    """One version of a top-k."""

    table: KeyedTable
    spec: TopK

    @classmethod
    def open(cls, lake: Lake, name: str, version: int | None = None) -> "Ranking":
        """Open the rankings of that top-k; UsageError if it is another kind of table."""
        table, spec = lake.of_kind(name, TopK, "top")
        return cls(lake.stored(table, version, first=shown_first(spec)), spec)

    @property
    def version(self) -> int:
        return self.table.version

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that distinguish one ranking from another."""
        return self.spec.partition_columns

    def top(
        self, partition: Mapping[str, Any] | None = None
    ) -> Ranks | dict[PartitionValue, Ranks]:
        """Return the map rank -> row of one partition, or partition -> rank -> row of several.

        The request is for one partition if every partition column is given, or the view has none.
        """
        given = dict(partition or {})
        found = self.partitions(given)
        if set(given) == set(self.partition_columns):
            return next((ranks for _, ranks in found), {})
        return {key[0] if len(key) == 1 else key: ranks for key, ranks in found}

    @property
    def columns(self) -> list[str]:
        """Columns of its rows as shown, including the rank."""
        names: list[str] = self.table.schema.names
        return names if self.spec.rank else [*names, UNNAMED]

    @property
    def leading(self) -> tuple[str, ...]:
        """Columns that people see first: rank, partition, key."""
        leading = self.table.leading
        return leading if self.spec.rank else (UNNAMED, *leading)

    def only(self, ranks: Ranks, columns: Sequence[str] | None) -> Ranks:
        """Return the ranks with only these columns of each row, in this order; None means all."""
        if columns is None:
            return ranks
        chosen: dict[int, Any] = {}
        for rank, found in ranks.items():
            alone: Any = {rank: found}
            rows = [{c: row.get(c) for c in columns} for row in self.flat(alone)]
            chosen[rank] = rows if isinstance(found, list) else rows[0]
        return chosen

    def flat(self, ranks: Ranks) -> Iterator[Row]:
        """Yield the rows of one partition's ranks, each with its rank."""
        for rank, row in each_rank(ranks):
            yield row if self.spec.rank else {**row, UNNAMED: rank}

    def value(self, column: str, text: str) -> Any:
        """Convert a command line's text to a value of a partition column."""
        self._check_partition([column])
        return from_text(text, self.table.snapshot.type_of(column), column)

    def partitions(self, given: Mapping[str, Any]) -> Iterator[tuple[tuple[Any, ...], Ranks]]:
        """Yield every partition with these values, and its ranks."""
        rows = self._rows(given)
        names = self.partition_columns
        for key, group in groupby(rows, lambda row: values_of_columns(row, names)):
            yield key, self._rank(list(group))

    def _rows(self, given: Mapping[str, Any]) -> Iterable[Row]:
        names = self.partition_columns
        self._check_partition(given)
        schema = self.table.snapshot.schema
        pinned = [
            KeyColumns.of(self.table.name, (c,), schema).check_key((v,)) for c, v in given.items()
        ]
        ranges = tuple(only((c,), v) for c, v in zip(given, pinned, strict=True))
        order = (*names, *((self.spec.rank,) if self.spec.rank else ()), *self.table.identity)
        return self.table.select(ranges, KeyOrder(tuple(dict.fromkeys(order))))

    def _check_partition(self, columns: Iterable[str]) -> None:
        names = self.partition_columns
        for column in columns:
            if column not in names:
                raise UsageError(f"{self.table.name}: {unknown('partition column', column, names)}")

    def _rank(self, rows: list[Row]) -> Ranks:
        rank = self.spec.rank
        ranked = [(row[rank], row) for row in rows] if rank else self._by_order(rows)
        if self.spec.function == "row_number":
            return dict(ranked)
        return {r: [row for _, row in tied] for r, tied in groupby(ranked, lambda pair: pair[0])}

    def _by_order(self, rows: list[Row]) -> list[tuple[int, Row]]:
        if self.spec.function == "rank" and self.spec.offset:
            raise self._refuse("ranks with ties can't be looked up after an offset")
        keys = [(self._find_column(key), key) for key in self.spec.order_by]
        for column, key in reversed(keys):
            rows = _sort_rows(rows, column, key)
        values = [tuple(row[column] for column, _ in keys) for row in rows]
        return list(zip(_ranks(values, self.spec), rows, strict=True))

    def _find_column(self, key: SortKey) -> str:
        """Return the visible column that holds a sort key's value."""
        column = key.expression.plain_column
        if self.spec.select is not None:
            names = [n for n, e in self.spec.select.items() if column and e.plain_column == column]
            column = names[0] if names else None
        if column is None or column not in self.table.snapshot.visible:
            raise self._refuse(f"its order {key.expression.text!r} is not one of its columns")
        return column

    def _refuse(self, why: str) -> UsageError:
        return UsageError(
            f"{self.table.name!r} has no rank column, and {why}",
            hint="give the view a rank column, or select the columns of its order",
        )


def shown_first(spec: TopK) -> tuple[str, ...]:
    """Return the columns that people see first: the rank, if the view has it, and the partition."""
    return (*((spec.rank,) if spec.rank else ()), *spec.partition_columns)


def _sort_rows(rows: list[Row], column: str, key: SortKey) -> list[Row]:
    """Sort rows by one key; equal rows keep their order."""
    missing = [row for row in rows if row[column] is None]
    present = [row for row in rows if row[column] is not None]
    present.sort(key=lambda row: row[column], reverse=key.descending)
    return missing + present if key.nulls_first else present + missing


def _ranks(values: Sequence[tuple[Any, ...]], spec: TopK) -> list[int]:
    """Return the ranks of rows with these sort values, in order."""
    ranks: list[int] = []
    for position, value in enumerate(values, spec.offset + 1):
        is_tie = position > spec.offset + 1 and value == values[position - spec.offset - 2]
        if spec.function != "row_number" and is_tie:
            ranks.append(ranks[-1])
        elif spec.function == "dense_rank":
            ranks.append(ranks[-1] + 1 if ranks else spec.offset + 1)
        else:
            ranks.append(position)
    return ranks


def top(
    lake: Lake, name: str, partition: Mapping[str, Any] | None = None, *, version: int | None = None
) -> Ranks | dict[PartitionValue, Ranks]:
    """Return the map rank -> row of one partition, or partition -> rank -> row."""
    return Ranking.open(lake, name, version).top(partition)


@dataclass(frozen=True)
class TouchedRanking:
    """One partition of a top-k, as it was after a version that touched it."""

    version: int
    partition: dict[str, Any]
    ranks: Ranks
    ranking: Ranking

    def as_json(self, columns: Sequence[str] | None = None) -> dict[str, Any]:
        of_rows = None if columns is None else [c for c in columns if c != COMMIT_VERSION]
        top = self.ranking.only(self.ranks, of_rows)
        return {COMMIT_VERSION: self.version, "partition": self.partition, "top": top}

    def rows(self) -> Iterator[Row]:
        for row in (*self.ranking.flat(self.ranks),) or ({},):
            yield {COMMIT_VERSION: self.version, **self.partition, **row}


@dataclass(frozen=True)
class Maps:
    """Whole rankings of the partitions that each version touched, even emptied ones."""

    changelog: Changelog
    newest: Ranking
    from_version: int | None
    run: str | None

    @property
    def columns(self) -> list[str]:
        return [COMMIT_VERSION, *self.newest.columns]

    @property
    def leading(self) -> tuple[str, ...]:
        return (COMMIT_VERSION, *self.newest.leading)

    def __iter__(self) -> Iterator[TouchedRanking]:
        lake, name = self.changelog.lake, self.changelog.name
        for commit in self.changelog.commits(from_version=self.from_version, run=self.run):
            then = Ranking.open(lake, name, commit.version)
            feed = self.changelog.feed(commit.version)
            for partition in _distinct_rows(feed.select(self.newest.partition_columns)):
                ranks = next((r for _, r in then.partitions(partition)), {})
                yield TouchedRanking(commit.version, partition, ranks, then)


def _distinct_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Return the table's distinct rows; one empty row if it has no columns."""
    if not table.column_names:
        return [{}]
    unique = table.group_by(table.column_names, use_threads=False).aggregate([])
    return list(unique.to_pylist())


def find_ranges(table: KeyedTable, spec: TopK, given: Given) -> tuple[KeyRange, ...]:
    """Return the range of that rank. Raises UsageError unless the whole partition is given."""
    if not spec.rank:
        raise UsageError(f"{table.name!r} has no rank column", hint="name the row by its key")
    columns = spec.partition_columns
    if given.has_key or {*given.others} != {*NAMING_OPTIONS} or {*given.partition} != {*columns}:
        parts = "".join(f" --partition {column}=VALUE" for column in columns)
        raise not_so(table, f"its key, or by{parts} --rank N")
    names = (*columns, spec.rank)
    wanted = (*(given.partition[column] for column in columns), given.others["rank"])
    return (only(names, values_of(table, names, wanted)),)


def each_rank(ranks: Mapping[int, Any]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of one partition's ranks, each beside its rank."""
    for rank, tied in ranks.items():
        for row in tied if isinstance(tied, list) else [tied]:
            yield rank, row
