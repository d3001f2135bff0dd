"""A secret is looked for in everything that is written: it must be nowhere.

The secret stands in the environment alone; the configuration names it in every place that takes
one. What is looked through are outputs, traces, the lake with its commits, reports, and what DAGs
keep of the configuration: as text, in base64, quoted for URLs, in hex, and backwards.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.security.spellings import spellings
from tests.support.java import LEAN

CANARY = "c4n@ry/S3cret+of:the~mine"
CONNECTION = f"postgresql://app:{quote(CANARY, safe='')}@127.0.0.1:9/shop"
PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
airflow: {webhook: "https://127.0.0.1:9/${CANARY}"}
sources:
  sales: {path: "landing/{interval_start:%Y-%m-%d}/", format: json, schema: "id INT, item STRING"}
dimensions:
  items:
    format: jdbc
    options:
      url: "jdbc:postgresql://127.0.0.1:9/shop"
      user: app
      password: "${CANARY}"
      dbtable: x
    schema: "item STRING, price INT"
    key: [item]
  shops:
    format: jdbc
    connection: shop_db
    options: {dbtable: x}
    schema: "shop STRING, town STRING"
    key: [shop]
views:
  counts:
    kind: cogroup
    key: [item]
    streams: {s: {from: sales, aggregates: {n: count(*)}}}
"""
IMPORT = "from sluice.airflow.blueprint import site; import pathlib, sys; "
IMPATIENT = (
    "from sluice.engine import retries; retries.PAUSES = (0.1,); "
    "from sluice.cli.main import main; main()"
)
KEEP = IMPORT + "print(site(pathlib.Path(sys.argv[1])))"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "config" / "pipelines").mkdir(parents=True)
    (tmp_path / "config" / "pipelines" / "shop.yaml").write_text(PIPELINE)
    (tmp_path / "config" / "sluice.yaml").write_text(
        "{lake: lake, spark: {drivers: [postgresql], conf: {spark.driver.memory: 512m}}}"
    )
    (tmp_path / "landing" / "2024-01-01").mkdir(parents=True)
    (tmp_path / "landing" / "2024-01-01" / "a.json").write_text('{"id": 1, "item": "tea"}')
    return tmp_path


def run(shop: Path, *words: str, **variables: str) -> str:
    """What a command writes to its outputs; they are kept with the rest."""
    told = {"CANARY": CANARY, "AIRFLOW_CONN_SHOP_DB": CONNECTION, "AIRFLOW_HOME": str(shop)}
    command, environ = [sys.executable, *words], {**os.environ, **told, **variables}
    done = subprocess.run(command, cwd=shop, env=environ, capture_output=True, check=False)
    with (shop / "outputs").open("ab") as outputs:
        outputs.write(done.stdout + done.stderr)
    return (done.stdout + done.stderr).decode()


def leaks(folder: Path) -> Iterator[str]:
    """Where the secret stands, in any spelling."""
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        written = file.read_bytes()
        for spelling in spellings(CANARY):
            if spelling in written or spelling in str(file).encode():
                yield f"{file.relative_to(folder)}: {spelling.decode()}"


def test_the_search_finds_every_spelling(tmp_path: Path) -> None:
    for nth, spelling in enumerate(spellings(CANARY)):
        (tmp_path / str(nth)).write_bytes(b"x" + spelling + b"y")
    assert len({leak.split(":")[0] for leak in leaks(tmp_path)}) == len(spellings(CANARY))


def test_no_command_without_spark_writes_a_secret(shop: Path) -> None:
    for words in (["validate"], ["read", "items"]):
        run(shop, "-m", "sluice.cli.main", *words, "--debug")
    assert "no mistakes" in (shop / "outputs").read_text()
    assert list(leaks(shop)) == []


def test_what_dags_keep_of_the_configuration_holds_no_secret(shop: Path) -> None:
    assert "shop" in run(shop, "-c", KEEP, str(shop / "config"))
    assert list((shop / "sluice").glob("*.kept"))
    assert list(leaks(shop)) == []


def test_dags_keep_no_token_of_a_server(shop: Path) -> None:
    remote = "sc://127.0.0.1:1/;token=${CANARY}"
    (shop / "config/sluice.yaml").write_text(f"spark: {{engine: connect, remote: '{remote}'}}\n")
    assert "token=" in run(shop, "-c", KEEP, str(shop / "config"))
    assert not [*(shop / "sluice").glob("*.kept")]


def test_mistakes_do_not_repeat_a_secret(shop: Path) -> None:
    file = shop / "config" / "pipelines" / "shop.yaml"
    for wrong in (
        PIPELINE.replace("password:", "passwort:"),
        PIPELINE.replace("https://127.0.0.1:9/$", "$"),
        PIPELINE.replace("dbtable: x", "dbtable: '${CANARY}', nonsense: '${CANARY}'"),
        PIPELINE.replace("key: [item]", "key: ['${CANARY}']"),
    ):
        file.write_text(wrong)
        run(shop, "-m", "sluice.cli.main", "validate", "--debug")
    assert "hint" in (shop / "outputs").read_text() or "error" in (shop / "outputs").read_text()
    assert list(leaks(shop)) == []


def test_a_run_whose_database_is_away_writes_no_secret(shop: Path, remote: str) -> None:
    """In a Spark of its own, and as a client of another."""
    bounds = ("--start", "2024-01-01", "--end", "2024-01-02")
    said = run(shop, "-c", IMPATIENT, "run", "shop", *bounds, "--debug", **LEAN)
    assert "127.0.0.1:9" in said, "it did not get as far as the database"
    for name in ("items", "shops"):
        load = (IMPATIENT, "load", name, "--debug")
        assert "127.0.0.1:9" in run(shop, "-c", *load, SPARK_REMOTE=remote)
    assert (shop / "lake" / "shop" / "sales" / "_delta_log").is_dir()
    assert list(leaks(shop)) == []
