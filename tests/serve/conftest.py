"""A small lake of every kind of read, and a server of it: in this process, and on a port."""

import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from tests.support.lake import Row
from tests.support.landed import START, Landed, folder_of

import sluice
from sluice.read.lake import Lake as Reader
from sluice.serve.access import Access
from sluice.serve.app import Listener, Served, Server
from sluice.serve.client import Remote
from sluice.serve.questions import Limits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DECLARED = r"""
sources:
  events:
    path: "landing/{interval_start:%Y-%m-%d}/"
    format: parquet
    schema: >-
      id BIGINT, user INT, what STRING, at TIMESTAMP, price DECIMAL(20,4), weight FLOAT,
      size DOUBLE, blob BINARY, on DATE, tags ARRAY<STRING>
    time: at
    key: [id]
dimensions:
  products:
    path: landing/p/
    format: parquet
    schema: "product_id INT, name STRING, brand_id INT"
    key: [product_id]
  brands: {path: landing/b/, format: parquet, schema: "brand_id INT, brand STRING", key: [brand_id]}
  catalogue:
    join: [{dimension: products}, {dimension: brands, on: "products.brand_id = brands.brand_id"}]
    select: {product_id: products.product_id, name: upper(products.name), brand: brands.brand}
views:
  visits: {kind: window_store, from: events, key: [user], time: at, backward_iteration: true}
  sums:
    kind: cogroup
    key: [user, what]
    streams: {events: {from: events, aggregates: {paid: sum(price), n: count(*)}}}
  best: {kind: topk, from: sums, partition_by: [user], order_by: ["paid desc"], limit: 2}
  tied: {kind: topk, from: sums, partition_by: [user], order_by: ["n desc"], limit: 2,
    function: rank}
  unranked: {kind: topk, from: sums, partition_by: [user], order_by: ["paid desc"], limit: 2,
    rank: false}
"""
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "user": pa.int32(),
        "what": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "price": pa.decimal128(20, 4),
        "weight": pa.float32(),
        "size": pa.float64(),
        "blob": pa.binary(),
        "on": pa.date32(),
        "tags": pa.list_(pa.string()),
    }
)
Visitor = Callable[..., TestClient]
Serving = Callable[..., AbstractContextManager[str]]


def event(number: int, **values: Any) -> Row:
    """An event with values of every type."""
    return {
        "id": number,
        "user": [1, 2, 3, None][number % 4],
        "what": ["a b", "é&=?/", "\\N", None, "x"][number % 5],
        "at": START + timedelta(hours=number, microseconds=number),
        "price": Decimal(number * 12345678901).scaleb(-4),
        "weight": 38.4 + number,
        "size": [0.1, float("nan"), float("inf"), None][number % 4],
        "blob": bytes([number % 256, 255]),
        "on": (START + timedelta(days=number)).date(),
        "tags": ["a", None][: number % 3],
    } | values


def deliver(lake: Landed, nth: int, *rows: Row) -> None:
    """Deliver these rows as the nth day, and bring the views up to date."""
    lake.land(folder_of(nth), a_parquet=pa.Table.from_pylist(list(rows), SCHEMA))
    lake.deliver(nth)
    lake.advance()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, local_spark: "SparkSession") -> Landed:
    """Three days of twenty events, with everything computed from them, and a dimension view."""
    lake = Landed(tmp_path_factory.mktemp("shop"), DECLARED, local_spark)
    for nth in range(3):
        deliver(lake, nth, *(event(n) for n in range(24 * nth, 24 * nth + 20)))
    products = [{"product_id": n, "name": f"p{n}", "brand_id": n % 2} for n in range(9)]
    lake.land("p", a_parquet=products)
    lake.land("b", a_parquet=[{"brand_id": 0, "brand": "zero"}, {"brand_id": 1, "brand": "one"}])
    lake.load("products")
    lake.load("brands")
    return lake


@pytest.fixture
def copy(shop: Landed, tmp_path: Path) -> Landed:
    """A copy of the shop, whose tables may go."""
    shutil.copytree(shop.folder, tmp_path / "copy")
    return Landed(tmp_path / "copy", shop.declared, shop.session)


@pytest.fixture
def here(shop: Landed) -> Reader:
    """The lake, opened in this process."""
    return sluice.open(shop.folder / "config")


def server_of(folder: Path, *tokens: str, **limits: Any) -> Server:
    """A server of the lake in a folder."""
    access = Access.read(None, {"SLUICE_SERVE_TOKENS": "\n".join(tokens)})
    return Server(Served(folder / "config"), access, Limits(**limits))


@pytest.fixture
def visit(shop: Landed) -> Visitor:
    """Clients in this process, of servers with these tokens and limits."""

    def client(*tokens: str, of: Landed = shop, **limits: Any) -> TestClient:
        app = server_of(of.folder, *tokens, **limits).app()
        return TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    return client


@contextmanager
def serving(folder: Path, *tokens: str, **limits: Any) -> Iterator[str]:
    """While a server answers on a port: its address."""
    server = server_of(folder, *tokens, **limits)
    listener = Listener(server, port=0, log_level="error", timeout_graceful_shutdown=1)
    port = listener.bind()
    thread = threading.Thread(target=listener.answer)
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        listener.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def remote(shop: Landed) -> Iterator[Remote]:
    """The lake, by a client of a server on a port."""
    with serving(shop.folder, seconds=20) as url:
        yield sluice.connect(url)
