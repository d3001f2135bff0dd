"""A query as written: its tree, and the tables that it names.

The grammar is sqlglot's for Spark, with functions kept by the name written. sqlglot also resolves
names: `*`, USING, positions in GROUP BY, aliases, QUALIFY. Tables of subqueries that hide tables of
the queries around them are renamed: in `SELECT cid FROM custs WHERE cid IN (SELECT boss FROM
custs)` the inner table becomes `custs_1`. So an alias means one table when conditions of a subquery
and of its outer query are put together.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify

from sluice.kinds.sql.spelling import respell, with_formulas
from sluice.kinds.sql.trees import (
    Refused,
    columns_in,
    free_name,
    is_aggregate,
    is_query,
    line_of,
    own_sources,
    own_tables,
    shared_part,
)
from sluice.language import Mistaken, syntax
from sluice.language.expression import UNREADABLE
from sluice.language.names import NAME, unknown
from sluice.language.syntax import AGGREGATES, SCALAR, Tree, Verbatim

LONGEST = 100_000
LONGEST_NAME = 60  # of a column that the query does not name
WINDOW_FUNCTIONS = frozenset(
    [
        "row_number",
        "rank",
        "dense_rank",
        "percent_rank",
        "cume_dist",
        "ntile",
        "lag",
        "lead",
        "nth_value",
    ]
)
OF_ROWS = frozenset({"explode", "explode_outer", "posexplode", "inline", "stack"})
OF_SETS = frozenset({"grouping", "grouping_id"})
KNOWN = {*SCALAR, *AGGREGATES, *WINDOW_FUNCTIONS, *OF_ROWS, *OF_SETS}
WRONG = "wrong"  # mark of a null in place of a mistaken part
PLANNED = (exp.Join, exp.Group, exp.Order, exp.Window, exp.Subquery, exp.Exists, exp.In)
CLOCKS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentTime)


@dataclass(frozen=True)
class Query:
    """A query and the ids of its tables, in the order in which it names them.

    `problems`: what it may not contain; in the tree, nulls take its place.
    """

    tree: exp.Query
    tables: tuple[str, ...]
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, text: str, pipeline: str) -> "Query":
        """Parse one SELECT; ValueError names why it can't be read."""
        if len(text) > LONGEST:
            raise ValueError(f"a query of {len(text)} characters is longer than {LONGEST}")
        try:
            trees = sqlglot.parse(text, dialect=Verbatim)
        except (SqlglotError, RecursionError) as error:
            why = f"can't read the query: {syntax.reason_of(error)}"
            first = next(iter(getattr(error, "errors", ())), None)
            raise ValueError(f"line {first['line']}: {why}" if first else why) from None
        if len(trees) != 1 or not isinstance(trees[0], exp.Query):
            raise ValueError("one SELECT is expected")
        tree = _in_lower_case(trees[0])
        _name_columns(tree)
        _name_by_place(tree)
        respell(tree)
        with_formulas(tree)
        refused = [*_refused_functions(tree)]
        problems = [str(problem) for _, problem in refused]
        if parts := [*_refused_parts(tree)]:
            raise Mistaken([*problems, *map(str, parts)])
        for node, _ in refused:
            _replace_by_null(node)
        stored = [t for t in tree.find_all(exp.Table) if t.name and not shared_part(t)]
        named = [_with_pipeline(table, pipeline) for table in stored]
        if not named:
            raise ValueError("the query reads no table, so it has no changes to follow")
        return cls(tree, tuple(dict.fromkeys(named)), tuple(problems))

    def place_of(self, table_id: str) -> str:
        """Return the line that names a table first, in words."""
        named = (t for t in self.tree.find_all(exp.Table) if f"{t.db}.{t.name}" == table_id)
        lines = [line for line in map(line_of, named) if line]
        return f"line {min(lines)}" if lines else ""

    def with_named(self, columns: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
        """Return the tables' columns, and those that the query reads of tables not known in full.

        A column that no table is known to have may belong to any table whose columns are not known.
        """
        found = {name: dict(known) for name, known in columns.items()}
        blank = [name for name, known in columns.items() if not known] or [*columns]
        aliases = _tables_by_alias(self.tree)
        for column in self.tree.find_all(exp.Column):
            name = column.name.lower()
            owners = {*aliases.get(column.table.lower(), ())}
            if not column.table and not any(name in known for known in found.values()):
                owners = {*blank}
            for owner in owners & {*found} if not isinstance(column.this, exp.Star) else ():
                found[owner].setdefault(name, "")
        for join in self.tree.find_all(exp.Join):
            for name in join.args.get("using") or ():
                for owner in blank:
                    found[owner].setdefault(name.name.lower(), "")
        return {name: known or {UNREADABLE: ""} for name, known in found.items()}

    def resolve_names(
        self, columns: Mapping[str, Mapping[str, str]]
    ) -> tuple[exp.Query, tuple[str, ...]]:
        """Return the query with every column named by its table, and its mistakes.

        `columns`: by table's id. Nulls take the place of unknown and ambiguous columns. Raises
        ValueError for other mistakes.
        """
        schema: dict[str, Any] = {}
        for table_id, known in columns.items():
            pipeline, _, name = table_id.partition(".")
            schema.setdefault(pipeline, {})[name] = dict.fromkeys(known, "UNKNOWN")
        tree = self.tree.copy()
        problems: list[Exception] = []
        for column, problem in [*_unknown_columns(tree, columns)]:
            problems.append(problem)
            _replace_by_null(column)
        _mark_aggregates(tree)
        while True:
            try:
                found = qualify(
                    tree.copy(), schema=schema, dialect=Verbatim, quote_identifiers=False
                )
                break
            except OptimizeError as error:
                wrong = _find_unresolved(str(error), tree)
                if wrong is None:
                    first = str(error).splitlines()[0]
                    raise Mistaken([*map(str, problems), first]) from None
                why = f"column {wrong.name!r} is unknown, or more than one table has it"
                problems.append(Refused(wrong, f"{why}: write table.{wrong.name}"))
                _replace_by_null(wrong)
        for marked in [*found.find_all(exp.AnyValue)]:
            marked.replace(marked.this)
        for test, problem in [*_unequal_widths(found)]:
            problems.append(problem)
            _replace_by_null(test)
        with_own_aliases(found)
        return found, tuple(dict.fromkeys(map(str, problems)))


def _mark_aggregates(tree: exp.Query) -> None:
    """Mark the aggregates of HAVING, whose arguments are columns of tables before aliases.

    sqlglot does not know them as aggregates, because functions are kept by the name written.
    """
    for having in tree.find_all(exp.Having):
        for node in [*having.walk(prune=lambda n: is_query(n) or is_aggregate(n))]:
            if is_aggregate(node):
                node.replace(mark := exp.AnyValue())
                mark.set("this", node)


def _unequal_widths(tree: exp.Query) -> Iterator[tuple[exp.In, Refused]]:
    """Yield each IN whose sides have different numbers of columns."""
    for test in tree.find_all(exp.In):
        query = test.args.get("query")
        values = len(test.this.expressions) if isinstance(test.this, exp.Tuple) else 1
        select = query.this if isinstance(query, exp.Subquery) else query
        if isinstance(select, exp.Query) and len(select.selects) != values:
            problem = f"IN compares {values} value(s) with {len(select.selects)}"
            yield test, Refused(test, problem)


def _in_lower_case(tree: exp.Query) -> exp.Query:
    """Return the tree with names in lower case, because Spark ignores their case."""
    for name in tree.find_all(exp.Identifier):
        name.set("this", name.name.lower())
        if NAME.fullmatch(name.name):
            name.set("quoted", False)
    return tree


def _refused_functions(tree: exp.Query) -> Iterator[tuple[Tree, Refused]]:
    """Yield functions that are not on the allow-list of Spark's deterministic ones."""
    for node in tree.walk():
        name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, CLOCKS) or name in syntax.CLOCKS:
            yield node, Refused(node, f"{syntax.render(node)!r}: {syntax.CLOCK}")
        elif name and name not in KNOWN:
            yield node, Refused(node, syntax.refusal(name))


