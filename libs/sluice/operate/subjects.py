"""Subjects that a user names, by a key or a condition, and the search of every file for them.

Rows of tables and of their feeds are compared in columns of those names. Texts are searched, too:
columns of text, logs, checkpoints, statistics, reports. There, a number or a short text counts only
after its column's name, because files are full of numbers; one in a field of a STRUCT only within
the object of that name.
"""

import html
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.fs import FileInfo, FileSystem
from sqlglot import exp

from sluice.declare.table import Table
from sluice.delta.places.delta_rs import locate
from sluice.delta.places.folders import files_in
from sluice.delta.places.lake_layout import table_at
from sluice.errors import UsageError
from sluice.language.names import RESERVED_PREFIX
from sluice.language.types import field_of
from sluice.read.key_order import only
from sluice.read.scan import Scan
from sluice.read.snapshot import Snapshot
from sluice.read.values import field_at, from_text, values_at
from sluice.read.where import Predicate, columns_in, parse, syntax_tree


@dataclass(frozen=True)
class Sought:
    """Subjects, one a row of the columns that name them; without `by_text`, not sought in texts.

    `where`: the condition that found them, if their values are those of whole rows. `in_files`: the
    names of columns in files, where these are others. `in_messages`: they came in messages.
    `is_anywhere`: the values name somebody, in every table that has such columns.
    """

    subjects: pa.Table
    by_text: bool = True
    where: Predicate | None = None
    in_files: Mapping[str, str] = field(default_factory=dict)
    in_messages: bool = False
    is_anywhere: bool = False

    def is_in(self, text: str) -> bool:
        """True if a text names one of the subjects."""
        values = COUNTS.sub("", text)
        return any(all(word.search(values) for word in words) for words in self._words)

    def is_word(self, text: str) -> bool:
        """True if a text has all values of one of the subjects as words, in any meaning."""
        near = (values for values in self.texts if all(value in text for value in values))
        words = ([rf"(?<![^\W_]){re.escape(v)}(?![^\W_])" for v in values] for values in near)
        return any(all(re.search(word, text) for word in each) for each in words)

    @cached_property
    def texts(self) -> set[tuple[str, ...]]:
        """The values of each subject, as texts."""
        columns = (_texts(column) for column in self.subjects.columns)
        return set(zip(*columns, strict=True))

    def rows(self, batch: pa.RecordBatch | pa.Table) -> pa.BooleanArray | None:
        """Return a mask of the rows of these subjects; None without their columns."""
        names = self.subjects.column_names
        if not all(field_at(batch.schema, name) for name in names):
            return None
        parts = [_is_among(values_at(batch, n), self.subjects.column(n)) for n in names]
        mask = reduce(pc.and_, parts)
        if len(names) == 1 or self.subjects.num_rows == 1:
            return mask
        known = set(zip(*(_texts(self.subjects.column(n)) for n in names), strict=True))
        each = zip(*(_texts(values_at(batch, n)) for n in names), strict=True)
        return pc.and_(mask, pa.array([row in known for row in each], pa.bool_()))

    @property
    def is_by_text(self) -> bool:
        """True if texts are searched for them."""
        return bool(self._words)

    def count(self, filesystem: FileSystem, info: FileInfo) -> int:
        """Count the rows and lines of a file that name one of them."""
        try:
            if not info.path.endswith(".parquet"):
                with filesystem.open_input_stream(info.path) as stream:
                    text = bytes(stream.read()).decode(errors="replace")
                return sum(map(self.is_in, text.split("\n")))
            with filesystem.open_input_file(info.path) as file:
                return sum(map(self._in_batch, pq.ParquetFile(file).iter_batches(ROWS)))
        except FileNotFoundError:  # deleted meanwhile
            return 0

    def _in_batch(self, batch: pa.RecordBatch) -> int:
        masks = [self.rows(batch), *(self._in_column(c) for c in batch.columns)]
        known = [mask for mask in masks if mask is not None]
        return int(pc.sum(reduce(pc.or_, known)).as_py() or 0) if known else 0

    def _in_column(self, column: pa.Array) -> pa.BooleanArray | None:
        """Return a mask of the values that name a subject in their text."""
        is_text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary)
        is_any = (*is_text, pa.types.is_nested)
        if not self._words or not any(test(column.type) for test in is_any):
            return None
        if not pa.types.is_nested(column.type):
            near = pc.match_substring_regex(column, self._near)
            if not pc.any(near).as_py():
                return pc.fill_null(near, False)
        texts = (_as_text(value) for value in column.to_pylist())
        return pa.array([self.is_in(text) for text in texts], pa.bool_())

    @cached_property
    def _words(self) -> list[list[re.Pattern[str]]]:
        if not self.by_text or self.subjects.num_rows > MOST_TEXTS:
            return []
        rows = self.subjects.to_pylist()
        return [[self._word(*item) for item in row.items() if item[1] is not None] for row in rows]

    def _word(self, column: str, value: Any) -> re.Pattern[str]:
        forms = "|".join(_forms(value))
        is_telling = isinstance(value, str) and sum(map(str.isalpha, value)) >= TELLING
        first, *inner = column.split(".")
        called = "|".join(_forms(first) | _forms(self.in_files.get(first, first)))
        path = [f"(?:{called}){BETWEEN}", *(f"(?:{'|'.join(_forms(n))}){BETWEEN}" for n in inner)]
        before = r"(?<![^\W_])" if is_telling else rf"(?<!\w){WITHIN.join(path)}"
        return re.compile(rf"{before}(?:{forms})(?![^\W_]|\.\d)")

    @cached_property
    def _near(self) -> str:
        """Pattern, without context, that matches every text which names a subject."""
        rows = self.subjects.to_pylist()
        return "|".join(form for row in rows for v in row.values() for form in _forms(v))


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


