"""Declaration of `kind: lookup`: facts joined to dimensions."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_serializer,
    field_validator,
    model_validator,
)

from sluice.declare.table_spec import (
    Reference,
    View,
    joined_dimensions,
    joined_dimensions_as_written,
)
from sluice.language import Model, is_draft
from sluice.language.expression import Expression, Select, read_pairs


class Join(Model):
    """One dimension, and the pairs (fact expression, dimension column) that must be equal."""

    dimension: str
    on: Annotated[tuple[tuple[Expression, str], ...], WithJsonSchema({"type": "string"})]
    type: Literal["inner", "left"] = "inner"

    @field_validator("on", mode="before")
    @classmethod
    def _read_on(cls, on: Any, given: ValidationInfo) -> Any:
        qualifier = str(given.data.get("dimension", "")).rpartition(".")[2]
        if isinstance(on, list):
            raise ValueError(f"an equality is expected, such as 'id = {qualifier}.id', not a list")
        if not isinstance(on, str):
            return on
        try:
            pairs = read_pairs(on, qualifier)
        except ValueError:
            if not is_draft(given):
                raise
            return ()
        return tuple((Expression.of(fact), column) for fact, column in pairs)

    @field_serializer("on")
    def _write_on(self, on: tuple[tuple[Expression, str], ...]) -> str:
        return " and ".join(f"{fact} = {self.qualifier}.{column}" for fact, column in on)

    @property
    def qualifier(self) -> str:
        """The name that its columns are qualified with."""
        return self.dimension.rpartition(".")[2]

    @property
    def row(self) -> str:
        """Column of joined facts that has the dimension's row, as a struct."""
        return f"_sluice_row_{self.qualifier}"


class Lookup(View):
    """Each fact with its dimension rows' columns."""

    KIND: ClassVar[str] = "lookup"

    kind: Literal["lookup"] = "lookup"
    from_: str = Field(alias="from")
    join: tuple[Join, ...] = Field(min_length=1)
    where: Expression | None = None
    select: Select | None = None
    refresh: bool = False
    as_of: Literal["latest", "event_time"] = "latest"
    time: str | None = None

    @model_validator(mode="after")
    def _keys_fit_together(self) -> Self:
        names = [join.qualifier for join in self.join]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ValueError(
                f"{twice[0]} is joined twice; declare a dimension view of another name for one"
            )
        if self.retention:
            raise ValueError("`retention` needs a window; a lookup keeps its facts' rows")
        if (self.as_of == "event_time") != bool(self.time):
            raise ValueError("`time` names the fact's event time: it goes with as_of: event_time")
        if self.refresh and self.as_of == "event_time":
            raise ValueError("as_of: event_time follows the dimension's history: drop `refresh`")
        return self

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)
        yield from joined_dimensions(join.dimension for join in self.join)

    @classmethod
    def written_references(cls, data: Mapping[str, Any]) -> Iterator[Reference]:
        return joined_dimensions_as_written(data)
