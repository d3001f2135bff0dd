"""Declaration of `kind: select`: rows of a table that meet a condition, with chosen columns."""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sluice.declare.table_spec import Reference
from sluice.declare.view import View
from sluice.language.expression import Expression
from sluice.language.model import Model
from sluice.language.named import Select
from sluice.language.names import Name


class Exploded(Model):
    """An array whose elements become rows. `position`: column of its number, from 0.

    With `outer`, a row without elements stays, with nulls.
    """

    of: Expression
    as_: Name = Field(alias="as")
    position: Name | None = None
    outer: bool = False


class Selection(View):
    """One row per row of the input that meets `where`; with `distinct`, one of equal rows.

    With `explode`, one row per element of an array of the input's rows.
    """

    KIND: ClassVar[str] = "select"

    kind: Literal["select"] = "select"
    from_: str = Field(alias="from")
    explode: Exploded | None = None
    where: Expression | None = None
    select: Select | None = None
    distinct: bool = False

    @model_validator(mode="after")
    def _keeps_its_inputs_rows(self) -> Self:
        if self.retention:
            raise ValueError("`retention` needs a window; a select keeps its input's rows")
        return self

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)