TELLING = 4  # letters of a text that identifies its subject alone
ROWS = 65_536
MOST_TEXTS = 100  # subjects that texts are searched for; more are compared in columns alone
BETWEEN = r"""\\*["']?\s*[:=,]{1,2}\s*\\*["']?"""  # a name and its value, in nested JSON, too
OBJECT = r"\{(?:[^{}]|\{[^{}]*\})*\}"
WITHIN = rf"\{{(?:[^{{}}]|{OBJECT})*?(?<!\w)"  # an object, up to the name of one of its fields
COUNTS = re.compile(r"""null(?:s|Count)\\*["']\s*:\s*\{(?:[^{}]|\{[^{}]*\})*\}""")  # by column


@dataclass(frozen=True)
class SearchResult:
    """Result of a search: what was read, and by folder the number of places that were found.

    `found`: places that name subjects of one of the tables. `anywhere`: those of them that name
    somebody who is the same in every table. `in_texts`: true if texts were searched as well.
    """

    files: int
    bytes: int
    found: dict[str, int]
    anywhere: dict[str, int]
    in_texts: bool


def search(every: Sequence["Sought"], root: str, leaving_out: Collection[str]) -> SearchResult:
    """Read every file below `root`, except in those folders of it."""
    filesystem, folder = locate(root)
    found, anywhere, files, size = Counter[str](), Counter[str](), 0, 0
    for info in files_in(filesystem, folder):
        path = info.path[len(folder) :].lstrip("/")
        if path.startswith(tuple(f"{place}/" for place in leaving_out)):
            continue
        files, size = files + 1, size + (info.size or 0)
        for sought in every:
            if count := sought.count(filesystem, info):
                found[_place(path)] += count
                anywhere[_place(path)] += count * sought.is_anywhere
    in_texts = all(sought.is_by_text for sought in every)
    return SearchResult(files, size, dict(found), dict(+anywhere), in_texts)


def _forms(value: Any) -> set[str]:
    """Return a value as texts spell it: plain, in JSON, in HTML."""
    text = _as_text(value)
    return {re.escape(form) for form in (text, json.dumps(text)[1:-1], html.escape(text))}


def _as_text(value: Any) -> str:
    match value:
        case str():
            return value
        case bytes():
            return value.decode(errors="replace")
        case list() | tuple() | dict():
            return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def _is_among(column: pa.Array, values: pa.ChunkedArray) -> pa.BooleanArray:
    """Return a mask of the values that are among others; of different types, by their texts."""
    try:
        return pc.is_in(column, value_set=values.cast(column.type).combine_chunks())
    except (pa.ArrowException, TypeError):
        known = set(_texts(values))
        return pa.array([text in known for text in _texts(column)], pa.bool_())


def _texts(column: pa.Array) -> list[str]:
    return [_as_text(value) for value in column.to_pylist()]


def _place(path: str) -> str:
    """Return the table of a file, `pipeline.table`; its folder in other cases."""
    first, _, rest = path.partition("/")
    if first.startswith("_") or not rest:
        return "/".join(path.split("/")[:2])
    return f"{first}.{rest.partition('/')[0]}"
