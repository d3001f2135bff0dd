"""duckdb's own extension for Delta reads the rows that Sluice reads.

It is built for one release of duckdb, which is not that of the lock. So both are installed beside
it, once, and asked in a process of their own.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.delta.tables import ID_AND_V, Small, by_marking
from tests.stores.stored_shop import TABLES, shown

import sluice

RELEASE = "1.5.5"
INSTALLED = Path(__file__).parents[2] / ".cache" / "duckdb-delta" / RELEASE
PACKAGES = (f"duckdb=={RELEASE}", f"duckdb-extension-delta=={RELEASE}")
READ = """
import json, sys
from pathlib import Path
import duckdb, duckdb_extension_delta

folder = Path(duckdb_extension_delta.__file__).parent
(extension,) = folder.rglob("delta.duckdb_extension")
duckdb.execute(f"LOAD '{extension}'")
visible = "COLUMNS(c -> NOT starts_with(c, '_sluice'))"
rows = duckdb.sql(f"SELECT {visible} FROM delta_scan('{sys.argv[1]}', version={sys.argv[2]})")
print(json.dumps([dict(zip(rows.columns, row)) for row in rows.fetchall()], default=str))
"""


@pytest.fixture(scope="module")
def extension() -> Path:
    if not (INSTALLED / "duckdb_extension_delta").is_dir():
        uv = Path(sys.executable).parent / "uv"
        command = [str(uv), "pip", "install", "--quiet", "--target", str(INSTALLED), *PACKAGES]
        subprocess.run(command, check=True, env={**os.environ, "UV_SYSTEM_CERTS": "1"})
    return INSTALLED


def read(extension: Path, uri: str, version: int) -> list[dict[str, Any]]:
    environ = {**os.environ, "PYTHONPATH": str(extension)}
    command = [sys.executable, "-S", "-c", READ, uri, str(version)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    assert said.returncode == 0, said.stderr
    found: list[dict[str, Any]] = json.loads(said.stdout)
    return found


def test_rows_of_today_and_earlier_are_the_same(extension: Path, tmp_path: Path) -> None:
    shop = Shop.create(tmp_path / "shop")
    for rows in (FIRST, CORRECTED):
        shop.land(1, *rows)
        shop.run(day(1))
    here = sluice.open(shop.config)
    for name in TABLES:
        for version in (1, 2):
            wanted = here.table(name, version=version).to_arrow().to_pylist()
            wanted = json.loads(json.dumps(wanted, default=str))
            assert wanted
            assert shown(read(extension, shop.uri(name), version)) == shown(wanted), name


def test_marked_rows_of_a_large_table_are_left_out(extension: Path, tmp_path: Path) -> None:
    table = Small.create(tmp_path, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    table.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in range(9)])
    table.commit(("delete", {"id": 3, "v": "v3"}), ("update", {"id": 5, "v": "new"}))
    table.commit(("delete", {"id": 4, "v": "v4"}))
    for version, count in ((1, 9), (2, 8), (3, 7)):
        rows = read(extension, table.uri, version)
        assert len(rows) == count
        assert shown(rows) == shown(table.rows(version))
