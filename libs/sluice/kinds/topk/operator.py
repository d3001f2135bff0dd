"""Top-k: the first rows of each partition in an order, with their rank.

Flink SQL calls this Top-N, and Kafka Streams proposes it as `KTable.top`. It keeps the SQL pattern
`ROW_NUMBER() OVER (PARTITION BY p ORDER BY s, key) <= k` up to date. The input's key breaks ties,
so the order is total.

It is kept in two tables. The state holds the first rows of each group: at least those that the view
needs, and up to `headroom` ranks more, which replace rows that leave (Yi et al., "Efficient
maintenance of materialized top-k views", ICDE 2003). The view is a function of the state.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from types import FunctionType, NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes import Direction, at_or_before, field
from sluice.declare.table import Table, carried_columns
from sluice.declare.table_spec import END, START, TableSpec
from sluice.engine import windows
from sluice.engine.operator import (
    InputRows,
    Operator,
    Retention,
    import_object,
    names,
    passed_on,
    same,
    within,
)
from sluice.engine.tracing import Condition, Groups
from sluice.errors import ConfigError
from sluice.kinds.topk import RankKey, TopK
from sluice.language.expression import Expression
from sluice.language.names import listing

RANK = "_rank"
COMPLETE, NEEDED = "_complete", "_needed"
LAST = "_last"
PARTS = 64  # of a global ranking, each limited separately

LIMIT = "_limit"
LARGEST_LIMIT = 2**31 - 1  # ranks are INT; with headroom and offset it still fits a BIGINT
HEADROOM = 10
TYPES: Mapping[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    date: "DATE",
    datetime: "TIMESTAMP",
}


class TopKState(Operator):
    """Each group's rows up to some rank; COMPLETE if it surely has no others.

    If limits are a column, NEEDED is the greatest limit of any row seen in the group. It is at
    least 1, because a group without kept rows would look like a new one. Rows after the kept ones
    are never read. So the number of kept rows depends on the table's past, and COMPLETE may be
    false although the group's other rows have been removed since.
    """

    has_slack = True

    def __init__(self, view: Table, source: Table):
        self.ranking = RankRule(view, source)
        self.inputs = (source.id,)
        self.group = self.ranking.group
        self.key = (*self.group, *self.ranking.keys)
        self.flags = (COMPLETE, NEEDED) if self.ranking.limit_is_column else (COMPLETE,)
        self.stored = (*self.ranking.prepared, *self.flags)
        spec = self.ranking.spec
        if spec.retention and spec.window:
            self.retention = Retention(spec.retention, {source.id: (spec.window.time,)})

    def columns(self, name: str) -> tuple[str, ...]:
        return self.ranking.columns()

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        by = ((p.expression.plain_column, p.name) for p in self.ranking.spec.partition_by)
        found = {column: name for column, name in by if column}
        return [found] if found else ()

    def map_to_origin(self, name: str) -> Sequence[Mapping[str, str]]:
        own = dict(zip(self.ranking.source.key, self.ranking.keys, strict=True))
        return [own | dict(one) for one in self.map_to_group(name) or [{}]]

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return self.ranking.prepare(rows)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = self.add_needed(prepared[self.inputs[0]])
        if self.ranking.limit_is_column:
            ranked = self.add_rank(self.contending(rows, self.last_kept()))
        else:  # lower ranks are not shuffled
            ranked = self.add_rank(rows).where(f"{RANK} <= {self.last_kept()} + 1")
        marked = ranked.selectExpr("*", f"{self.is_whole()} AS {COMPLETE}")
        return marked.where(f"{RANK} <= {self.last_kept()}").select(*names(self.stored))

    def add_rank(self, rows: DataFrame) -> DataFrame:
        """Add RANK to whole groups' prepared rows."""
        return rows.selectExpr("*", f"{self.ranking.rank()} AS {RANK}")

    def add_needed(self, rows: DataFrame) -> DataFrame:
        """Add NEEDED to whole groups' prepared rows, if limits are a column."""
        if not self.ranking.limit_is_column:
            return rows
        over = self.ranking.over() if self.group else ""
        needed = f"CAST(greatest(max({LIMIT}) {over}, 1) AS BIGINT) AS {NEEDED}"
        if self.group:
            return rows.selectExpr("*", needed)
        return rows.crossJoin(F.broadcast(rows.selectExpr(needed)))

    def contending(self, rows: DataFrame, last: str, but: str = "false") -> DataFrame:
        """Drop the rows of a global ranking that are after `last` + 1 even in their own part.

        So no task has to sort all rows. Rows that meet `but` are kept and push no others out. Tied
        rows are all kept, and so is the first row after them.
        """
        if self.group:
            return rows
        function = "row_number" if self.ranking.spec.function == "row_number" else "dense_rank"
        part = f"pmod(xxhash64({list_columns(self.ranking.keys)}), {PARTS})"
        order = ", ".join(direction.sql() for direction in self.ranking.order)
        rank = f"{function}() OVER (PARTITION BY {part}, {but} ORDER BY {order}) AS _place"
        return rows.selectExpr("*", rank).where(f"_place <= {last} + 1 OR {but}").drop("_place")

    def last_needed(self) -> str:
        """SQL for the last rank of a group that the view needs."""
        return self.ranking.last_wanted(NEEDED)

    def last_kept(self) -> str:
        """SQL for the last rank that is kept of a group when it is trimmed."""
        if isinstance(self.ranking.spec.limit, int):
            return str(int(self.last_needed()) + self.ranking.headroom)
        return f"({self.last_needed()} + {self.ranking.headroom})"

    def is_whole(self) -> str:
        """SQL that is true if a group's ranked rows all find a place; false if ties leave it open.

        The rows may have been cut one rank past the last kept. With `rank`, the row after many tied
        ones has a much higher rank, and may be missing.
        """
        over, last = self.ranking.over(), self.last_kept()
        fits = f"max({RANK}) {over} <= {last}"
        is_open = self.ranking.spec.function == "rank"
        return f"({fits} AND count({RANK}) {over} <= {last})" if is_open else f"({fits})"

    def last_rows(self, state: DataFrame) -> DataFrame:
        """Return one row for each group of `state`: the group, its flags, its last row in LAST."""
        backwards = (direction.reversed.sql() for direction in self.ranking.order)
        numbered = state.selectExpr("*", f"row_number() {self.ranking.over(*backwards)} AS _n")
        order = list_columns(direction.column for direction in self.ranking.order)
        kept = (f"`{c}`" for c in (*self.group, *self.flags))
        return numbered.where("_n = 1").selectExpr(*kept, f"struct({order}) AS {LAST}")

    def acceptable(self, snapshots: InputRows, current: DataFrame) -> DataFrame:
        """Return what the state must be: each group's needed rows, and no fewer than it has."""
        rows = self.add_needed(self.prepare("", snapshots[self.inputs[0]])).alias("_all")
        had = self.last_rows(current).alias("_had")
        joined = rows.join(had, same("_all", "_had", self.group), "left")
        columns = [f"_all.`{c}`" for c in self.ranking.prepared]
        if self.ranking.limit_is_column:
            columns.append(f"greatest(_all.{NEEDED}, _had.{NEEDED}) AS {NEEDED}")
        seen = f"{LAST} IS NOT NULL AND {at_or_before(self.ranking.order, '_all', LAST)} AS _seen"
        had_all = f"coalesce(_had.{COMPLETE}, true) AS _had_all"
        compared = joined.selectExpr(*columns, seen, had_all)
        ranked = self.add_rank(self.contending(compared, self.last_needed(), "_seen"))
        held = ranked.selectExpr("*", f"({RANK} <= {self.last_needed()} OR _seen) AS _held")
        is_whole = f"min(_held) {self.ranking.over()} AND _had_all AS {COMPLETE}"
        return held.selectExpr("*", is_whole).where("_held").select(*names(self.stored))


