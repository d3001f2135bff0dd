"""Resolution of views in SQL: the query's chain of views, each resolved by its own kind."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pydantic import ValidationError
from sqlglot import exp

from sluice.declare.document import Where
from sluice.declare.mistakes import explain
from sluice.declare.registry import kind
from sluice.declare.resolution.resolver import Resolver
from sluice.declare.resolution.scope import Report
from sluice.declare.table import Table
from sluice.kinds.sql.block import Planner
from sluice.kinds.sql.chain import Chain
from sluice.kinds.sql.sources import Fields, Relation, Stored
from sluice.kinds.sql.spec import Sql
from sluice.language.names import check_name

Tables = Mapping[str, Table]


NTH = "_sluice_nth"  # number of a row among equal ones


@dataclass
class _Noted:
    """Report that keeps the mistakes of a chain's parts, which users don't see."""

    problems: list[str] = field(default_factory=list)

    def add(self, _: Where, message: str) -> None:
        if message not in self.problems:
            self.problems.append(message)


def resolve(spec: Sql, inputs: Mapping[Where, Table], report: Report) -> Table | None:
    """Return the last table of the chain, under the view's name; `parts` are all of them.

    A query that can't be kept is a mistake or, if it is only preferred, a table computed whole.
    """
    tables = {table.id: table for table in inputs.values()}
    noted = _Noted()
    try:
        tree = spec.query.qualified({i: t.columns for i, t in tables.items()})
        names = _names(tree)
    except ValueError as error:
        report.add(("sql",), str(error))
        return None
    parts = _parts(spec, tree, tables, noted)
    if noted.problems and spec.incremental == "preferred":
        return _whole(spec.model_copy(update={"refusal": noted.problems[0]}), names, tables)
    for problem in noted.problems:
        report.add(("sql",), problem)
    last = parts.get(f"{spec.pipeline}.{spec.name}")
    if last is None:
        return None
    shown = {n: last.columns[n] for n in names} if {*names} == {*last.columns} else last.columns
    return replace(last, columns=shown, inputs=tuple(tables), parts=tuple(parts.values()))


def _whole(spec: Sql, names: tuple[str, ...], tables: Tables) -> Table:
    """Return the table of a query that Spark computes; only Spark knows the types."""
    columns = dict.fromkeys(names, "")
    key = (*names, NTH)
    return Table(
        spec.name, spec.pipeline, spec.KIND, columns, key, spec, tuple(tables), {NTH: "INT"}
    )


def _parts(spec: Sql, tree: exp.Query, tables: Tables, noted: _Noted) -> dict[str, Table]:
    """Return the tables of the chain by id; what can't be kept is noted."""
    try:
        chain = _chain(spec, tree, tables)
    except ValueError as error:
        noted.add((), str(error))
        return {}
    parts: dict[str, Table] = {}
    for name, fields in chain.views.items():
        declared = {**fields, **_of_view(spec)} if name == spec.name else fields
        part = _resolved(spec, name, declared, {**tables, **parts}, noted)
        if part is None:
            return {}
        parts[part.id] = part
    return parts


def _chain(spec: Sql, tree: exp.Query, tables: Tables) -> Chain:
    rows = {
        table_id: Relation(
            Stored(table_id if t.pipeline != spec.pipeline else t.name),
            {n: exp.column(n) for n in t.columns},
        )
        for table_id, t in tables.items()
    }
    chain = Chain(spec.name)
    chain.end(Planner(chain, rows).query(tree))
    return chain


def _names(tree: exp.Query) -> tuple[str, ...]:
    names = tuple(tree.named_selects)
    for name in names:
        check_name(name)
    return names


def _of_view(spec: Sql) -> Fields:
    return {"description": spec.description, "expect": spec.expect}


def _resolved(spec: Sql, name: str, fields: Fields, tables: Tables, noted: _Noted) -> Table | None:
    """Return the table of one part of the chain."""
    model = kind(fields["kind"]).model
    try:
        part: Any = model.model_validate({**fields, "name": name, "pipeline": spec.pipeline})
    except ValidationError as error:
        for problem in error.errors():
            noted.add((), explain(problem, model, fields)[1])
        return None
    ids = {
        r.where: r.name if "." in r.name else f"{spec.pipeline}.{r.name}" for r in part.references()
    }
    found = {where: tables[table_id] for where, table_id in ids.items()}
    resolver = cast(Resolver, kind(fields["kind"]).part("resolve"))
    return resolver.resolve(part, found, cast(Report, noted))
