"""The chain of views that a query becomes, in the order in which they are advanced."""

from collections.abc import Iterable, Mapping
from itertools import count

from sqlglot import exp

from sluice.kinds.sql.reading.trees import (
    columns_in,
    free_name,
    key_of,
    line_of,
    sql,
    substituted,
)
from sluice.kinds.sql.relations.sources import (
    AnyRows,
    ColumnTrees,
    Grouped,
    QueryRows,
    StoredRows,
    TableRows,
    ViewFields,
    anything,
)
from sluice.kinds.sql.relations.unique import Uniqueness, uniqueness_of
from sluice.language.expression import UNREADABLE
from sluice.language.internal import internal
from sluice.language.syntax import Tree

Written = tuple[str, int]  # an expression, and its line in the query, 0 if it isn't known


class Chain:
    """Declarations of views, by name: `<view>__1` and so on, the view itself last.

    `uniqueness`: what is known about the rows of each, and about their inputs. `written`: what
    the query says in place of a part's expression, for messages about it. `refused`: the parts
    that can't be views; the chain is then of no use.
    """

    def __init__(self, view: str, uniqueness: Mapping[str, Uniqueness] | None = None) -> None:
        self.view = view
        self.views: dict[str, ViewFields] = {}
        self.uniqueness = dict(uniqueness or {})
        self.written: dict[str, Written] = {}
        self.refused: list[str] = []
        self._numbers = count()

    def number(self) -> int:
        """Return the next unused number."""
        return next(self._numbers)

    def note(self, expression: Tree, written: Tree) -> None:
        """Note what the query says in place of a part's expression."""
        self.written[sql(expression)] = (sql(written), line_of(written))

    def refuse(self, error: ValueError, query: Tree) -> AnyRows:
        """Note why a query can't be a view; return a table in its place, to find more mistakes."""
        self.refused.append(str(error))
        name = f"{UNREADABLE}{len(self.refused)}"
        self.views[name] = {"keep_empty": True}  # of which nothing is asked: one row
        self.uniqueness[name] = Uniqueness(frozenset([frozenset()]))
        names = query.named_selects if isinstance(query, exp.Query) else ()
        return QueryRows(TableRows(name), {name: exp.column(name) for name in names})

    def end(self, relation: AnyRows) -> None:
        """Add the view itself: exactly the relation's columns."""
        found = relation.source.fields(relation.columns, relation.where, exactly=True)
        if found is None:
            relation = self.stored(relation)
            found = relation.source.fields(relation.columns, relation.where, exactly=True)
        assert found is not None
        self.views[self.view] = found
        self.uniqueness[self.view] = self.known_of(relation)

    def known_of(self, relation: AnyRows) -> Uniqueness:
        """Return what is known about a relation's rows, in terms of its columns."""
        found = uniqueness_of(relation.source, relation.where, self.uniqueness)
        return found.shown_as(relation.columns)

    def is_one_row(self, relation: AnyRows) -> bool:
        """True if the relation always has one row."""
        source = relation.source
        if relation.where:
            return False
        if isinstance(source, TableRows):
            fields = self.views.get(source.table, {})
            return bool(fields.get("keep_empty")) and "having" not in fields
        return isinstance(source, Grouped) and source.is_whole

    def stored(self, relation: AnyRows, wanted: Iterable[str] | None = None) -> StoredRows:
        """Return the relation as one over a stored table, with the `wanted` columns."""
        columns: ColumnTrees = {
            name: tree
            for name, tree in relation.columns.items()
            if wanted is None or name in wanted
        }
        if isinstance(relation.source, TableRows):
            return QueryRows(relation.source, columns, relation.where)
        columns = columns or dict([*relation.columns.items()][:1]) or anything(relation.source)
        shown, names = _shown(columns)
        if (found := relation.source.fields(shown, relation.where, exactly=False)) is not None:
            made = QueryRows(relation.source, shown, relation.where)
            return QueryRows(TableRows(self._add(found, made)), names)
        pieces = _pieces([*columns.values(), *relation.where]) or anything(relation.source)
        return self._over_pieces(relation, columns, pieces)

    def table(self, relation: AnyRows, wanted: Iterable[str] | None = None) -> StoredRows:
        """Return the relation as one over a whole table: plain columns, no conditions."""
        found = self.stored(relation, wanted)
        if not found.where and all(isinstance(t, exp.Column) for t in found.columns.values()):
            return found
        shown, names = _shown(found.columns)
        fields = found.source.fields(shown, found.where, exactly=False)
        assert fields is not None
        made = QueryRows(found.source, shown, found.where)
        return QueryRows(TableRows(self._add(fields, made)), names)

    def _over_pieces(
        self, relation: AnyRows, columns: ColumnTrees, pieces: ColumnTrees
    ) -> StoredRows:
        fields = relation.source.fields(pieces, (), exactly=False)
        assert fields is not None
        names = {
            key_of(tree): exp.column(name)
            for name, tree in pieces.items()
            if isinstance(tree, exp.Column)
        }
        return QueryRows(
            TableRows(self._add(fields, QueryRows(relation.source, pieces))),
            {name: substituted(tree, names) for name, tree in columns.items()},
            tuple(substituted(tree, names) for tree in relation.where),
        )

    def _add(self, fields: ViewFields, made: AnyRows) -> str:
        name = internal(self.view, str(len(self.views) + 1))
        self.views[name], self.uniqueness[name] = fields, self.known_of(made)
        return name


def _shown(columns: ColumnTrees) -> tuple[dict[str, Tree], dict[str, Tree]]:
    """Return column of the part -> expression, and the relation's name -> column of the part."""
    shown: dict[str, Tree] = {}
    by_text: dict[str, str] = {}
    names: dict[str, Tree] = {}
    for name, tree in columns.items():
        text = tree.sql()
        if text not in by_text:
            by_text[text] = free_name(name.rpartition(".")[2], shown)
            shown[by_text[text]] = tree
        names[name] = exp.column(by_text[text])
    return shown, names


def _pieces(trees: Iterable[Tree]) -> dict[str, Tree]:
    """Return the plain columns in expressions, each under a free name."""
    found: dict[str, Tree] = {}
    for column in {key_of(c): c for tree in trees for c in columns_in(tree)}.values():
        found[free_name(column.name, found)] = exp.column(column.name, column.table or None)
    return found
