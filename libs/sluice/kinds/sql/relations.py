"""Sources of a part of a query: a stored table, or a part that is not finished yet.

An unfinished part absorbs what follows it (expressions, conditions) as far as its kind can express
it. So `SELECT ... WHERE ... GROUP BY ... HAVING` is one table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from sqlglot import exp

from sluice.kinds.sql.trees import both, columns_in, free_name, is_column, sql, substitute
from sluice.language.syntax import Tree

ViewFields = dict[str, Any]
ColumnTrees = Mapping[str, Tree]
Trees = tuple[Tree, ...]

RANK = "_rank"


class RowSource(Protocol):
    """Rows with columns that expressions can be built of."""

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        """Return the declaration of a view with these columns; None if its kind can't express it.

        Unless `exactly`, the view may have more columns.
        """


@dataclass(frozen=True)
class TableRows:
    """A table that is declared, or a finished part."""

    table: str

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        return {"kind": "select", **self.name_rows(where), "select": texts(shown)}

    def name_rows(self, where: Trees) -> ViewFields:
        """Return the fields that name the rows."""
        return {"from": self.table, **({"where": sql(both(where))} if where else {})}


@dataclass(frozen=True)
class DistinctRows:
    """Each row of a table once, by the columns."""

    source: TableRows
    columns: ColumnTrees
    where: Trees

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        if not all(map(is_column, shown.values())):
            return None
        select = {name: self.columns[tree.name] for name, tree in shown.items()}
        seen = [tree.name for tree in shown.values()]
        others = [name for name in self.columns if name not in seen]
        if exactly and (others or len(seen) > len(self.columns)):
            return None
        for name in others:
            select[free_name(name, select)] = self.columns[name]
        asked = (*self.where, *(substitute(w, self.columns) for w in where))
        return {
            "kind": "select",
            **self.source.name_rows(asked),
            "select": texts(select),
            "distinct": True,
        }


@dataclass(frozen=True)
class Joined:
    """Two tables, `l` and `r`. `on`: pairs of expressions; `where`: further conditions."""

    left: str
    right: str
    type: str
    on: tuple[tuple[Tree, Tree], ...]
    where: Trees = ()

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        if where and self.type not in ("inner", "semi"):
            return None
        asked = (*self.where, *where)
        return {
            "kind": "join",
            "left": {"table": self.left, "as": "l"},
            "right": {"table": self.right, "as": "r"},
            "type": self.type,
            "on": [f"{sql(a)} = {sql(b)}" for a, b in self.on],
            **({"where": sql(both(asked))} if asked else {}),
            "select": texts(shown),
        }


@dataclass(frozen=True)
class GroupStream:
    """Further rows of groups, with the same keys and separate aggregates."""

    source: TableRows
    where: Trees
    keys: ColumnTrees
    aggregates: ColumnTrees


@dataclass(frozen=True)
class Grouped:
    """Groups of a table. `keys` and `aggregates`: name -> expression over the table.

    `is_whole`: the one group of all rows exists even without rows. `streams`: of others.
    """

    source: TableRows
    where: Trees
    keys: ColumnTrees
    aggregates: ColumnTrees
    is_whole: bool = False
    streams: tuple[GroupStream, ...] = ()

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        keys = _shown_names(shown, self.keys)
        if exactly and len(keys) < len(self.keys):
            return None
        taken = {*shown, *self._every}
        for key in self.keys:
            if key not in keys:
                keys[key] = free_name(key, taken | {*keys.values()})
        used = {c.name for tree in (*shown.values(), *where) for c in columns_in(tree)}
        names = self._named_aggregates(shown, used, {*shown, *keys.values()})
        new = {old: exp.column(name) for old, name in {**keys, **names}.items()}
        select = {n: substitute(tree, new) for n, tree in shown.items() if n not in keys.values()}
        counted = {name: self._every[old] for old, name in names.items()}
        first = {
            name: self.aggregates[old] for old, name in names.items() if old in self.aggregates
        }
        is_plain = {n: sql(t) for n, t in select.items()} == {n: f"{n}" for n in counted}
        keyed = next(iter(keys.values()))
        return {
            "kind": "cogroup",
            **({"keep_empty": True} if self.is_whole else {}),
            "key": [keys[k] for k in self.keys],
            "streams": {
                "rows": {
                    **self.source.name_rows(self.where),
                    "key": [sql(tree) for tree in self.keys.values()],
                    "aggregates": texts(first)
                    or {free_name("n", {*keys.values(), *shown, *counted}): "count(*)"},
                },
                **self._others(names),
            },
            **({"having": sql(both([substitute(w, new) for w in where]))} if where else {}),
            **({} if is_plain and counted else {"select": texts(select) or {keyed: keyed}}),
        }

    @property
    def _every(self) -> ColumnTrees:
        others = {name: tree for one in self.streams for name, tree in one.aggregates.items()}
        return {**self.aggregates, **others}

    def _others(self, names: Mapping[str, str]) -> ViewFields:
        """Return the fields of further streams of a cogroup, with the aggregates in use."""
        found: ViewFields = {}
        for number, one in enumerate(self.streams):
            used = {names[old]: tree for old, tree in one.aggregates.items() if old in names}
            if used:
                keys = [sql(tree) for tree in one.keys.values()]
                read = one.source.name_rows(one.where)
                found[f"rows_{number}"] = {**read, "key": keys, "aggregates": texts(used)}
        return found

    def _named_aggregates(
        self, shown: ColumnTrees, used: set[str], taken: set[str]
    ) -> dict[str, str]:
        """Return aggregate -> the name under which it is shown, or another one."""
        found = _shown_names(shown, self._every)
        for name in self._every:
            if name in used and name not in found:
                found[name] = free_name(name, taken | {*found.values()})
        return found


def _shown_names(shown: ColumnTrees, columns: ColumnTrees) -> dict[str, str]:
    """Return column -> the first name under which it is shown, without those that are not."""
    found: dict[str, str] = {}
    for name, tree in shown.items():
        if is_column(tree) and tree.name in columns:
            found.setdefault(tree.name, name)
    return found


@dataclass(frozen=True)
class ExplodedRows:
    """A row for each element of an array. `item`, `place`: columns of it and of its number."""

    source: TableRows
    where: Trees
    of: Tree
    item: str
    place: str
    outer: bool = False

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        explode = {"of": sql(self.of), "as": self.item, "position": self.place}
        return {
            "kind": "select",
            **self.source.name_rows((*self.where, *where)),
            "explode": {**explode, **({"outer": True} if self.outer else {})},
            "select": texts(shown),
        }


Branch = tuple[TableRows, Trees, ColumnTrees]


@dataclass(frozen=True)
class Together:
    """Rows of several tables. Each branch: a table, its conditions and its columns."""

    branches: tuple[Branch, ...]

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        parts = []
        for source, asked, columns in self.branches:
            conditions = (*asked, *(substitute(w, columns) for w in where))
            select = {name: substitute(tree, columns) for name, tree in shown.items()}
            read = source.name_rows(conditions)
            parts.append({"table": read.pop("from"), **read, "select": texts(select)})
        return {"kind": "union", "from": parts}


S_co = TypeVar("S_co", bound=RowSource, covariant=True)


@dataclass(frozen=True)
class QueryRows(Generic[S_co]):
    """Rows with named columns. `columns`: name -> expression over the source's columns."""

    source: S_co
    columns: ColumnTrees
    where: Trees = ()

    def resolve(self, tree: Tree) -> Tree:
        """Return an expression over the columns as one over the source's columns."""
        return substitute(tree, self.columns)

    def show(self, columns: ColumnTrees) -> "QueryRows[S_co]":
        """Return the rows with these columns over the source's."""
        return replace(self, columns=columns)

    def filter(self, conditions: Iterable[Tree]) -> "QueryRows[S_co]":
        """Return the rows that meet conditions over the source's columns as well."""
        return replace(self, where=(*self.where, *conditions))


