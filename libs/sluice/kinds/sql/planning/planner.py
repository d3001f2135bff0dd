"""Rows that a query may name: tables, common table expressions, queries in FROM."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from sluice.kinds.sql.clauses import constants
from sluice.kinds.sql.reading.trees import Refused
from sluice.kinds.sql.relations.chain import Chain
from sluice.kinds.sql.relations.sources import AnyRows, TableRows, renamed
from sluice.language.syntax import Tree


@dataclass
class Planner(ABC):
    """Plans the queries inside a query. `shared`: relations of common table expressions, by name.

    A query may occur wherever rows or a value may, so every part's planner gets this.
    """

    chain: Chain
    tables: Mapping[str, AnyRows]
    shared: dict[str, AnyRows] = field(default_factory=dict)

    @abstractmethod
    def query(self, tree: Tree) -> AnyRows:
        """Return the relation of a SELECT, a set operation or a list of VALUES."""

    @abstractmethod
    def value(self, joined: Any, subquery: exp.Subquery) -> Tree:
        """Join a scalar subquery to the `joined` sources; return the expression of its value."""

    def one_row(self) -> AnyRows:
        """Return one row without columns."""
        return constants.one_row(self._any_table())

    def _any_table(self) -> TableRows:
        return next(t.source for t in self.tables.values() if isinstance(t.source, TableRows))

    def values(self, tree: exp.Values) -> AnyRows:
        """Return the rows of a list of VALUES."""
        return constants.values(self.chain, self._any_table(), tree, _column_list(tree))

    @contextmanager
    def sharing(self, tree: Tree) -> Iterator[None]:
        """Plan the common table expressions of a query, whose names are valid only within it."""
        outside = dict(self.shared)
        with_ = tree.args.get("with_")
        for cte in with_.expressions if with_ else ():
            relation = self.query(cte.this)
            uses = [t for t in tree.find_all(exp.Table) if not t.db and t.name == cte.alias]
            stored = self.chain.stored(relation) if len(uses) > 1 else relation
            self.shared[cte.alias] = renamed(stored, _column_list(cte))
        try:
            yield
        finally:
            self.shared = outside

    def source(self, tree: Tree) -> tuple[str, AnyRows]:
        """Return the alias of a table or subquery in FROM, and its rows."""
        if tree.args.get("sample"):
            raise Refused(tree, "TABLESAMPLE can't be maintained incrementally")
        if isinstance(tree, exp.Table) and not tree.db and tree.name not in self.shared:
            raise Refused(tree, f"{tree.name!r} of WITH is not known here; give it another name")
        if isinstance(tree, exp.Table) and not tree.db:
            return tree.alias_or_name, self.shared[tree.name]
        if isinstance(tree, exp.Table):
            return tree.alias_or_name, self.tables[f"{tree.db}.{tree.name}"]
        if isinstance(tree, exp.Values):
            return tree.alias, self.values(tree)
        if isinstance(tree, exp.Subquery):
            return tree.alias, renamed(self.query(tree), _column_list(tree))
        raise Refused(
            tree, f"{type(tree).__name__.upper()} in FROM can't be maintained incrementally yet"
        )


def _column_list(tree: Tree) -> list[str]:
    """Return the column names of an alias, as in `AS t (a, b)`."""
    alias = tree.args.get("alias") or exp.TableAlias()
    return [column.name for column in alias.args.get("columns") or ()]
