"""The files of a new project: settings, a pipeline, the DAG file, what git ignores.

A table is guessed from its data: types of columns, a time, a key that holds in nearly every row.

Examples are projects with their own data, as `sluice init --example` writes them.

Their files are those with which Sluice's own repository runs. A wheel carries them beside this
module, a checkout has them at its root.
"""

import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from sluice.errors import UsageError
from sluice.language.names import listing
from sluice.starter import EXAMPLES
from sluice.starter.files import FoundTable, columns_of, find
from sluice.starter.reading import NEARLY

SPECS = "\nspark_pipelines: [{}]    # its tables; relative to this folder\n"
CARRIED = Path(__file__).parent / "examples"
CHECKOUT = Path(__file__).parents[3]
SETTINGS = """\
# Where tables are stored and how work runs. Relative paths start at the folder above this one.
lake: ${SLUICE_LAKE:-lake}

spark:
  engine: ${SLUICE_ENGINE:-submit}    # submit: an application per task; connect: a warm server
  master: ${SLUICE_MASTER:-local[*]}
"""
DAGS = '''\
"""One Airflow DAG for each pipeline in config/, one for upkeep and one for the weekly proof."""

from sluice.airflow.blueprint import config_folder
from sluice.airflow.dag_factory import dags, maintenance, verification

config = config_folder(__file__)
for dag in (*dags(config), maintenance(config), verification(config)):
    globals()[dag.dag_id] = dag
'''
CHECK = '''\
"""Report mistakes in config/ as this file's import error; the DAGs of sound pipelines keep running.

Makes no DAG of its own. By default, Airflow reads only files with this word.
"""

from sluice.airflow.blueprint import check, config_folder

check(config_folder(__file__))
'''
IGNORED = "/lake/\n/reports/\n/.airflow/\n"
SCHEMA = "pipeline.schema.json"
PLACES = ("landing", "data")
STILL_COMING = timedelta(days=7)
LONGER = {"@daily": timedelta(1), "@monthly": timedelta(31), "@yearly": timedelta(366)}


def start(folder: Path, patterns: Iterable[str], schema: str) -> list[Path]:
    """Write a project into the folder, with a table for each group of data files; return its files.

    `schema`: the JSON Schema of pipelines, for editors. Raises UsageError, before anything is
    written, if the folder has a configuration, or if data can't be read or suggests no table.
    """
    _check_free(folder)
    wanted = list(patterns) or [place for place in PLACES if (folder / place).is_dir()]
    if not wanted:
        raise UsageError(
            "there is no data to start with", hint="`sluice init --from FILES` names some"
        )
    plain = re.sub(r"[^a-z0-9]+", "_", folder.resolve().name.lower()).strip("_")
    name = plain if plain[:1].isalpha() else "shop"
    guesses, today = [guess(found) for found in find(wanted, folder)], datetime.now(UTC).date()
    texts = pipelines(name, guesses, today).items()
    own = {f"config/pipelines/{name}.yaml": text for name, text in texts}
    return _write_new(folder, _around(own, schema))


def start_example(folder: Path, name: str, schema: str) -> list[Path]:
    """Write an example's project into the folder; return its files.

    Raises UsageError, before anything is written, if the folder has a configuration.
    """
    _check_free(folder)
    root = CARRIED if CARRIED.is_dir() else CHECKOUT
    texts = {path: (root / path).read_text("utf-8") for path in EXAMPLES[name]}
    specs = (p.removeprefix("config/") for p in texts if p.endswith("spark-pipeline.yml"))
    settings = SETTINGS + "".join(map(SPECS.format, specs))
    return _write_new(folder, {**_around(texts, schema), "config/sluice.yaml": settings})


def add_dags(folder: Path, dags: Path) -> list[Path]:
    """Write the DAG files of the folder's project into an Airflow's DAG folder; return them.

    Files that are there stay as they are. Raises UsageError without a project or a DAG folder.
    """
    if not (folder / "config").is_dir():
        raise UsageError(
            f"{folder} has no config/",
            hint="run this in the folder of a project; `sluice init` makes one",
        )
    if not dags.is_dir():
        raise UsageError(
            f"{dags} is no folder", hint="`airflow config get-value core dags_folder` prints it"
        )
    return _write_new(dags, {"sluice_pipelines.py": DAGS, "sluice_config_check.py": CHECK})


def _check_free(folder: Path) -> None:
    if (folder / "config").exists():
        raise UsageError(f"{folder / 'config'} exists already", hint="start in another folder")


def _around(own: Mapping[str, str], schema: str) -> dict[str, str]:
    """Return a project's files: its own, and those that are the same in every project."""
    return {
        "config/sluice.yaml": SETTINGS,
        **own,
        f"config/{SCHEMA}": schema,
        "dags/pipelines.py": DAGS,
        "dags/config_check.py": CHECK,
        ".gitignore": IGNORED,
    }


def _write_new(folder: Path, texts: Mapping[str, str]) -> list[Path]:
    """Write the files that are not there, and return them."""
    files = {folder / path: text for path, text in texts.items()}
    missing = {file: text for file, text in files.items() if not file.exists()}
    for file, text in missing.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return list(missing)


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