def texts(columns: ColumnTrees) -> dict[str, str]:
    """Return expressions as SQL."""
    return {name: sql(tree) for name, tree in columns.items()}


def anything(source: RowSource) -> ColumnTrees:
    """Return a column that every view over the source can have."""
    if isinstance(source, DistinctRows):
        return {name: exp.column(name) for name in source.columns}
    return {"one": exp.Literal.number(1)}


AnyRows = QueryRows[RowSource]
StoredRows = QueryRows[TableRows]


def rename_columns(relation: AnyRows, names: list[str]) -> AnyRows:
    """Return the rows under the names of a column list, if there is one."""
    shown = dict(zip(names, relation.columns.values(), strict=True)) if names else relation.columns
    return relation.show(shown)


@dataclass(frozen=True)
class WindowedRows:
    """Rows of a table with window functions of one partition and order. `calls`: name -> call."""

    source: TableRows
    where: Trees
    partition: Trees
    order: Trees
    calls: ColumnTrees

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        used = {c.name for tree in shown.values() for c in columns_in(tree)}
        if where:
            return None
        if not used & {*self.calls}:
            return self.source.fields(shown, self.where, exactly=exactly)
        return {
            "kind": "over",
            **self.source.name_rows(self.where),
            **({"partition_by": [sql(tree) for tree in self.partition]} if self.partition else {}),
            **({"order_by": [sql(tree) for tree in self.order]} if self.order else {}),
            "select": texts({n: substitute(tree, self.calls) for n, tree in shown.items()}),
        }


@dataclass(frozen=True)
class Ranked:
    """The first rows of each group of a table. `rank`: the column of the rank, if any."""

    source: TableRows
    where: Trees
    partition: Trees
    order: Trees
    limit: int
    offset: int = 0
    function: str = "row_number"
    rank: str = RANK

    def fields(self, shown: ColumnTrees, where: Trees, *, exactly: bool) -> ViewFields | None:
        ranks = [n for n, tree in shown.items() if is_column(tree) and tree.name == self.rank]
        others = {n: tree for n, tree in shown.items() if n not in ranks}
        is_computed_with = any(
            c.name == self.rank for tree in others.values() for c in columns_in(tree)
        )
        if where or len(ranks) > 1 or is_computed_with:
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
            **self.source.name_rows(self.where),
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
