"""Expressions of SQL text, as `selectExpr`, `where` and `expr` take them."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from pyspark.sql import types as T
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.values import BOOLEAN, NULL, SIMPLE, STRING
from sluice.interpreter.values.texts import DAY, UNITS
from sluice.language import inference
from sluice.language.syntax import Tree, Verbatim

_NUMBER = re.compile(r"[+-]?\d+(?:\.\d{1,9})?", re.ASCII)
_PART = re.compile(r"([+-]?)\s*(\d{1,18})(?:\.(\d{1,9}))?\s+([a-z]+?)s?(?:\s+|$)", re.ASCII)
_MONTHS = {"year": 12, "month": 1}
_MICROS = {**UNITS, "day": DAY, "week": 7 * DAY}
_UNITS = {*_MONTHS, *_MICROS}
_FIELDS = ("day", "hour", "minute", "second")  # of INTERVAL DAY TO SECOND; others count as these
_FIELD_OF = {"week": "day", "millisecond": "second", "microsecond": "second"}
_MOST = {"hour": 24, "minute": 60, "second": 60}  # of units that are not the largest


def interval_of(tree: exp.Interval) -> E.Literal:
    """Return the constant that an interval is. Raises UnsupportedLocally for another form."""
    unit, written = tree.args.get("unit"), tree.this
    if not isinstance(written, exp.Literal):
        raise UnsupportedLocally("an interval that is not a constant")
    if isinstance(unit, exp.IntervalSpan):
        return _span(written.name, unit.this.name.lower(), unit.expression.name.lower())
    if unit is None:
        return _parts(written.name.lower().strip().removeprefix("interval "))
    if not isinstance(unit, exp.Var) or not _NUMBER.fullmatch(written.name):
        raise UnsupportedLocally("an interval with an unsupported unit or number")
    return _parts(f"{written.name} {unit.name.lower()}")


def _parts(text: str) -> E.Literal:
    parts = _PART.findall(text)
    units = [unit for *_, unit in parts]
    if not parts or _PART.sub("", text).strip() or not {*units} <= _UNITS:
        raise UnsupportedLocally(f"the interval {text!r}")
    if any(fraction and unit != "second" for _, _, fraction, unit in parts):
        raise UnsupportedLocally(f"the interval {text!r}")
    signed = [(-1 if sign == "-" else 1, int(n), part, unit) for sign, n, part, unit in parts]
    if {*units} <= {*_MONTHS}:
        ends = sorted(units, key=[*_MONTHS].index)
        return _months(sum(s * n * _MONTHS[unit] for s, n, _, unit in signed), ends[0], ends[-1])
    if {*units} & {*_MONTHS}:
        raise UnsupportedLocally("an interval of both months and days")
    micros = sum(
        s * (n * _MICROS[unit] + int(part[:6].ljust(6, "0"))) for s, n, part, unit in signed
    )
    fields = sorted(_FIELDS.index(_FIELD_OF.get(unit, unit)) for unit in units)
    return _micros(micros, fields[0], fields[-1])


def _span(text: str, first: str, last: str) -> E.Literal:
    if (first, last) == ("year", "month"):
        found = re.fullmatch(r"([+-]?)(\d+)-(\d{1,2})", text, re.ASCII)
        if not found or int(found[3]) >= 12:
            raise UnsupportedLocally("an interval of an unsupported form")
        months = int(found[2]) * 12 + int(found[3])
        return _months(-months if found[1] == "-" else months, first, last)
    if first not in _FIELDS or last not in _FIELDS[_FIELDS.index(first) + 1 :]:
        raise UnsupportedLocally("an interval with unsupported units")
    names = _FIELDS[_FIELDS.index(first) : _FIELDS.index(last) + 1]
    rest = ":".join(rf"(?P<{name}>\d{{1,2}})" for name in names[1:])
    form = rf"(?P<{first}>\d+){' ' if first == 'day' else ':'}{rest}"
    fraction = r"(?:\.(?P<fraction>\d{1,9}))?" if last == "second" else ""
    found = re.fullmatch(f"(?P<sign>[+-]?){form}{fraction}", text, re.ASCII)
    if not found or any(int(found[name]) >= _MOST[name] for name in names[1:]):
        raise UnsupportedLocally("an interval of an unsupported form")
    micros = sum(int(found[name]) * _MICROS[name] for name in names)
    micros += int((found.groupdict().get("fraction") or "")[:6].ljust(6, "0"))
    micros = -micros if found["sign"] == "-" else micros
    return _micros(micros, _FIELDS.index(first), _FIELDS.index(last))


def _months(months: int, first: str, last: str) -> E.Literal:
    fields = [[*_MONTHS].index(name) for name in (first, last)]
    if not -(2**31) <= months < 2**31:
        raise UnsupportedLocally("an interval of too many months")
    return E.Literal(months, T.YearMonthIntervalType(*fields))


def _micros(micros: int, first: int, last: int) -> E.Literal:
    """Return an interval whose fraction of a second is cut to microseconds."""
    if abs(micros) >= 2**63:
        raise UnsupportedLocally("an interval of too many microseconds")
    return E.Literal(micros, T.DayTimeIntervalType(first, last))


_KIND = exp.DataType.Type
_NAMES = {"string": "text", "timestamp": "timestamptz", "timestamp_ntz": "timestampntz"}
_TYPES: dict[Any, T.DataType] = {
    _KIND[_NAMES.get(t.simpleString(), t.simpleString()).upper()]: t for t in SIMPLE
} | {_KIND.TIMESTAMPLTZ: T.TimestampType()}
_OPERATORS: dict[type[Tree], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "div",
    exp.Mod: "%",
    exp.And: "and",
    exp.Or: "or",
    exp.EQ: "==",
    exp.NEQ: "!=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.DPipe: "concat",
    exp.Not: "not",
    exp.Neg: "negative",
    exp.Like: "like",
    exp.ILike: "ilike",
    exp.RegexpLike: "rlike",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseNot: "~",
}
_BY_UNIT = ("timestampdiff", "timestampadd", "dateadd")
_DIGITS = {"l": T.LongType(), "s": T.ShortType(), "y": T.ByteType(), "d": T.DoubleType()}


@lru_cache(maxsize=4096)
def read_sql(text: str) -> E.ExpressionNode:
    """Return the tree of one expression, perhaps with an alias."""
    try:
        trees = Verbatim().parse(text)
    except SqlglotError as error:
        raise UnsupportedLocally(f"the SQL {text!r}: {error}") from None
    if len(trees) != 1 or trees[0] is None:
        raise UnsupportedLocally(f"the SQL {text!r}")
    return _read_part(trees[0])


@lru_cache(maxsize=512)
def read_type(text: str) -> T.DataType:
    """Return the type of that name."""
    try:
        tree = Verbatim().parse_into(exp.DataType, text)[0]
    except SqlglotError as error:
        raise UnsupportedLocally(f"the type {text!r}: {error}") from None
    assert isinstance(tree, exp.DataType)
    return _type(tree)


def _type(tree: exp.DataType) -> T.DataType:
    inner = tree.expressions
    if tree.args.get("collate") or tree.find(exp.CollateColumnConstraint):
        raise UnsupportedLocally(f"the collation of {tree.sql()}")
    match tree.this:
        case _KIND.DECIMAL:
            precision, scale = [int(p.name) for p in inner] if len(inner) == 2 else (10, 0)
            return T.DecimalType(int(inner[0].name) if len(inner) == 1 else precision, scale)
        case _KIND.ARRAY:
            return T.ArrayType(_type(inner[0]))
        case _KIND.MAP:
            return T.MapType(_type(inner[0]), _type(inner[1]))
        case _KIND.STRUCT:
            fields = [T.StructField(f.this.name, _type(f.args["kind"])) for f in inner]
            return T.StructType(fields)
    if tree.this not in _TYPES or inner:
        raise UnsupportedLocally(f"the type {tree.sql()}")
    return _TYPES[tree.this]


def _read_part(tree: Tree) -> E.ExpressionNode:
    """Return the tree of a part. Raises UnsupportedLocally if it has an unknown part."""
    parts, read = _READERS.get(type(tree), ("this expression", _operator))
    known = parts.split()
    if further := [name for name, part in tree.args.items() if part and name not in known]:
        raise UnsupportedLocally(f"{', '.join(further)} in the SQL {tree.sql(dialect=Verbatim)!r}")
    return read(tree)


# Precedence in Spark, unlike the parser's: all comparisons are equal.
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_PREDICATES = (exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Not)


def _call_of(name: str, *trees: Tree | None) -> E.FunctionCall:
    """Return a call with the parts that are given."""
    return E.FunctionCall(name, tuple(_read_part(tree) for tree in trees if tree))


def _binds_otherwise(tree: Tree) -> bool:
    """Return whether Spark applies the operators in a different order."""
    if not isinstance(tree, _COMPARISONS):
        return False
    is_chain = isinstance(tree.expression, _COMPARISONS)
    return is_chain or any(isinstance(one, _PREDICATES) for one in (tree.this, tree.expression))


def _operator(tree: Tree) -> E.FunctionCall:
    if type(tree) not in _OPERATORS or _binds_otherwise(tree):
        raise UnsupportedLocally(f"the SQL {tree.sql(dialect=Verbatim)!r}")
    other = tree.expression if isinstance(tree, exp.Binary) else None
    text = tree.sql(dialect=Verbatim) if isinstance(tree, exp.Div | exp.IntDiv | exp.Mod) else ""
    return replace(_call_of(_OPERATORS[type(tree)], tree.this, other), text=text)


def _like(tree: Tree) -> E.ExpressionNode:
    found = _operator(tree)
    return E.FunctionCall("not", (found,)) if tree.args.get("negate") else found


def _negative(tree: exp.Neg) -> E.ExpressionNode:
    is_number = isinstance(tree.this, exp.Literal) and not tree.this.is_string
    return _literal(tree.this, sign=-1) if is_number else _operator(tree)


def _column(tree: exp.Column) -> E.ExpressionNode:
    if isinstance(tree.this, exp.Star):
        return E.Star(tree.table or None)
    return E.ColumnName(tuple(part.name for part in tree.parts))


def _alias(tree: exp.Alias) -> E.ExpressionNode:
    if isinstance(tree.this, exp.Interval) and tree.alias.lower().removesuffix("s") in _UNITS:
        raise UnsupportedLocally(
            f"the interval {tree.sql(dialect=Verbatim)!r}"
        )  # its name may be a unit
    return E.Alias(_read_part(tree.this), (tree.alias,))


def _is(tree: exp.Is) -> E.ExpressionNode:
    is_null = isinstance(tree.expression, exp.Null)
    return _call_of("isnull", tree.this) if is_null else _operator(tree)


def _cast(tree: exp.Cast) -> E.ExpressionNode:
    if tree.args["to"].find(exp.NotNullColumnConstraint):
        raise UnsupportedLocally("a cast to a field that is NOT NULL")
    return E.Convert(_read_part(tree.this), _type(tree.args["to"]), bool(tree.args.get("safe")))


def _between(tree: exp.Between) -> E.ExpressionNode:
    value, low, high = (_read_part(tree.args[part]) for part in ("this", "low", "high"))
    ends = (E.FunctionCall(">=", (value, low)), E.FunctionCall("<=", (value, high)))
    return E.FunctionCall("and", ends)


def _filter(tree: exp.Filter) -> E.ExpressionNode:
    call = _read_part(tree.this)
    assert isinstance(call, E.FunctionCall)
    return replace(call, where=_read_part(tree.expression.this))


def _ignoring_nulls(tree: exp.IgnoreNulls) -> E.ExpressionNode:
    """Return `first(x) IGNORE NULLS` as `first(x, true)`, the form that plans have."""
    call = _read_part(tree.this)
    assert isinstance(call, E.FunctionCall)
    yes = E.Literal(True, BOOLEAN)
    return replace(call, arguments=(*call.arguments, yes))


def _call(tree: exp.Anonymous) -> E.ExpressionNode:
    arguments, name = tree.expressions, tree.name.lower()
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return replace(_call_of(name, *arguments[0].expressions), is_distinct=True)
    if name in _BY_UNIT and len(arguments) == 3 and isinstance(arguments[0], exp.Column):
        arguments = [exp.Literal.string(arguments[0].name), *arguments[1:]]
    return _call_of(name, *arguments)


def _trim(tree: exp.Trim) -> E.ExpressionNode:
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(tree.args.get("position") or "", "trim")
    return _call_of(name, tree.expression, tree.this)


def _case(tree: exp.Case) -> E.ExpressionNode:
    parts: list[E.ExpressionNode] = []
    for branch in tree.args["ifs"]:
        is_met = _call_of("==", tree.this, branch.this) if tree.this else _read_part(branch.this)
        parts += [is_met, _read_part(branch.args["true"])]
    if tree.args.get("default"):
        parts.append(_read_part(tree.args["default"]))
    return E.FunctionCall("when", tuple(parts))


def _literal(tree: exp.Literal, sign: int = 1) -> E.Literal:
    text = tree.name
    if tree.is_string:
        return E.Literal(text, STRING)
    if text[-1].lower() in _DIGITS and text[:-1].isdigit():
        return E.Literal(sign * int(text[:-1]), _DIGITS[text[-1].lower()])
    if sign < 0 and text == str(2**31):
        return E.Literal(-(2**31), T.IntegerType())
    type_ = read_type(inference.literal(tree))
    if isinstance(type_, T.DecimalType):
        return E.Literal(sign * int(text.replace(".", "")), type_)
    return E.Literal(sign * (float(text) if isinstance(type_, T.DoubleType) else int(text)), type_)


def _window(tree: exp.Window) -> E.WindowFunction:
    function, order = tree.this, tree.args.get("order")
    is_told = isinstance(function, exp.IgnoreNulls | exp.RespectNulls)
    return E.WindowFunction(
        _read_part(function.this if is_told else function),
        tuple(map(_read_part, tree.args.get("partition_by") or ())),
        tuple(order_of(item) for item in (order.expressions if order else ())),
        _frame(tree.args.get("spec")),
        ignores_nulls=isinstance(function, exp.IgnoreNulls),
    )


def order_of(tree: Tree) -> E.SortItem:
    """Return one item of ORDER BY."""
    if not isinstance(tree, exp.Ordered):
        return E.SortItem(_read_part(tree), descending=False, nulls_first=True)
    return E.SortItem(
        _read_part(tree.this), bool(tree.args.get("desc")), bool(tree.args.get("nulls_first"))
    )


def _frame(spec: exp.WindowSpec | None) -> E.Frame | None:
    if spec is None:
        return None
    if spec.args.get("kind") not in ("ROWS", "RANGE"):
        raise UnsupportedLocally("a window frame other than ROWS or RANGE")
    lower = _bound(spec.args.get("start"), spec.args.get("start_side"), "PRECEDING")
    upper = _bound(spec.args.get("end"), spec.args.get("end_side"), "FOLLOWING")
    return E.Frame(spec.args["kind"] == "ROWS", lower, upper)


def _bound(end: Tree | str | None, side: str | None, outward: str) -> E.FrameBound:
    if end == "UNBOUNDED" and side == outward:
        return None
    if end in ("CURRENT ROW", None):
        return 0
    sign = -1 if side == "PRECEDING" else 1
    if isinstance(end, exp.Literal) and end.is_int and int(end.name):
        return sign * int(end.name)
    if isinstance(end, exp.Interval):
        return _time_offset(end, sign)
    raise UnsupportedLocally("a frame bound that is not a constant number or interval")


def _time_offset(tree: exp.Interval, sign: int) -> E.TimeOffset:
    """Return an interval as a distance in time; months are none."""
    found = interval_of(tree)
    if not isinstance(found.type, T.DayTimeIntervalType) or found.value < 0:
        raise UnsupportedLocally("a frame bound in months, or a negative one")
    return E.TimeOffset(sign * found.value, found.type.simpleString())


# The reader of each part of SQL, and its supported arguments; any other argument would change the
# meaning.
_READERS: dict[type[Tree], tuple[str, Callable[[Any], E.ExpressionNode]]] = {
    exp.Paren: ("this", lambda t: _read_part(t.this)),
    exp.Alias: ("this alias", _alias),
    exp.Column: ("this table db catalog", _column),
    exp.Identifier: ("this quoted", lambda t: E.ColumnName((t.name,))),
    exp.Dot: (
        "this expression",
        lambda t: E.Extract(_read_part(t.this), E.Literal(t.expression.name, STRING)),
    ),
    exp.Bracket: (
        "this expressions",
        lambda t: E.Extract(_read_part(t.this), _read_part(t.expressions[0])),
    ),
    exp.Star: ("", lambda _: E.Star()),
    exp.Literal: ("this is_string", _literal),
    exp.Interval: ("this unit fraction_in_string", interval_of),
    exp.Boolean: ("this", lambda t: E.Literal(bool(t.this), BOOLEAN)),
    exp.Null: ("", lambda _: E.Literal(None, NULL)),
    exp.Cast: ("this to safe", _cast),
    exp.TryCast: ("this to safe", _cast),
    exp.Case: ("this ifs default", _case),
    exp.If: (
        "this true false",
        lambda t: _call_of("when", t.this, t.args["true"], t.args.get("false")),
    ),
    exp.In: ("this expressions", lambda t: _call_of("in", t.this, *t.expressions)),
    exp.Between: ("this low high", _between),
    exp.Is: ("this expression", _is),
    exp.Window: ("this partition_by order spec over", _window),
    exp.Filter: ("this expression", _filter),
    exp.IgnoreNulls: ("this", _ignoring_nulls),
    exp.Lambda: (
        "this expressions",
        lambda t: E.Lambda(tuple(p.name for p in t.expressions), _read_part(t.this)),
    ),
    exp.Transform: ("this expression", lambda t: _call_of("transform", t.this, t.expression)),
    exp.Trim: ("this expression position", _trim),
    exp.StrPosition: (
        "this substr position",
        lambda t: _call_of("locate", t.args["substr"], t.this, t.args.get("position")),
    ),
    exp.Anonymous: ("this expressions", _call),
    exp.Div: ("this expression typed safe", _operator),
    exp.DPipe: ("this expression safe", _operator),
    exp.Not: ("this", _operator),
    exp.Neg: ("this", _negative),
    exp.BitwiseNot: ("this", _operator),
    exp.Like: ("this expression negate", _like),
    exp.ILike: ("this expression negate", _like),
}
