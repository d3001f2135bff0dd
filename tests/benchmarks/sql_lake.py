"""Tables in the shape of TPC-H's, ten of its queries as views, and the ways to follow changes."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from pyspark.sql import functions as F
from tests.benchmarks.bench_lake import BenchLake, declared
from tests.kinds.join import tpch
from tests.kinds.sql.shop import view, written

from sluice.changes import CHANGE

CHOSEN = ("q1", "q3", "q4", "q5", "q6", "q10", "q12", "q13", "q14", "q18")
QUERIES = written(Path(tpch.__file__).parents[1] / "sql" / "tpch.sql")
WAYS = ("view", "spark", "duckdb")
KEYS = {name: tuple(key.split(", ")) for name, (key, _) in tpch.SCHEMAS.items()}
TABLES = ("nation", "region", "supplier", "part", "customer", "orders", "lineitem")
MACROS = """
CREATE MACRO draw(i, salt, n) AS CAST(hash(i * 64 + salt) % n AS INT);
CREATE MACRO money(i, salt, most) AS CAST(draw(i, salt, most * 100) / 100 AS DECIMAL(12, 2));
CREATE MACRO one_of(i, salt, texts) AS texts[draw(i, salt, len(texts)) + 1];
"""


@dataclass(frozen=True)
class Measured:
    """One way to follow one change; `step` is build or batch."""

    orders: int
    query: str
    step: str
    way: str
    seconds: float


class SqlLake(BenchLake):
    """The lake, and the ways to follow its changes."""

    def __init__(
        self, folder: Path, orders: int, memory: str, queries: Sequence[str], ways: Sequence[str]
    ):
        self.queries, self.ways = queries, ways
        views = "".join(view(name, QUERIES[name]) for name in queries)
        super().__init__(declared(folder, f"{tpch.SOURCES}views:\n{views}", memory))
        self.folder, self.orders, self.memory = folder, orders, memory

    def land(self) -> None:
        """Commit all rows of all tables."""
        for name, query in self._contents().items():
            self.fill(name, self._made(name, query), KEYS[name])
            self.copy(name)

    def change(self, share: float) -> None:
        """Commit changes to that share of the orders and lines."""
        salt = self.head("orders").version
        for name, moved in (("orders", "o_totalprice"), ("lineitem", "l_extendedprice")):
            drawn = F.pmod(F.xxhash64(*KEYS[name], F.lit(salt)), F.lit(1_000_000))
            few = share * 800_000
            fate = F.when(drawn < few / 4, "delete").otherwise("update")
            changed = self.now(name).where(drawn < few).withColumn(moved, F.col(moved) + 1)
            fresh = self._made(name, self._fresh(name, share / 5, salt))
            added = fresh.withColumn(CHANGE, F.lit("insert"))
            self.deliver(name, changed.withColumn(CHANGE, fate).unionByName(added), KEYS[name])
            self.copy(name)

    def _contents(self) -> dict[str, str]:
        """Return for each table the query that makes its rows."""
        customers, parts, suppliers = (max(self.orders // n, 50) for n in (10, 8, 150))
        keys = {"customer": customers, "part": parts, "supplier": suppliers, "orders": self.orders}
        found = {name: _rows(name, f"range(1, {n + 1})", keys) for name, n in keys.items()}
        found |= {n: _rows(n, f"range({c})", keys) for n, c in (("region", 5), ("nation", 25))}
        return {**found, "lineitem": self._lines(f"range(1, {self.orders + 1})", keys)}

    def _lines(self, orders: str, keys: dict[str, int]) -> str:
        of_orders = (
            f"(SELECT i * 8 + n AS i FROM {orders} o(i), range(1, 8) l(n) WHERE n <= 1 + i % 7)"
        )
        return _rows("lineitem", of_orders, keys)

    def _fresh(self, name: str, share: float, salt: int) -> str:
        """Return the query of new orders, or of their lines."""
        first = self.orders + salt * 1_000_000 + 1
        new = f"range({first}, {first + max(round(self.orders * share), 1)})"
        keys = {"customer": max(self.orders // 10, 50), "part": 50, "supplier": 50}
        return self._lines(new, keys) if name == "lineitem" else _rows(name, new, keys)

    def _made(self, name: str, query: str) -> Any:
        """Return the rows of DuckDB's query as Spark's."""
        file = self.folder / f"{name}.parquet"
        with duckdb.connect() as connection:
            connection.execute(MACROS)
            connection.execute(f"COPY ({query}) TO '{file}' (FORMAT parquet)")
        schema = tpch.SCHEMAS[name][1]
        columns = [part.split()[0] for part in schema.replace("(12,2)", "").split(", ")]
        types = [part.split()[1] for part in schema.replace("(12,2)", "").split(", ")]
        exact = [t.replace("DECIMAL", "DECIMAL(12,2)") for t in types]
        rows = self.session.read.parquet(str(file))
        cast = [F.col(c).cast(t).alias(c) for c, t in zip(columns, exact, strict=True)]
        return rows.select(*cast)

    def measure(self, step: str) -> Iterator[Measured]:
        """Bring every way up to the tables, each timed."""
        for query in self.queries:
            for way in self.ways:
                began = time.perf_counter()
                getattr(self, f"_{way}")(query)
                seconds = round(time.perf_counter() - began, 2)
                yield Measured(self.orders, query, step, way, seconds)

    def _view(self, name: str) -> None:
        self.follow(name)

    def _spark(self, name: str) -> None:
        for table in TABLES:
            self.now(table).createOrReplaceTempView(table)
        rows = self.session.sql(QUERIES[name])
        rows.write.format("delta").mode("overwrite").save(self.uri(f"{name}_over"))

    def _duckdb(self, name: str) -> None:
        to = self.folder / f"{name}.parquet"
        query = sqlglot.transpile(QUERIES[name], read="spark", write="duckdb")[0]
        with duckdb.connect(config={"memory_limit": self.memory.upper() + "B"}) as connection:
            for table in TABLES:
                connection.execute(f"CREATE VIEW {table} AS SELECT * FROM {self.copied(table)}")
            connection.execute(f"COPY ({query}) TO '{to}' (FORMAT parquet)")

    def check(self) -> None:
        """Compare the views' rows with Spark's, and their number with DuckDB's."""
        for name in self.queries:
            mine = self.now(name)
            if "spark" in self.ways:
                spark = self.session.read.format("delta").load(self.uri(f"{name}_over"))
                shown = mine.select(spark.columns)
                assert shown.count() == spark.count(), f"{name} has another number of rows"
                assert shown.exceptAll(spark).isEmpty(), f"{name} is not what its query gives"
            if "duckdb" in self.ways:
                other = self.session.read.parquet(str(self.folder / f"{name}.parquet"))
                assert mine.count() == other.count(), f"DuckDB's {name} has another number of rows"


