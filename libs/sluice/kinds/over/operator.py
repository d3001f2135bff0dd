"""Over: SQL's window functions, by partition.

A change touches the partitions that contain or contained its rows. Each is recomputed, whole or as
far as frames reach, and compared; unchanged rows are not written. The input's key breaks ties where
they must be ordered, so that two runs agree.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.declare.table import Table, carried_columns
from sluice.engine.query.operator import InputRows, Operator, names, passed_on, same
from sluice.kinds.over.spec import (
    BY,
    ORDERED,
    OTHER_ROWS,
    RANKS,
    ROWS_OF_FRAME,
    SECONDS,
    SO_FAR,
    SUMS,
    WHOLE,
    Over,
    WindowCall,
)
from sluice.language.types import INTEGERS, Decimal, base_name

ALL = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
AFFECTED, GOES_ON = "_sluice_affected", "_sluice_goes_on"
HAD = "_sluice_had"  # before a function's name: its result in the view
PLACED = (*INTEGERS, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
COMPARED = (*PLACED, "BOOLEAN", "STRING", "DECIMAL")
LONGEST = {**SECONDS, "month": 31 * 86_400, "year": 366 * 86_400}
SUMMED_DIGITS = 36  # three such sums make one of 38

# How functions go on: from `had`, a result in the view, and from results over the rows that were
# read, `then` at the same row and `now` at a later one.
COUNTED = "{had} + {now} - {then}"
ADDED = (
    "coalesce(CAST(CAST({had} AS {wide}) + coalesce(CAST({now} AS {wide}), 0) "
    "- coalesce(CAST({then} AS {wide}), 0) AS {type}), {now})"
)
RUNS: Mapping[str, str] = {
    **dict.fromkeys(("row_number", "rank", "dense_rank"), COUNTED),
    **dict.fromkeys(("count", "count_if", "regr_count"), COUNTED),
    **dict.fromkeys(("min", "bool_and", "every"), "least({had}, {now})"),
    **dict.fromkeys(("max", "bool_or", "some"), "greatest({had}, {now})"),
    "sum": ADDED,
    **dict.fromkeys(("first_value", "first"), "{had}"),
    **dict.fromkeys(("last_value", "last"), "coalesce({now}, {had})"),  # without nulls
}


class OverRows(Operator):
    """The input's rows, with columns that read the rows of their partition."""

    def __init__(self, view: Table, source: Table):
        assert isinstance(view.spec, Over)
        self.view, self.source, self.spec = view, source, view.spec
        self.inputs = (source.id,)
        self.group = tuple(f"{BY}{i}" for i in range(len(self.spec.partition_by)))
        self.key = view.key
        self._carried = carried_columns(view, source)

    @property
    def totals(self) -> tuple[str, ...]:
        return tuple(call.sql for call in self.calls.values() if call.function in SUMS)

    def columns(self, name: str) -> tuple[str, ...]:
        used = {*self.source.key}
        expressions = [*self.spec.partition_by, *(key.expression for key in self.spec.order_by)]
        expressions += [self.spec.where] if self.spec.where else []
        for one in self.spec.select.values():
            expressions += [one.expression, *one.read]
        for expression in expressions:
            used |= expression.reads(self.source.columns)
        return tuple(sorted(used - self.calls.keys()))

    def map_to_group(self, name: str) -> Sequence[Mapping[str, str]]:
        pairs = zip(self.group, self.spec.partition_by, strict=True)
        known = {e.plain_column: c for c, e in pairs if e.plain_column}
        return [known] if known else ()

    def prepare(self, name: str, rows: DataFrame) -> DataFrame:
        met = rows.where(self.spec.where.sql) if self.spec.where else rows
        used = self.columns(name)
        by = [
            F.expr(e.sql).alias(c) for c, e in zip(self.group, self.spec.partition_by, strict=True)
        ]
        return met.select(*names(used), *by, *names(tuple(passed_on(rows, used))))

    @cached_property
    def calls(self) -> Mapping[str, WindowCall]:
        """The window functions, by the columns of their results."""
        return {call.name: call for one in self.spec.select.values() for call in one.calls}

    @cached_property
    def reach(self) -> "Reach | None":
        """Reach of the frames of all window functions; None if one has no bounds."""
        return reach_of(self)

    def combine(self, prepared: InputRows, references: InputRows) -> DataFrame:
        return self._show(self._call(prepared[self.source.id]))

    def go_on(self, rows: DataFrame, current: DataFrame) -> DataFrame:
        """Return the output rows of prepared rows that are marked as AFFECTED.

        In partitions marked with GOES_ON, functions from the beginning go on from the first row's
        results in `current`, the view's rows.
        """
        assert self.reach is not None
        runs = self.reach.runs
        if not runs:
            return self._show(self._call(rows).where(AFFECTED))
        kept = [F.col(f"`{out}`").alias(column) for out, column in self._carried.items()]
        had = [F.col(f"`{column}`").alias(HAD + name) for name, (column, _) in runs.items()]
        held, on = current.select(*kept, *had).alias("_had"), same("_rows", "_had", self.source.key)
        joined = rows.alias("_rows").join(held, on, "left")
        joined = joined.select("_rows.*", *names(tuple(HAD + name for name in runs)))
        over = f"OVER ({self._window(WindowCall(function='first_value', sql='', window=ORDERED))})"
        gone_on = {
            name: F.expr(
                f"IF({GOES_ON}, {sql}, {{now}})".format(
                    now=name,
                    then=f"first_value({name}) {over}",
                    had=f"first_value({HAD}{name}) {over}",
                )
            )
            for name, (_, sql) in runs.items()
        }
        return self._show(self._call(joined).withColumns(gone_on).where(AFFECTED))

    def _call(self, rows: DataFrame) -> DataFrame:
        """Add the results of the window functions."""
        over = [f"{call.sql} OVER ({self._window(call)}) AS {n}" for n, call in self.calls.items()]
        return rows.selectExpr("*", *over)

    def _show(self, rows: DataFrame) -> DataFrame:
        shown = {name: F.expr(one.expression.sql) for name, one in self.spec.select.items()}
        hidden = {out: F.col(f"`{c}`") for out, c in self._carried.items() if out not in shown}
        every = {**shown, **hidden, **{c: F.col(c) for c in self.group}}
        return rows.select(*[column.alias(name) for name, column in every.items()])

    def _window(self, call: WindowCall) -> str:
        by = f"PARTITION BY {', '.join(self.group)} " if self.group else ""
        order = [key.sql for key in self.spec.order_by]
        if call.is_by_place:
            order += [f"`{column}`" for column in self.source.key]
        default = SO_FAR if call.function in ROWS_OF_FRAME else ""
        frame = ALL if call.window == WHOLE else call.frame or default
        return f"{by}ORDER BY {', '.join(order)} {frame}"


