"""Environment against its lake: which tables differ and in which rows, and what a promotion does.

Tables are compared with the versions that the environment began with, which it has itself. So the
difference comes from definitions and deliveries there, not from later changes of the lake.

Difference of two versions of a table, row by row, at any places.

Rows are matched by the table's key. If either version can't be matched by it, because the key
differs or is not unique there, equal rows are matched. A changed row then counts as deleted and
inserted. A column that only one version has is null in the other. Cost: one pass over both.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from sluice.changes import CHANGE, WEIGHT, between, diff
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.files import table_size
from sluice.delta.log.position import Head, head_as_found
from sluice.delta.places.lake_layout import layout
from sluice.delta.places.overlay import Began, Environment, read_environment
from sluice.delta.reading.local import column_types, to_arrow
from sluice.delta.reading.spark_reads import is_readable, snapshot
from sluice.delta.upkeep.table_invariants import row_count
from sluice.engine.operator import is_unique, names
from sluice.engine.plan import Node, nodes_of
from sluice.errors import UsageError
from sluice.language.names import MARK, RESERVED_PREFIX, listing
from sluice.limits import Limits
from sluice.operate.rebuild import redefined_parts
from sluice.operate.verify import leniently
from sluice.read.changelog import Sample, row_of
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot
from sluice.spark.engine import too_large
from sluice.spark.session import Spark

KINDS = ("insert", "update", "delete")


@dataclass(frozen=True)
class TableVersion:
    """One version of a table at a place."""

    uri: str
    version: int


@dataclass(frozen=True)
class Difference:
    """Numbers of rows by what happened to them, and some of the rows."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    samples: tuple[Sample, ...] = ()

    @property
    def is_none(self) -> bool:
        """True if no row differs."""
        return not (self.inserted or self.updated or self.deleted)


@dataclass(frozen=True)
class Comparison:
    """Way to compare versions of one table.

    `node`: the table's node, if it is a query. Sums of floating-point numbers agree within their
    error, and columns that only affect the order of files don't count. `most`: rows to show.
    """

    table: Table
    limits: Limits
    node: Node | None = None
    most: int = 0

    def of(self, spark: Spark, old: TableVersion, new: TableVersion) -> Difference:
        """Return the difference, with up to `most` rows; small ones are compared without Spark."""
        size = table_size(old.uri, old.version) + table_size(new.uri, new.version)
        found, _ = spark.best(
            lambda session: self._found(session, old, new),
            size.bytes,
            self.limits,
            why=too_large(size.bytes, self.limits.computed_here_bytes),
        )
        return found

    def _found(self, session: SparkSession, old: TableVersion, new: TableVersion) -> Difference:
        was, now = (snapshot(session, s.uri, s.version, self.limits) for s in (old, new))
        key, ignored = self.table.key, self.node.ignored if self.node else ()
        if not self._is_keyed(was, now):
            return self._by_rows(*_alike(was, now, ignored))
        was, now = _alike(was, now, ())
        if self.node:
            now = leniently(was, now, self.node.operator)
        changed = diff(was, now, key, ignore=ignored).persist()
        try:
            counts = _count_changes(changed, F.col(CHANGE))
            some = changed.select(*names(key)).limit(self.most if counts else 0)
            keys = to_arrow(some).to_pylist() if self.most and counts else []
        finally:
            changed.unpersist()
        name, own = self.table.name, self.table.key
        sides = [KeyedTable(Snapshot.open(name, s.uri, s.version), own) for s in (old, new)]
        rows = ([row_of(side, tuple(at.values())) for side in sides] for at in keys)
        return self._count(counts, [Sample(*pair) for pair in rows])

    def _is_keyed(self, was: DataFrame, now: DataFrame) -> bool:
        key, before, after = self.table.key, column_types(was), column_types(now)
        is_same = all(c in before and before[c] == after.get(c) for c in key)
        return is_same and is_unique(was, key)

    def _by_rows(self, was: DataFrame, now: DataFrame) -> Difference:
        """Compare whole rows, because no key identifies them."""
        changed = between(was, now, now.columns).persist()
        try:
            kind = F.when(F.col(WEIGHT) > 0, F.lit("insert")).otherwise(F.lit("delete"))
            counts = _count_changes(changed, kind, F.abs(F.col(WEIGHT)))
            rows = to_arrow(changed.limit(self.most)).to_pylist() if self.most and counts else []
        finally:
            changed.unpersist()
        samples = list[Sample]()
        for row in rows:
            names = (n for n in row if n != WEIGHT and not n.startswith(RESERVED_PREFIX))
            shown = {name: row[name] for name in names}
            samples.append(Sample(None, shown) if row[WEIGHT] > 0 else Sample(shown, None))
        return self._count(counts, samples)

    def _count(self, counts: Mapping[str, int], samples: Sequence[Sample]) -> Difference:
        inserted, updated, deleted = (counts.get(kind, 0) for kind in KINDS)
        return Difference(inserted, updated, deleted, tuple(samples))