def _rows(name: str, ids: str, keys: dict[str, int]) -> str:
    """Return the query of a table's rows over ids `i`; `keys`: the number of rows of others."""
    date = "DATE '1992-01-01' + draw({}, 9, 2400)"
    texts = {
        n: repr(list(v)) for n, v in vars(tpch).items() if n.isupper() and isinstance(v, tuple)
    }
    of = {
        "region": f"i AS r_regionkey, {texts['REGIONS']}[i + 1] AS r_name",
        "nation": "i AS n_nationkey, 'N' || i AS n_name, i % 5 AS n_regionkey",
        "supplier": (
            "i AS s_suppkey, 'S' || i AS s_name, draw(i, 1, 25) AS s_nationkey, "
            "money(i, 2, 9999) AS s_acctbal, 'even' AS s_comment"
        ),
        "part": (
            f"i AS p_partkey, one_of(i, 1, {texts['COLORS']}) AS p_name, 'M' || i % 3 AS p_mfgr, "
            "'Brand#' || (12 + draw(i, 2, 9)) AS p_brand, "
            f"one_of(i, 3, {texts['TYPES']}) AS p_type, "
            f"draw(i, 4, 50) AS p_size, one_of(i, 5, {texts['CONTAINERS']}) AS p_container"
        ),
        "customer": (
            "i AS c_custkey, 'C' || i AS c_name, draw(i, 1, 25) AS c_nationkey, "
            "(10 + draw(i, 1, 25)) || '-555' AS c_phone, money(i, 2, 9999) AS c_acctbal, "
            f"one_of(i, 3, {texts['SEGMENTS']}) AS c_mktsegment"
        ),
        "orders": (
            f"i AS o_orderkey, draw(i, 1, {keys.get('customer', 1)}) + 1 AS o_custkey, "
            "one_of(i, 2, ['F', 'O', 'P']) AS o_orderstatus, money(i, 3, 400000) AS o_totalprice, "
            f"{date.format('i')} AS o_orderdate, "
            f"one_of(i, 4, {texts['PRIORITIES']}) AS o_orderpriority, 0 AS o_shippriority, "
            f"one_of(i, 5, {texts['COMMENTS']}) AS o_comment"
        ),
        "lineitem": (
            "i // 8 AS l_orderkey, i % 8 AS l_linenumber, "
            f"draw(i, 1, {keys.get('part', 1)}) + 1 AS l_partkey, "
            f"draw(i, 2, {keys.get('supplier', 1)}) + 1 AS l_suppkey, "
            "draw(i, 3, 50) + 1 AS l_quantity, money(i, 4, 90000) AS l_extendedprice, "
            "draw(i, 5, 11) / 100 AS l_discount, draw(i, 6, 9) / 100 AS l_tax, "
            "one_of(i, 7, ['R', 'A', 'N']) AS l_returnflag, "
            "one_of(i, 8, ['O', 'F']) AS l_linestatus, "
            f"{date.format('i // 8')} + 1 + draw(i, 10, 121) AS l_shipdate, "
            f"{date.format('i // 8')} + 30 + draw(i, 11, 61) AS l_commitdate, "
            f"{date.format('i // 8')} + 10 + draw(i, 12, 140) AS l_receiptdate, "
            "one_of(i, 13, ['DELIVER IN PERSON', 'NONE']) AS l_shipinstruct, "
            f"one_of(i, 14, {texts['MODES']}) AS l_shipmode"
        ),
    }
    return f"SELECT {of[name]} FROM {ids} AS t(i)"