class TopKView(Operator):
    """The visible rows, from a state."""

    def __init__(self, state: TopKState, state_id: str):
        self.ranking = state.ranking
        self.inputs = (state_id,)
        self.group = state.group
        self.key = state.ranking.view.key

    def columns(self, name: str) -> tuple[str, ...]:
        return self.ranking.prepared

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        ranked = prepared[self.inputs[0]].selectExpr("*", f"{self.ranking.rank()} AS {RANK}")
        shown = ranked.where(self.ranking.is_shown(RANK))
        places, having = self.places.items(), self.ranking.spec.having
        rows = shown.selectExpr(*[f"`{place}` AS `{name}`" for name, place in places])
        return rows.where(having.sql) if having else rows

    @property
    def places(self) -> dict[str, str]:
        """The view's stored columns -> columns of ranked state rows."""
        places = dict(self.ranking.shown)
        if self.ranking.spec.rank:
            places[self.ranking.spec.rank] = RANK
        visible = {name: places.pop(name) for name in self.ranking.view.columns}
        return visible | places


class RankRule:
    """Rule by which one declaration ranks one input.

    A prepared row holds the group, the sort keys `_o0...`, the input's key `_k0...` and the view's
    other columns. Ranking needs nothing more, so the state keeps exactly this.

    With row_number `order` is total, because the input's key ends it. With the other functions,
    rows that tie share a rank. `prepared`: the columns of a prepared row. `shown`: the view's
    stored columns, except the rank -> columns of a prepared row.
    """

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, TopK)
        self.view, self.source, self.spec = view, source, view.spec
        self._window = (START, END) if self.spec.window else ()
        self.group = (*self._window, *(p.name for p in self.spec.partition_by))
        self.keys = tuple(f"_k{i}" for i in range(len(source.key)))
        by = enumerate(self.spec.order_by)
        order = [Direction(f"_o{i}", k.descending, k.nulls_first) for i, k in by]
        ties = map(Direction, self.keys) if self.spec.function == "row_number" else ()
        self.order = (*order, *ties)
        self.limit_is_column = isinstance(self.spec.limit, str)
        numbered = enumerate(self.spec.order_by)
        self._own = {f"_own{i}": key for i, key in numbered if key.function}
        self._places = self._place_columns()
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
        by = f"PARTITION BY {list_columns(self.group)}" if self.group else ""
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

    def _place_columns(self) -> dict[str, str]:
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
            for name, column in carried_columns(self.view, self.source).items()
            if name not in self.view.columns
        }
        return {name: values.get(name, name) for name in visible} | hidden


