"""Sources whose rows are put in an order: with window functions, or the first of each group."""

from dataclasses import dataclass

from sluice.kinds.sql.reading.trees import columns_in, free_name, is_column, sql, substituted
from sluice.kinds.sql.relations.sources import ColumnTrees, TableRows, ViewFields, texts
from sluice.language.syntax import Tree

RANK = "_rank"


@dataclass(frozen=True)
class WindowedRows:
    """Rows of a table with window functions of one partition and order. `calls`: name -> call."""

    source: TableRows
    where: tuple[Tree, ...]
    partition: tuple[Tree, ...]
    order: tuple[Tree, ...]
    calls: ColumnTrees

    def fields(
        self, shown: ColumnTrees, where: tuple[Tree, ...], *, exactly: bool
    ) -> ViewFields | None:
        used = {c.name for tree in shown.values() for c in columns_in(tree)}
        if where:
            return None
        if not used & {*self.calls}:
            return self.source.fields(shown, self.where, exactly=exactly)
        return {
            "kind": "over",
            **self.source.read(self.where),
            **({"partition_by": [sql(tree) for tree in self.partition]} if self.partition else {}),
            **({"order_by": [sql(tree) for tree in self.order]} if self.order else {}),
            "select": texts({n: substituted(tree, self.calls) for n, tree in shown.items()}),
        }


@dataclass(frozen=True)
class Ranked:
    """The first rows of each group of a table. `rank`: the column of the rank, if any."""

    source: TableRows
    where: tuple[Tree, ...]
    partition: tuple[Tree, ...]
    order: tuple[Tree, ...]
    limit: int
    offset: int = 0
    function: str = "row_number"
    rank: str = RANK

    def fields(
        self, shown: ColumnTrees, where: tuple[Tree, ...], *, exactly: bool
    ) -> ViewFields | None:
        ranks = [n for n, tree in shown.items() if is_column(tree) and tree.name == self.rank]
        others = {n: tree for n, tree in shown.items() if n not in ranks}
        if (
            where
            or len(ranks) > 1
            or self.rank in {c.name for tree in others.values() for c in columns_in(tree)}
        ):
            return None
        groups = self._named_groups(others)
        if exactly and len(groups) < len(self.partition):
            return None
        for tree in self.partition:
            groups.setdefault(sql(tree), free_name("g", {*shown, *groups.values()}))
        select = {n: tree for n, tree in others.items() if n not in groups.values()}
        chosen = texts(select) or {n: text for text, n in groups.items()}
        if not chosen:
            return None
        return {
            "kind": "topk",
            **self.source.read(self.where),
            "partition_by": [{name: text} for text, name in groups.items()],
            "order_by": [sql(tree) for tree in self.order],
            "limit": self.limit,
            **({"offset": self.offset} if self.offset else {}),
            "function": self.function,
            "select": chosen,
            "rank": ranks[0] if ranks else False,
        }

    def _named_groups(self, shown: ColumnTrees) -> dict[str, str]:
        """Return the partition's expression -> the name under which it is shown."""
        wanted = {sql(tree) for tree in self.partition}
        found: dict[str, str] = {}
        for name, tree in shown.items():
            if sql(tree) in wanted:
                found.setdefault(sql(tree), name)
        return found
