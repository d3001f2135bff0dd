"""Environment against its lake: which tables differ and in which rows, and what a promotion does.

Tables are compared with the versions that the environment began with, which it has itself. So the
difference comes from definitions and deliveries there, not from later changes of the lake.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.position import Head, head_as_found
from sluice.delta.places.environments import Began, Environment, read
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.spark_reads import is_readable
from sluice.delta.upkeep.table_invariants import row_count
from sluice.engine.planning.nodes import nodes_of
from sluice.errors import UsageError
from sluice.language.internal import MARK
from sluice.language.names import listing
from sluice.operate.definitions.redefined import redefined_parts
from sluice.operate.table_diff import Comparison, Difference, TableVersion
from sluice.read.samples import Sample
from sluice.spark.session import Spark

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
        began = read(layout(env).root)
        assert began is not None
        return cls(base, env, began)

    def standings(self, spark: Spark, tables: Iterable[Table], most: int) -> Iterator[Standing]:
        """Yield the standing of each table, with up to `most` rows that differ."""
        for table in tables:
            if table.is_stored and (found := self._standing(spark, table, most)):
                yield found

    def undeclared(self) -> Iterator[Standing]:
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
        if moved := [t.id for t in self._above(table) if self._has_moved(t, known)]:
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
        return Standing(
            table.id, outcome, since, at.version, *_counts(found), moved_on, what, found.samples
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

    def _above(self, table: Table) -> list[Table]:
        return [t for t in self.env.graph.ancestors(table.id) if t.is_stored]

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


def _counts(found: Difference) -> tuple[int, int, int]:
    return found.inserted, found.updated, found.deleted
