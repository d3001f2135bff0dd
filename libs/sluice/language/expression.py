"""Checked expressions: scalar ones, sort keys and aggregates.

`sql` is regenerated from the checked tree and safe to pass to Spark; `text` is the user's text, for
messages. This module does not know which columns exist: `columns` lists those read, and resolution
checks them against the input.
"""

from abc import abstractmethod
from collections.abc import Container
from typing import Any, ClassVar, Self

from pydantic import GetJsonSchemaHandler, ValidationInfo, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from sqlglot import exp

from sluice.language import syntax
from sluice.language.aggregate_syntax import KEEPING, ORDERED, read_aggregate
from sluice.language.model import Model, is_draft

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
