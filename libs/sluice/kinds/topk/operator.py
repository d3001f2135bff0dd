"""Top-k: the first rows of each partition in an order, with their rank.

Flink SQL calls this Top-N, and Kafka Streams proposes it as `KTable.top`. It keeps the SQL pattern
`ROW_NUMBER() OVER (PARTITION BY p ORDER BY s, key) <= k` up to date. The input's key breaks ties,
so the order is total.

It is kept in two tables. The state holds the first rows of each group: at least those that the view
needs, and up to `headroom` ranks more, which replace rows that leave (Yi et al., "Efficient
maintenance of materialized top-k views", ICDE 2003). The view is a function of the state.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes.order import at_or_before
from sluice.declare.graph import Table
from sluice.engine.query.operator import InputRows, Operator, Retention, names, same
from sluice.kinds.topk.ranks import LIMIT, RankRule, listed

RANK = "_rank"
COMPLETE, NEEDED = "_complete", "_needed"
LAST = "_last"
PARTS = 64  # of a global ranking, each limited separately


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

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return self.ranking.prepare(rows)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        rows = self.limited(prepared[self.inputs[0]])
        if self.ranking.limit_is_column:
            ranked = self.ranked(self.contending(rows, self.last_kept()))
        else:  # lower ranks are not shuffled
            ranked = self.ranked(rows).where(f"{RANK} <= {self.last_kept()} + 1")
        marked = ranked.selectExpr("*", f"{self.is_whole()} AS {COMPLETE}")
        return marked.where(f"{RANK} <= {self.last_kept()}").select(*names(self.stored))

    def ranked(self, rows: DataFrame) -> DataFrame:
        """Add RANK to whole groups' prepared rows."""
        return rows.selectExpr("*", f"{self.ranking.rank()} AS {RANK}")

    def limited(self, rows: DataFrame) -> DataFrame:
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
        part = f"pmod(xxhash64({listed(self.ranking.keys)}), {PARTS})"
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
        order = listed(direction.column for direction in self.ranking.order)
        kept = (f"`{c}`" for c in (*self.group, *self.flags))
        return numbered.where("_n = 1").selectExpr(*kept, f"struct({order}) AS {LAST}")

    def acceptable(self, snapshots: InputRows, current: DataFrame) -> DataFrame:
        """Return what the state must be: each group's needed rows, and no fewer than it has."""
        rows = self.limited(self.prepare("", snapshots[self.inputs[0]])).alias("_all")
        had = self.last_rows(current).alias("_had")
        joined = rows.join(had, same("_all", "_had", self.group), "left")
        columns = [f"_all.`{c}`" for c in self.ranking.prepared]
        if self.ranking.limit_is_column:
            columns.append(f"greatest(_all.{NEEDED}, _had.{NEEDED}) AS {NEEDED}")
        seen = f"{LAST} IS NOT NULL AND {at_or_before(self.ranking.order, '_all', LAST)} AS _seen"
        had_all = f"coalesce(_had.{COMPLETE}, true) AS _had_all"
        compared = joined.selectExpr(*columns, seen, had_all)
        ranked = self.ranked(self.contending(compared, self.last_needed(), "_seen"))
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

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        return rows

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