def _refused_parts(tree: exp.Query) -> Iterator[Refused]:
    """Yield each part of WITH that reads itself, or a table of its own name."""
    if with_ := next((w for w in tree.find_all(exp.With) if w.args.get("recursive")), None):
        yield Refused(with_, "WITH RECURSIVE can't be maintained incrementally")
        return
    for cte in tree.find_all(exp.CTE):
        for table in cte.this.find_all(exp.Table):
            if table.name == cte.alias and not table.db:
                yield Refused(
                    table, f"{cte.alias!r} of WITH reads a table of its own name: use another name"
                )


def _name_columns(tree: exp.Query) -> None:
    """Name unnamed columns after what they show, and number repeated names.

    `sum(v)` becomes `sum_v`; the second `id` of `SELECT id, id` becomes `id_1`.
    """
    first: Tree = tree
    while not isinstance(first, exp.Select) and first.this is not None:
        first = first.this
    named = [e for e in first.expressions if isinstance(e, exp.Alias | exp.Column | exp.Dot)]
    taken = {item.alias_or_name for item in named}
    seen, again = set[str](), set[int]()
    for item in named:
        if item.name in seen:
            again.add(id(item))
        seen.add(item.alias_or_name)
    for item in list(first.expressions):
        is_named = isinstance(item, exp.Alias | exp.Column | exp.Star | exp.Dot)
        if not is_named or (id(item) in again and isinstance(item, exp.Column)):
            name = free_name(item.name if is_named else _describe(item), taken)
            taken.add(name)
            item.replace(exp.alias_(item.copy(), name))


def _describe(item: Tree) -> str:
    """Return a name derived from an expression."""
    words = re.findall(r"[a-z0-9]+", syntax.render(item).lower())
    name = "_".join(words) if words and words[0][0].isalpha() else "c"
    return name[:LONGEST_NAME].rstrip("_")


