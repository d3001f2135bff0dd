"""Declaration of a dimension view: dimensions joined to dimensions, resolved when read."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from pydantic import Field

from sluice.declare.table_spec import (
    Reference,
    Section,
    TableSpec,
    joined_dimensions,
    joined_dimensions_as_written,
)
from sluice.language import Model
from sluice.language.expression import Expression, Select


class DimensionJoin(Model):
    """One dimension of a view, and how it joins those before it."""

    dimension: str
    on: Expression | None = None


class DimensionView(TableSpec):
    """Dimensions joined to dimensions: not stored, resolved at a lookup or a get."""

    KIND: ClassVar[str] = "dimension_view"
    SECTION: ClassVar[Section] = "dimensions"
    IS_STORED: ClassVar[bool] = False

    description: str = ""
    join: tuple[DimensionJoin, ...] = Field(min_length=1)
    where: Expression | None = None
    select: Select

    @classmethod
    def is_meant_by(cls, data: Mapping[str, Any]) -> bool:
        return "join" in data

    def references(self) -> Iterator[Reference]:
        return joined_dimensions(join.dimension for join in self.join)

    @classmethod
    def written_references(cls, data: Mapping[str, Any]) -> Iterator[Reference]:
        return joined_dimensions_as_written(data)
