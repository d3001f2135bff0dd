"""Expressions as written: the tree that both protocol and SQL text are read into."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql.types import DataType


class Node:
    """One part of an expression."""

    __slots__ = ()


@dataclass(frozen=True, eq=False, slots=True)
class Literal(Node):
    """A constant."""

    value: Any
    type: DataType


@dataclass(frozen=True, eq=False, slots=True)
class Name(Node):
    """A column, perhaps of an alias, and fields within it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Numbered(Node):
    """A column by its number, from an expanded star."""

    number: int


@dataclass(frozen=True, eq=False, slots=True)
class Variable(Node):
    """A lambda's variable, and fields within it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Star(Node):
    """All columns, perhaps of one alias or struct."""

    of: str | None = None


@dataclass(frozen=True, eq=False, slots=True)
class Call(Node):
    """A function or an operator; `where`: FILTER of an aggregate; `text`: of a division."""

    name: str
    arguments: tuple[Node, ...]
    is_distinct: bool = False
    where: Node | None = None
    text: str = ""


@dataclass(frozen=True, eq=False, slots=True)
class Convert(Node):
    """A cast."""

    child: Node
    type: DataType
    is_try: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Lambda(Node):
    """A function of elements."""

    parameters: tuple[str, ...]
    body: Node


@dataclass(frozen=True, eq=False, slots=True)
class Extract(Node):
    """A field of a struct, or an element of an array or a map."""

    child: Node
    key: Node


@dataclass(frozen=True, eq=False, slots=True)
class Alias(Node):
    """An expression with a name; one that returns several columns has several names."""

    child: Node
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False, slots=True)
class Order(Node):
    """One item of an order."""

    child: Node
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, eq=False, slots=True)
class Over(Node):
    """A window function. A bound is None without a limit, else an offset from the current row."""

    function: Node
    partition: tuple[Node, ...]
    order: tuple[Order, ...]
    frame: "Frame | None" = None
    ignores_nulls: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A distance in time, as a bound of a frame. `unit`: what it is written in."""

    micros: int
    unit: str = "day"


Bound = int | Span | None


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows of a window around the current one, by their number or by their sort keys."""

    by_rows: bool
    lower: Bound
    upper: Bound


def name_of(node: Node) -> str:  # noqa: PLR0911 - one per kind of node
    """Return the name that a column gets from its expression."""
    match node:
        case Alias():
            return node.names[0]
        case Name() | Variable():
            return node.parts[-1]
        case Extract(key=Literal(value=str() as name)):
            return name
        case Convert():
            return name_of(node.child)
        case Call():
            return f"{node.name}({', '.join(map(name_of, node.arguments))})"
        case Literal():
            return str(node.value)
    return "_"
