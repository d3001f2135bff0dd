"""Other engines read the same rows, today's and earlier ones, on a disk and from a store."""

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.stores.stored_shop import HIDDEN, TABLES, StoredShop, shown
from tests.support.stores import Store, using

import sluice

HTTP = {"allow_http": "true"}


def by_delta_rs(uri: str, version: int) -> list[dict[str, Any]]:
    return DeltaTable(uri, version=version, storage_options=HTTP).to_pyarrow_table().to_pylist()


def by_pandas(uri: str, version: int) -> list[dict[str, Any]]:
    rows = DeltaTable(uri, version=version, storage_options=HTTP).to_pandas()
    return rows.to_dict("records")


def by_polars(uri: str, version: int) -> list[dict[str, Any]]:
    return pl.read_delta(uri, version=version, storage_options=HTTP).to_dicts()


def by_duckdb(uri: str, version: int) -> list[dict[str, Any]]:
    table = DeltaTable(uri, version=version, storage_options=HTTP).to_pyarrow_dataset()
    return duckdb.from_arrow(table).to_arrow_table().to_pylist()


ENGINES = (by_delta_rs, by_pandas, by_polars, by_duckdb)
Read = Callable[[str, int], list[dict[str, Any]]]


@pytest.fixture(scope="module", params=["disk", "store"])
def lake(
    request: pytest.FixtureRequest, store: Store, tmp_path_factory: pytest.TempPathFactory
) -> Shop:
    """Two days of the shop: one delivered, one corrected."""
    folder = tmp_path_factory.mktemp("shop") / request.param
    with using(store.environ()):
        shop = Shop.create(folder) if request.param == "disk" else StoredShop.begin(folder, store)
        for rows in (FIRST, CORRECTED):
            shop.land(1, *rows)
            shop.run(day(1))
    return shop


def test_rows_are_those_that_sluice_reads(lake: Shop) -> None:
    here = sluice.open(lake.config)
    for name in TABLES:
        for version in (1, 2):
            wanted = shown(here.table(name, version=version).to_arrow().to_pylist())
            assert wanted
            for read in ENGINES:
                assert shown(read(lake.uri(name), version)) == wanted, (name, version, read)


def test_views_hide_nothing_but_what_begins_with_sluice(lake: Shop) -> None:
    for name in TABLES:
        names = pl.scan_delta(lake.uri(name), storage_options=HTTP).collect_schema().names()
        declared = set(lake.project.graph.table(name).columns)
        assert {n for n in names if not n.startswith(HIDDEN)} == declared
        chosen = pl.scan_delta(lake.uri(name), storage_options=HTTP).select(
            pl.exclude("^_sluice.*$")
        )
        assert set(chosen.collect_schema().names()) == declared
