"""Declaration of a view."""

from typing import ClassVar

from pydantic import field_validator

from sluice.declare.expectation import Expectation
from sluice.declare.table_spec import Section, TableSpec
from sluice.language.interval import Duration


class View(TableSpec):
    """A table that is kept equal to a query over others."""

    SECTION: ClassVar[Section] = "views"

    kind: str
    description: str = ""
    expect: tuple[Expectation, ...] = ()
    retention: Duration | None = None

    @field_validator("expect")
    @classmethod
    def _nothing_is_quarantined(cls, expect: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
        if any(expectation.on_failure == "quarantine" for expectation in expect):
            raise ValueError(
                "a view takes on_failure: stop or warn; "
                "quarantine would make it differ from its query"
            )
        return expect

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        return self.expect

    @property
    def kept_for(self) -> Duration | None:
        return self.retention
