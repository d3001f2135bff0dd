"""A small shop whose tables change in every way, and Spark's own answers to queries over it."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import sqlglot
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType
from tests.support.games import in_depth
from tests.support.lake import HEAD, Lake, Row, frozen

from sluice.declare.meaning import meant
from sluice.declare.project import load
from sluice.declare.table import Table
from sluice.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
sources:
  orders:
    path: "orders/{interval_start:%Y-%m-%d}/"
    key: [id]
    schema: "id INT, k INT, g STRING, v INT, m DECIMAL(8,2), at TIMESTAMP"
  people:
    path: "people/{interval_start:%Y-%m-%d}/"
    key: [pid]
    schema: "pid INT, k BIGINT, w STRING, n INT"
  events:
    path: "events/{interval_start:%Y-%m-%d}/"
    key: [eid]
    schema: "eid INT, id INT, kind STRING, x DOUBLE, d DATE"
views:
"""
Form = tuple[str, str]
WORDS = re.compile(r"\b[A-Z][A-Z_]+\b|[-+*/%<>=!|&^]+|'(?:filter|order_by)': [({]+'")  # of SQL
TEXT = re.compile(r"\\?'[A-Z%][A-Z0-9 %#]*\\?'")  # a value, not a word of SQL
NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ONE_TASK = {
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
KEYS = {"orders": "id", "people": "pid", "events": "eid"}


def some_row(source: str, key: int, chance: random.Random) -> Row:
    """A row of nasty values: few different ones, ties, nulls."""

    def maybe(values: list[Any]) -> Any:
        return chance.choice([*values, *values, None])

    at = NOON + timedelta(hours=chance.randint(-40, 40))
    of: dict[str, Row] = {
        "orders": {
            "id": key,
            "k": maybe([1, 2, 3]),
            "g": maybe(["a", "b", "B"]),
            "v": maybe([-2, -1, 0, 1, 2, 3]),
            "m": maybe([Decimal("1.50"), Decimal("-2.25"), Decimal("10.00")]),
            "at": maybe([at]),
        },
        "people": {
            "pid": key,
            "k": maybe([1, 2, 3, 4]),
            "w": maybe(["x", "y", "", "a"]),
            "n": maybe([0, 1, 2]),
        },
        "events": {
            "eid": key,
            "id": maybe([1, 2, 3, 4, 5, 6]),
            "kind": maybe(["view", "buy"]),
            "x": maybe([0.5, 1.25, -3.0]),
            "d": maybe([at.date()]),
        },
    }
    return of[source]


def change(lake: Lake, chance: random.Random) -> None:
    """Insert, update and delete rows of every source, each in one or two commits."""
    for source, key in KEYS.items():
        for _ in range(chance.choice([0, 1, 1, 2])):
            keys = chance.sample(range(1, 13), chance.randint(1, 6))
            gone = chance.sample(range(1, 13), chance.randint(0, 4))
            rows = [some_row(source, k, chance) for k in keys]
            lake.put(source, *rows, gone=[{key: k} for k in gone])


def fill(lake: Lake, chance: random.Random) -> None:
    """Insert twelve rows into every source."""
    for source in KEYS:
        lake.put(source, *(some_row(source, key, chance) for key in range(1, 13)))


def written(path: Path) -> dict[str, str]:
    """The queries of a file by name; each is behind a line `-- name`."""
    parts = path.read_text().split("\n-- ")[1:]
    named = (part.strip().partition("\n") for part in parts)
    return {name: query.removesuffix(";") for name, _, query in named}


def planned(sql: str, folder: Path, key: str = "") -> list[str]:
    """Problems of a project with that query as its view; none if it can be kept."""
    return problems_of({"v": sql}, folder, {"v": key})


def refusal(sql: str, folder: Path) -> str:
    """The only problem of a project with that query as its view, which is the query itself."""
    (problem,) = planned(sql, folder)
    assert "shop.yaml:" in problem
    assert "views.v.sql" in problem
    return problem


def problems_of(
    queries: dict[str, str], folder: Path, keys: Mapping[str, str] | None = None
) -> list[str]:
    """Problems of a project with those queries as views."""
    views = "".join(view(name, sql, (keys or {}).get(name, "")) for name, sql in queries.items())
    (folder / "config" / "pipelines").mkdir(parents=True, exist_ok=True)
    (folder / "config" / "pipelines" / "shop.yaml").write_text(HEAD + SOURCES + views)
    try:
        load(folder / "config")
    except ConfigError as error:
        return list(error.mistakes)
    return []


def view(name: str, sql: str, key: str = "") -> str:
    """The declaration of a query."""
    lines = "".join(f"      {line}\n" for line in sql.strip().splitlines())
    declared = f"    key: [{key}]\n" if key else ""
    return f"  {name}:\n    kind: sql\n{declared}    sql: |\n{lines}"


def project(
    folder: Path,
    queries: dict[str, str],
    session: "SparkSession",
    keys: Mapping[str, str] | None = None,
) -> Lake:
    """A lake with those queries as views."""
    views = "".join(view(name, sql, (keys or {}).get(name, "")) for name, sql in queries.items())
    lake = Lake(folder, SOURCES + views, session)
    for source in KEYS:
        lake.put(source)
    return lake


def advance_by_spark(lake: Lake) -> None:
    """Advance views of every form by Spark, in depth all of them, and the others here."""
    lake.by_spark().advance(*(() if in_depth() else of_every_form(lake)))
    lake.here().advance()


def of_every_form(lake: Lake) -> list[str]:
    """Few of a lake's views that have, between them, all that the parts of any of them have."""
    views = [table for table in lake.project.graph.tables.values() if table.is_view]
    forms = {view.name: _forms(view) for view in views}
    size = {view.name: len(view.parts) + 1 for view in views}
    left, found = set[Form]().union(*forms.values()), list[str]()
    while left:
        found.append(max(forms, key=lambda name: len(forms[name] & left) / size[name]))
        left -= forms[found[-1]]
    return found


def _forms(table: Table) -> set[Form]:
    """The fields and choices of each of a view's parts, by its kind, and the words of any."""
    found, made_by = set[Form](), {part.id: part.kind for part in table.parts}
    for part in table.parts or (table,):
        text = f"{part.spec.model_dump(exclude_unset=True)} {meant(part.spec, frozenset())}"
        chosen = {str(getattr(part.spec, name, "")) for name in ("type", "function")}
        inputs = {made_by.get(name, "stored") for name in part.inputs}
        found |= {(part.kind, word) for word in part.spec.model_fields_set | chosen | inputs}
        found |= {("", word) for word in WORDS.findall(re.sub(TEXT, "", text))}
    return found


def wrong(
    lake: Lake, session: "SparkSession", queries: Mapping[str, str]
) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
    """The views whose rows are not Spark's answer: those that only one of the two has."""
    for name, (schema, plain) in _sources(lake).items():
        session.createDataFrame(plain, schema).createOrReplaceTempView(name)
    found = {}
    with _in_one_task(session):
        for name, sql in queries.items():
            kept, answered = _tuples(lake.rows(name)), _answer(session, sql)
            if kept != answered:
                found[name] = (kept - answered, answered - kept)
    return found


def asked_last(lake: Lake, queries: Mapping[str, str]) -> dict[str, str]:
    """What Spark is asked at a history's end: queries of every form besides, in depth all."""
    chosen = queries if in_depth() else of_every_form(lake)
    return {n: sql for n, sql in queries.items() if n in chosen} | not_as_in_duckdb(lake, queries)


def not_as_in_duckdb(lake: Lake, queries: Mapping[str, str]) -> dict[str, str]:
    """The queries to which DuckDB, which is fast, has another answer than the view, or none."""
    found = {}
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        for name, (_, plain) in _sources(lake).items():
            base.register(name, plain)
        for name, sql in queries.items():
            try:
                (text,) = sqlglot.transpile(sql, read="spark", write="duckdb")
                answered = Counter(map(frozen, base.execute(text).fetchall()))
            except (duckdb.Error, sqlglot.ParseError):
                answered = None
            if answered != _tuples(lake.rows(name)):
                found[name] = sql
    return found


def _sources(lake: Lake) -> dict[str, tuple[str, pa.Table]]:
    """The rows of each source, with its columns as they are declared."""
    found = {}
    for name, rows in lake.rows_of_sources().items():
        columns = lake.table(name).columns
        schema = ", ".join(f"{c} {t}" for c, t in columns.items())
        stored = to_arrow_schema(StructType.fromDDL(schema), timezone="UTC")
        found[name] = (
            schema,
            pa.Table.from_pylist([{c: row[c] for c in columns} for row in rows], stored),
        )
    return found


@contextmanager
def _in_one_task(session: "SparkSession") -> Iterator[None]:
    """Few rows are answered in half the time without tasks that have none."""
    for name, value in ONE_TASK.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in ONE_TASK:
            session.conf.unset(name)


def _tuples(rows: list[Row]) -> Counter[Any]:
    return Counter(frozen(tuple(row.values())) for row in rows)


def _answer(session: "SparkSession", sql: str) -> Counter[Any]:
    """Rows by position: columns without a name are called otherwise in a view."""
    columns = [column.to_pylist() for column in session.sql(sql).toArrow().columns]
    return Counter(map(frozen, zip(*columns, strict=True)))
