"""Input rows that a row of a table comes from, back to the delivered rows.

Each table is read at the version that the position of its reader names, and prepared as its batches
prepare it. So it is exact, even after later deliveries. It is computed in this process. Cost: a
small table on the way is read whole; in a large one, the rows of the groups are searched.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress

import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.message import DecodeError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from sluice.declare.project import Project
from sluice.declare.registry import kind
from sluice.declare.table import Table
from sluice.delta.log.files import table_size
from sluice.delta.log.position import REBUILD, Pins, Position, head_as_found
from sluice.delta.reading.local import (
    arrow_schema,
    nullable,
    read_where,
    to_arrow,
    to_spark_types,
    types_of,
)
from sluice.delta.reading.searching import SearchedVersion, as_stored
from sluice.delta.reading.spark_reads import is_readable
from sluice.delta.reading.wanted import ROW
from sluice.engine.batch_plan import Context
from sluice.engine.operator import Operator, names, unstored_rows, within
from sluice.engine.plan import Node, nodes_of, with_taken_columns
from sluice.engine.tracing import NTH, Groups, Lineage
from sluice.errors import HistoryLost, UsageError
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting
from sluice.language.names import BATCH, CURRENT
from sluice.read.commits import back_from
from sluice.read.snapshot import Snapshot

At = tuple[str, int]  # a table and a version


@dataclass(frozen=True)
class TracedRows:
    """Rows of one table, with their hidden columns; `version` is None if it is not stored.

    `untraced`: why the origin of these rows can't be known; else ''.
    """

    table: str
    version: int | None
    rows: pa.Table
    untraced: str = ""


@dataclass(frozen=True)
class NumberedRows:
    """Rows of a table in this process; their numbers name those that others come from."""

    rows: pa.Table
    schema: StructType

    def frame(self, session: Session, columns: tuple[str, ...] = ()) -> DataFrame:
        """Return the rows, with their number in NTH; only these columns, if given."""
        numbers = pa.array(range(self.rows.num_rows), pa.int64())
        schema = StructType([*self.schema.fields]).add(NTH, LongType())
        every = session.createDataFrame(
            to_spark_types(self.rows.append_column(NTH, numbers)), schema
        )
        return every.select(*names((*columns, NTH))) if columns else every

    def some(self, numbers: set[int]) -> "NumberedRows":
        """Return the rows of these numbers."""
        return NumberedRows(self.rows.take(pa.array(sorted(numbers), pa.int64())), self.schema)


def lineage(project: Project, table: Table, version: int, rows: pa.Table) -> list[TracedRows]:
    """Return the rows that `rows` of a table's version come from, by table, the nearest first.

    Raises HistoryLost if a version that they were made from is gone, and UsageError if only Spark
    could read or compute them.
    """
    hint = f"`sluice why {table.name} KEY --rows 0` names the commit alone"
    with walking(project, table, f"what a row of {table.id} comes from", hint) as walk:
        return list(walk.parts((table.id, version), rows))


@contextmanager
def walking(project: Project, table: Table, what: str, hint: str) -> Iterator["Walk"]:
    """Yield a walk through the inputs of a table, to find `what`.

    Raises UsageError, with the hint, if only Spark can.
    """
    with interpreting(Session(project.limits.held_bytes)) as session:
        try:
            yield Walk(project, session, table)
        except (UnsupportedLocally, PySparkException, DecodeError) as reason:
            raise UsageError(
                f"{what} can't be found without Spark: {reason}", hint=hint
            ) from reason


@dataclass(frozen=True)
class Walk:
    """A walk from rows of `table` down. `found`: numbers of the rows met so far, by table.

    `searched`: by large table, the number of each known row, by its file and its number there.
    """

    project: Project
    session: Session
    table: Table
    found: dict[At, set[int]] = field(default_factory=dict)
    known: dict[At, NumberedRows] = field(default_factory=dict)
    searched: dict[At, dict[tuple[str, int], int]] = field(default_factory=dict)

    def parts(self, at: At, rows: pa.Table) -> Iterator[TracedRows]:
        """Yield what the rows come from, views before their inputs."""
        first = NumberedRows(rows, types_of(self._uri(at[0]), at[1]))
        self._trace(self.nodes.get(at[0]), at[1], first)
        for name in (n for n in self._order if n != at[0]):
            for found in sorted(a for a in self.found if a[0] == name):
                some = self.known[found].some(self.found[found])
                if some.rows.num_rows:
                    node = self.nodes.get(name)
                    why = node.operator.untraced if node else ""
                    yield TracedRows(name, found[1] if found[1] >= 0 else None, some.rows, why)
                    self._trace(node, found[1], some)

    @cached_property
    def context(self) -> Context:
        return Context.of(self.project)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """The maintained tables above and below, inputs first."""
        graph = self.context.graph
        tables = (*graph.ancestors(self.table.id), self.table)
        lake = self.context.lake
        return {n.id: n for t in tables for n in nodes_of(with_taken_columns(lake, t), graph)}

    @cached_property
    def _order(self) -> list[str]:
        reads = {i: (*n.operator.inputs, *n.operator.references) for i, n in self.nodes.items()}
        order = [name for i in self.nodes for name in (*reads[i], i)]
        return list(dict.fromkeys(order))[::-1]

    def _trace(self, node: Node | None, version: int, rows: NumberedRows) -> None:
        """Note the input rows of a maintained table's rows; any other was delivered."""
        if node is None or node.operator.untraced:
            return
        position = self.position(node, version)
        for references, some in self._by_references(node, version, position, rows):
            for at, numbers in self._inputs(node, position.inputs, references, some):
                self.found.setdefault(at, set()).update(numbers)

    def _inputs(
        self, node: Node, pins: Pins, references: Pins, rows: NumberedRows
    ) -> Iterator[tuple[At, set[int]]]:
        operator, of = node.operator, rows.frame(self.session).drop(NTH)
        places = {name: (name, pins[name].version) for name in operator.inputs}
        places |= {name: self.reference(name, references) for name in operator.references}
        keys = of.select(*names(operator.group)).distinct() if operator.group else of
        frames = {
            name: self._near(operator, name, at, rows).frame(self.session, operator.columns(name))
            for name, at in places.items()
        }
        prepared = {
            name: within(operator.prepare(name, frames[name]), keys, operator.group)
            for name in operator.inputs
        }
        lineage = kind(node.table.kind)
        if isinstance(lineage, Lineage):
            looked_up = {name: frames[name] for name in operator.references}
            groups = Groups(of, prepared, looked_up)
            prepared = dict(lineage.trace_rows(operator, groups))
        for name, found in prepared.items():
            numbers = to_arrow(found.select(NTH))[NTH]
            yield places[name], set(pc.unique(numbers).to_pylist())

    def _near(self, operator: Operator, name: str, at: At, of: NumberedRows) -> NumberedRows:
        """Return rows of an input or a reference, with all those that some rows come from."""
        limits, columns = self.context.limits, operator.map_to_origin(name)
        most = min(limits.read_here_bytes, limits.collected_bytes)
        if at[1] < 0 or self._size(at) <= most or name not in operator.inputs:
            return self.read(at)
        wanted = [{column: of.rows[own] for column, own in one.items()} for one in columns]
        searched = SearchedVersion(self._uri(name), at[1], limits)
        pages = searched.find_by_file(wanted, limits.handed_rows) if wanted else None
        if pages is None:
            return self._read_stored(*at)
        self._note(at, pages)
        return self.known[at]

    def _note(self, at: At, pages: Mapping[str, pa.Table]) -> None:
        """Number the rows of a large table that are not known yet."""
        uri, numbers = self._uri(at[0]), self.searched.setdefault(at, {})
        stored = arrow_schema(uri, at[1])
        new = [self.known[at].rows] if at in self.known else [stored.empty_table()]
        for path, page in pages.items():
            nth = [(path, number) for number in page[ROW].to_pylist()]
            is_new = [one not in numbers for one in nth]
            numbers |= {one: len(numbers) + i for i, one in enumerate(compress(nth, is_new))}
            new.append(as_stored(page.filter(pa.array(is_new, pa.bool_())), stored))
        self.known[at] = NumberedRows(to_spark_types(pa.concat_tables(new)), types_of(uri, at[1]))

    def _by_references(
        self, node: Node, version: int, position: Position, rows: NumberedRows
    ) -> Iterator[tuple[Pins, NumberedRows]]:
        """Yield rows with the references that they were joined with, which may be a batch's own."""
        if not node.operator.references or BATCH not in rows.rows.column_names:
            yield {**position.inputs, **position.references}, rows
            return
        numbers = rows.rows[BATCH]
        for batch in pc.unique(numbers).to_pylist():
            made = self._made_by(node.id, version, batch)
            some = rows.rows.filter(pc.equal(numbers, batch))
            yield {**made.inputs, **made.references}, NumberedRows(some, rows.schema)

    def _made_by(self, name: str, version: int, batch: int) -> Position:
        for made in self._positions(name, version):
            is_it = made.batch == batch or (made.kind == REBUILD and batch < made.batch)
            if made.references and is_it:
                return made
        raise HistoryLost(f"the log of {name} no longer has batch {batch}", hint=self._hint)

    def position(self, node: Node, version: int) -> Position:
        """Return what a version reflects. Raises UsageError if another definition made it."""
        found = next(self._positions(node.id, version), None)
        if found is None:
            raise HistoryLost(f"the log of {node.id} names no inputs", hint=self._hint)
        if found.definition not in ("", node.definition):
            raise UsageError(
                f"version {version} of {node.id} was made by another definition than today's",
                hint=f"run `sluice rebuild {node.table.name}`; or: {self._hint}",
            )
        return found

    def _positions(self, name: str, version: int) -> Iterator[Position]:
        """Yield the positions from that version back, with the names that tables have now.

        Positions under older names get no definition, because it contains the old names.
        """
        uri = self._uri(name)
        at = head_as_found(uri)
        newest = at.position if at else None
        for made in filter(None, (commit.position for commit in back_from(uri, version))):
            if newest is None or made.renames == newest.renames:
                yield made
            else:
                yield replace(made.as_named_in(newest), definition="")

    def reference(self, name: str, pins: Pins) -> At:
        """Return a dimension's place. A view over dimensions is computed; it has no version."""
        table = self.context.graph.tables[name]
        if table.is_stored:
            return name, pins[name].version
        at = (name, -1 - sum(pin.version for pin in pins.values()))
        if at not in self.known:
            inputs = {i: self._current(i, pins) for i in table.inputs}
            made = unstored_rows(table, inputs)
            self.known[at] = NumberedRows(to_arrow(made), nullable(made.schema))
        return at

    def _current(self, name: str, pins: Pins) -> DataFrame:
        rows = self.read(self.reference(name, pins)).frame(self.session).drop(NTH)
        has_history = self.context.graph.tables[name].spec.has_history
        return rows.where(CURRENT) if has_history else rows

    def read(self, at: At) -> NumberedRows:
        """Return all rows of a table. Raises UnsupportedLocally for a large one."""
        if at not in self.known or at in self.searched:
            self.known[at] = self._read_stored(*at)
        return self.known[at]

    def _read_stored(self, name: str, version: int) -> NumberedRows:
        uri = self._uri(name)
        size, most = self._size((name, version)), self.context.limits.collected_bytes
        if size > most:
            raise UnsupportedLocally(f"{name} has {size:,} bytes, more than the limit of {most:,}")
        try:
            return NumberedRows(read_where(uri, version), types_of(uri, version))
        except FileNotFoundError:
            raise Snapshot.open(name, uri, version).report_expired() from None

    def _size(self, at: At) -> int:
        """Return the bytes of a version, which must be readable."""
        uri = self._uri(at[0])
        if not is_readable(uri, at[1]):
            raise HistoryLost(f"version {at[1]} of {at[0]} can't be read any more", hint=self._hint)
        return table_size(uri, at[1]).bytes

    def _uri(self, name: str) -> str:
        return self.context.lake.uri(name)

    @property
    def _hint(self) -> str:
        return f"`sluice why {self.table.name} KEY --rows 0` names the commit alone"
