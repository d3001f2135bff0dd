"""Declaration of `kind: join`: pairs of matching rows of two tables."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from sluice.declare.table_spec import Reference
from sluice.declare.view import View
from sluice.kinds.join.equalities import WANTED, JoinEquality, read_equalities
from sluice.language.duration import Duration
from sluice.language.expression import Expression
from sluice.language.model import Model
from sluice.language.named import Select
from sluice.language.names import Name

On = Annotated[
    tuple[JoinEquality, ...],
    BeforeValidator(read_equalities),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


class Side(Model):
    """One of the two tables, and its name in expressions.

    `time`: the event time of its rows, which `within` compares.
    """

    table: str
    as_: Name = Field(default="", alias="as")
    time: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        data = {"table": data} if isinstance(data, str) else data
        if isinstance(data, dict) and isinstance(data.get("table"), str):
            return {"as": data["table"].rpartition(".")[2], **data}
        return data


class EquiJoin(View):
    """One row for each pair of matching rows, or as `type` defines.

    `within`: the greatest time between the two rows of a pair.
    """

    KIND: ClassVar[str] = "join"

    kind: Literal["join"] = "join"
    left: Side
    right: Side
    type: Literal["inner", "left", "right", "full", "semi", "anti"] = "inner"
    on: On
    within: Duration | None = None
    where: Expression | None = None
    select: Select | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_no_cross_join(cls, data: Any) -> Any:
        if isinstance(data, dict) and not data.get("on"):
            raise ValueError(
                f"`on` is missing: every row would match every other; write {WANTED}, or "
                "`on: [a]` for a column that both sides have"
            )
        return data

    @model_validator(mode="after")
    def _sides_have_names(self) -> Self:
        if self.left.as_ == self.right.as_:
            raise ValueError(
                f"both sides are named {self.left.as_!r}: give one another name, "
                f"as in `right: {{table: {self.right.table}, as: other}}`"
            )
        return self

    @model_validator(mode="after")
    def _times_belong_to_within(self) -> Self:
        timed = [side.time for side in (self.left, self.right) if side.time]
        if self.retention and not self.within:
            raise ValueError(
                "`retention` needs `within: 2 hours` and the `time` of both sides; without them a "
                "join keeps its inputs' rows"
            )
        if self.within and len(timed) < 2:
            raise ValueError(
                "`within` compares the event times of both sides: name them, as in "
                f"`left: {{table: {self.left.table}, time: at}}`"
            )
        if timed and not self.within:
            raise ValueError(
                "`time` is for `within`, the greatest time between two rows of a pair; add it, or "
                "drop `time`"
            )
        return self

    @property
    def shows_right(self) -> bool:
        """True if rows of the right side are in the result; semi and anti only filter by them."""
        return self.type not in ("semi", "anti")

    @property
    def caution(self) -> str:
        is_free = not any(isinstance(e, str) or e[0].columns or e[1].columns for e in self.on)
        return f"every row depends on {self.right.table}" if is_free else ""

    def references(self) -> Iterator[Reference]:
        yield Reference(("left",), self.left.table)
        yield Reference(("right",), self.right.table)