def _count_changes(rows: DataFrame, kind: Column, number: Column | None = None) -> dict[str, int]:
    each = F.lit(1) if number is None else number
    sums = (
        rows.select(kind.alias("kind"), each.alias("n")).groupBy("kind").agg(F.sum("n").alias("n"))
    )
    return {row["kind"]: row["n"] for row in sums.collect()}


def _alike(was: DataFrame, now: DataFrame, without: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return both versions with the same columns; those whose types differ are texts."""
    before, after = column_types(was), column_types(now)
    columns = [c for c in {**after, **before} if c not in without]

    def align(rows: DataFrame, own: Mapping[str, DataType], other: Mapping[str, DataType]) -> Any:
        return rows.select(*[_column(name, own, other).alias(name) for name in columns])

    return align(was, before, after), align(now, after, before)


def _column(name: str, own: Mapping[str, DataType], other: Mapping[str, DataType]) -> Column:
    if name not in own:
        return F.lit(None).cast(other[name])
    differs = name in other and other[name] != own[name]
    return F.col(f"`{name}`").cast("string") if differs else F.col(f"`{name}`")


UNTOUCHED, EQUAL, DIFFERS, NEW, GONE = "untouched", "equal", "differs", "new", "gone"
UNBUILT, MOVED = "unbuilt", "moved on"


@dataclass(frozen=True)
class Standing:
    """One table of an environment against the version `since` that it began with.

    `outcome`: untouched, equal, differs, new, gone, or unbuilt if its definition differs and it was
    not rebuilt yet. `moved_on`: number of versions that the lake's table has gained since.
    """

    table: str
    outcome: str
    since: int | None = None
    version: int | None = None
    inserted: int | None = None
    updated: int | None = None
    deleted: int | None = None
    moved_on: int | None = None
    reason: str = ""
    samples: tuple[Sample, ...] = ()

    @property
    def error(self) -> str:
        """The reason, where a page shows what went wrong."""
        return self.reason


@dataclass(frozen=True)
class Agreement:
    """One promoted table against the environment's: equal, moved on or differs."""

    table: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True)
