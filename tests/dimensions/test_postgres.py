"""A dimension that is a table of a real PostgreSQL: its rows, its faults, its password."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.java import LEAN
from tests.support.lake import counted
from tests.support.landed import Landed, NewLanded, day, folder_of
from tests.support.postgres import Server, running

from sluice.engine import retries
from sluice.errors import Retryable, UsageError
from sluice.operate.run import run

pytestmark = pytest.mark.usefixtures("real_spark")

DECLARED = """
sources:
  sales:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "id INT, product INT, n INT"
dimensions:
  products:
    format: jdbc
    connection: shop_db
    options: {dbtable: products}
    schema: "id INT, name STRING, price DECIMAL(9,2), since TIMESTAMP"
    key: [id]
views:
  invoices:
    kind: lookup
    from: sales
    join: [{dimension: products, on: product = products.id, type: left}]
    select: {id: id, total: n * products.price}
"""
VARIABLE = "AIRFLOW_CONN_SHOP_DB"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def shop(new_landed: NewLanded, server: Server, monkeypatch: pytest.MonkeyPatch) -> Landed:
    """Two products in a table without a primary key."""
    server.sql(
        "DROP TABLE IF EXISTS products; CREATE TABLE products "
        "(id int, name text, price numeric(9,2), since timestamptz);"
        "INSERT INTO products VALUES (1, 'tea', 3.50, '2024-01-01 12:00+02'), (2, 'oil', 5, NULL)"
    )
    monkeypatch.setenv(VARIABLE, connection(server, server.password))
    return new_landed(DECLARED)


def connection(server: Server, password: str) -> str:
    """In Airflow's form."""
    return json.dumps(
        {
            "conn_type": "postgres",
            "host": "127.0.0.1",
            "port": server.port,
            "login": "app",
            "password": password,
            "schema": "postgres",
        }
    )


def files_with(text: str, folder: Path) -> list[Path]:
    found = (f for f in folder.rglob("*") if f.is_file())
    return [f for f in found if text.encode() in f.read_bytes()]


def test_only_rows_that_differ_are_written_and_the_password_is_nowhere(
    shop: Landed, server: Server, capfd: pytest.CaptureFixture[str]
) -> None:
    first = shop.load("products")
    assert first.inserted == 2
    assert {str(r["since"]) for r in shop.rows("products")} == {"2024-01-01 10:00:00+00:00", "None"}
    before = shop.versions("products")
    assert shop.load("products").outcome == "unchanged"
    assert shop.versions("products") == before
    server.sql(
        "UPDATE products SET price = 4 WHERE id = 1; DELETE FROM products WHERE id = 2;"
        "INSERT INTO products VALUES (3, 'jam', 1, NULL), (3, 'nut', 2, NULL), (NULL, 'x', 1, NULL)"
    )
    report = shop.load("products")
    assert (report.inserted, report.updated, report.deleted) == (1, 1, 1)
    assert [q["reason"] for q in shop.quarantine("products")] == [
        "another row has the same key (id)",
        "key column id is null",
    ]
    said = capfd.readouterr()
    assert server.password not in said.out + said.err
    assert files_with(server.password, shop.folder) == []


def test_a_server_that_comes_back_is_waited_for_and_the_report_says_so(
    shop: Landed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    monkeypatch.setattr(retries, "sleep", lambda _: server.start())
    report = shop.load("products")
    assert [w.partition(": ")[0] for w in report.warnings] == ["tried again after 1 s"]
    assert "refused" in report.warnings[0]
    assert len(shop.rows("products")) == 2


def test_a_server_that_stays_away_is_worth_a_later_retry(
    shop: Landed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.stop()
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    try:
        with pytest.raises(Retryable, match="refused"):
            shop.load("products")
    finally:
        server.start()


def test_a_lasting_fault_ends_the_run_before_any_fact_is_joined(
    shop: Landed, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.land(folder_of(0), a_json=[{"id": 1, "product": 1, "n": 2}])
    pipeline = shop.project.pipelines["shop"]
    monkeypatch.setenv(VARIABLE, connection(server, "wr0ng"))
    with pytest.raises(UsageError, match="password authentication failed") as refused:
        run(shop.spark, shop.project, pipeline, [day(0)])
    assert "wr0ng" not in str(refused.value)
    assert not (shop.folder / "lake" / "shop" / "invoices").exists()
    monkeypatch.setenv(VARIABLE, connection(server, server.password))
    run(shop.spark, shop.project, pipeline, [day(0)])
    assert [float(r["total"]) for r in shop.rows("invoices")] == [7.0]


def test_the_command_takes_the_driver_that_the_project_declares(
    shop: Landed, server: Server
) -> None:
    config = shop.folder / "config"
    (config / "sluice.yaml").write_text("lake: lake\nspark: {drivers: [postgresql]}\n")
    uri = f"postgresql://app:{server.password}@127.0.0.1:{server.port}/postgres"
    done = subprocess.run(
        [sys.executable, "-m", "sluice.cli.main", "load", "products", "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **LEAN, VARIABLE: uri},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert server.password not in said
    assert counted(pick(r) for r in shop.rows("products")) == counted(
        [{"id": 1, "name": "tea"}, {"id": 2, "name": "oil"}]
    )


def pick(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("id", "name")}


def test_without_its_connection_a_dimension_says_which_variable_is_missing(
    shop: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    with pytest.raises(UsageError, match="there is no connection 'shop_db'") as refused:
        shop.load("products")
    assert VARIABLE in refused.value.hint
