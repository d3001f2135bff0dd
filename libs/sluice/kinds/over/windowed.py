"""Expressions with window functions: `total - lag(total) OVER w`, `sum(x) OVER (w ROWS ...)`.

`w` is the view's partition in its order, `p` the whole partition. Each call is cut out of its
expression, which then reads it as a column.
"""

import hashlib
import math
from collections.abc import Iterator
from typing import Any, Self

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Aggregate, Expression, Written
from sluice.language.model import Model

ORDERED, WHOLE = "w", "p"
RANKS = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile"), "INT"),
    **dict.fromkeys(("percent_rank", "cume_dist"), "DOUBLE"),
}
OF_TIES = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
OTHER_ROWS = frozenset({"lag", "lead"})
ROWS_OF_FRAME = frozenset({"first_value", "last_value", "nth_value"})
AGGREGATES = frozenset({"sum", "avg", "count", "min", "max", "bool_and", "bool_or"})
ARGUMENTS = {"lag": (1, 3), "lead": (1, 3), "ntile": (1, 1), "nth_value": (2, 2)}
COUNTED = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}  # argument that is a number of rows
LEAST, MOST = {"lag": 0, "lead": 0}, 2**31 - 1
FUNCTIONS = (*RANKS, *sorted(OTHER_ROWS | ROWS_OF_FRAME | AGGREGATES))
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


class Call(Model):
    """One window function: its call in SQL, what it reads, its window and its frame."""

    function: str
    sql: str
    arguments: tuple[Expression, ...] = ()
    aggregate: Aggregate | None = None
    window: str
    frame: str = ""

    @property
    def name(self) -> str:
        """Name of the column that holds its result; equal calls share it."""
        text = f"{self.sql} {self.window} {self.frame}"
        return f"_sluice_over_{hashlib.sha256(text.encode()).hexdigest()[:12]}"

    @property
    def is_by_place(self) -> bool:
        """True if rows that tie in the order must have places; the input's key gives them."""
        return self.function not in OF_TIES and not self.counts_ties

    @property
    def counts_ties(self) -> bool:
        """True for a frame that rows share if they tie, as RANGE has it."""
        is_default = self.function in AGGREGATES and self.window == ORDERED and not self.frame
        return is_default or self.frame.startswith("RANGE")


class Windowed(Written):
    """An expression over a row's columns and over its window functions."""

    text: str
    expression: Expression
    calls: tuple[Call, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        tree = syntax.parse_as(text, None)
        calls = []
        windows = list(tree.find_all(exp.Window))
        if any(node.find_ancestor(exp.Window) for node in windows):
            raise ValueError(f"{text!r}: a window function inside another; declare two views")
        for node in windows:
            call = _call(node)
            calls.append(call)
            column = exp.column(call.name)
            tree = column if node is tree else tree
            node.replace(column)
        syntax.check(tree)
        expression = Expression.of(tree, syntax.render(tree))
        return cls(text=text, expression=expression, calls=tuple(calls))

    @property
    def read(self) -> Iterator[Expression]:
        """Yield every expression over the input's columns."""
        for call in self.calls:
            yield from call.arguments
            yield from filter(None, [call.aggregate and call.aggregate.argument])

    @property
    def plain_column(self) -> str | None:
        """Name of the column, if the expression is just a column of the input."""
        return None if self.calls else self.expression.plain_column


def _call(node: exp.Window) -> Call:
    text = syntax.render(node)
    window = node.alias.lower()
    known = ("this", "alias", "spec", "over")
    given = [name for name, value in node.args.items() if value and name not in known]
    if given or window not in (ORDERED, WHOLE):
        raise ValueError(
            f"{text!r}: write OVER w for the view's partition in its order, or OVER p for its "
            "whole partition"
        )
    function = node.this.name.lower()
    if not isinstance(node.this, exp.Anonymous) or function not in FUNCTIONS:
        raise ValueError(f"{text!r} is no window function here; these are: {', '.join(FUNCTIONS)}")
    frame = _frame(node.args.get("spec"), text)
    _check_frame(function, window, frame, text)
    if function in AGGREGATES:
        aggregate = Aggregate.parse(syntax.render(node.this))
        if aggregate.function != function:
            raise ValueError(f"{text!r}: Spark has no DISTINCT in window functions")
        return Call(
            function=function,
            sql=syntax.render(node.this),
            aggregate=aggregate,
            window=window,
            frame=frame,
        )
    return Call(
        function=function,
        sql=syntax.render(node.this),
        arguments=tuple(_arguments(node.this, text)),
        window=window,
        frame=frame,
    )


def _arguments(call: exp.Anonymous, text: str) -> Iterator[Expression]:
    function = call.name.lower()
    least, most = ARGUMENTS.get(function, (0, 0) if function in RANKS else (1, 1))
    if not least <= len(call.expressions) <= most:
        raise ValueError(f"{text!r}: {function} takes {_counts(least, most)}")
    counted = COUNTED.get(function)
    for nth, tree in enumerate(call.expressions):
        is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
        if nth == counted and not (is_number and LEAST.get(function, 1) <= int(tree.name) <= MOST):
            raise ValueError(f"{text!r}: {syntax.render(tree)} is no number of rows")
        syntax.check(tree)
        yield Expression.of(tree, syntax.render(tree))


def _counts(least: int, most: int) -> str:
    if most == 0:
        return "no argument"
    return f"{least} to {most} arguments" if least < most else f"{most} argument(s)"


def _check_frame(function: str, window: str, frame: str, text: str) -> None:
    if window == WHOLE and (frame or function not in AGGREGATES):
        raise ValueError(f"{text!r}: p has no order; only aggregates without a frame go over it")
    if frame and (function in RANKS or function in OTHER_ROWS):
        raise ValueError(f"{text!r}: {function} has no frame")
    if frame.startswith("RANGE") and function in ROWS_OF_FRAME:
        raise ValueError(f"{text!r}: which of the rows that tie is meant? Write ROWS")


def _frame(spec: Any, text: str) -> str:
    if spec is None:
        return ""
    kind = str(spec.args.get("kind")).upper()
    known = ("kind", "start", "start_side", "end", "end_side")
    others = [name.upper() for name, value in spec.args.items() if value and name not in known]
    if others or kind not in ("ROWS", "RANGE"):
        what = ", ".join(others) or kind
        raise ValueError(f"{text!r}: a frame is of ROWS or RANGE; {what} is not allowed")
    (first, start), (last, end) = (_bound(spec, which, text) for which in ("start", "end"))
    if first > last or first == math.inf or last == -math.inf:
        raise ValueError(f"{text!r}: the frame ends before it begins")
    frame = f"{kind} BETWEEN {start} AND {end}"
    if kind == "RANGE" and any(c.isdigit() for c in frame):
        raise ValueError(f"{text!r}: a RANGE goes to UNBOUNDED or to CURRENT ROW")
    return frame


def _bound(spec: exp.Expression, which: str, text: str) -> tuple[float, str]:
    """Return a frame's bound: its distance from the row, and in SQL."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side")).upper()
    sign = -1 if side == "PRECEDING" else 1
    if value is None or str(value).upper() == "CURRENT ROW":
        return 0, "CURRENT ROW"
    if str(value).upper() == "UNBOUNDED":
        return sign * math.inf, f"UNBOUNDED {side}"
    if isinstance(value, exp.Literal) and value.name.isdigit() and int(value.name) <= MOST:
        return sign * int(value.name), f"{value.name} {side}"
    raise ValueError(f"{text!r}: {syntax.render(value)} is no number of rows")
