"""The files of a new project: settings, a pipeline, the DAG file, what git ignores.

Examples: projects with their own data, as `sluice init --example` writes them.

Their files are those with which Sluice's own repository runs. A wheel carries them beside this
module, a checkout has them at its root.
"""

import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from sluice.errors import UsageError
from sluice.starter import EXAMPLES
from sluice.starter.files import FoundTable, find
from sluice.starter.guess import Guess, as_reference, by_schedule, guess, schedule

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
