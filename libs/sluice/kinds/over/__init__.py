"""Declaration of `kind: over`: rows with window functions over their partition.

They are in expressions: `total - lag(total) OVER w`, `sum(x) OVER (w ROWS ...)`.

`w` is the view's partition in its order, `p` the whole partition. Each call is cut out of its
expression, which then reads it as a column. A RANGE with a distance includes the rows whose order
value is within that distance.

All deterministic window functions of Spark are supported. Approximations are not, nor is
`collect_set`, because its elements have no order.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator
from sqlglot import exp

from sluice.declare.table_spec import Reference, View
from sluice.language import Model, syntax
from sluice.language.expression import UNREADABLE, WRITTEN, Aggregate, Expression, SortKey, Written
from sluice.language.names import WRITTEN_NAME, Name

ORDERED, WHOLE = "w", "p"
SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"

# Lengths of interval units, to compare two bounds.
SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400, "week": 604_800}
_UNITS = {**SECONDS, "month": 2_629_746, "year": 31_556_952}

RANKS = {
    **dict.fromkeys(("row_number", "rank", "dense_rank", "ntile"), "INT"),
    **dict.fromkeys(("percent_rank", "cume_dist"), "DOUBLE"),
}
OF_TIES = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
OTHER_ROWS = frozenset({"lag", "lead"})
ROWS_OF_FRAME = frozenset({"first_value", "last_value", "nth_value", "first", "last", "any_value"})

# Aggregates that streams have as well; `language` knows their arguments and their types.
SHARED: Mapping[str, str] = {  # Spark's name -> its name in streams
    **{name: name for name in ("count", "sum", "avg", "min", "max", "bool_and", "bool_or")},
    **{name: name for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "percentile")},
    **dict.fromkeys(("mean", "try_avg"), "avg"),
    **dict.fromkeys(("stddev", "std"), "stddev_samp"),
    **dict.fromkeys(("collect_list", "array_agg"), "collect_list"),
    "try_sum": "sum",
    "every": "bool_and",
    "some": "bool_or",
    "variance": "var_samp",
    "max_by": "max_by",
    "min_by": "min_by",
}

_PAIRS = "corr covar_pop covar_samp"
_REGRESSIONS = "avgx avgy intercept r2 slope sxx sxy syy"

# Those that only windows have: the kinds of their arguments, and their type; '' for the argument's.
OTHERS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "count_if": (("condition",), "BIGINT"),
    **dict.fromkeys(("bit_and", "bit_or", "bit_xor"), (("whole",), "")),
    **dict.fromkeys(("skewness", "kurtosis"), (("number",), "DOUBLE")),
    **dict.fromkeys(_PAIRS.split(), (("number", "number"), "DOUBLE")),
    **{f"regr_{name}": (("number", "number"), "DOUBLE") for name in _REGRESSIONS.split()},
    "regr_count": (("number", "number"), "BIGINT"),
}
AGGREGATES = frozenset({*SHARED, *OTHERS})
EXACT = frozenset(
    {
        *("count", "min", "max", "bool_and", "bool_or", "every", "some", "percentile"),
        *("count_if", "bit_and", "bit_or", "bit_xor", "regr_count"),
    }
)
SUMS = frozenset({"sum", "avg", "mean", "try_sum", "try_avg"})  # exact of exact numbers
IGNORES_NULLS = OTHER_ROWS | ROWS_OF_FRAME
COUNTED = {"ntile": 0, "lag": 1, "lead": 1, "nth_value": 1}  # argument that is a number of rows
FUNCTIONS = (*RANKS, *sorted(OTHER_ROWS | ROWS_OF_FRAME | AGGREGATES))
_ARGUMENTS = {"lag": (1, 3), "lead": (1, 3), "ntile": (1, 1), "nth_value": (2, 2)}


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
            call = _window_call(node)
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

    def __str__(self) -> str:
        return self.text

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


def _window_call(node: exp.Window) -> WindowCall:
    text = syntax.render(node)
    window = node.alias.lower()
    known = ("this", "alias", "spec", "over")
    given = [name for name, value in node.args.items() if value and name not in known]
    if given or window not in (ORDERED, WHOLE):
        raise ValueError(
            f"{text!r}: write OVER w for the view's partition in its order, or OVER p for its "
            "whole partition"
        )
    called = _read_call(node.this, text)
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


def _read_call(node: syntax.Tree, text: str) -> exp.Anonymous:
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
        number = f"{least} to {most} arguments" if least < most else f"{most} argument(s)"
        raise ValueError(f"{text!r}: {function} takes {number if most else 'no argument'}")
    counted = COUNTED.get(function)
    for nth, tree in enumerate(call.expressions):
        is_number = isinstance(tree, exp.Literal) and not tree.is_string and tree.name.isdigit()
        if nth == counted and not (is_number and LEAST.get(function, 1) <= int(tree.name) <= MOST):
            raise ValueError(f"{text!r}: {syntax.render(tree)} is not a number of rows")
        syntax.check(tree)
        yield Expression.of(tree, syntax.render(tree))


def _check_frame(function: str, window: str, frame: str, text: str) -> None:
    if window == WHOLE and (frame or function not in AGGREGATES):
        raise ValueError(f"{text!r}: p has no order; only aggregates without a frame go over it")
    if frame and (function in RANKS or function in OTHER_ROWS):
        raise ValueError(f"{text!r}: {function} has no frame")
    if frame.startswith("RANGE") and function in ROWS_OF_FRAME:
        raise ValueError(f"{text!r}: the result would depend on the order of ties; write ROWS")


def frame_of(spec: Any, text: str) -> tuple[str, tuple[Expression, ...]]:
    """Return a window's frame in SQL, and the distances of a RANGE. Raises ValueError for a
    mistake.
    """
    if spec is None:
        return "", ()
    kind = str(spec.args.get("kind")).upper()
    known = ("kind", "start", "start_side", "end", "end_side")
    others = [name.upper() for name, value in spec.args.items() if value and name not in known]
    if others or kind not in ("ROWS", "RANGE"):
        what = ", ".join(others) or kind
        raise ValueError(f"{text!r}: a frame is of ROWS or RANGE; {what} is not allowed")
    ends = [_read_bound(spec, which, text, kind) for which in ("start", "end")]
    (first, start), (last, end) = ends
    if first > last or first == math.inf or last == -math.inf:
        raise ValueError(f"{text!r}: the frame ends before it begins")
    bounds = [spec.args.get(which) for which in ("start", "end")]
    distances = [bound for bound in bounds if isinstance(bound, exp.Literal | exp.Interval)]
    if kind == "RANGE" and len(set(map(_unit, distances))) > 1:
        raise ValueError(f"{text!r}: write both bounds of a RANGE in one unit, as Spark wants them")
    frame = f"{kind} BETWEEN {start} AND {end}"
    return frame, tuple(map(Expression.of, distances)) if kind == "RANGE" else ()


def _unit(value: syntax.Tree) -> str:
    """Return the unit of a distance; weeks are days."""
    if isinstance(value, exp.Interval):
        return str(value.args["unit"].name.lower().removesuffix("s").replace("week", "day"))
    return "whole" if value.name.isdigit() else "fraction"


def _read_bound(spec: exp.Expression, which: str, text: str, kind: str) -> tuple[float, str]:
    """Return a frame's bound: its distance from the row, and in SQL."""
    value, side = spec.args.get(which), str(spec.args.get(f"{which}_side")).upper()
    sign = -1 if side == "PRECEDING" else 1
    if value is None or str(value).upper() == "CURRENT ROW":
        return 0, "CURRENT ROW"
    if str(value).upper() == "UNBOUNDED":
        return sign * math.inf, f"UNBOUNDED {side}"
    if kind == "RANGE":
        distance = _read_distance(value)
    else:
        is_whole = isinstance(value, exp.Literal) and not value.is_string and value.name.isdigit()
        distance = int(value.name) if is_whole and int(value.name) <= MOST else None
    if distance is None:
        what = (
            "not a number of rows" if kind == "ROWS" else "neither a number nor INTERVAL '7' DAYS"
        )
        raise ValueError(f"{text!r}: {syntax.render(value)} is {what}")
    return sign * distance, f"{syntax.render(value)} {side}"


