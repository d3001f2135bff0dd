"""Subjects that a user names, by a key or a condition, as values of the columns that name them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from sluice.declare.table import Table
from sluice.delta.places.lake_layout import table_at
from sluice.errors import UsageError
from sluice.language.names import RESERVED_PREFIX
from sluice.language.typed.types import field_of
from sluice.operate.erasure.remains import Sought
from sluice.read.conditions.key_order import only
from sluice.read.conditions.values import field_at, from_text
from sluice.read.conditions.where import Predicate, columns_in, parse, syntax_tree
from sluice.read.stored.scan import Scan
from sluice.read.stored.snapshot import Snapshot


@dataclass(frozen=True)
class Asked:
    """Words of a user that name subjects: the values of a key, or a condition."""

    key: tuple[str, ...] = ()
    where: str = ""

    @property
    def words(self) -> str:
        """The words as one text, the same for the same command."""
        return json.dumps({"key": self.key, "where": self.where or None})

    def fits(self, table: Table) -> bool:
        """True if a table has every column and field of a STRUCT that the condition tests."""
        types = {name.lower(): type_ for name, type_ in table.columns.items()}
        paths = (path.split(".") for path in columns_in(self.where))
        return all(reduce(field_of, inner, types.get(column, "")) for column, *inner in paths)

    def find(self, table: Table, schema: pa.Schema, uri: str) -> tuple[Sought, ...]:
        """Return the subjects; `uri` has the rows, '' if there are none yet."""
        if self.where:
            return by_condition(table, schema, uri, self.where)
        return (by_key(table, schema, self.key),)


def by_key(table: Table, schema: pa.Schema, values: Sequence[str]) -> Sought:
    """Return the subject with that key. Raises UsageError for half a key, or a wrong type."""
    key = table.current_key
    if key[0].startswith(RESERVED_PREFIX):
        raise UsageError(
            f"{table.id} has no `key` that names one of its rows",
            hint='name its rows by --where "COLUMN = VALUE"',
        )
    if len(values) != len(key):
        raise UsageError(
            f"the key of {table.id} is ({', '.join(key)}), "
            f"and {len(values)} of its {len(key)} values "
            f"{'is' if len(values) == 1 else 'are'} given",
            hint="give --key once for each column, in this order",
        )
    typed = {n: [from_text(v, schema.field(n).type, n)] for n, v in zip(key, values, strict=True)}
    return Sought(pa.table(typed, schema=pa.schema([schema.field(n) for n in key])))


def by_condition(table: Table, schema: pa.Schema, uri: str, text: str) -> tuple[Sought, ...]:
    """Return the subjects of the rows that meet a condition.

    `COLUMN = VALUE` names its subject itself, in every table and for rows to come. A column outside
    the key may have had other values before, so the keys of its rows are subjects, too. Any other
    condition names the keys of its rows, or without a key whole rows.
    """
    where = parse(text, schema)
    key, named = table.current_key, _equalities(text)
    has_key = not key[0].startswith(RESERVED_PREFIX)
    values = (_seek_values(schema, named),) if named else ()
    if named and (not has_key or {name.lower() for name in named} <= {*map(str.lower, key)}):
        return values
    if has_key:
        return (Sought(_distinct(_found(schema, uri, key, where))), *values)
    names = [n for n in schema.names if not n.startswith(RESERVED_PREFIX)]
    rows = _distinct(_found(schema, uri, names, where))
    return (Sought(rows, by_text=False, where=where),)


def _equalities(text: str) -> dict[str, str]:
    """Return the values of columns if the condition tests only these; nothing otherwise."""
    found: dict[str, str] = {}
    whole = syntax_tree(text).unnest()
    for part in whole.flatten() if isinstance(whole, exp.And) else (whole,):
        tree = part.unnest()
        sides = (tree.left, tree.right) if isinstance(tree, exp.EQ) else ()
        columns = [side for side in sides if isinstance(side, exp.Column)]
        values = [value for side in sides if (value := _literal_text(side)) is not None]
        if len(columns) != 1 or len(values) != 1 or columns[0].name in found:
            return {}
        found[columns[0].name] = values[0]
    return found


def _literal_text(side: exp.Expr) -> str | None:
    """Return a literal's text, with its sign; None for anything else."""
    if isinstance(side, exp.Neg):
        number = side.this.unnest()
        is_number = isinstance(number, exp.Literal) and not number.is_string
        return f"-{number.name}" if is_number else None
    return side.name if isinstance(side, exp.Literal) else None


def _seek_values(schema: pa.Schema, named: dict[str, str]) -> Sought:
    fields = [field for path in named if (field := field_at(schema, path))]
    values = zip(fields, named.values(), strict=True)
    typed = [[from_text(value, f.type, f.name)] for f, value in values]
    return Sought(pa.table(typed, schema=pa.schema(fields)), is_anywhere=True)


def rows_of_any(every: Sequence[Sought], uri: str, version: int) -> pa.Table:
    """Return the rows of all subjects in a version of a table, each once."""
    parts: list[pa.Table] = []
    for at, sought in enumerate(every):
        rows = rows_of(sought, uri, version)
        for earlier in every[:at]:
            rows = rows.filter(pc.invert(pc.fill_null(earlier.rows(rows), False)))
        parts.append(rows)
    return pa.concat_tables(parts)


def rows_of(sought: Sought, uri: str, version: int) -> pa.Table:
    """Return the rows of subjects in a version of a table, with hidden columns."""
    snapshot, subjects = Snapshot.open(table_at(uri), uri, version), sought.subjects
    names = tuple(subjects.column_names)
    is_one = subjects.num_rows == 1 and not sought.where and {*names} <= {*snapshot.schema.names}
    ranges = (only(names, tuple(subjects.to_pylist()[0].values())),) if is_one else ()
    pages = Scan(snapshot, ranges, sought.where).read_unordered(tuple(snapshot.schema.names))
    theirs = (page if is_one or sought.where else page.filter(sought.rows(page)) for page in pages)
    return pa.concat_tables([snapshot.schema.empty_table(), *theirs])


def _found(schema: pa.Schema, uri: str, columns: Sequence[str], where: Predicate) -> pa.Table:
    """Return these columns of the rows that meet a condition."""
    empty = schema.empty_table().select(columns)
    if not uri:
        return empty
    pages = Scan(Snapshot.open(table_at(uri), uri), where=where).read_unordered(tuple(columns))
    return pa.concat_tables([empty, *pages])


def _distinct(rows: pa.Table) -> pa.Table:
    return rows.group_by(rows.column_names).aggregate([])
