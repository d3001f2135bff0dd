"""A dimension joined to dimensions, resolved when read and never stored.

delta-rs' own query engine runs the join over the pinned versions of the dimensions. A dimension
with a history takes part with its current rows. Expressions are accepted only if they mean the same
in that engine as in Spark; other views are read through a lookup.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa
import sqlglot
from deltalake import DeltaTable, QueryBuilder
from sqlglot import exp

from sluice.declare.table import Table
from sluice.dimension_views import DimensionView
from sluice.errors import UsageError
from sluice.language.expression import Expression
from sluice.language.names import Row
from sluice.language.syntax import SparkSQL
from sluice.read import where as predicates
from sluice.read.key_order import Cursors, KeyColumns, KeyOrder, KeyRange, behind
from sluice.read.keyed import KeyValues, Rows, check_limit
from sluice.read.lake import Lake, build_command
from sluice.read.scan import Touched
from sluice.read.snapshot import open_delta, refuse_unreadable
from sluice.read.values import check_columns

SAME = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.Neg),
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is),
    *(exp.In, exp.Between, exp.Case, exp.If, exp.Coalesce, exp.Upper, exp.Lower, exp.DPipe),
    *(exp.Add, exp.Sub, exp.Mul, exp.Nullif),
)


@dataclass(frozen=True)
class JoinedTable(KeyValues):
    """One pinned state of a dimension view.

    `dimensions`: the tables and views that it joins, by the last part of their ids.
    """

    spec: DimensionView
    dimensions: Mapping[str, "DeltaTable | JoinedTable"]
    history: frozenset[str]
    key_names: tuple[str, ...]
    backward_iteration: bool = False

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def versions(self) -> dict[str, int]:
        """Version of each dimension that is read; one behind a view is listed by both names."""
        return {name: table.version() for name, table in self.tables().items()}

    @property
    def stored(self) -> list[str]:
        """Dimensions behind the view."""
        return list(dict.fromkeys(name.rpartition("__")[2] for name in self.tables()))

    @property
    def version(self) -> int:
        """Version of the dimension that gives the rows."""
        first = self.dimensions[self._qualifiers[0]]
        return first.version if isinstance(first, JoinedTable) else first.version()

    @cached_property
    def schema(self) -> pa.Schema:
        # The engine's own string and binary representations are not for callers.
        plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
        found = self._query("LIMIT 0").schema
        return pa.schema([field.with_type(plain.get(field.type, field.type)) for field in found])

    @property
    def key(self) -> KeyColumns:
        """Key of the first dimension, as the view names it."""
        return KeyColumns.of(self.name, self.key_names, self.schema)

    @property
    def count(self) -> int:
        """Number of rows of the view, which is that of the join."""
        return sum(batch.num_rows for batch in self._query())

    def get(self, *key: Any, **named: Any) -> Row | None:
        """Return the row of that key, or None."""
        key = self.key.read_values(key, named)
        key_range = self.key.exactly(key[0] if len(key) == 1 else key)
        return next(self.between((key_range,), reverse=False, limit=1), None)

    def read(
        self,
        *,
        where: str | None = None,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        """Return rows in key order; a join has no stored order."""
        return self.range(limit=limit, where=where, columns=columns, after=after)

    def between(
        self,
        ranges: tuple[KeyRange, ...],
        *,
        reverse: bool,
        limit: int | None,
        where: str | None = None,
        columns: Iterable[str] | None = None,
        after: str | None = None,
    ) -> Rows:
        limit, keys = check_limit(limit), tuple(self.key_names)
        if after is not None:
            ranges = (*ranges, behind(after, KeyOrder(keys, reverse), self.schema))
        shown = check_columns(self.name, columns, self.schema.names)
        condition = predicates.parse(where, self.schema) if where is not None else None
        way = "DESC NULLS LAST" if reverse else "ASC NULLS FIRST"
        order = ", ".join(f'"{column}" {way}' for column in self.key_names)
        reader = self._query(f"{where_sql(ranges)} ORDER BY {order}")
        found = _filter(reader, self.schema, ranges, condition, limit)
        schema = pa.schema([self.schema.field(column) for column in shown])
        return Rows(found, schema, self.version, Touched(), Cursors(keys, after=after))

    def _query(self, rest: str = "") -> pa.RecordBatchReader:
        engine = QueryBuilder()
        for name, table in self.tables().items():
            engine.register(f"dimension_{name}", table)
        found = engine.execute(f"SELECT * FROM ({self.sql()}) AS resolved {rest}")
        return pa.RecordBatchReader.from_stream(found)

    @property
    def _qualifiers(self) -> list[str]:
        return [join.dimension.split(".")[-1] for join in self.spec.join]

    def tables(self, within: str = "") -> dict[str, DeltaTable]:
        """Return the tables that are read, each by a unique name."""
        found: dict[str, DeltaTable] = {}
        for name, of in self.dimensions.items():
            mine = f"{within}{name}"
            found |= of.tables(f"{mine}__") if isinstance(of, JoinedTable) else {mine: of}
        return found

    def sql(self, within: str = "") -> str:
        """Return the query over `tables`."""
        selected = [f'{translate(e, self.name)} AS "{n}"' for n, e in self.spec.select.items()]
        first, *others = self._qualifiers
        joins = [f"{self._rows(first, within)} AS {first}"]
        for qualifier, join in zip(others, self.spec.join[1:], strict=True):
            condition = translate(join.on, self.name) if join.on else "TRUE"
            rows = self._rows(qualifier, within)
            joins.append(f"LEFT JOIN {rows} AS {qualifier} ON {condition}")
        where = f" WHERE {translate(self.spec.where, self.name)}" if self.spec.where else ""
        return f"SELECT {', '.join(selected)} FROM {' '.join(joins)}{where}"

    def _rows(self, qualifier: str, within: str) -> str:
        of, name = self.dimensions[qualifier], f"{within}{qualifier}"
        if isinstance(of, JoinedTable):
            return f"({of.sql(f'{name}__')})"
        current = " WHERE is_current" if qualifier in self.history else ""
        return f"(SELECT * FROM dimension_{name}{current})"


def _filter(
    reader: pa.RecordBatchReader,
    schema: pa.Schema,
    ranges: tuple[KeyRange, ...],
    condition: predicates.Predicate | None,
    limit: int | None,
) -> Iterator[pa.Table]:
    left = limit
    for batch in reader:
        if left == 0:
            return
        table = pa.Table.from_batches([batch]).cast(schema)
        for key_range in ranges:
            table = key_range.rows(table)
        table = condition.rows(table) if condition else table
        table = table.slice(0, left)
        left = None if left is None else left - table.num_rows
        yield table


def open_table(
    lake: Lake, table: Table, version: int | None, *, backward_iteration: bool
) -> JoinedTable:
    """Open the view over the current versions of its dimensions."""
    if version is not None:
        raise UsageError(
            f"{table.name!r} is a view over dimensions and has no versions of its own",
            hint=f"read its dimensions at a version: {', '.join(table.inputs)}",
        )
    return replace(_resolve(lake, table, {}), backward_iteration=backward_iteration)


def _resolve(lake: Lake, table: Table, known: dict[str, DeltaTable]) -> JoinedTable:
    """Resolve the view; each dimension is opened once, however many views join it."""
    assert isinstance(table.spec, DimensionView)
    found: dict[str, DeltaTable | JoinedTable] = {}
    inputs = lake.project.graph.inputs(table.id)
    for t in inputs:
        if t.is_stored:
            found[t.name] = known[t.id] = known.get(t.id) or _open_dimension(lake, t)
        else:
            found[t.name] = _resolve(lake, t, known)
    history = frozenset(t.name for t in inputs if t.spec.has_history)
    return JoinedTable(table.spec, found, history, table.key)


def _open_dimension(lake: Lake, table: Table) -> DeltaTable:
    version = lake.version_of(table.id)
    delta = open_delta(table.name, lake.uri(table), version, build=build_command(table))
    refuse_unreadable(table.name, delta)
    return delta


def translate(expression: Expression, view: str) -> str:
    """Return the expression in the query engine's SQL."""
    tree = sqlglot.parse_one(expression.sql, dialect=SparkSQL)
    for node in tree.walk():
        if not isinstance(node, SAME):
            raise UsageError(
                f"dimension view {view!r} can't be read without Spark: {expression.text!r}",
                hint="select plain columns here, and compute in the lookup that joins it",
            )
    for joined in reversed([*tree.find_all(exp.DPipe)]):  # it binds less there
        joined.replace(exp.Paren(this=joined.copy()))
    return tree.sql(dialect="postgres", identify=True)


def where_sql(ranges: tuple[KeyRange, ...]) -> str:
    """Return the ranges' first columns as SQL for pruning; exact filtering comes later."""
    tests = []
    for key_range in ranges:
        for sign, bound in ((">=", key_range.low), ("<=", key_range.high)):
            literal = _literal(bound[0][-1]) if bound and len(bound[0]) == 2 else None
            or_null = f' OR "{key_range.columns[0]}" IS NULL' if sign == "<=" else ""
            if literal:
                tests.append(f'("{key_range.columns[0]}" {sign} {literal}{or_null})')
    return f"WHERE {' AND '.join(tests)}" if tests else ""


def _literal(value: Any) -> str | None:
    """Return a value as SQL; None for values left to the filter after the join."""
    match value:
        case bool() | datetime():
            return None
        case int() | Decimal():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case _:
            return None