def _sql(expression: Expression) -> str:
    plain = expression.plain_column
    return f"`{plain}`" if plain and "." not in plain else expression.sql


def list_columns(columns: Iterable[str]) -> str:
    """SQL for a list of columns by name."""
    return ", ".join(f"`{c}`" for c in columns)


def sort_value(key: RankKey, where: str) -> Column:
    """Return the results of the key's function.

    Spark's workers call it row by row with plain Python values, None for null. Its annotation is
    the type of its results. Raises ConfigError, beginning with `where`, if it can't be used.
    """
    place = f"{where}: {key.expression.text}"
    function = import_object(key.function, place)
    module = key.function.partition(":")[0]
    if not isinstance(function, FunctionType) or function.__module__ != module:
        raise ConfigError([f"{place}: that is not a function defined in {module}"])
    arguments = [F.expr(argument.sql) for argument in key.arguments]
    return F.udf(function, _result_type(function, place), useArrow=True)(*arguments)


def _result_type(function: FunctionType, place: str) -> str:
    said = get_type_hints(function).get("return")
    options = get_args(said) if get_origin(said) in (Union, UnionType) else (said,)
    found = [TYPES.get(option, "") for option in options if option is not NoneType]
    if len(found) != 1 or not found[0]:
        known = listing([known.__name__ for known in TYPES])
        raise ConfigError(
            [f"{place}: annotate the function's return type: one of {known}, alone or with None"]
        )
    return found[0]


def trace_rows(operator: Operator, groups: Groups) -> InputRows:
    """Return the input's, or the state's, row of each row's group and key."""
    key, rows = operator.key, groups.rows
    if isinstance(operator, TopKView):
        places = {name: place for name, place in operator.places.items() if name in key}
        rows = rows.select(*[F.col(f"`{name}`").alias(place) for name, place in places.items()])
        key = tuple(places.values())
    return {name: within(found, rows, key) for name, found in groups.prepared.items()}


def list_conditions(spec: TopK, found: Sequence[Condition]) -> Sequence[Condition]:
    """Return the conditions with the limit between them: ranks are given before `having`."""
    before = [one for one in found if not one.text.startswith("having")]
    offset = f", offset: {spec.offset}" if spec.offset else ""
    limit = Condition(f"limit: {spec.limit}{offset}", _without_limit, True, spec.rank or None)
    return [*before, limit, *found[len(before) :]]


def _without_limit(spec: TopK) -> TableSpec:
    return spec.model_copy(update={"limit": LARGEST_LIMIT - 1, "offset": 0, "headroom": 0})
