"""Guess a table from its data: types of columns, a time, a key that holds in nearly every row."""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import combinations

import pyarrow as pa
import pyarrow.compute as pc

from sluice.errors import UsageError
from sluice.language.names import listing
from sluice.starter.files import FoundTable, columns_of
from sluice.starter.reading import NEARLY

MOST_COLUMNS_OF_A_KEY = 3
MOST_TRIED = 12  # columns, the first ones: a key is seldom at the end
UNFIT_FOR_KEYS = ("FLOAT", "DOUBLE", "BOOLEAN", "BINARY", "ARRAY", "STRUCT")  # types
IDENTIFIER = re.compile("_(id|no|key|code|number)$")  # ends of names
UNNAMED = 2  # rank of a column that is not named like an identifier
INTERVALS = 31  # the most that a first run should deliver
SCHEDULES = (("@daily", 1), ("@monthly", 30), ("@yearly", 365))
PLAIN: Mapping[pa.DataType, str] = {
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.bool_(): "BOOLEAN",
    pa.string(): "STRING",
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.binary(): "BINARY",
    pa.large_binary(): "BINARY",
    pa.date32(): "DATE",
    pa.uint64(): "DECIMAL(20,0)",
}


@dataclass(frozen=True)
class Guess:
    """A table as the data suggests it; without a `time` and without days, it is a dimension.

    `repeats`: rows whose key another row has already, if it is only likely; `repeat`: one of them.

    `columns`: name -> Spark's type, of those that can be declared. `names`: the columns' names in
    the files, if they differ.
    """

    found: FoundTable
    columns: Mapping[str, str]
    names: Mapping[str, str]
    time: str
    key: tuple[str, ...]
    first: date | None
    last: date | None
    repeats: int = 0
    repeat: str = ""

    @property
    def is_source(self) -> bool:
        return self.first is not None or self.found.is_followed


def guess(found: FoundTable) -> Guess:
    """Return what the rows suggest; a key distinguishes all rows, or one column nearly all.

    Raises UsageError if no column can be declared.
    """
    theirs = columns_of(found.rows.column_names)
    if not theirs:
        raise UsageError(
            f"{found.path} has no column that can be declared, because of their names: "
            f"{listing(found.rows.column_names)}",
            hint="leave it out, or give each column a name of its own",
        )
    rows = found.rows.select(list(theirs.values())).rename_columns(list(theirs))
    columns = {field.name: _type(field.type) for field in rows.schema}
    names = {own: name for own, name in theirs.items() if own != name}
    misfits = {own: found.misfits.get(name, 0) for own, name in theirs.items()}
    whole = [c for c in columns if rows.num_rows and rows[c].null_count <= misfits[c]]
    times = [c for c in whole if columns[c] in ("TIMESTAMP", "DATE")]
    time = max(times, key=lambda c: pc.count_distinct(rows[c]).as_py(), default="")
    first, last = (None, None) if found.is_followed else _span(found.days, rows, time)
    few = (1 - NEARLY) * rows.num_rows
    able = [
        name
        for name, type_ in columns.items()
        if not type_.startswith(UNFIT_FOR_KEYS) and rows[name].null_count <= few
    ]
    able.sort(key=lambda c: _rank(c, found.name))
    alone = [c for c in able if not _is_measure(columns[c])]
    named = [c for c in alone if rows.num_rows and _rank(c, found.name) < UNNAMED]
    repeats = {c: _repeats(rows, c) for c in named}
    likely = [c for c in named if len(repeats[c]) <= few]
    key = _key(rows, [c for c in able if c in whole][:MOST_TRIED], alone)
    if likely:
        key = (min(likely, key=lambda c: (_rank(c, found.name), len(repeats[c]))),)
    elif alone and len(key) != 1 and 0 < len(again := _repeats(rows, alone[0])) <= few:
        key, repeats = (alone[0],), {alone[0]: again}
    twice = repeats.get(key[0], []) if len(key) == 1 else []
    repeat = found.place(twice[0]) if twice else ""
    return Guess(found, columns, names, time, key, first, last, len(twice), repeat)


