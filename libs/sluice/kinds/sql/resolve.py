"""Resolution of views in SQL: the query's chain of views, each resolved by its own kind."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from sqlglot import exp

from sluice.declare.registry import kind
from sluice.declare.resolution.scope import TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where
from sluice.declare.text.mistakes import explain
from sluice.kinds.sql.planning.block import Queries
from sluice.kinds.sql.reading.query import are_shown
from sluice.kinds.sql.reading.trees import line_of, sql
from sluice.kinds.sql.relations.chain import Chain, Written
from sluice.kinds.sql.relations.sources import QueryRows, TableRows, ViewFields
from sluice.kinds.sql.relations.unique import Uniqueness, of_table
from sluice.kinds.sql.rewriting import pivot
from sluice.kinds.sql.spec import Sql
from sluice.language.expression import UNREADABLE
from sluice.language.model import Mistaken, messages_of
from sluice.language.names import UnknownName, check_name, unknown
from sluice.language.typed.inference import ColumnTypes
from sluice.language.typed.rules import RefusedBySpark
from sluice.language.typed.types import inner_types

Tables = Mapping[str, Table]


NTH = "_sluice_nth"  # number of a row among equal ones


@dataclass
class _Noted:
    """Report that keeps the mistakes of a chain's parts, in the query's words and by its lines.

    `tree`: the query; `written`: what it says in place of a part's expressions. `impossible`: the
    mistakes for which Spark can't compute the whole query either.
    """

    tree: exp.Query
    written: Mapping[str, Written] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)

    def add(self, _: Where, problem: str) -> None:
        """Note a mistake of a part."""
        message, line = problem, 0
        for text, (said, of) in sorted(self.written.items(), key=lambda item: -len(item[0])):
            known = re.compile(rf"(?<![\w.]){re.escape(text)}(?![\w.(])")
            if known.search(message):
                message, line = said.join(known.split(message)), line or of
        message = message.replace("OVER (w ", "OVER (… ")
        if line := line or self._line_of(message):
            message = f"line {line}: {message}"
        self.keep(message)
        if isinstance(problem, RefusedBySpark) and message not in self.impossible:
            self.impossible.append(message)

    def keep(self, message: str) -> None:
        """Note a mistake once."""
        if message not in self.problems:
            self.problems.append(message)

    def _line_of(self, message: str) -> int:
        """Return the line of the longest expression that the message shows; 0 for none."""
        plain = self.tree.copy()
        for column in plain.find_all(exp.Column):
            column.set("table", None)
        nodes = plain.find_all(exp.Func, exp.Binary, exp.Unary, exp.Case)
        shown = {text: line_of(node) for node in nodes if (text := sql(node)) in message}
        return shown[max(shown, key=len)] if shown else 0


def resolve(spec: Sql, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table | None:
    """Return the last table of the chain, under the view's name; `parts` are all of them.

    An unsupported query is a mistake or, if `incremental` is only preferred, a table computed
    whole. The table of a mistaken query has its names, so that views over it are checked as well.
    """
    tables: Tables = {table.id: table for table in inputs.values()}
    if not mistakes.is_certain:
        known = spec.query.with_named({i: table.columns for i, table in tables.items()})
        tables = {i: replace(table, columns=known[i]) for i, table in tables.items()}
    try:
        tree, names, problems = _qualified(spec, tables, is_certain=mistakes.is_certain)
    except ValueError as error:
        for problem in messages_of(error):
            mistakes.add(("sql",), UnknownName(problem))
        named = tuple(spec.query.tree.named_selects)
        return None if "*" in named else _whole(spec, named, tables)
    noted = _Noted(tree)
    chain = _chain(spec, tree.copy(), tables, noted) if are_shown(tree) else Chain(spec.name)
    if problems or spec.query.problems:
        for problem in (*problems, *_hindrances(spec, noted)):
            mistakes.add(("sql",), problem)
        return _whole(spec, names, tables)
    noted.written = chain.written
    parts = _parts(spec, chain, tables, noted)
    if noted.problems and spec.incremental == "preferred" and not noted.impossible:
        if spec.key:
            mistakes.add(
                ("key",), f"a query that is computed whole has no key: {noted.problems[0]}"
            )
        return _whole(spec.model_copy(update={"refusal": noted.problems[0]}), names, tables)
    for problem in _hindrances(spec, noted):
        mistakes.add(("sql",), problem)
    last = parts.get(f"{spec.pipeline}.{spec.name}")
    if last is None:
        return _whole(spec, names, tables)
    shown = {n: last.columns[n] for n in names} if {*names} == {*last.columns} else last.columns
    declared = _key(spec, shown, chain.uniqueness[spec.name], mistakes)
    return replace(
        last,
        columns=shown,
        key=declared or last.key,
        inputs=tuple(tables),
        parts=tuple(parts.values()),
        is_key_ordered=bool(declared),
    )


def _qualified(
    spec: Sql, tables: Tables, *, is_certain: bool
) -> tuple[exp.Query, tuple[str, ...], tuple[str, ...]]:
    """Return the query with the tables of its columns, the names that it selects, its mistakes.

    Raises ValueError if it can't be read further, as one that may not be mistaken.
    """
    columns = {table_id: table.columns for table_id, table in tables.items()}
    tree, problems = spec.query.qualified(columns)
    pivot.with_groups(tree, columns)
    names = _names(tree)
    if not is_certain and (problems or UNREADABLE in names):
        raise Mistaken(problems)
    return tree, names, problems


def _hindrances(spec: Sql, noted: _Noted) -> list[str]:
    """Return the mistakes for which the view can't be kept in either way."""
    return noted.impossible if spec.incremental == "preferred" else noted.problems


