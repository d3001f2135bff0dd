"""Rows of a plan while it becomes a query: columns over a FROM, conditions and an order.

Columns keep the name that Spark gives them, the aliases and the plans that may name them, so that
`df["id"]` and `col("a.id")` find their side of a join.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sluice.language.names import unknown
from sluice.language.syntax import Tree
from sluice.spark_pipelines.expressions import NotTranslated
from sluice.spark_pipelines.texts import column_name

TWICE = "the name of column {!r} is that of another one, in a table"
REPLACED = "column {0!r} of a DataFrame is not here any more: name it by col({0!r}), or by alias"
UNNAMED = frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer", "inline"})


@dataclass(frozen=True)
class Column:
    """A column: Spark's name of it, its expression over the rows' FROM, and what may name it.

    `is_given`: the author chose the name, so a table must have it as it is.
    """

    name: str
    tree: Tree
    plans: frozenset[int] = frozenset()
    aliases: frozenset[str] = frozenset()
    is_given: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows of a SELECT: `source` has its FROM and joins.

    `hidden`: the columns before each select, the last one's first, by which Spark may still filter
    and sort. `keys`: what a join by names shows as another column; an alias or a plan names them.
    """

    columns: tuple[Column, ...]
    source: exp.Select
    where: tuple[Tree, ...] = ()
    order: tuple[exp.Ordered, ...] = ()
    hidden: tuple[tuple[Column, ...], ...] = ()
    keys: tuple[Column, ...] = ()

    @property
    def names(self) -> list[str]:
        """Names of the columns in a query, each once."""
        found: list[str] = []
        for column in self.columns:
            name = first = column_name(column.name)
            numbers = count(1)
            while name in found:
                name = f"{first}_{next(numbers)}"
            found.append(name)
        return found

    @property
    def query(self) -> exp.Select:
        """The SELECT of the rows, without their order."""
        query = self.source.copy()
        shown = [
            tree if isinstance(tree, exp.Column) and tree.name == name else exp.alias_(tree, name)
            for name, tree in zip(self.names, (c.tree.copy() for c in self.columns), strict=True)
        ]
        query.set("expressions", shown)
        for condition in self.where:
            query = query.where(condition.copy(), copy=False)
        return query

    def stored(self) -> exp.Select:
        """Return the SELECT of a table's rows. Raises NotTranslated if two columns share a name."""
        seen = Counter(column_name(column.name) for column in self.columns)
        for column in self.columns:
            if column.is_given and seen[column_name(column.name)] > 1:
                raise NotTranslated(TWICE.format(column.name))
        return self.query

    def own_name(self, name: str) -> str:
        """Return a name as the columns have it, in lower case; a table's are `column_name`s."""
        lower = name.lower()
        return lower if any(c.name.lower() == lower for c in self.columns) else column_name(name)

    @property
    def is_plain(self) -> bool:
        """True if they only show columns of their FROM."""
        trees = (column.tree for column in self.columns)
        return not self.where and all(isinstance(tree, exp.Column) for tree in trees)

    @property
    def has_windows(self) -> bool:
        return any(
            column.tree.find(exp.Window) or _is_of_rows(column.tree) for column in self.columns
        )

    def show(self, columns: Iterable[Column]) -> "Rows":
        """Return the rows with other columns; these are hidden."""
        hidden = () if self.has_windows else (self.columns, *self.hidden)
        return replace(self, columns=tuple(columns), hidden=hidden)

    def column(
        self, parts: Sequence[str], plan: int | None, *, also_hidden: bool = False
    ) -> tuple[Column, Sequence[str]]:
        """Return the column of that name and plan, and the names of the field in it.

        Raises NotTranslated if there isn't exactly one.
        """
        lower = [part.lower() for part in parts]
        for columns in (self.columns, *(self.hidden if also_hidden else ())):
            for size in (len(lower), *range(1, len(lower))):
                of, name = ".".join(lower[: size - 1]), lower[size - 1]
                known = (*columns, *self.keys) if of or plan is not None else columns
                found = [c for c in known if column_name(c.name) == column_name(name)]
                found = [c for c in found if not of or of in c.aliases]
                found = [c for c in found if plan is None or plan in c.plans]
                found = [c for c in found if c.name.lower() == name] or found
                if len({c.tree.sql() for c in found}) == 1:
                    return found[0], parts[size:]
                if found:
                    raise NotTranslated(
                        f"column {'.'.join(parts)!r} is ambiguous: alias the DataFrames"
                    )
        names = [c.name for c in self.columns]
        if plan is not None and column_name(parts[0]) in map(column_name, names):
            raise NotTranslated(REPLACED.format(".".join(parts)))
        raise NotTranslated(unknown("column", ".".join(parts), names))

    def find(self, parts: Sequence[str], plan: int | None, *, also_hidden: bool = False) -> Tree:
        """Return the expression of that column or field. Raises NotTranslated as `column`."""
        column, fields = self.column(parts, plan, also_hidden=also_hidden)
        tree = column.tree.copy()
        for part in fields:
            tree = exp.Dot(this=tree, expression=exp.to_identifier(part))
        return tree

    def find_also_hidden(self, parts: Sequence[str], plan: int | None) -> Tree:
        """Return that of the column, or of the hidden one. Raises NotTranslated."""
        return self.find(parts, plan, also_hidden=True)


def _is_of_rows(tree: Tree) -> bool:
    return any(n.name.lower() in UNNAMED for n in tree.find_all(exp.Anonymous))
