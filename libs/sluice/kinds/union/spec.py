"""Declaration of `kind: union`: the rows of several tables in one, each as often as it occurs."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sluice.declare.table_spec import Reference
from sluice.declare.view import View
from sluice.language.expression import Expression
from sluice.language.model import Model
from sluice.language.named import Select
from sluice.language.names import Name


class Input(Model):
    """One input, the rows of it that count, and what they become. `as`: its name in the tag."""

    table: str
    as_: str | None = Field(default=None, alias="as", min_length=1)
    where: Expression | None = None
    select: Select | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"table": data} if isinstance(data, str) else data

    @property
    def name(self) -> str:
        """Its name in the tag."""
        return self.as_ or self.table


class Union(View):
    """All rows of all inputs, by common columns; `tag` is the column that names the input."""

    KIND: ClassVar[str] = "union"

    kind: Literal["union"] = "union"
    from_: tuple[Input, ...] = Field(alias="from", min_length=1)
    tag: Name | None = None

    @model_validator(mode="after")
    def _keeps_its_inputs_rows(self) -> Self:
        if len(self.from_) < 2:
            raise ValueError("a union has at least two inputs; for one, declare a select")
        names = [part.name for part in self.from_]
        if self.tag and (twice := next((n for n in names if names.count(n) > 1), None)):
            raise ValueError(
                f"two inputs are named {twice!r} in the tag; give one another name: "
                f"`{{table: {twice}, as: another_name}}`"
            )
        if self.retention:
            raise ValueError("`retention` needs a window; a union keeps its inputs' rows")
        return self

    @property
    def rows_name_inputs(self) -> bool:
        return self.tag is not None

    def references(self) -> Iterator[Reference]:
        for i, part in enumerate(self.from_):
            yield Reference(("from", i), part.table)
