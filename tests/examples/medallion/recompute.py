"""The project's views by DuckDB: their own SQL over the files that lie in the landing folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
import yaml

from sluice.read.lake import Lake

PROJECT = Path(__file__).parent
PIPELINE = yaml.safe_load((PROJECT / "pipelines" / "brokerage.yaml").read_text())
VIEWS: dict[str, str] = {name: view["sql"] for name, view in PIPELINE["views"].items()}

SPARKS_OWN = (  # functions that sqlglot does not translate
    "timestamp_millis(ms) AS to_timestamp(ms / 1000)",
    "unix_seconds(time) AS CAST(epoch(time) AS BIGINT)",
)


def recompute(landing: Path) -> duckdb.DuckDBPyConnection:
    """Return a database with all sources, dimensions and views."""
    database = duckdb.connect()
    database.execute("SET TimeZone = 'UTC'")
    for macro in SPARKS_OWN:
        database.execute(f"CREATE MACRO {macro}")
    for name, source in PIPELINE["sources"].items():
        files = landing / "*" / f"{name}.{source['format']}"
        database.execute(f"CREATE TABLE {name} AS {_latest(files, source)}")
    for name, dimension in PIPELINE["dimensions"].items():
        files = landing / "reference" / f"{name}.csv"
        database.execute(f"CREATE TABLE {name} AS {_latest(files, dimension)}")
    for name, query in translated():
        database.execute(f"CREATE TABLE {name} AS {query}")
    return database


def differing_rows(database: duckdb.DuckDBPyConnection, lake: Lake) -> dict[str, Any]:
    """Return rows of sources and views that only the lake or only the database has, by table."""
    found = {}
    for name in (*PIPELINE["sources"], *VIEWS):
        database.register("stored", lake.table(name).to_arrow())
        columns = ", ".join(_compared(database.table(name)))
        for one, other in (("stored", name), (name, "stored")):
            lacks = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
            if rows := database.execute(lacks).fetchall():
                found[f"{name}: {one} without {other}"] = rows[:3]
    return found


def _compared(table: duckdb.DuckDBPyRelation) -> list[str]:
    """Return the columns of a table; of DOUBLE, digits that depend on the order of sums are cut."""
    return [
        f'round("{column}", 9)' if type_ == "DOUBLE" else f'"{column}"'
        for column, type_ in zip(table.columns, table.types, strict=True)
    ]


def translated() -> Iterator[tuple[str, str]]:
    """Yield the views' names and their queries in DuckDB's language, inputs first."""
    for name, query in VIEWS.items():
        yield name, sqlglot.transpile(query, read="spark", write="duckdb")[0]


def _latest(files: Path, table: dict[str, Any]) -> str:
    """Return the query of a table's rows: of each key, those of the latest delivery."""
    columns = "struct<" + table["schema"] + ">"
    types = ", ".join(f"'{c}': '{t}'" for c, t in _types(columns))
    read = "read_json" if table["format"] == "json" else "read_csv"
    rows = f"SELECT * FROM {read}('{files}', columns = {{{types}}}, filename = true)"
    if "key" not in table:
        return f"SELECT * EXCLUDE filename FROM ({rows})"
    order = ", ".join(f"{column} DESC" for column in (*table.get("sequence", ()), "filename"))
    keys = ", ".join(table["key"])
    latest = f"row_number() OVER (PARTITION BY {keys} ORDER BY {order}) = 1"
    return f"SELECT * EXCLUDE filename FROM ({rows}) QUALIFY {latest}"


def _types(columns: str) -> Iterator[tuple[str, str]]:
    for column in sqlglot.exp.DataType.build(columns, dialect="spark").expressions:
        yield column.name, column.args["kind"].sql("duckdb").replace("'", "")