class Beside:
    """A lake and an environment of it, declared alike."""

    base: Project
    env: Project
    began: Environment

    @classmethod
    def of(cls, base: Project, name: str) -> "Beside":
        """Return the environment of that name. Raises UsageError if there is none."""
        env = base.within(name)
        began = read_environment(layout(env).root)
        assert began is not None
        return cls(base, env, began)

    def standings(self, spark: Spark, tables: Iterable[Table], most: int) -> Iterator[Standing]:
        """Yield the standing of each table, with up to `most` rows that differ."""
        for table in tables:
            if table.is_stored and (found := self._standing(spark, table, most)):
                yield found

    def find_undeclared(self) -> Iterator[Standing]:
        """Yield the tables that the configuration no longer declares."""
        for table_id, began in self.began.tables.items():
            if MARK not in table_id and table_id not in self.env.graph.tables:
                yield Standing(table_id, GONE, began.version, reason="no declaration names it")

    def own(self) -> list[str]:
        """Return the tables that have other versions than those that the environment began with."""
        ids = [t.id for t in self.env.graph.tables.values() if t.is_stored]
        return [i for i in ids if _is_own(self._head(self.env, i), self.began.tables.get(i))]

    def moved_on(self, table_id: str) -> int | None:
        """Return by how many versions the lake's table has moved on; None if by none."""
        at, began = self._head(self.base, table_id), self.began.tables.get(table_id)
        if at is None or began is None:
            return None
        return at.version - began.version if _is_own(at, began) else None

    def check_built(self) -> None:
        """Raise UsageError if the environment has tables of another definition than declared."""
        env, name = self.env, self.env.environment
        if left := [t.id for t in env.graph.tables.values() if redefined_parts(env, t)]:
            raise UsageError(
                f"environment {name!r} has {listing(left)} by a definition that differs from "
                "the configuration's",
                hint=f"`sluice --env {name} rebuild --changed`, then `sluice env diff {name}`",
            )

    def agreements(self, spark: Spark, promoted: Iterable[Table]) -> list[Agreement]:
        """Compare promoted tables of the lake, inputs first, with those of the environment."""
        found: dict[str, Agreement] = {}
        for table in promoted:
            found[table.id] = self._agreement(spark, table, found)
        return list(found.values())

    def _agreement(self, spark: Spark, table: Table, known: Mapping[str, Agreement]) -> Agreement:
        there, here = self._head(self.env, table.id), self._head(self.base, table.id)
        if there is None or here is None:
            place = "the environment" if there is None else "the lake"
            return Agreement(table.id, MOVED, f"{place} has not built it")
        old, new = (TableVersion(at.uri, at.version) for at in (there, here))
        if _comparison(self.env, table, 0).of(spark, old, new).is_none:
            return Agreement(table.id, EQUAL)
        above = [t for t in self.env.graph.ancestors(table.id) if t.is_stored]
        if moved := [t.id for t in above if self._has_moved(t, known)]:
            return Agreement(table.id, MOVED, f"other rows are in the lake's {listing(moved)}")
        if not table.is_view:
            return Agreement(table.id, MOVED, "other rows were delivered to the lake")
        return Agreement(table.id, DIFFERS, "though all of its inputs are the same")

    def _standing(self, spark: Spark, table: Table, most: int) -> Standing | None:
        at, began = self._head(self.env, table.id), self.began.tables.get(table.id)
        if at is None or began is None:
            return self._alone(table, at, began)
        what = ", ".join(dict.fromkeys(redefined_parts(self.env, table).values()))
        moved_on, since = self.moved_on(table.id), began.version
        if not _is_own(at, began):
            outcome = UNBUILT if what else UNTOUCHED
            return Standing(table.id, outcome, since, at.version, moved_on=moved_on, reason=what)
        old = self._began_at(table, at, began)
        if old is None:
            gone = "the version that it began with can't be read any more"
            return Standing(table.id, DIFFERS, since, at.version, moved_on=moved_on, reason=gone)
        found = _comparison(self.env, table, most).of(spark, old, TableVersion(at.uri, at.version))
        outcome = UNBUILT if what else EQUAL if found.is_none else DIFFERS
        numbers = found.inserted, found.updated, found.deleted
        return Standing(
            table.id, outcome, since, at.version, *numbers, moved_on, what, found.samples
        )

    def _alone(self, table: Table, at: Head | None, began: Began | None) -> Standing | None:
        """Return the standing of a table that one of the two lacks, or both, if it is a view."""
        if at:
            rows = row_count(at.uri, at.version)
            return Standing(table.id, NEW, None, at.version, rows, 0, 0)
        if began:
            return Standing(table.id, GONE, began.version)
        return Standing(table.id, UNBUILT, reason="no run has built it") if table.is_view else None

    def _began_at(self, table: Table, at: Head, began: Began) -> TableVersion | None:
        """Return the version that a table began with: its own, or the lake's if it was replaced."""
        uri = at.uri if at.table == began.table else layout(self.base).uri(table.id)
        return TableVersion(uri, began.version) if is_readable(uri, began.version) else None

    def _has_moved(self, table: Table, known: Mapping[str, Agreement]) -> bool:
        """True if a table has other rows in the lake, or has them from another attempt."""
        if table.id in known:
            return known[table.id].outcome != EQUAL
        here, there = (self._head(project, table.id) for project in (self.base, self.env))
        if here is None or there is None:
            return here is not there
        is_same = (here.table, here.data_version) == (there.table, there.data_version)
        return not is_same or (here.pin == there.pin and here.pin.attempt != there.pin.attempt)

    def _head(self, project: Project, table_id: str) -> Head | None:
        return head_as_found(layout(project).uri(table_id))


def _comparison(project: Project, table: Table, most: int) -> Comparison:
    nodes = {node.id: node for node in nodes_of(table, project.graph)}
    return Comparison(table, project.limits, nodes.get(table.id), most)


def _is_own(at: Head | None, began: Began | None) -> bool:
    """True if a table has another version than an environment began with."""
    return (at and (at.table, at.version)) != (began and (began.table, began.version))
