"""`kind: lookup`: facts joined to dimensions."""

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sluice.specs.expression import Expression, Select, named_expressions
from sluice.specs.join_syntax import read_pairs
from sluice.specs.model import Model
from sluice.specs.view import View


class Join(Model):
    """One dimension, and the pairs (fact expression, dimension column) that must be equal."""

    dimension: str
    on: tuple[tuple[Expression, str], ...]
    type: Literal["inner", "left"] = "inner"

    @model_validator(mode="before")
    @classmethod
    def _read_on(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("on"), str):
            return data
        qualifier = str(data.get("dimension", "")).split(".")[-1]
        pairs = read_pairs(data["on"], qualifier)
        return {**data, "on": tuple((Expression.of(fact), column) for fact, column in pairs)}

    @property
    def qualifier(self) -> str:
        """The name that its columns are qualified with."""
        return self.dimension.split(".")[-1]


class Lookup(View):
    """Each fact with its dimension rows' columns."""

    kind: Literal["lookup"] = "lookup"
    from_: str = Field(alias="from")
    join: tuple[Join, ...] = Field(min_length=1)
    select: Select | None = None
    refresh: bool = False
    as_of: Literal["latest", "event_time"] = "latest"
    time: str | None = None

    @field_validator("select", mode="before")
    @classmethod
    def _select_as_mapping(cls, data: Any) -> Any:
        return named_expressions(data)