@dataclass(frozen=True)
class Reach:
    """Numbers of rows, and distances in the order, before and after a row that its results read.

    Distances are in units of the order's first `column`, and at least as long as in the frames.
    `runs`: the functions that read all rows before it, by name, with the view's column of their
    results, and how they go on.
    """

    column: str
    rows: tuple[int, int]
    distances: tuple[int, int]
    runs: Mapping[str, tuple[str, str]]


def reach_of(operator: OverRows) -> Reach | None:
    """Return how far results of a view reach; None if one reads a whole partition."""
    spec, source, view = operator.spec, operator.source, operator.view
    column = spec.order_by[0].expression.plain_column if spec.order_by else None
    type_ = base_name(source.columns.get(column or "", ""))
    is_plain = spec.partition_by and all(e.plain_column for e in spec.partition_by)
    if not column or type_ not in PLACED or not is_plain:
        return None
    held = {one.expression.plain_column: name for name, one in spec.select.items() if one.calls}
    runs, far = dict[str, tuple[str, str]](), {"ROWS": (0, 0), "RANGE": (0, 0)}
    for name, call in operator.calls.items():
        kind, first, last = _frame_of(call, type_)
        if first == -math.inf and last < math.inf:
            shown = held.get(name, "")
            sql = _run_of(call, view.columns.get(shown, ""), last)
            if not sql:
                return None
            runs[name], first = (shown, sql), 0
        if not (math.isfinite(first) and math.isfinite(last)):
            return None
        before, after = far[kind]
        far[kind] = max(before, -int(first)), max(after, int(last))
    return Reach(column, far["ROWS"], far["RANGE"], runs)


def _frame_of(call: WindowCall, type_: str) -> tuple[str, float, float]:
    """Return the frame by ROWS or RANGE: its first and its last row, or distance, from a row."""
    ignores = _ignores_nulls(call)
    if call.function in OTHER_ROWS and not ignores:
        by = int(call.arguments[1].sql) if len(call.arguments) > 1 else 1
        return ("ROWS", -by, 0) if call.function == "lag" else ("ROWS", 0, by)
    is_bounded = call.function in RANKS and call.function in RUNS
    if call.window == WHOLE or (call.function in (*RANKS, *OTHER_ROWS) and not is_bounded):
        return "ROWS", -math.inf, math.inf
    default = SO_FAR if call.function in ROWS_OF_FRAME else SO_FAR.replace("ROWS", "RANGE")
    kind, _, bounds = (call.frame or default).partition(" BETWEEN ")
    first, last = (_distance(bound, type_) for bound in bounds.split(" AND "))
    if call.function in ("last_value", "last") and not ignores:
        first = last
    return kind, first, last


def _ignores_nulls(call: WindowCall) -> bool:
    is_flagged = call.function in ROWS_OF_FRAME and len(call.arguments) > 1
    return is_flagged or "IGNORE NULLS" in call.sql.upper()


def _distance(bound: str, type_: str) -> float:
    """Return how far a bound is from its row; a distance in time is the longest that it can be."""
    *given, side = bound.replace("'", "").split()
    sign = -1 if side == "PRECEDING" else 1
    match given:
        case ["CURRENT"]:
            return 0
        case ["INTERVAL", number, unit]:
            seconds = int(number) * LONGEST[unit.lower().removesuffix("s")]
            return sign * (math.ceil(seconds / 86_400) if type_ == "DATE" else seconds * 1_000_000)
        case [number] if number.isdigit():
            return sign * int(number)
    return sign * math.inf


def _run_of(call: WindowCall, type_: str, last: float) -> str:
    """Return how a function goes on from its result, of that type, in the view; '' if it can't."""
    sql, of = RUNS.get(call.function, ""), Decimal.of(type_)
    if call.function in ROWS_OF_FRAME:
        is_sure = not last and (sql != "{had}" or not _ignores_nulls(call))
        return sql if is_sure and type_ else ""
    if sql != ADDED:
        return sql if base_name(type_) in COMPARED else ""
    if of is None or of.precision > SUMMED_DIGITS:
        return ""
    wide = f"DECIMAL({of.precision}, {of.scale})"
    return sql.replace("{wide}", wide).replace("{type}", type_)
