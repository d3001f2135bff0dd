"""The chain of views that a query becomes, in the order in which they are advanced.

Rows of a part need a key. So sets of columns by which rows are unique are derived, and functional
dependencies: columns that determine others. Both follow from keys of tables, groups, DISTINCT,
rankings, equalities, and joins to unique sides.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatch
from itertools import count

from sqlglot import exp

from sluice.kinds.sql.relations import (
    AnyRows,
    ColumnTrees,
    DistinctRows,
    ExplodedRows,
    Grouped,
    Joined,
    QueryRows,
    Ranked,
    RowSource,
    StoredRows,
    TableRows,
    ViewFields,
    WindowedRows,
    anything,
)
from sluice.kinds.sql.trees import (
    columns_in,
    conjuncts,
    free_name,
    key_of,
    line_of,
    sql,
    substitute,
)
from sluice.language.expression import UNREADABLE, Expression
from sluice.language.inference import infer
from sluice.language.names import internal
from sluice.language.syntax import Tree
from sluice.language.types import widen_exactly

Written = tuple[str, int]  # an expression, and its line in the query, 0 if it isn't known
Names = frozenset[str]
FunctionalDependency = tuple[Names, Names]
NONE: Names = frozenset()


class Chain:
    """Declarations of views, by name: `<view>__1` and so on, the view itself last.

    `uniqueness`: what is known about the rows of each, and about their inputs. `written`: what
    the query says in place of a part's expression, for messages about it. `refused`: the parts
    that can't be views; the chain is then of no use.
    """

    def __init__(self, view: str, uniqueness: Mapping[str, "Uniqueness"] | None = None) -> None:
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
            relation = self.store(relation)
            found = relation.source.fields(relation.columns, relation.where, exactly=True)
        assert found is not None
        self.views[self.view] = found
        self.uniqueness[self.view] = self.known_of(relation)

    def known_of(self, relation: AnyRows) -> "Uniqueness":
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

    def store(self, relation: AnyRows, wanted: Iterable[str] | None = None) -> StoredRows:
        """Return the relation as one over a stored table, with the `wanted` columns."""
        columns: ColumnTrees = {
            name: tree
            for name, tree in relation.columns.items()
            if wanted is None or name in wanted
        }
        if isinstance(relation.source, TableRows):
            return QueryRows(relation.source, columns, relation.where)
        columns = columns or dict([*relation.columns.items()][:1]) or anything(relation.source)
        shown, names = _show_once(columns)
        if (found := relation.source.fields(shown, relation.where, exactly=False)) is not None:
            made = QueryRows(relation.source, shown, relation.where)
            return QueryRows(TableRows(self._add(found, made)), names)
        pieces = _pieces([*columns.values(), *relation.where]) or anything(relation.source)
        return self._over_pieces(relation, columns, pieces)

    def table(self, relation: AnyRows, wanted: Iterable[str] | None = None) -> StoredRows:
        """Return the relation as one over a whole table: plain columns, no conditions."""
        found = self.store(relation, wanted)
        if not found.where and all(isinstance(t, exp.Column) for t in found.columns.values()):
            return found
        shown, names = _show_once(found.columns)
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
            {name: substitute(tree, names) for name, tree in columns.items()},
            tuple(substitute(tree, names) for tree in relation.where),
        )

    def _add(self, fields: ViewFields, made: AnyRows) -> str:
        name = internal(self.view, str(len(self.views) + 1))
        self.views[name], self.uniqueness[name] = fields, self.known_of(made)
        return name


def _show_once(columns: ColumnTrees) -> tuple[dict[str, Tree], dict[str, Tree]]:
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


@dataclass(frozen=True)
class Uniqueness:
    """Sets of columns by which rows are unique, columns that determine others, and their types."""

    unique: frozenset[Names] = frozenset()
    rules: frozenset[FunctionalDependency] = frozenset()
    types: Mapping[str, str] = field(default_factory=dict)

    def determined_by(self, names: Iterable[str]) -> Names:
        """Return the columns whose values follow from those of some."""
        found = frozenset(names)
        while more := {n for ones, others in self.rules if ones <= found for n in others} - found:
            found |= more
        return found

    def are_unique_by(self, names: Iterable[str]) -> bool:
        """True if no two rows have the same values of these columns."""
        found = self.determined_by(names)
        return any(one <= found for one in self.unique)

    def with_rules(self, rules: Iterable[FunctionalDependency]) -> "Uniqueness":
        return replace(self, rules=self.rules | {*rules})

    def or_unique_by(self, names: Iterable[str]) -> "Uniqueness":
        return replace(self, unique=self.unique | {frozenset(names)})

    def shown_as(self, columns: ColumnTrees) -> "Uniqueness":
        """Return what is known about columns computed from these."""
        plain = {sql(tree): name for name, tree in reversed([*columns.items()])}
        rules = {(NONE, self._following(NONE, columns))}
        for ones, _ in {*self.rules, *((one, NONE) for one in self.unique)}:
            if (renamed := self._rename(ones, plain)) is not None:
                rules.add((renamed, self._following(ones, columns)))
        unique = (self._rename(one, plain) for one in self.unique)
        found = frozenset(one for one in unique if one is not None)
        whole = {(one, frozenset(columns)) for one in found}
        types = {new: self.types[old] for old, new in plain.items() if old in self.types}
        return Uniqueness(found, frozenset(rules | whole), types)

    def _following(self, names: Names, columns: ColumnTrees) -> Names:
        known = self.determined_by(names)
        return frozenset(
            name
            for name, tree in columns.items()
            if sql(tree) in known or {key_of(c) for c in columns_in(tree)} <= known
        )

    def _rename(self, names: Names, plain: Mapping[str, str]) -> Names | None:
        """Return new names of columns, or of others that determine them; None if one is lost."""
        needed = names - self.determined_by(NONE)
        found = [plain.get(name) or self._instead(name, plain) for name in needed]
        return frozenset(name for name in found if name) if all(found) else None

    def _instead(self, name: str, plain: Mapping[str, str]) -> str | None:
        return next((new for old, new in plain.items() if name in self.determined_by([old])), None)


def of_table(columns: Mapping[str, str], key: Collection[str]) -> Uniqueness:
    """Return the uniqueness of a stored table with a key; a partly hidden key does not count."""
    if not key or not {*key} <= {*columns}:
        return Uniqueness(types=columns)
    one = frozenset(key)
    return Uniqueness(frozenset([one]), frozenset([(one, frozenset(columns))]), columns)


def uniqueness_of(
    source: RowSource, where: Iterable[Tree], tables: Mapping[str, Uniqueness]
) -> Uniqueness:
    """Return what is known about a source's rows that meet conditions. `tables`: by their names."""
    found = _uniqueness(source, tables)
    is_filter = isinstance(source, TableRows) or (
        isinstance(source, Joined) and source.type == "inner"
    )
    return found.with_rules(_rules(where, found.types)) if is_filter else found


