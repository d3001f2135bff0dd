"""Parts of a join's rows: values that both sides share, shown columns, and identities."""

from dataclasses import dataclass

from sluice.declare.table import Table
from sluice.kinds.join.spec import EquiJoin, Side
from sluice.language.expression import Expression

PRESENT = "_sluice_present"  # of a full join: which sides a row has, 1 left, 2 right, 3 both
END = "_sluice_end"  # the later of a pair's event times; of one side's row, its last match
OWN_END = "_sluice_own_end"  # for a row of one side, its event time, after which it may end
ON = "_sluice_on_"  # with a number: a value that both rows of a pair share


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
