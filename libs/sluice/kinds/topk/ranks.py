"""Ranking of rows by a top-k's declaration: their group, their order, their rank, their limit.

A prepared row holds the group, the sort keys `_o0...`, the input's key `_k0...` and the view's
other columns. Ranking needs nothing more, so the state keeps exactly this.
"""

from collections.abc import Iterable

from pyspark.sql import DataFrame

from sluice.changes.order import Direction, field
from sluice.declare.graph import Table
from sluice.engine.query import windows
from sluice.engine.query.identity import carried
from sluice.engine.query.operator import passed_on
from sluice.kinds.topk.own_order import sort_value
from sluice.kinds.topk.spec import TopK
from sluice.language.expression import Expression

LIMIT = "_limit"
LARGEST_LIMIT = 2**31 - 1  # ranks are INT; with headroom and offset it still fits a BIGINT
HEADROOM = 10


class RankRule:
    """Rule by which one declaration ranks one input.

    With row_number `order` is total, because the input's key ends it. With the other functions,
    rows that tie share a rank. `prepared`: the columns of a prepared row. `shown`: the view's
    stored columns, except the rank -> columns of a prepared row.
    """

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, TopK)
        self.view, self.source, self.spec = view, source, view.spec
        self._window = (windows.START, windows.END) if self.spec.window else ()
        self.group = (*self._window, *(p.name for p in self.spec.partition_by))
        self.keys = tuple(f"_k{i}" for i in range(len(source.key)))
        by = enumerate(self.spec.order_by)
        order = [Direction(f"_o{i}", k.descending, k.nulls_first) for i, k in by]
        ties = map(Direction, self.keys) if self.spec.function == "row_number" else ()
        self.order = (*order, *ties)
        self.limit_is_column = isinstance(self.spec.limit, str)
        numbered = enumerate(self.spec.order_by)
        self._own = {f"_own{i}": key for i, key in numbered if key.function}
        self._places = self._placed()
        self.prepared = (*self.group, *self._places, *((LIMIT,) if self.limit_is_column else ()))
        self.shown = self._shown()

    def columns(self) -> tuple[str, ...]:
        """Return the input's columns that it uses."""
        used = {*self.source.key}
        for expression in self.spec.expressions:
            used |= expression.reads(self.source.columns)
        if self.spec.select is None:
            used |= {*self._values()}
        if isinstance(self.spec.limit, str):
            used.add(self.spec.limit)
        if self.spec.window:
            used.add(self.spec.window.time)
        return tuple(sorted(used))

    def prepare(self, rows: DataFrame) -> DataFrame:
        """Return each row with what ranking needs; its other columns (a weight) are passed on."""
        windowed = rows.where(self.spec.where.sql) if self.spec.where else rows
        if self.spec.window:
            windowed = windows.assign(windowed, self.spec.window, self.spec.window.time)
        if self._own:
            own = (sort_value(key, self.view.id).alias(n) for n, key in self._own.items())
            windowed = windowed.select("*", *own)
        partition = [f"{p.expression.sql} AS `{p.name}`" for p in self.spec.partition_by]
        placed = [f"{sql} AS `{place}`" for place, sql in self._places.items()]
        given = f"CAST(`{self.spec.limit}` AS BIGINT)"
        limit = [f"IF({given} > {LARGEST_LIMIT}, {LARGEST_LIMIT}, {given}) AS `{LIMIT}`"]
        extra = (f"`{c}`" for c in passed_on(rows, self.columns()))
        limits = limit if self.limit_is_column else []
        return windowed.selectExpr(*self._window, *partition, *placed, *limits, *extra)

    @property
    def headroom(self) -> int:
        """Number of ranks kept past the last wanted one: as many again, if not declared."""
        if self.spec.headroom is not None:
            return self.spec.headroom
        return max(HEADROOM, self.spec.limit) if isinstance(self.spec.limit, int) else HEADROOM

    def over(self, *order: str) -> str:
        """SQL for OVER all rows of a group, or over them in an order."""
        by = f"PARTITION BY {listed(self.group)}" if self.group else ""
        return f"OVER ({by}{' ORDER BY ' + ', '.join(order) if order else ''})"

    def rank(self, row: str = "", *first: str) -> str:
        """SQL for the rank of `row`, a struct column; `first` comes before the order."""
        order = (direction.sql(row) for direction in self.order)
        return f"{self.spec.function}() {self.over(*first, *order)}"

    def last_wanted(self, limit: str) -> str:
        """SQL for the last rank that a limit admits; `limit` counts if limits are a column."""
        if isinstance(self.spec.limit, int):
            return str(self.spec.limit + self.spec.offset)
        return f"({limit} + {self.spec.offset})"

    def is_shown(self, rank: str, row: str = "") -> str:
        """SQL that is true if a row of that rank is in the view. Never null."""
        last = self.last_wanted(field(row, LIMIT))
        return f"coalesce({rank} > {self.spec.offset} AND {rank} <= {last}, false)"

    def _placed(self) -> dict[str, str]:
        """Return columns of a prepared row -> the SQL over the input that fills them."""
        by = enumerate(self.spec.order_by)
        places = {f"_o{i}": f"`_own{i}`" if k.function else _sql(k.expression) for i, k in by}
        places |= {f"_k{i}": f"`{name}`" for i, name in enumerate(self.source.key)}
        for name, sql in self._values().items():
            if sql not in places.values():
                places[f"_v_{name}"] = sql
        return places

    def _values(self) -> dict[str, str]:
        """Return the visible columns as SQL over the input, without the group's and the rank."""
        taken = {*self.group, self.spec.rank}
        if self.spec.select is not None:
            return {n: _sql(e) for n, e in self.spec.select.items() if n not in taken}
        return {n: f"`{n}`" for n in self.view.columns if n not in taken}

    def _shown(self) -> dict[str, str]:
        place_of = {sql: place for place, sql in reversed(self._places.items())}
        values = {name: place_of[sql] for name, sql in self._values().items()}
        visible = [name for name in self.view.columns if name != self.spec.rank]
        hidden = {
            name: self.keys[self.source.key.index(column)]
            for name, column in carried(self.view, self.source).items()
            if name not in self.view.columns
        }
        return {name: values.get(name, name) for name in visible} | hidden


def _sql(expression: Expression) -> str:
    plain = expression.plain_column
    return f"`{plain}`" if plain and "." not in plain else expression.sql


def listed(columns: Iterable[str]) -> str:
    """SQL for a list of columns by name."""
    return ", ".join(f"`{c}`" for c in columns)
