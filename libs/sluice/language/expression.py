"""Checked expressions: scalar ones, sort keys and aggregates.

`sql` is regenerated from the checked tree and safe to pass to Spark; `text` is the user's text, for
messages. This module does not know which columns exist: `columns` lists those read, and resolution
checks them against the input.
"""

from abc import abstractmethod
from collections.abc import Container, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    ValidationInfo,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from sqlglot import exp

from sluice.language import Model, is_draft, syntax
from sluice.language.aggregate_syntax import KEEPING, ORDERED, read_aggregate
from sluice.language.names import WRITTEN_NAME, Name

NOTHING = "nothing is given; for a column of nulls, write one with a type: 'cast(null as STRING)'"
UNREADABLE = "unreadable"
WRITTEN: JsonSchemaValue = {"type": ["string", "number", "boolean"], "pattern": r"\S"}


class Written(Model):
    """A model that users write as one text.

    `STAND_IN`: what a draft has in place of a text that can't be read.
    """

    STAND_IN: ClassVar[str] = UNREADABLE

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self:
        """Parse a text into the checked model; ValueError names what is not allowed."""

    @classmethod
    @abstractmethod
    def spelled(cls, meant: Any) -> str:
        """Return what users write; `meant`: what a table's meaning records of it."""

    @model_serializer
    def write(self) -> str:
        """Return it as its user wrote it."""
        return str(self)

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any, info: ValidationInfo) -> Any:
        text = as_text(data)
        try:
            if data is None:
                raise ValueError(NOTHING)
            return data if text is None else cls.parse(text).__dict__
        except ValueError:
            if not is_draft(info):
                raise
            return cls.parse(cls.STAND_IN).__dict__

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return WRITTEN


class Expression(Written):
    """A scalar expression of a row."""

    text: str
    sql: str
    columns: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(syntax.parse(text), text)

    @classmethod
    def spelled(cls, meant: Any) -> str:
        return str(meant)

    @classmethod
    def of(cls, tree: syntax.Tree, text: str = "") -> Self:
        """Return the expression of a tree that was checked before.

        A tree cut out of a longer text must be a valid expression on its own.
        """
        sql = syntax.render(tree)
        if not text:
            syntax.parse(sql)
        return cls(text=text or sql, sql=sql, columns=frozenset(syntax.columns(tree)))

    @property
    def plain_column(self) -> str | None:
        """Name of the column, if the expression is just a column."""
        only = next(iter(self.columns), None)
        return only if len(self.columns) == 1 and self.sql.replace("`", "") == only else None

    def reads(self, visible: Container[str]) -> frozenset[str]:
        """Return its visible columns; a struct's field (`address.city`) counts as its column."""
        return frozenset(c if c in visible else c.split(".")[0] for c in self.columns)

    def __str__(self) -> str:
        return self.text