def pipelines(name: str, guesses: list[Guess], today: date) -> dict[str, str]:
    """Return the files of pipelines by name: one for each schedule of the dates in paths.

    Raises UsageError if a table could not be declared.
    """
    found = by_schedule(as_reference(guesses))
    names = [f"{name}_{every[1:]}" if nth else name for nth, every in enumerate(found)]
    return {
        one: pipeline(one, found[every], today) for one, every in zip(names, found, strict=True)
    }


def pipeline(name: str, guesses: list[Guess], today: date) -> str:
    """Return the file of one pipeline. Raises UsageError if a table could not be declared."""
    sources = [g for g in guesses if g.is_source]
    others = [g for g in guesses if not g.is_source]
    for table in others:
        if not table.key:
            raise UsageError(
                f"{table.found.path} has neither a time nor a key: no column is a time in every "
                "row, and no three columns distinguish all rows",
                hint="leave it out, or declare it by hand: see docs/sources.md",
            )
    head = [
        f"# yaml-language-server: $schema=../{SCHEMA}",
        f"pipeline: {name}",
        f'schedule: "{schedule(sources)}"',
        *_bounds(sources, today),
        "timezone: UTC",
        "",
    ]
    body = [
        *_section("sources", {g.found.name: _source(g) for g in sources}),
        *_section("dimensions", {g.found.name: _dimension(g) for g in others}),
        *_section("views", {f"newest_{g.found.name}": _view(g) for g in sources[:1] if g.time}),
    ]
    return "\n".join([*head, *body])


def _bounds(sources: list[Guess], today: date) -> list[str]:
    """Return the lines of the first and, of data that is history, the last interval's bounds."""
    days, by = [day for g in sources for day in (g.first, g.last) if day], schedule(sources)
    if not days:
        return [f"start_date: {_bound(today, by)}"]
    first, end = _bound(min(days), by), _bound(_bound(max(days), by) + LONGER[by], by)
    if end + STILL_COMING >= today:
        return [f"start_date: {first}"]
    return [
        f"start_date: {first}",
        f"end_date: {end}    # the data ends there; remove if more data arrives",
    ]


def _bound(day: date, every: str) -> date:
    """Return the schedule's bound at or before that day."""
    if every == "@yearly":
        return day.replace(month=1, day=1)
    return day.replace(day=1) if every == "@monthly" else day


def _section(name: str, tables: Mapping[str, list[str]]) -> list[str]:
    if not tables:
        return []
    lines = [f"{name}:"]
    for table, fields in tables.items():
        lines += [f"  {table}:", *(f"    {field}" for field in fields)]
    return [*lines, ""]


def _source(table: Guess) -> list[str]:
    time = [f"time: {table.time}"] if table.time else []
    why = _count_repeated(table) or "unique in every row"
    key = [f"# key: [{', '.join(table.key)}]    # {why}"] if table.key else []
    return [*_files(table.found), *_schema(table), *_odd(table), *time, *key]


def _dimension(table: Guess) -> list[str]:
    why = f"    # {_count_repeated(table)}" if table.repeats else ""
    key = f"key: [{', '.join(table.key)}]{why}"
    return [*_files(table.found), *_schema(table), *_odd(table), key]


def _count_repeated(table: Guess) -> str:
    """Return the rows that a likely key does not distinguish, in words."""
    if not table.repeats:
        return ""
    rows = "1 row repeats" if table.repeats == 1 else f"{table.repeats:,} rows repeat"
    return f"likely, but {rows} another's, such as {table.repeat}"


def _odd(table: Guess) -> list[str]:
    """Return comments on rows, values and files that differ from the rest."""
    return [f"# {' '.join(note.split())}" for note in table.found.notes]


def _files(found: FoundTable) -> list[str]:
    options = ", ".join(f"{name}: {json.dumps(value)}" for name, value in found.options.items())
    if found.is_followed:
        return [f"delta: {{path: {json.dumps(found.path, ensure_ascii=False)}}}"]
    path = f"path: {json.dumps(found.path, ensure_ascii=False)}"
    return [path, f"format: {found.format}", *([f"options: {{{options}}}"] if options else [])]


def _schema(table: Guess) -> list[str]:
    columns = ", ".join(f"{name} {type_}" for name, type_ in table.columns.items())
    theirs = (f"{n}: {json.dumps(t, ensure_ascii=False)}" for n, t in table.names.items())
    names = [f"names: {{{', '.join(theirs)}}}"] if table.names else []
    known = {table.names.get(name, name) for name in table.columns}
    odd = [name for name in table.found.rows.column_names if name not in known]
    left_out = [f"# left out, because of their names: {', '.join(odd)}"] if odd else []
    if maps := table.found.left_out:
        left_out.append(f"# left out, because a MAP can't be compared: {', '.join(maps)}")
    return [f'schema: "{columns}"', *names, *left_out]


def _view(table: Guess) -> list[str]:
    return [
        "kind: topk",
        f"from: {table.found.name}",
        f'order_by: ["`{table.time}` desc"]',
        "limit: 10",
    ]


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
