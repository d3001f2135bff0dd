"""Expressions of Spark Connect's protocol."""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.expressions import split_name
from sluice.interpreter.expressions.from_sql import read_sql, read_type
from sluice.interpreter.values import SIMPLE
from sluice.language.types import read_columns

_DESCENDING = proto.Expression.SortOrder.SORT_DIRECTION_DESCENDING
_NULLS_FIRST = proto.Expression.SortOrder.SORT_NULLS_FIRST
_TRY = proto.Expression.Cast.EVAL_MODE_TRY
_ROWS = proto.Expression.Window.WindowFrame.FRAME_TYPE_ROW
_TYPES = {type_.typeName(): type_ for type_ in SIMPLE}


def read_expression(expression: proto.Expression) -> E.ExpressionNode:
    """Return the tree of an expression. Raises UnsupportedLocally for an unknown kind."""
    kind = expression.WhichOneof("expr_type")
    if kind is None or kind not in _READERS:
        raise UnsupportedLocally(f"expressions of kind {kind}")
    return _READERS[kind](getattr(expression, kind))


def _all(expressions: Any) -> tuple[E.ExpressionNode, ...]:
    return tuple(map(read_expression, expressions))


def _cast(cast: proto.Expression.Cast) -> E.ExpressionNode:
    if cast.WhichOneof("cast_to_type") == "type_str":
        type_ = read_type(cast.type_str)
    else:
        type_ = proto_schema_to_pyspark_data_type(cast.type)
    return E.Convert(read_expression(cast.expr), type_, cast.eval_mode == _TRY)


def order_of(order: proto.Expression.SortOrder) -> E.SortItem:
    """Return one item of an order."""
    return E.SortItem(
        read_expression(order.child),
        order.direction == _DESCENDING,
        order.null_ordering == _NULLS_FIRST,
    )


def _window(window: proto.Expression.Window) -> E.WindowFunction:
    frame = None
    if window.HasField("frame_spec"):
        by_rows = window.frame_spec.frame_type == _ROWS
        frame = E.Frame(by_rows, _bound(window.frame_spec.lower), _bound(window.frame_spec.upper))
    return E.WindowFunction(
        read_expression(window.window_function),
        _all(window.partition_spec),
        tuple(map(order_of, window.order_spec)),
        frame,
    )


def _bound(bound: Any) -> int | None:
    match bound.WhichOneof("boundary"):
        case "current_row":
            return 0
        case "unbounded":
            return None
    found = read_expression(bound.value)
    if isinstance(found, E.Literal) and isinstance(found.value, int):
        return found.value
    raise UnsupportedLocally("a frame bound that is not a number")


def _literal(literal: proto.Expression.Literal) -> E.Literal:
    kind = literal.WhichOneof("literal_type")
    if kind in _TYPES:
        return E.Literal(getattr(literal, kind), _TYPES[kind])
    if kind == "null":
        return E.Literal(None, proto_schema_to_pyspark_data_type(literal.null))
    if kind == "decimal":
        text, type_ = read_decimal(literal.decimal)
        _, _, digits = text.partition(".")
        unscaled = int(text.replace(".", "")) * 10 ** (type_.scale - len(digits))
        return E.Literal(unscaled, type_)
    raise UnsupportedLocally(f"a literal of kind {kind}")


def read_decimal(found: Any) -> tuple[str, T.DecimalType]:
    """Return a decimal's text and type. The client's type may be too small; a server widens it."""
    text = f"{Decimal(found.value):f}"
    _, _, digits = text.partition(".")
    scale = max(len(digits), found.scale)
    precision = len(text.lstrip("-0.").replace(".", ""))
    return text, T.DecimalType(max(precision, found.precision, scale), scale)


def _function(found: proto.Expression.UnresolvedFunction) -> E.FunctionCall:
    if found.is_user_defined_function:
        raise UnsupportedLocally(f"the user-defined function {found.function_name}")
    return E.FunctionCall(found.function_name.lower(), _all(found.arguments), found.is_distinct)


_READERS: dict[str, Callable[[Any], E.ExpressionNode]] = {
    "literal": _literal,
    "unresolved_attribute": lambda e: E.ColumnName(split_name(e.unparsed_identifier)),
    "unresolved_star": lambda e: E.Star(e.unparsed_target.removesuffix(".*") or None),
    "expression_string": lambda e: read_sql(e.expression),
    "unresolved_function": _function,
    "call_function": lambda e: E.FunctionCall(e.function_name.lower(), _all(e.arguments)),
    "alias": lambda e: E.Alias(read_expression(e.expr), tuple(e.name)),
    "cast": _cast,
    "sort_order": order_of,
    "lambda_function": lambda e: E.Lambda(
        tuple(a.name_parts[0] for a in e.arguments), read_expression(e.function)
    ),
    "unresolved_named_lambda_variable": lambda e: E.Variable(tuple(e.name_parts)),
    "unresolved_extract_value": lambda e: E.Extract(
        read_expression(e.child), read_expression(e.extraction)
    ),
    "window": _window,
}


def schema_of(text: str) -> T.StructType:
    """Return the schema of a local relation, as JSON or DDL."""
    if text.startswith("{"):
        return T.StructType.fromJson(json.loads(text))
    fields = [T.StructField(n.strip("`"), read_type(type_)) for n, type_ in read_columns(text)]
    return T.StructType(fields)


@lru_cache(maxsize=256)  # a failed attempt of the parser keeps its callers' rows until collected
def type_of(text: str) -> T.DataType:
    """Return the type that DDL names: a single one, or that of rows with named columns."""
    try:
        return read_type(text)
    except UnsupportedLocally:
        return schema_of(text)