@singledispatch
def _uniqueness(_source: RowSource, _tables: Mapping[str, Uniqueness]) -> Uniqueness:
    return Uniqueness()


@_uniqueness.register
def _(source: TableRows, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    return tables.get(source.table, Uniqueness())


@_uniqueness.register
def _(source: DistinctRows, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    rows = uniqueness_of(source.source, source.where, tables).shown_as(source.columns)
    return rows.or_unique_by(source.columns)


@_uniqueness.register
def _(source: Grouped, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    rows = uniqueness_of(source.source, source.where, tables).shown_as(source.keys)
    groups = Uniqueness(rules=rows.rules).or_unique_by(source.keys)
    return groups.with_rules([(frozenset(source.keys), frozenset(source.aggregates))])


@_uniqueness.register
def _(source: ExplodedRows, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    rows = uniqueness_of(source.source, source.where, tables)
    places = frozenset(one | {source.place} for one in rows.unique)
    return replace(rows, unique=places)


@_uniqueness.register
def _(source: WindowedRows, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    rows = uniqueness_of(source.source, source.where, tables)
    for name, call in source.calls.items():
        if call.this.name.lower() == "row_number":
            rows = rows.or_unique_by([*map(sql, source.partition), name])
    return rows


@_uniqueness.register
def _(source: Ranked, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    rows = uniqueness_of(source.source, source.where, tables)
    if source.function != "row_number":
        return rows
    rank = [] if source.limit == 1 else [source.rank]
    return rows.or_unique_by([*map(sql, source.partition), *rank])


@_uniqueness.register
def _(source: Joined, tables: Mapping[str, Uniqueness]) -> Uniqueness:
    left, right = (_of_side(tables, *of) for of in ((source.left, "l"), (source.right, "r")))
    types = {**left.types, **right.types}
    if source.type in ("semi", "anti"):
        return left
    if source.type == "full":
        return Uniqueness()
    both = frozenset(one | other for one in left.unique for other in right.unique)
    asked = {*_rules(source.where, types)}
    if source.type == "inner":
        equal = {rule for pair in source.on for rule in _equal(*pair)}
        return Uniqueness(both, left.rules | right.rules | asked | equal, types)
    kept, other, side = (left, right, 1) if source.type == "left" else (right, left, 0)
    ends = (pair[side] for pair in source.on)
    on = [key_of(end) for end in ends if isinstance(end, exp.Column)]
    is_single = other.with_rules(asked).are_unique_by(on)
    return replace(kept, unique=both | (kept.unique if is_single else frozenset()))


def _of_side(tables: Mapping[str, Uniqueness], table: str, side: str) -> Uniqueness:
    def qualify(names: Names) -> Names:
        return frozenset(f"{side}.{name}" for name in names)

    uniqueness = tables.get(table, Uniqueness())
    return Uniqueness(
        frozenset(map(qualify, uniqueness.unique)),
        frozenset((qualify(ones), qualify(others)) for ones, others in uniqueness.rules),
        {f"{side}.{name}": type_ for name, type_ in uniqueness.types.items()},
    )


def _rules(conditions: Iterable[Tree], types: Mapping[str, str]) -> Iterator[FunctionalDependency]:
    """Yield the rules that equalities of exactly comparable values imply."""
    sides: dict[str, dict[str, str]] = {"l": {}, "r": {}, "": {}}
    for name, type_ in types.items():
        side, _, column = name.rpartition(".")
        sides[side][column] = type_
    for condition in (c for one in conditions for c in conjuncts(one)):
        if isinstance(condition, exp.EQ):
            pair = condition.this, condition.expression
            one, other = (infer(Expression.of(tree), sides[""], sides) for tree in pair)
            if one and other and widen_exactly(one, other):
                yield from _equal(*pair)


def _equal(one: Tree, other: Tree) -> Iterator[FunctionalDependency]:
    for column, of in ((one, other), (other, one)):
        if isinstance(column, exp.Column):
            yield frozenset(map(key_of, columns_in(of))), frozenset([key_of(column)])
