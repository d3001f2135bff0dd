"""Declaration of `kind: over`: rows with window functions over their partition."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, WithJsonSchema, model_validator

from sluice.declare.table_spec import Reference, View
from sluice.kinds.over.windowed import ORDERED, WindowedExpression
from sluice.language.expression import WRITTEN, Expression, SortKey
from sluice.language.names import WRITTEN_NAME, Name

BY = "_sluice_by_"  # with a number: a value that the rows of a partition share

OBJECT = {"type": "object", "patternProperties": {WRITTEN_NAME["pattern"]: WRITTEN}}


class Over(View):
    """One row per row of the input, with columns that read the rows around it."""

    KIND: ClassVar[str] = "over"

    kind: Literal["over"] = "over"
    from_: str = Field(alias="from")
    where: Expression | None = None
    partition_by: tuple[Expression, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    select: Annotated[dict[Name, WindowedExpression], Field(min_length=1), WithJsonSchema(OBJECT)]

    @model_validator(mode="after")
    def _windows_have_an_order(self) -> Self:
        if self.retention:
            raise ValueError("`retention` needs a window of time; this keeps its input's rows")
        calls = [call for one in self.select.values() for call in one.calls]
        if not calls:
            raise ValueError("no window function (… OVER w) is selected: declare a select")
        if not self.order_by and any(call.window == ORDERED for call in calls):
            raise ValueError("`order_by` is missing: OVER w goes by it")
        if len(self.order_by) > 1 and (far := next((c for c in calls if c.distances), None)):
            raise ValueError(
                f"{far.sql}: {far.frame} goes by the values of one expression; "
                f"`order_by` has {len(self.order_by)}"
            )
        return self

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)
