"""Texts of queries, changed in place so that lines stay, and names that tables may have."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, count

import sqlglot
from pyspark.sql.types import StructField, StructType
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from sluice.interpreter.expressions.from_protocol import schema_of, type_of
from sluice.language.names import NAME
from sluice.language.syntax import KEYWORDS, Tree, Verbatim
from sluice.language.types import canonical
from sluice.spark_pipelines.expressions import is_aggregated


def table_name(parts: Iterable[str]) -> str:
    """Return a name that a table or column may have."""
    name = re.sub(r"[^a-z0-9]+", "_", "_".join(parts).lower()).strip("_")
    return name if NAME.fullmatch(name) else f"t_{name}"


def column_name(name: str) -> str:
    """Return a column's name in its table: in lower case, with `_` for what no name may have."""
    lower = name.lower()
    return lower if NAME.fullmatch(lower) else table_name([name])


def quoted(name: str) -> str:
    """Return a name as a query may have it."""
    return f"`{name}`" if name in KEYWORDS else name


def read_schema(text: str) -> StructType:
    """Return the schema that a stream of files is given: JSON, or DDL with or without `struct<…>`.

    Raises SqlglotError, ValueError, UnsupportedLocally.
    """
    if text.startswith("{"):
        return schema_of(text)
    if text.strip().lower().startswith("struct<"):
        return type_of(canonical(text))  # type: ignore[return-value] # of a struct
    fields = [
        StructField(c.name, type_of(canonical(kind.sql("spark"))))
        for c in _column_definitions(text)
        if (kind := c.args["kind"])
    ]
    if not fields or not all(field.name for field in fields):
        raise ValueError("columns are written as names and types, with commas between them")
    return StructType(fields)


def _column_definitions(ddl: str) -> list[exp.ColumnDef]:
    tree = sqlglot.parse_one(f"CREATE TABLE t ({ddl})", dialect=Verbatim)
    return [c for c in tree.this.expressions if isinstance(c, exp.ColumnDef)]


def declared_types(ddl: str) -> dict[str, str]:
    """Return the columns of DDL with their types. Raises SqlglotError, ValueError."""
    found = _column_definitions(ddl)
    return {column_name(c.name): canonical(c.args["kind"].sql("spark")) for c in found}


def parsed(text: str) -> exp.Query:
    """Return the tree of a query that can be read."""
    tree = sqlglot.parse_one(text, dialect=Verbatim)
    assert isinstance(tree, exp.Query)
    return tree


def odd_names(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield where a query has names that no table may have, and what they become."""
    for token in Verbatim().tokenize(text):
        if token.token_type == TokenType.IDENTIFIER and not NAME.fullmatch(token.text):
            yield token.start, token.end + 1, quoted(column_name(token.text))


def without_streams(text: str) -> tuple[str, dict[int, dict[str, str]]]:
    """Return a query without STREAM and the options behind it, of the same length.

    Also return the options of each stream, in lower case, by where its name begins.
    """
    tokens, found = Verbatim().tokenize(text), dict[int, dict[str, str]]()
    words = [token.text for token in tokens]
    for at, token in enumerate(tokens[:-1]):
        before = words[at - 1].upper() if at else ""
        if token.text.upper() != "STREAM" or before not in ("FROM", "JOIN", ","):
            continue
        name = last = at + 1 + (words[at + 1] == "(")
        while words[last + 1 : last + 2] == ["."]:
            last += 2
        end = last + (name > at + 1)
        text = _blank(text, token.start, tokens[name].start)
        options = found.setdefault(tokens[name].start, {})
        if [word.upper() for word in words[end + 1 : end + 3]] == ["WITH", "("]:
            close = words.index(")", end + 1)
            given = [word for word in words[end + 3 : close] if word not in (",", "=")]
            options |= {k.lower(): v for k, v in zip(given[::2], given[1::2], strict=False)}
            end = close
        text = _blank(text, tokens[last].end + 1, tokens[end].end + 1)
    return text, found


def _blank(text: str, begin: int, end: int) -> str:
    return text[:begin] + re.sub(r"[^\n]", " ", text[begin:end]) + text[end:]


def part_of_with(table: exp.Table) -> exp.CTE | None:
    """Return the part of a WITH that a table's name means. Parts see those before them."""
    below: Tree = table
    while not (table.db or below.parent is None):
        above = below.parent
        parts = above.expressions if isinstance(above, exp.With) else []
        if parts:
            parts = parts[: [id(part) for part in parts].index(id(below))]
        elif (with_ := above.args.get("with_")) and with_ is not below:
            parts = with_.expressions
        for part in parts:
            if part.alias.lower() == table.name.lower():
                return part  # type: ignore[no-any-return]
        below = above
    return None


def names_in(text: str) -> set[str]:
    """Return the names of a query's tables, and of the parts of its WITH."""
    tree = parsed(text)
    tables = {table.name.lower() for table in tree.find_all(exp.Table)}
    return tables | {part.alias.lower() for part in tree.find_all(exp.CTE)}


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and note it."""
    plain = column_name(name)
    numbered = (f"{plain}_{n}" for n in count(1))
    free = next(n for n in chain([plain], numbered) if n not in taken)
    taken.add(free)
    return free


def with_views(text: str, views: dict[str, str]) -> str:
    """Return a query with further parts in front of its WITH."""
    if not views:
        return text
    parts = ", ".join(f"{name} AS ({query})" for name, query in views.items())
    first = Verbatim().tokenize(text)[0]
    if first.text.upper() == "WITH":
        return f"{text[: first.end + 1]} {parts},{text[first.end + 1 :]}"
    return f"{text[: first.start]}WITH {parts} {text[first.start :]}"


def changing_part(query: exp.Query) -> str:
    """Return the part of a query for which a later row may change an earlier result; or ''."""
    parts = {
        exp.Group: "GROUP BY",
        exp.Distinct: "DISTINCT",
        exp.Join: "a join",
        exp.Window: "a window function",
        exp.Limit: "a limit",
    }
    found = query.find(*parts)
    if found is None and any(is_aggregated(s) for s in query.find_all(exp.Select)):
        return "an aggregate"
    return parts[type(found)] if found is not None else ""
