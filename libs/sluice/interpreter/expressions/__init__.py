"""Expressions: read from the protocol and from SQL into one tree, then compiled to functions.

Here is the tree: expressions as written.
"""

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType

from sluice.interpreter import UnsupportedLocally


class ExpressionNode:
    """One part of an expression."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Literal(ExpressionNode):
    """A constant."""

    value: Any
    type: DataType


@dataclass(frozen=True, eq=False, slots=True)
class ColumnName(ExpressionNode):
    """A column, perhaps of an alias, and fields within it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class ColumnNumber(ExpressionNode):
    """A column by its number, from an expanded star."""

    number: int


@dataclass(frozen=True, eq=False, slots=True)
class Variable(ExpressionNode):
    """A lambda's variable, and fields within it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Star(ExpressionNode):
    """All columns, perhaps of one alias or struct."""

    of: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class FunctionCall(ExpressionNode):
    """A function or an operator; `where`: FILTER of an aggregate; `text`: of a division."""

    name: str
    arguments: tuple[ExpressionNode, ...]
    is_distinct: bool = False
    where: ExpressionNode | None = None
    text: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Convert(ExpressionNode):
    """A cast."""

    child: ExpressionNode
    type: DataType
    is_try: bool


@dataclass(frozen=True, eq=False, slots=True)
class Lambda(ExpressionNode):
    """A function of elements."""

    parameters: tuple[str, ...]
    body: ExpressionNode


@dataclass(frozen=True, eq=False, slots=True)
class Extract(ExpressionNode):
    """A field of a struct, or an element of an array or a map."""

    child: ExpressionNode
    key: ExpressionNode


@dataclass(frozen=True, eq=False, slots=True)
class Alias(ExpressionNode):
    """An expression with a name; one that returns several columns has several names."""

    child: ExpressionNode
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class SortItem(ExpressionNode):
    """One item of an order."""

    child: ExpressionNode
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, eq=False, slots=True)
class WindowFunction(ExpressionNode):
    """A window function. A bound is None without a limit, else an offset from the current row."""

    function: ExpressionNode
    partition: tuple[ExpressionNode, ...]
    order: tuple[SortItem, ...]
    frame: "Frame | None" = None
    ignores_nulls: bool = False


@dataclass(frozen=True, slots=True)
class TimeOffset:
    """A distance in time, as a bound of a frame. `unit`: what it is written in."""

    micros: int
    unit: str = "day"


FrameBound = int | TimeOffset | None


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of a window around the current one, by their number or by their sort keys."""

    by_rows: bool
    lower: FrameBound
    upper: FrameBound


def name_of(node: ExpressionNode) -> str:  # noqa: PLR0911 - one per kind of node
    """Return the name that a column gets from its expression."""
    match node:
        case Alias():
            return node.names[0]
        case ColumnName() | Variable():
            return node.parts[-1]
        case Extract(key=Literal(value=str() as name)):
            return name
        case Convert():
            return name_of(node.child)
        case FunctionCall():
            return f"{node.name}({', '.join(map(name_of, node.arguments))})"
        case Literal():
            return str(node.value)
    return "_"


def is_named(node: ExpressionNode) -> bool:
    """Return whether an expression has a name of its own, also within a struct."""
    match node:
        case Alias() | ColumnName() | Variable() | Extract(key=Literal(value=str())):
            return True
    return False


_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def split_name(text: str) -> tuple[str, ...]:
    """Return the parts of a name such as `a.`b c`.d`."""
    parts, at = [], 0
    while at <= len(text):
        found = _PART.match(text, at)
        if not found or (found.end() < len(text) and text[found.end()] != "."):
            raise UnsupportedLocally(f"the name {text!r}")
        parts.append(found[2] if found[1] is None else found[1].replace("``", "`"))
        at = found.end() + 1
    return tuple(parts)