class SortKey(Written):
    """`sales desc nulls last`; Spark's defaults: nulls come first ascending, last descending."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = True

    @classmethod
    def parse(cls, text: str) -> Self:
        return cls.of(syntax.parse_as(text, exp.Ordered))

    @classmethod
    def of(cls, ordered: syntax.Tree) -> Self:
        """Return the sort key of an ORDER BY item."""
        syntax.check(ordered.this)
        return cls(
            expression=Expression.of(ordered.this),
            descending=bool(ordered.args.get("desc")),
            nulls_first=bool(ordered.args.get("nulls_first")),
        )

    @classmethod
    def spelled(cls, meant: Any) -> str:
        words = [str(meant["expression"])]
        is_descending = meant.get("descending", False)
        is_null_first = meant.get("nulls_first", True)
        if is_descending:
            words.append("desc")
        if is_null_first == is_descending:
            words.append(f"nulls {'first' if is_null_first else 'last'}")
        return " ".join(words)

    @model_serializer
    def write(self) -> str:
        """Return it as users write it."""
        order = {"descending": self.descending, "nulls_first": self.nulls_first}
        return SortKey.spelled({"expression": self.expression.text, **order})

    @property
    def sql(self) -> str:
        """ORDER BY item in Spark SQL."""
        direction = "DESC" if self.descending else "ASC"
        return f"{self.expression.sql} {direction} NULLS {'FIRST' if self.nulls_first else 'LAST'}"

    def __str__(self) -> str:
        return self.sql


class Aggregate(Written):
    """`sum(x)`, `first(x ORDER BY at) FILTER (WHERE y > 1)`, or a user's `module:Class`."""

    STAND_IN = f"max({UNREADABLE})"

    text: str
    function: str
    argument: Expression | None = None
    order_by: tuple[SortKey, ...] = ()
    filter: Expression | None = None
    parameters: tuple[Any, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        parts = read_aggregate(text)
        return cls(
            text=text,
            function=parts.function,
            argument=None if parts.argument is None else Expression.of(parts.argument),
            order_by=tuple(SortKey.of(key) for key in parts.order_by),
            filter=None if parts.filter is None else Expression.of(parts.filter),
            parameters=parts.parameters,
        )

    @classmethod
    def spelled(cls, meant: Any) -> str:
        argument = meant.get("argument", "" if ":" in meant["function"] else "*")
        inside = ", ".join(map(str, [argument, *meant.get("parameters", ())]))
        if order := ", ".join(map(SortKey.spelled, meant.get("order_by", ()))):
            inside += f" ORDER BY {order}"
        where = f" FILTER (WHERE {meant['filter']})" if "filter" in meant else ""
        return f"{meant['function']}({inside}){where}"

    @property
    def columns(self) -> frozenset[str]:
        """Every column that it reads."""
        parts = [self.argument, self.filter, *(key.expression for key in self.order_by)]
        return frozenset().union(*(part.columns for part in parts if part))

    @property
    def kept(self) -> tuple[Expression, ...]:
        """Expressions whose values it keeps."""
        if self.function not in KEEPING or self.argument is None:
            return ()
        return (self.argument, *(key.expression for key in self.order_by))

    @property
    def lacks_order(self) -> bool:
        """True if its result depends on an order that it does not name."""
        return self.function in ORDERED and not self.order_by

    @property
    def is_python(self) -> bool:
        """True if it is a user's own aggregator."""
        return ":" in self.function

    def __str__(self) -> str:
        return self.text


def as_text(data: Any) -> str | None:
    """Return a YAML scalar as expression text; None for anything else."""
    if isinstance(data, bool):
        return str(data).lower()
    if isinstance(data, int | float):
        return repr(data)
    return data if isinstance(data, str) else None


NAMED: JsonSchemaValue = {"type": ["string", "object"], "pattern": r"\S"}


class Named(Model):
    """An expression and the column that it becomes: `upper(department) as department`."""

    name: Name
    expression: Expression

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return NAMED

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and len(data) == 1:
            ((name, text),) = data.items()
            return {"name": name, "expression": text}
        return cls._split(data) if isinstance(data, str) else data

    @classmethod
    def _split(cls, text: str) -> dict[str, Any]:
        tree = syntax.parse_as(text, None)
        name = tree.alias if isinstance(tree, exp.Alias) else ""
        inner = tree.this if isinstance(tree, exp.Alias) else tree
        syntax.check(inner)
        if not name and not isinstance(inner, exp.Column):
            raise ValueError(f"{text!r} needs a name; write '{text} as <name>'")
        return {
            "name": name or inner.name,
            "expression": Expression.of(inner, syntax.render(inner)),
        }

    @model_serializer
    def write(self) -> str:
        """Return it as users write it."""
        return self.name if self.is_plain else f"{self.expression} as {self.name}"

    @property
    def is_plain(self) -> bool:
        """True if it is the column of that name, unchanged."""
        return self.expression.plain_column == self.name


def named_expressions(data: Any) -> Any:
    """Read a `select:`, which is a mapping or a list of `column` and `expression as name`."""
    if not isinstance(data, list | tuple):
        return data
    names = [Named.model_validate(item) for item in data]
    if len({item.name for item in names}) < len(names):
        raise ValueError("one name is given twice")
    return {item.name: item.expression for item in names}


SELECT_SCHEMA = {
    "anyOf": [
        {"type": "object", "patternProperties": {WRITTEN_NAME["pattern"]: WRITTEN}},
        {"type": "array", "items": NAMED},
    ]
}
Select = Annotated[
    dict[Name, Expression],
    BeforeValidator(named_expressions),
    Field(min_length=1),
    WithJsonSchema(SELECT_SCHEMA),
]


def read_pairs(text: str, dimension: str) -> list[tuple[syntax.Tree, str]]:
    """Return the equalities of `a = dim.b and c = dim.d`; ValueError names a part that is none."""
    tree = syntax.parse(text)
    return [_pair(part, dimension) for part in _conjuncts(tree)]


def _conjuncts(tree: syntax.Tree) -> Iterator[syntax.Tree]:
    if isinstance(tree, exp.And):
        yield from _conjuncts(tree.this)
        yield from _conjuncts(tree.expression)
    elif isinstance(tree, exp.Paren):
        yield from _conjuncts(tree.this)
    else:
        yield tree


def _pair(part: syntax.Tree, dimension: str) -> tuple[syntax.Tree, str]:
    text = syntax.render(part)
    if not isinstance(part, exp.EQ):
        raise ValueError(
            f"{text!r} is not `<fact expression> = {dimension}.<column>`: "
            "only equalities can join here"
        )
    left, right = part.this.unnest(), part.expression.unnest()
    if _is_column_of(left, dimension):
        left, right = right, left
    if not _is_column_of(right, dimension):
        raise ValueError(
            f"{text!r}: one side must be a column of the dimension, as {dimension}.<column>"
        )
    if any(column.table == dimension for column in left.find_all(exp.Column)):
        raise ValueError(f"{text!r}: the fact's side reads {dimension} as well")
    return left, right.name


def _is_column_of(node: syntax.Tree, dimension: str) -> bool:
    return isinstance(node, exp.Column) and node.table == dimension and not node.args.get("db")
