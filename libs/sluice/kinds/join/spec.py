"""Declaration of `kind: join`: rows of two tables that belong together."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from sluice.declare.table_spec import Reference
from sluice.declare.view import View
from sluice.kinds.join.equalities import Equality, read_equalities
from sluice.language.expression import Expression
from sluice.language.model import Model
from sluice.language.named import Select
from sluice.language.names import Name

On = Annotated[
    tuple[Equality, ...],
    BeforeValidator(read_equalities),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class Side(Model):
    """One of the two tables, and the name by which expressions know it."""

    table: str
    as_: Name = Field(alias="as")

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        data = {"table": data} if isinstance(data, str) else data
        if isinstance(data, dict) and isinstance(data.get("table"), str):
            return {"as": data["table"].rpartition(".")[2], **data}
        return data


class EquiJoin(View):
    """One row for each pair of rows that belong together, or as `type` says."""

    KIND: ClassVar[str] = "join"

    kind: Literal["join"] = "join"
    left: Side
    right: Side
    type: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner"
    on: On
    where: Expression | None = None
    select: Select | None = None

    @model_validator(mode="after")
    def _sides_have_names(self) -> Self:
        if self.left.as_ == self.right.as_:
            raise ValueError(
                f"both sides are called {self.left.as_!r}: give one another name, "
                f"as in `right: {{table: {self.right.table}, as: other}}`"
            )
        if self.retention:
            raise ValueError("`retention` needs a window; a join keeps its inputs' rows")
        return self

    @property
    def shows_right(self) -> bool:
        """True if rows of the right side are in the result; semi and anti only filter by them."""
        return self.type not in ("semi", "anti")

    def references(self) -> Iterator[Reference]:
        yield Reference(("left",), self.left.table)
        yield Reference(("right",), self.right.table)


SPEC = EquiJoin