def _rank(column: str, table: str) -> int:
    """Return 0 for a column named like the table's own identifier, 1 for another's, 2 for none."""
    one = table.removesuffix("s")
    if column in ("id", one):
        return 0
    if not IDENTIFIER.search(column):
        return UNNAMED
    return 0 if column.startswith(f"{one}_") else 1


def _is_measure(type_: str) -> bool:
    """True for times and fractions, which are unique in some rows by chance."""
    is_fraction = type_.startswith("DECIMAL") and not type_.endswith(",0)")
    return is_fraction or type_ in ("TIMESTAMP", "DATE")


def schedule(guesses: list[Guess]) -> str:
    """Return the finest schedule by which a first run delivers few intervals."""
    days = [day for g in guesses for day in (g.first, g.last) if day]
    span = (max(days) - min(days)) if days else timedelta()
    fitting = (name for name, length in SCHEDULES if span.days / length <= INTERVALS)
    dated = [g.found.schedule for g in guesses if g.found.days]
    return dated[0] if dated else next(fitting, "@yearly")


def by_schedule(guesses: list[Guess]) -> dict[str, list[Guess]]:
    """Return tables by schedule; those without dates in their path go to the first, the finest."""
    of_paths = {g.found.schedule for g in guesses if g.found.days}
    every = [s for s, _ in SCHEDULES if s in of_paths] or [schedule(guesses)]
    rest = [g for g in guesses if not g.found.days]
    dated = {s: [g for g in guesses if g.found.days and g.found.schedule == s] for s in every}
    return dated | {every[0]: [*dated[every[0]], *rest]}


def as_reference(guesses: list[Guess]) -> list[Guess]:
    """Return tables without a date in their path as dimensions, where others have one.

    Events come by interval, but times of reference data are no reason for more intervals.
    """
    if not any(g.found.days for g in guesses):
        return guesses
    return [replace(g, first=None, last=None) if g.key and not g.found.days else g for g in guesses]


def _type(type_: pa.DataType) -> str:
    """Return the type as in Spark; STRING if Spark has none, since any value can be text."""
    if pa.types.is_decimal(type_):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if pa.types.is_timestamp(type_):
        return "TIMESTAMP"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"ARRAY<{_type(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"STRUCT<{', '.join(f'{f.name}: {_type(f.type)}' for f in type_)}>"
    if pa.types.is_dictionary(type_):
        return _type(type_.value_type)
    return PLAIN.get(type_, "STRING")


def _span(days: Sequence[date], rows: pa.Table, time: str) -> tuple[date | None, date | None]:
    if days:
        return days[0], days[-1]
    if not time:
        return None, None
    ends = pc.min_max(rows[time].cast(pa.timestamp("us"), safe=False)).as_py()
    return ends["min"].date(), ends["max"].date()


def _key(rows: pa.Table, able: Sequence[str], alone: Container[str]) -> tuple[str, ...]:
    """Return the smallest set of columns that distinguishes all rows that have values there.

    A column that does so by itself, but is not in `alone`, is in no set.
    """
    able = [c for c in able if c in alone or _repeats(rows, c)]
    for size in range(1, MOST_COLUMNS_OF_A_KEY + 1):
        for some in combinations(able, size):
            had = rows.select(list(some)).drop_null()
            if had.group_by(list(some)).aggregate([]).num_rows == had.num_rows > 0:
                return some
    return ()


def _repeats(rows: pa.Table, column: str) -> list[int]:
    """Return the numbers of rows that have no value in the column, or one of an earlier row."""
    seen, found = {None}, list[int]()
    for nth, value in enumerate(rows[column].to_pylist()):
        if value in seen:
            found.append(nth)
        seen.add(value)
    return found
