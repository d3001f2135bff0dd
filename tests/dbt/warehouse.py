"""The bakery of the tests: its manifest, and duckdb as the warehouse in which dbt runs it."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import duckdb
from click.testing import CliRunner, Result

from sluice.cli.main import main

BAKERY = Path(__file__).parent / "bakery"
MANIFEST = BAKERY / "manifest.json"
LANDED = {"customers": "raw_customers", "orders": "raw_orders", "payments": "payments"}
KEYS = {"customers": "id", "orders": "id", "payments": "id"}
NODES: dict[str, Any] = json.loads(MANIFEST.read_text("utf-8"))["nodes"]


class Warehouse:
    """A database with dbt's own names, filled from the files of `raw` and `seeds`."""

    def __init__(self) -> None:
        self.db = duckdb.connect()
        self.db.execute("SET TimeZone = 'UTC'; ATTACH ':memory:' AS bakery; USE bakery")
        self.db.execute("CREATE SCHEMA raw")
        for table in LANDED:
            self._fill(f"raw.{table}", BAKERY / "raw" / f"{table}.csv")
        for seed in ("cities", "bands"):
            self._fill(f"main.{seed}", BAKERY / "seeds" / f"{seed}.csv")

    def _fill(self, table: str, file: Path) -> None:
        self.db.execute(f"CREATE TABLE {table} AS FROM read_csv('{file}', header = true)")

    def land(self, folder: Path, day: str, where: str = "true") -> None:
        """Deliver the raw tables' rows that meet the condition, as that day's files."""
        for table, name in LANDED.items():
            target = folder / "landing" / name / day
            target.mkdir(parents=True, exist_ok=True)
            rows = f"SELECT * FROM raw.{table} WHERE {where}"
            self.db.execute(f"COPY ({rows}) TO '{target}/part.parquet'")

    def build(self, *models: str) -> None:
        """Do what `dbt run` does with these models, which come in order."""
        for model in models:
            node = NODES[f"model.bakery.{model}"]
            self.db.execute(f"CREATE OR REPLACE VIEW {node['relation_name']} AS {_sql(node)}")

    def rows(self, model: str) -> Counter[tuple[str, ...]]:
        relation = NODES[f"model.bakery.{model}"]["relation_name"]
        return bag(self.db.sql(f"SELECT * FROM {relation}").to_arrow_table().to_pylist())


def _sql(node: dict[str, Any]) -> str:
    return str(node["compiled_code"])


def bag(rows: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, ...]]:
    """Rows without their order and that of their columns; times without a zone are UTC."""
    return Counter(
        tuple(f"{name}={str(row[name]).removesuffix('+00:00')}" for name in sorted(row))
        for row in rows
    )


def command(folder: Path, *words: str) -> Result:
    """The result of a command in the project of that folder."""
    return CliRunner().invoke(main, [*words, "--config", str(folder / "config")])


def done(folder: Path, *words: str) -> str:
    """What a command said that went well."""
    result = command(folder, *words)
    assert result.exit_code == 0, result.output
    return result.output


def refused(folder: Path, *words: str) -> str:
    """What an import said that was refused, which has written nothing."""
    result = command(folder, "import", "dbt", *words)
    assert result.exit_code == 2, result.output
    assert not list(folder.rglob("*.yaml"))
    return result.output


def changed(folder: Path, **nodes: dict[str, Any]) -> str:
    """The bakery's manifest with other fields of these models, as a file of that folder."""
    manifest = json.loads(MANIFEST.read_text("utf-8"))
    for name, fields in nodes.items():
        manifest["nodes"][f"model.bakery.{name}"] |= fields
    file = folder / "target" / "manifest.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(manifest))
    (folder / "target" / "catalog.json").write_bytes((BAKERY / "catalog.json").read_bytes())
    return str(file)
