"""Dimensions: full snapshots of reference data, and views over them that are resolved at a lookup."""

from typing import Any, Literal

from pydantic import Field, field_validator

from sluice.specs.expression import Expression, Select, named_expressions
from sluice.specs.model import Model
from sluice.specs.names import Name
from sluice.specs.source import Declared

HISTORY_COLUMNS = {"valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP", "is_current": "BOOLEAN"}


class Dimension(Declared):
    """A table that facts are looked up in."""

    format: Literal["json", "csv", "parquet", "delta", "kafka", "jdbc"] = "parquet"
    key: tuple[str, ...] = Field(min_length=1)
    history: bool = False
    valid_from: str | None = None
    delivery: Literal["snapshot", "changes"] = "snapshot"


class DimensionJoin(Model):
    """One dimension of a view, and how it joins those before it."""

    dimension: str
    on: Expression | None = None


class DimensionView(Model):
    """Dimensions joined to dimensions: not stored, resolved at a lookup or a get."""

    name: Name
    pipeline: str
    description: str = ""
    join: tuple[DimensionJoin, ...] = Field(min_length=1)
    select: Select

    @field_validator("select", mode="before")
    @classmethod
    def _select_as_mapping(cls, data: Any) -> Any:
        return named_expressions(data)