def _read_distance(value: syntax.Tree) -> float | None:
    if isinstance(value, exp.Literal) and not value.is_string:
        syntax.check(value)
        return float(value.name)
    if not isinstance(value, exp.Interval) or not isinstance(value.args.get("unit"), exp.Var):
        return None
    unit = value.args["unit"].name.lower().removesuffix("s")
    number = value.this.name if isinstance(value.this, exp.Literal) else ""
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else None


LEAST, MOST = {"lag": 0, "lead": 0}, 2**31 - 1


def arguments_of(function: str) -> tuple[int, int]:
    """Return the least and the greatest number of its arguments."""
    if function in OTHERS:
        return (len(OTHERS[function][0]),) * 2
    return _ARGUMENTS.get(function, (0, 0) if function in RANKS else (1, 1))


BY = "_sluice_by_"  # with a number: a value that the rows of a partition share

OBJECT = {"type": "object", "patternProperties": {WRITTEN_NAME["pattern"]: WRITTEN}}


class Over(View):
    """One row per row of the input, with columns that read the rows around it."""

    KIND: ClassVar[str] = "over"

    kind: Literal["over"] = "over"
    from_: str = Field(alias="from")
    where: Expression | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    select: Annotated[dict[Name, WindowedExpression], Field(min_length=1), WithJsonSchema(OBJECT)]

    @model_validator(mode="after")
    def _windows_have_an_order(self) -> Self:
        if self.retention:
            raise ValueError("`retention` needs a window of time; this keeps its input's rows")
        calls = [call for one in self.select.values() for call in one.calls]
        if not calls:
            raise ValueError("no window function (… OVER w) is selected: declare a select")
        if not self.order_by and any(call.window == ORDERED for call in calls):
            raise ValueError("`order_by` is missing: OVER w goes by it")
        if len(self.order_by) > 1 and (far := next((c for c in calls if c.distances), None)):
            raise ValueError(
                f"{far.sql}: {far.frame} goes by the values of one expression; "
                f"`order_by` has {len(self.order_by)}"
            )
        return self

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)
