"""Declaration of `kind: join`: pairs of matching rows of two tables.

Each equality of `on` stands between an expression of one side and one of the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator
from sqlglot import exp

from sluice.declare.table import Table
from sluice.declare.table_spec import Reference, View
from sluice.language import Model, syntax
from sluice.language.expression import Expression, Select
from sluice.language.interval import Duration
from sluice.language.names import Name

JoinEquality = tuple[Expression, Expression] | str
WANTED = "`on: left.a = right.b`"

PRESENT = "_sluice_present"  # of a full join: which sides a row has, 1 left, 2 right, 3 both
END = "_sluice_end"  # the later of a pair's event times; of one side's row, its last match
OWN_END = "_sluice_own_end"  # for a row of one side, its event time, after which it may end
ON = "_sluice_on_"  # with a number: a value that both rows of a pair share


def read_equalities(data: Any) -> Any:
    """Read `a.x = b.y AND ...`, or a list of such texts and of columns that both sides have.

    Raises ValueError for a part that is not an equality.
    """
    texts = data if isinstance(data, list | tuple) else [data]
    return tuple(each for text in texts for each in _read(text))


def _read(data: Any) -> Iterator[JoinEquality]:
    if isinstance(data, tuple):
        yield data
    elif isinstance(data, str):
        yield from _read_text(data)
    else:
        raise ValueError(f"{data!r} is not an equality; write {WANTED}")


def _read_text(text: str) -> Iterator[JoinEquality]:
    for part in _conjuncts(syntax.parse(text)):
        if isinstance(part, exp.Column) and not part.table:
            yield part.name
        elif isinstance(part, exp.EQ):
            yield _read_expression(part.this), _read_expression(part.expression)
        else:
            raise ValueError(
                f"{syntax.render(part)!r} is not an equality: every row might match every other; "
                f"write {WANTED}, and further conditions in `where`"
            )


def _conjuncts(tree: syntax.Tree) -> Iterator[syntax.Tree]:
    inner = tree.unnest()
    if isinstance(inner, exp.And):
        yield from _conjuncts(inner.this)
        yield from _conjuncts(inner.expression)
    else:
        yield inner


def _read_expression(tree: syntax.Tree) -> Expression:
    inner = tree.unnest()
    return Expression.of(inner, syntax.render(inner))


def _write_equalities(on: tuple[JoinEquality, ...]) -> list[str]:
    return [one if isinstance(one, str) else f"{one[0]} = {one[1]}" for one in on]


On = Annotated[
    tuple[JoinEquality, ...],
    BeforeValidator(read_equalities),
    PlainSerializer(_write_equalities),
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


@dataclass(frozen=True)
class ResolvedJoin:
    """A join with the tables that it names."""

    spec: EquiJoin
    left: Table
    right: Table

    @property
    def both(self) -> tuple[tuple[str, Side, Table], ...]:
        """Return (which, declaration, table) of each side."""
        return ("left", self.spec.left, self.left), ("right", self.spec.right, self.right)

    @property
    def sides(self) -> tuple[tuple[str, Side, Table], ...]:
        """Return those whose rows are visible."""
        return self.both if self.spec.shows_right else self.both[:1]

    @property
    def pairs(self) -> tuple[tuple[Expression, Expression], ...]:
        """Return the expressions of the left and the right side that must be equal."""
        return tuple(
            (self._column(self.spec.left, one), self._column(self.spec.right, one))
            if isinstance(one, str)
            else self._in_order(*one)
            for one in self.spec.on
        )

    @property
    def on_as_written(self) -> tuple[str, ...]:
        """Return the left side of each equality, for messages."""
        return tuple(
            one if isinstance(one, str) else pair[0].text
            for one, pair in zip(self.spec.on, self.pairs, strict=True)
        )

    @property
    def shown(self) -> dict[str, Expression]:
        """Return the visible columns; of names that both sides have, the left one's."""
        if self.spec.select is not None:
            return self.spec.select
        found: dict[str, Expression] = {}
        for _, side, table in self.sides:
            for name in table.columns:
                found.setdefault(name, self._column(side, name))
        return found | {c: self._either(c) for c in self.shared if self.spec.shows_right}

    @property
    def shared(self) -> tuple[str, ...]:
        """Return the columns that `on` names once for both sides."""
        return tuple(one for one in self.spec.on if isinstance(one, str))

    @property
    def keys(self) -> dict[str, tuple[str, str]]:
        """Return output column -> (which side, key column), for the sides that are shown."""
        plain = {expression.plain_column: name for name, expression in self.shown.items()}
        return {
            plain.get(f"{side.as_}.{c}", f"_sluice_{which}_key_{c}"): (which, c)
            for which, side, table in self.sides
            for c in table.key
        }

    @property
    def on(self) -> tuple[str, ...]:
        """Return the hidden columns of the shared values."""
        return tuple(f"{ON}{i}" for i in range(len(self.spec.on)))

    def reads(self, side: Side, table: Table) -> set[str]:
        """Return the columns of one side that the join reads."""
        expressions = [*self.shown.values(), *(e for pair in self.pairs for e in pair)]
        expressions += [self.spec.where] if self.spec.where else []
        qualified = (c.split(".") for e in expressions for c in e.columns)
        named = {parts[1] for parts in qualified if parts[0] == side.as_ and len(parts) > 1}
        return {*table.key, *named, *([side.time] if side.time else [])}

    def _in_order(self, one: Expression, other: Expression) -> tuple[Expression, Expression]:
        is_turned = any(c.split(".")[0] == self.spec.right.as_ for c in one.columns)
        return (other, one) if is_turned else (one, other)

    def _either(self, name: str) -> Expression:
        left, right = (self._column(side, name) for side in (self.spec.left, self.spec.right))
        if self.spec.type in ("inner", "left"):
            return left
        return (
            right
            if self.spec.type == "right"
            else Expression.parse(f"coalesce({left.sql}, {right.sql})")
        )

    @staticmethod
    def _column(side: Side, name: str) -> Expression:
        return Expression.parse(f"`{side.as_}`.`{name}`")
