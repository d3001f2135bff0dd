"""Declaration of `kind: topk`: the first k rows of each group, by an order."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from sluice.declare.document import Where
from sluice.declare.table_spec import Reference, View, Window
from sluice.kinds.topk.sql import RankKey, read_topk
from sluice.language.expression import Expression, Named, Select
from sluice.language.names import WRITTEN_NAME, Name, check_name

RankFunction = Literal["row_number", "rank", "dense_rank"]
StrategyName = Literal["append", "update", "retract", "full"]


DIGITS = {"type": "string", "pattern": r"^0*[1-9]\d*$"}
SAID_BY_SQL = frozenset(
    {"from", "where", "partition_by", "order_by", "limit", "offset", "select", "rank", "function"}
)


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


def _sql_says_all(schema: dict[str, Any]) -> None:
    """Require no keys, because `sql` can supply all of them."""
    schema["required"] = []


class TopK(View):
    """Ranks offset + 1 to offset + limit of each group."""

    model_config = ConfigDict(json_schema_extra=_sql_says_all)
    KIND: ClassVar[str] = "topk"
    HAS_STATE: ClassVar[bool] = True
    SILENT: ClassVar[frozenset[str]] = frozenset({"sql", "strategy", "headroom"})

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
    sql: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _read_sql(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("sql"), str):
            return data
        said = sorted(SAID_BY_SQL & data.keys())
        if said:
            raise ValueError(f"`sql` already defines this: drop {', '.join(said)}")
        return {**data, **read_topk(data["sql"])}

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

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)

    def own_code(self) -> Iterator[tuple[Where, str]]:
        for i, key in enumerate(self.order_by):
            if key.function:
                yield ("order_by", i), key.function
