"""Declaration of `kind: window_store`: rows by key and event time, read newest first."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field, field_validator

from sluice.declare.table_spec import Reference, View
from sluice.language.expression import Expression, Select, SortKey
from sluice.language.interval import Duration
from sluice.language.names import Name


class WindowStore(View):
    """One row per key and window start, or all of them with `duplicates`."""

    KIND: ClassVar[str] = "window_store"
    SILENT: ClassVar[frozenset[str]] = frozenset({"backward_iteration"})

    kind: Literal["window_store"] = "window_store"
    from_: str = Field(alias="from")
    where: Expression | None = None
    key: tuple[Name, ...] = Field(min_length=1)
    time: str
    duplicates: bool = False
    sequence: tuple[SortKey, ...] = ()
    window: Duration | None = None
    select: Select | None = None
    backward_iteration: bool = False

    @field_validator("key")
    @classmethod
    def _window_columns_are_its_own(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        if {"window_start", "window_end"} & set(key):
            raise ValueError("window_start and window_end are the store's own columns, not its key")
        return key

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)
