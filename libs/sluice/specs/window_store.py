"""`kind: window_store`: rows by key and event time, read newest first."""

from typing import Any, Literal

from pydantic import Field, field_validator

from sluice.specs.expression import Select, SortKey, named_expressions
from sluice.specs.interval import Duration
from sluice.specs.names import Name
from sluice.specs.view import View


class WindowStore(View):
    """One row per key and window start, or all of them with `duplicates`."""

    kind: Literal["window_store"] = "window_store"
    from_: str = Field(alias="from")
    key: tuple[Name, ...] = Field(min_length=1)
    time: str
    duplicates: bool = False
    sequence: tuple[SortKey, ...] = ()
    window: Duration | None = None
    select: Select | None = None
    backward_iteration: bool = False

    @field_validator("select", mode="before")
    @classmethod
    def _select_as_mapping(cls, data: Any) -> Any:
        return named_expressions(data)
