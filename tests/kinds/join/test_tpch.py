"""Joins of TPC-H, kept up to date through its refresh functions, against DuckDB after each.

Customers and suppliers change as well, and orders move to other customers, which the benchmark
leaves out.
"""

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import DeltaTable
from tests.kinds.join.tpch import SCHEMAS, SOURCES, Tpch
from tests.support.lake import Lake, NewLake, Row, counted

VIEWS = """
views:
  orders_of:
    kind: join
    left: customer
    right: orders
    on: customer.c_custkey = orders.o_custkey
  lines_of:
    kind: join
    left: orders_of
    right: lineitem
    on: orders_of.o_orderkey = lineitem.l_orderkey
  q3:
    kind: cogroup
    key: [l_orderkey, o_orderdate, o_shippriority]
    streams:
      lines:
        from: lines_of
        where: >-
          c_mktsegment = 'BUILDING' and o_orderdate < date'1995-03-15'
          and l_shipdate > date'1995-03-15'
        aggregates: {revenue: sum(l_extendedprice * (1 - l_discount))}
  q4:
    kind: join
    type: semi
    left: {table: orders, as: o}
    right: {table: lineitem, as: l}
    on: o.o_orderkey = l.l_orderkey
    where: >-
      l.l_commitdate < l.l_receiptdate and o.o_orderdate >= date'1993-07-01'
      and o.o_orderdate < date'1993-10-01'
    select: {o_orderkey: o.o_orderkey, o_orderpriority: o.o_orderpriority}
  asia:
    kind: join
    left: nation
    right: region
    on: nation.n_regionkey = region.r_regionkey
    where: region.r_name = 'ASIA'
    select: {n_nationkey: nation.n_nationkey, n_name: nation.n_name}
  supplied:
    kind: join
    left: {table: lines_of, as: l}
    right: {table: supplier, as: s}
    on: [l.l_suppkey = s.s_suppkey, l.c_nationkey = s.s_nationkey]
    select:
      s_nationkey: s.s_nationkey
      o_orderdate: l.o_orderdate
      price: l.l_extendedprice * (1 - l.l_discount)
  in_asia:
    kind: join
    left: supplied
    right: asia
    on: supplied.s_nationkey = asia.n_nationkey
    where: supplied.o_orderdate >= date'1994-01-01' and supplied.o_orderdate < date'1996-01-01'
  q5:
    kind: cogroup
    key: [n_name]
    streams: {lines: {from: in_asia, aggregates: {revenue: sum(price)}}}
  q10:
    kind: join
    left: lines_of
    right: nation
    on: lines_of.c_nationkey = nation.n_nationkey
    where: >-
      lines_of.l_returnflag = 'R' and lines_of.o_orderdate >= date'1993-10-01'
      and lines_of.o_orderdate < date'1994-01-01'
    select:
      c_custkey: lines_of.c_custkey
      n_name: nation.n_name
      price: lines_of.l_extendedprice * (1 - lines_of.l_discount)
  q13:
    kind: join
    type: left
    left: customer
    right: orders
    on: customer.c_custkey = orders.o_custkey
    where: orders.o_comment not like '%special%requests%'
    select: {c_custkey: customer.c_custkey, o_orderkey: orders.o_orderkey}
  q22:
    kind: join
    type: anti
    left: {table: customer, as: c}
    right: {table: orders, as: o}
    on: c.c_custkey = o.o_custkey
    select: {code: "substring(c.c_phone, 1, 2)", c_acctbal: c.c_acctbal}
"""
OF_LINES = "customer, orders, lineitem WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey"
QUERIES = {
    "q3": f"""
        SELECT l_orderkey, o_orderdate, o_shippriority,
            sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM {OF_LINES} AND c_mktsegment = 'BUILDING' AND o_orderdate < date '1995-03-15'
            AND l_shipdate > date '1995-03-15'
        GROUP BY ALL""",
    "q4": """
        SELECT o_orderkey, o_orderpriority FROM orders
        WHERE o_orderdate >= date '1993-07-01' AND o_orderdate < date '1993-10-01' AND EXISTS (
            SELECT * FROM lineitem
            WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)""",
    "q5": """
        SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
            AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
            AND n_regionkey = r_regionkey AND r_name = 'ASIA'
            AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1996-01-01'
        GROUP BY n_name""",
    "q10": """
        SELECT c_custkey, n_name, l_extendedprice * (1 - l_discount) AS price
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey
            AND l_returnflag = 'R' AND o_orderdate >= date '1993-10-01'
            AND o_orderdate < date '1994-01-01'""",
    "q13": """
        SELECT c_custkey, o_orderkey FROM customer
        LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'""",
    "q22": """
        SELECT substring(c_phone, 1, 2) AS code, c_acctbal FROM customer
        WHERE NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)""",
}


def answers(lake: Lake) -> Iterator[tuple[str, list[Row]]]:
    """Yield each query's rows over the sources as they are."""
    with duckdb.connect() as connection:
        for name in SCHEMAS:
            schema: Any = pa.schema(DeltaTable(lake.uri(name)).schema().to_arrow())
            connection.register(name, pa.Table.from_pylist([*lake.state[name].values()], schema))
        for view, query in QUERIES.items():
            yield view, connection.sql(query).to_arrow_table().to_pylist()


def agrees(lake: Lake) -> None:
    """Every view is what DuckDB computes from scratch, and none is empty."""
    for view, expected in answers(lake):
        assert expected, f"{view} has rows"
        assert counted(lake.rows(view)) == counted(expected), view


def test_the_joins_equal_duckdbs_after_each_refresh(new_lake: NewLake) -> None:
    lake = new_lake(SOURCES + VIEWS)
    data = Tpch(lake, customers=150)
    data.fill(orders=1500)
    lake.advance()
    agrees(lake)
    data.insert_orders(15)
    data.delete_orders(15)
    lake.advance()
    agrees(lake)
    data.move_customers(10)
    data.move_suppliers(4)
    data.reassign_orders(20)
    data.insert_orders(5)
    data.delete_orders(5)
    lake.advance()
    agrees(lake)
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