def _name_by_place(tree: exp.Query) -> None:
    """Name columns that count only by their position: those of IN, and on the right of UNION."""
    right_sides = [node.expression for node in tree.find_all(exp.SetOperation)]
    for query in [*right_sides, *(node.args.get("query") for node in tree.find_all(exp.In))]:
        select = query.unnest() if query else None
        if not isinstance(select, exp.Select):
            continue
        items = select.expressions
        if len({item.alias_or_name or i for i, item in enumerate(items)}) < len(items):
            named = (exp.alias_(e.unalias(), f"c{i}") for i, e in enumerate(items))
            select.set("expressions", [*named])


def _with_pipeline(table: exp.Table, pipeline: str) -> str:
    """Qualify the table's name with its pipeline, and return its id."""
    if table.catalog:
        raise Refused(table, f"{syntax.render(table)!r}: write `table` or `pipeline.table`")
    if not isinstance(table.this, exp.Identifier):
        raise Refused(table, f"{syntax.render(table)!r} is not a table")
    name, db = table.name.lower(), (table.db or pipeline).lower()
    table.this.set("this", name)
    table.set("db", exp.to_identifier(db))
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
    return f"{db}.{name}"


def _unknown_columns(
    tree: exp.Query, columns: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[exp.Column, Refused]]:
    """Yield each `table.column` whose table lacks the column."""
    by_alias = {
        alias: columns[next(iter(found))]
        for alias, found in _tables_by_alias(tree).items()
        if len(found) == 1 and found <= {*columns}
    }
    for column in tree.find_all(exp.Column):
        known = by_alias.get(column.table.lower()) if not column.db else None
        if known and not isinstance(column.this, exp.Star) and column.name.lower() not in known:
            yield column, Refused(column, unknown("column", column.name, known))


def _tables_by_alias(tree: exp.Query) -> dict[str, set[str]]:
    """Return the ids of tables that each alias means somewhere, '' for a query."""
    meanings: dict[str, set[str]] = {}
    for source in tree.find_all(exp.Table, exp.Subquery):
        table_id = f"{source.db}.{source.name}" if isinstance(source, exp.Table) else ""
        meanings.setdefault(source.alias_or_name.lower(), set()).add(table_id)
    return meanings


def _replace_by_null(node: Tree) -> None:
    """Replace a wrong part, so that others are found; a selected column keeps its name."""
    null = exp.null()
    null.meta[WRONG] = True
    is_named = isinstance(node, exp.Column) and node.arg_key == "expressions"
    is_selected = is_named and isinstance(node.parent, exp.Select)
    node.replace(exp.alias_(null, node.name) if is_selected else null)


def are_shown(tree: exp.Query) -> bool:
    """True if all wrong parts are only shown or compared, so that the others can be planned."""
    wrong = (null for null in tree.find_all(exp.Null) if null.meta.get(WRONG))
    return not any(null.find_ancestor(*PLANNED) for null in wrong)


def _find_unresolved(message: str, tree: exp.Query) -> exp.Column | None:
    """Return the column that sqlglot's message is about, if it is about one."""
    first = message.splitlines()[0]
    is_plain = "could not be resolved" in first
    if not is_plain and "Unknown column" not in first:
        return None
    name = (first.split("'")[1] if "'" in first else first.rpartition(" ")[2]).lower()
    found = [c for c in tree.find_all(exp.Column) if c.name.lower() == name]
    return next((c for c in found if is_plain == (not c.table)), next(iter(found), None))


def with_own_aliases(tree: exp.Query) -> None:
    """Rename tables of subqueries that hide outer ones; each column of `tree` has its table."""
    taken = {t.alias_or_name for t in tree.find_all(exp.Table, exp.Subquery, exp.Lateral)}
    for select in [*tree.find_all(exp.Select)]:  # outer ones first
        for alias in sorted(own_tables(select) & _names_around(select)):
            name = free_name(alias, taken)
            taken.add(name)
            _rename(select, alias, name)


def _names_around(select: Tree) -> set[str]:
    """Return the tables of outer queries that a query may read: none of those beside it in FROM."""
    node, is_lateral, is_source = select, False, False
    while node.parent is not None:
        is_first = isinstance(node.parent, exp.From | exp.CTE)
        is_joined = isinstance(node.parent, exp.Join) and node.arg_key == "this"
        node = node.parent
        is_lateral = is_lateral or isinstance(node, exp.Lateral)
        is_source = is_source or ((is_first or is_joined) and not is_lateral)
        if isinstance(node, exp.Select):
            return _names_around(node) if is_source else _names_around(node) | own_tables(node)
    return set()


def _rename(select: exp.Select, alias: str, name: str) -> None:
    columns = [c for c in columns_in(select) if c.table == alias and _owner(c, alias) is select]
    for source in own_sources(select):
        if source.alias_or_name == alias:
            given = source.args.get("alias") or exp.TableAlias()
            given.set("this", exp.to_identifier(name))
            source.set("alias", given)
    for column in columns:
        column.set("table", exp.to_identifier(name))


def _owner(column: exp.Column, alias: str) -> Tree | None:
    """Return the innermost query around a column that has a table of that alias."""
    found = column.parent_select
    while isinstance(found, exp.Query):
        if isinstance(found, exp.Select) and alias in own_tables(found):
            break
        found = found.parent_select
    return found
