"""Declaration of `kind: topk`: the first k rows of each group, by an order.

A sort key is an expression of the row, or a user's Python function of expressions:
`shop.scores:worth(price, units) desc` sorts by the result of `worth` for a row. The function comes
from a module that the project lists, and must be deterministic.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, field_validator, model_validator
from sqlglot import exp

from sluice.declare.document import Where
from sluice.declare.table_spec import START, Reference, View, Window
from sluice.language import syntax
from sluice.language.expression import Expression, Named, Select, SortKey
from sluice.language.names import WRITTEN_NAME, Name, check_name

RankFunction = Literal["row_number", "rank", "dense_rank"]
StrategyName = Literal["append", "update", "retract", "full"]

DIGITS = {"type": "string", "pattern": r"^0*[1-9]\d*$"}
OWN = re.compile(r"\s*([A-Za-z_][\w.]*:[A-Za-z_]\w*)\s*(\(.*)", re.DOTALL)


def read_limit(data: Any) -> int | str:
    """Read a number of rows, or the name of the column that holds it."""
    if isinstance(data, str) and not data.isdigit():
        return check_name(data)
    if isinstance(data, bool) or not isinstance(data, int | str):
        raise ValueError(f"a number of rows or a column is expected, not {data!r}")
    if int(data) < 1:
        raise ValueError(f"{data} is too small: at least 1 is expected")
    return int(data)


Limit = Annotated[
    int | str,
    PlainValidator(read_limit),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, WRITTEN_NAME, DIGITS]}),
]


class RankKey(SortKey):
    """A sort key; `function` is `module:name`, or '' where `expression` itself is sorted by.

    For a function, `expression` is the struct of its `arguments`: what it reads.
    """

    function: str = ""
    arguments: tuple[Expression, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        found = OWN.fullmatch(text)
        if not found:
            return cls.of(syntax.parse_as(text, exp.Ordered))
        ordered = syntax.parse_as(f"struct{found[2]}", exp.Ordered)
        return cls._of_function(found[1], ordered)

    @classmethod
    def spelled(cls, meant: Any) -> str:
        if "function" not in meant:
            return super().spelled(meant)
        call = f"{meant['function']}({', '.join(meant['arguments'])})"
        return super().spelled({**meant, "expression": call})

    @classmethod
    def _of_function(cls, function: str, ordered: syntax.Tree) -> Self:
        call = ordered.this
        if not isinstance(call, exp.Anonymous) or not call.expressions:
            raise ValueError(
                f"{function} takes expressions of the row, and only asc or desc, nulls first or "
                "nulls last may follow it"
            )
        arguments = tuple(Expression.parse(syntax.render(tree)) for tree in call.expressions)
        read = Expression.of(call, f"{function}({', '.join(map(str, arguments))})")
        plain = cls.of(ordered)
        return plain.model_copy(
            update={"expression": read, "function": function, "arguments": arguments}
        )


class TopK(View):
    """Ranks offset + 1 to offset + limit of each group."""

    KIND: ClassVar[str] = "topk"
    HAS_STATE: ClassVar[bool] = True
    SILENT: ClassVar[frozenset[str]] = frozenset({"strategy", "headroom"})

    kind: Literal["topk"] = "topk"
    from_: str = Field(alias="from")
    where: Expression | None = None
    partition_by: tuple[Named, ...] = ()
    order_by: tuple[RankKey, ...] = Field(min_length=1)
    limit: Limit
    offset: int = Field(default=0, ge=0)
    having: Expression | None = None
    select: Select | None = None
    rank: Annotated[Name | None, WithJsonSchema({"type": ["string", "boolean"]})] = "rank"
    function: RankFunction = "row_number"
    window: Window | None = None
    headroom: int | None = Field(default=None, ge=0)
    strategy: StrategyName | None = None

    @field_validator("rank", mode="before")
    @classmethod
    def _rank_or_none(cls, data: Any) -> Any:
        return {False: None, True: "rank"}[data] if isinstance(data, bool) else data

    @model_validator(mode="after")
    def _gaps_have_numbers(self) -> Self:
        if self.having and self.rank is None:
            raise ValueError(
                "`having` leaves out ranks, and `rank: false` leaves no trace of which; drop "
                "one of them"
            )
        return self

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression that it evaluates over its input."""
        partition = (named.expression for named in self.partition_by)
        order = (key.expression for key in self.order_by)
        condition = (self.where,) if self.where else ()
        return (*partition, *order, *(self.select or {}).values(), *condition)

    @property
    def windows(self) -> Window | None:
        return self.window

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """Columns that distinguish one ranking from another."""
        window = (START,) if self.window else ()
        return (*window, *(named.name for named in self.partition_by))

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)

    def own_code(self) -> Iterator[tuple[Where, str]]:
        for i, key in enumerate(self.order_by):
            if key.function:
                yield ("order_by", i), key.function
