"""`kind: topk`: the first k rows of each group, by an order."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from sluice.specs.expression import Expression, Named, Select, SortKey, named_expressions
from sluice.specs.names import Name
from sluice.specs.view import View, Window

RankFunction = Literal["row_number", "rank", "dense_rank"]
Strategy = Literal["append", "update", "retract", "full"]


class TopK(View):
    """Ranks offset + 1 to offset + limit of each group."""

    kind: Literal["topk"] = "topk"
    from_: str = Field(alias="from")
    partition_by: tuple[Named, ...] = ()
    order_by: tuple[SortKey, ...] = Field(min_length=1)
    limit: Annotated[int, Field(ge=1)] | str
    offset: int = Field(default=0, ge=0)
    select: Select | None = None
    rank: Name | None = "rank"
    function: RankFunction = "row_number"
    window: Window | None = None
    headroom: int | None = Field(default=None, ge=0)
    strategy: Strategy | None = None
    sql: str | None = None

    @field_validator("select", mode="before")
    @classmethod
    def _select_as_mapping(cls, data: Any) -> Any:
        return named_expressions(data)

    @field_validator("rank", mode="before")
    @classmethod
    def _rank_or_none(cls, data: Any) -> Any:
        return {False: None, True: "rank"}[data] if isinstance(data, bool) else data

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """Every expression that it evaluates over its input."""
        parts = [*self.partition_by, *self.order_by]
        return (*(part.expression for part in parts), *(self.select or {}).values())