def _key(
    spec: Sql, shown: ColumnTypes, uniqueness: Uniqueness, mistakes: TableMistakes
) -> tuple[str, ...]:
    """Return the declared key; note if the query does not prove it, or a reader can't name it."""
    key = spec.key or ()
    for name in key:
        if name not in shown:
            mistakes.add(("key",), unknown("column", name, shown))
        elif inner_types(shown[name]):
            mistakes.add(("key",), f"{name!r} is {shown[name]}: readers can't name such a key")
    if key and {*key} <= {*shown} and not uniqueness.are_unique_by(key):
        mistakes.add(("key",), f"{_several(key)}: {_instead(uniqueness)}")
    return key


def _several(key: tuple[str, ...]) -> str:
    return f"the query may give several rows for one ({', '.join(key)})"


def _instead(uniqueness: Uniqueness) -> str:
    """Return by what rows are unique, in words."""
    known = sorted(sorted(one) for one in uniqueness.unique)
    if not known:
        return (
            "no selected columns are known to be unique; select all keys of GROUP BY or of the "
            "input, or use DISTINCT"
        )
    each = " or ".join(f"({', '.join(one)})" for one in known)
    return f"its rows are known to be unique by {each}"


def _named(spec: Sql, table: Table) -> str:
    return table.id if table.pipeline != spec.pipeline else table.name


def _whole(spec: Sql, names: tuple[str, ...], tables: Tables) -> Table:
    """Return the table of a query that Spark computes; only Spark knows the types."""
    columns = dict.fromkeys(names, "")
    key = (*names, NTH)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, key, spec, tuple(tables), {NTH: "INT"}
    )


def _parts(spec: Sql, chain: Chain, tables: Tables, noted: _Noted) -> dict[str, Table]:
    """Return the tables of the chain by id; none if one of them can't be."""
    parts: dict[str, Table] = {}
    for name, fields in chain.views.items():
        declared = {**fields, **_of_view(spec)} if name == spec.name else fields
        part = _resolved(spec, name, declared, {**tables, **parts}, noted)
        if part is None:
            return {}
        parts[part.id] = part
    return parts


def _chain(spec: Sql, tree: exp.Query, tables: Tables, noted: _Noted) -> Chain:
    """Return the query's chain; unsupported parts are noted, and the chain then has no views."""
    rows = {
        table_id: QueryRows(TableRows(_named(spec, t)), {n: exp.column(n) for n in t.columns})
        for table_id, t in tables.items()
    }
    uniqueness = {_named(spec, t): of_table(t.columns, t.key) for t in tables.values()}
    chain = Chain(spec.name, uniqueness)
    planned = Queries(chain, rows).query(tree)
    for problem in chain.refused:
        noted.keep(problem)
    if chain.refused:
        return Chain(spec.name)
    try:
        chain.end(planned)
    except ValueError as error:
        noted.keep(str(error))
        return Chain(spec.name)
    return chain


def _names(tree: exp.Query) -> tuple[str, ...]:
    names = tuple(tree.named_selects)
    for name in names:
        check_name(name)
    return names


def _of_view(spec: Sql) -> ViewFields:
    return {"description": spec.description, "expect": spec.expect}


def _resolved(
    spec: Sql, name: str, fields: ViewFields, tables: Tables, noted: _Noted
) -> Table | None:
    """Return the table of one part of the chain."""
    of = kind(fields["kind"])
    try:
        part: Any = of.model.model_validate({**fields, "name": name, "pipeline": spec.pipeline})
    except ValidationError as error:
        for problem in error.errors():
            noted.add((), explain(problem, of.model, fields)[1])
        return None
    ids = {
        r.where: r.name if "." in r.name else f"{spec.pipeline}.{r.name}" for r in part.references()
    }
    found = {where: tables[table_id] for where, table_id in ids.items()}
    return of.resolve(part, found, cast(TableMistakes, noted))
