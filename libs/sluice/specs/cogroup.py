"""`kind: cogroup`: one row per key over several streams, each with its aggregates."""

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from sluice.specs.expression import Aggregate, Expression, Select, named_expressions
from sluice.specs.model import Model
from sluice.specs.names import Name
from sluice.specs.view import View, Window


class Stream(Model):
    """One input of a cogroup and what is aggregated of it."""

    from_: str = Field(alias="from")
    key: tuple[Expression, ...] = Field(min_length=1)
    aggregates: dict[Name, Aggregate] = Field(min_length=1)
    initial: dict[str, Any] = Field(default_factory=dict)
    where: Expression | None = None
    time: str | None = None


class Cogroup(View):
    """A row per key that has a row in any stream."""

    kind: Literal["cogroup"] = "cogroup"
    key: tuple[Name, ...] = Field(min_length=1)
    streams: dict[Name, Stream] = Field(min_length=1)
    select: Select | None = None
    window: Window | None = None
    keep_empty: bool = False

    @model_validator(mode="before")
    @classmethod
    def _streams_take_the_views_key(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(data.get("streams"), dict):
            return data
        streams = {
            name: {"key": data.get("key"), **stream} if isinstance(stream, dict) else stream
            for name, stream in data["streams"].items()
        }
        return {**data, "streams": streams}

    @field_validator("select", mode="before")
    @classmethod
    def _select_as_mapping(cls, data: Any) -> Any:
        return named_expressions(data)
