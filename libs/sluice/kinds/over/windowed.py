"""Expressions with window functions: `total - lag(total) OVER w`, `sum(x) OVER (w ROWS ...)`.

`w` is the view's partition in its order, `p` the whole partition. Each call is cut out of its
expression, which then reads it as a column.
"""

import hashlib
from collections.abc import Iterator
from typing import Any, Self

from sqlglot import exp

from sluice.kinds.over.frames import frame_of
from sluice.kinds.over.functions import (
    AGGREGATES,
    COUNTED,
    FUNCTIONS,
    IGNORES_NULLS,
    LEAST,
    MOST,
    OF_TIES,
    OTHER_ROWS,
    RANKS,
    ROWS_OF_FRAME,
    SHARED,
    arguments_of,
)
from sluice.language import syntax
from sluice.language.expression import UNREADABLE, Aggregate, Expression, Written
from sluice.language.model import Model

ORDERED, WHOLE = "w", "p"
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


class WindowCall(Model):
    """One window function: its call in SQL, what it reads, its window and its frame.

    `distances`: how far a RANGE goes from the value of the row's order.
    """

    function: str
    sql: str
    arguments: tuple[Expression, ...] = ()
    aggregate: Aggregate | None = None
    window: str
    frame: str = ""
    distances: tuple[Expression, ...] = ()

    @property
    def name(self) -> str:
        """Name of the column that holds its result."""
        return _column(self.sql, self.window, self.frame)

    @property
    def is_by_place(self) -> bool:
        """True if ties must be ordered, which the input's key does."""
        return self.function not in OF_TIES and not self.counts_ties

    @property
    def counts_ties(self) -> bool:
        """True for a frame that rows share if they tie, as RANGE has it."""
        is_default = self.function in AGGREGATES and self.window == ORDERED and not self.frame
        return is_default or self.frame.startswith("RANGE")


class WindowedExpression(Written):
    """An expression over a row's columns and over its window functions."""

    STAND_IN = f"max({UNREADABLE}) OVER p"

    text: str
    expression: Expression
    calls: tuple[WindowCall, ...] = ()

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

    @classmethod
    def spelled(cls, meant: Any) -> str:
        text = str(meant["expression"])
        for call in meant.get("calls", ()):
            sql, window, frame = call["sql"], call["window"], call.get("frame", "")
            over = f"({window} {frame})" if frame else window
            text = text.replace(_column(sql, window, frame), f"{sql} OVER {over}")
        return text

    @property
    def read(self) -> Iterator[Expression]:
        """Yield every expression over the input's columns."""
        for call in self.calls:
            yield from call.arguments
            if found := call.aggregate:
                yield from filter(None, [found.argument, *(k.expression for k in found.order_by)])

    @property
    def plain_column(self) -> str | None:
        """Name of the column, if the expression is just a column of the input."""
        return None if self.calls else self.expression.plain_column


def _column(sql: str, window: str, frame: str) -> str:
    """Return the name of the column that holds a call's result; equal calls share it."""
    text = f"{sql} {window} {frame}"
    return f"_sluice_over_{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _call(node: exp.Window) -> WindowCall:
    text = syntax.render(node)
    window = node.alias.lower()
    known = ("this", "alias", "spec", "over")
    given = [name for name, value in node.args.items() if value and name not in known]
    if given or window not in (ORDERED, WHOLE):
        raise ValueError(
            f"{text!r}: write OVER w for the view's partition in its order, or OVER p for its "
            "whole partition"
        )
    called = _called(node.this, text)
    function = called.name.lower()
    frame, distances = frame_of(node.args.get("spec"), text)
    _check_frame(function, window, frame, text)
    is_shared = function in SHARED
    return WindowCall(
        function=function,
        sql=syntax.render(node.this),
        arguments=() if is_shared else tuple(_arguments(called, text)),
        aggregate=_aggregate(called, text) if is_shared else None,
        window=window,
        frame=frame,
        distances=distances,
    )


def _called(node: syntax.Tree, text: str) -> exp.Anonymous:
    """Return the function that is called, perhaps without its nulls."""
    if isinstance(node, exp.Filter):
        condition = syntax.render(node.expression.this)
        raise ValueError(
            f"{text!r}: Spark has no FILTER in window functions; aggregate "
            f"CASE WHEN {condition} THEN … END"
        )
    is_told = isinstance(node, exp.IgnoreNulls | exp.RespectNulls)
    inner = node.this if is_told else node
    function = inner.name.lower()
    if not isinstance(inner, exp.Anonymous) or function not in FUNCTIONS:
        raise ValueError(
            f"{text!r} is not a supported window function; these are: {', '.join(FUNCTIONS)}"
        )
    if is_told and function not in IGNORES_NULLS:
        which = ", ".join(sorted(IGNORES_NULLS))
        raise ValueError(f"{text!r}: {function} has no IGNORE NULLS; these have: {which}")
    return inner


def _aggregate(called: exp.Anonymous, text: str) -> Aggregate:
    if called.find(exp.Distinct):
        raise ValueError(f"{text!r}: Spark has no DISTINCT in window functions")
    if called.find(exp.Order):
        raise ValueError(f"{text!r}: its rows come in the order of the window; drop its ORDER BY")
    alike = called.copy()
    alike.set("this", SHARED[called.name.lower()])
    return Aggregate.parse(syntax.render(alike))


def _arguments(call: exp.Anonymous, text: str) -> Iterator[Expression]:
    function = call.name.lower()
    least, most = arguments_of(function)
    if not least <= len(call.expressions) <= most:
        raise ValueError(f"{text!r}: {function} takes {_counts(least, most)}")
    counted = COUNTED.get(function)
    for nth, tree in enumerate(call.expressions):
        is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
        if nth == counted and not (is_number and LEAST.get(function, 1) <= int(tree.name) <= MOST):
            raise ValueError(f"{text!r}: {syntax.render(tree)} is not a number of rows")
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
        raise ValueError(f"{text!r}: the result would depend on the order of ties; write ROWS")
