"""Small data in the shape of TPC-H's tables, and its refresh functions.

The benchmark's own generator is not needed for a thousandth of its smallest size: what counts here
are the tables, their keys, and how they change. Rows follow from a seed.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from tests.support.lake import Lake, Row

SCHEMAS = {
    "region": ("r_regionkey", "r_regionkey INT, r_name STRING"),
    "nation": ("n_nationkey", "n_nationkey INT, n_name STRING, n_regionkey INT"),
    "supplier": (
        "s_suppkey",
        "s_suppkey INT, s_name STRING, s_nationkey INT, s_acctbal DECIMAL(12,2), s_comment STRING",
    ),
    "part": (
        "p_partkey",
        (
            "p_partkey INT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, "
            "p_size INT, p_container STRING"
        ),
    ),
    "partsupp": (
        "ps_partkey, ps_suppkey",
        "ps_partkey INT, ps_suppkey INT, ps_availqty INT, ps_supplycost DECIMAL(12,2)",
    ),
    "customer": (
        "c_custkey",
        (
            "c_custkey INT, c_name STRING, c_nationkey INT, c_phone STRING, "
            "c_acctbal DECIMAL(12,2), c_mktsegment STRING"
        ),
    ),
    "orders": (
        "o_orderkey",
        (
            "o_orderkey INT, o_custkey INT, o_orderstatus STRING, o_totalprice DECIMAL(12,2), "
            "o_orderdate DATE, o_orderpriority STRING, o_shippriority INT, o_comment STRING"
        ),
    ),
    "lineitem": (
        "l_orderkey, l_linenumber",
        (
            "l_orderkey INT, l_linenumber INT, l_partkey INT, l_suppkey INT, "
            "l_quantity DECIMAL(12,2), l_extendedprice DECIMAL(12,2), "
            "l_discount DECIMAL(12,2), l_tax DECIMAL(12,2), "
            "l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, l_commitdate DATE, "
            "l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING"
        ),
    ),
}
SOURCES = "sources:\n" + "".join(
    f'  {name}: {{path: "{name}/{{interval_start:%Y-%m-%d}}/", key: [{key}], schema: "{ddl}"}}\n'
    for name, (key, ddl) in SCHEMAS.items()
)
REGIONS = ("AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST")
SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")
COMMENTS = ("carefully final deposits", "special packages among the requests", "ironic ideas")
COLORS = ("green", "forest", "lace")
CONTAINERS = ("SM CASE", "MED BOX", "MED BAG", "LG CASE", "JUMBO PKG")
TYPES = ("PROMO BRUSHED TIN", "ECONOMY ANODIZED STEEL", "STANDARD POLISHED BRASS")
MODES = ("AIR", "AIR REG", "MAIL", "SHIP", "TRUCK")
FIRST, DAYS = date(1992, 1, 1), 2400


class Tpch:
    """The tables of one lake; customers without orders are a third, as in the benchmark."""

    def __init__(self, lake: Lake, customers: int, seed: int = 7):
        self.lake, self.draw = lake, Random(seed)
        self.customers, self.suppliers, self.parts, self.last_order = customers, 10, 20, 0

    def fill(self, orders: int) -> None:
        """Put all rows."""
        self.lake.put("region", *({"r_regionkey": i, "r_name": n} for i, n in enumerate(REGIONS)))
        nations = ({"n_nationkey": i, "n_name": f"N{i}", "n_regionkey": i % 5} for i in range(25))
        self.lake.put("nation", *nations)
        self.lake.put("supplier", *map(self.supplier, range(1, self.suppliers + 1)))
        self.lake.put("part", *map(self.part, range(1, self.parts + 1)))
        self.lake.put("partsupp", *self.supplies())
        self.lake.put("customer", *map(self.customer, range(1, self.customers + 1)))
        self.insert_orders(orders)

    def insert_orders(self, count: int) -> None:
        """The first refresh function: new orders and their lines."""
        new = [self.order(self.last_order + i) for i in range(1, count + 1)]
        self.last_order += count
        self.lake.put("orders", *new)
        self.lake.put("lineitem", *(line for order in new for line in self.lines(order)))

    def delete_orders(self, count: int) -> None:
        """The second: orders leave with their lines."""
        orders = self.draw.sample(self._rows("orders"), count)
        keys = {order["o_orderkey"] for order in orders}
        gone = [line for line in self._rows("lineitem") if line["l_orderkey"] in keys]
        self.lake.put("orders", gone=orders)
        self.lake.put("lineitem", gone=gone)

    def move_customers(self, count: int) -> None:
        """Customers move to another nation, and segment; one more leaves, one comes."""
        known = self.draw.sample(self._rows("customer"), count + 1)
        self.customers += 1
        moved = [self.customer(row["c_custkey"]) for row in known[1:]]
        self.lake.put("customer", *moved, self.customer(self.customers), gone=known[:1])

    def move_suppliers(self, count: int) -> None:
        """Suppliers move to another nation."""
        known = self.draw.sample(self._rows("supplier"), count)
        self.lake.put("supplier", *(self.supplier(row["s_suppkey"]) for row in known))

    def reassign_orders(self, count: int) -> None:
        """Orders go to another customer: their join keys move."""
        known = self.draw.sample(self._rows("orders"), count)
        self.lake.put("orders", *({**row, "o_custkey": self._buyer()} for row in known))

    def supplier(self, key: int) -> Row:
        return {
            "s_suppkey": key,
            "s_name": f"S{key}",
            "s_nationkey": self.draw.randrange(25),
            "s_acctbal": self._money(-999, 9999),
            "s_comment": self.draw.choice(("quick Customer deals Complaints", "slow", "even")),
        }

    def part(self, key: int) -> Row:
        return {
            "p_partkey": key,
            "p_name": f"{self.draw.choice(COLORS)} {self.draw.choice(COLORS)}",
            "p_mfgr": f"Manufacturer#{key % 3}",
            "p_brand": f"Brand#{self.draw.choice((12, 23, 34, 45))}",
            "p_type": self.draw.choice(TYPES),
            "p_size": self.draw.randrange(1, 16),
            "p_container": self.draw.choice(CONTAINERS),
        }

    def supplies(self) -> Iterator[Row]:
        """Three suppliers of each part."""
        for part in range(1, self.parts + 1):
            for supplier in self.draw.sample(range(1, self.suppliers + 1), 3):
                yield {
                    "ps_partkey": part,
                    "ps_suppkey": supplier,
                    "ps_availqty": self.draw.randrange(1, 100),
                    "ps_supplycost": self._money(1, 1000),
                }

    def customer(self, key: int) -> Row:
        nation = self.draw.randrange(25)
        return {
            "c_custkey": key,
            "c_name": f"C{key}",
            "c_nationkey": nation,
            "c_phone": f"{nation + 10}-{self.draw.randrange(100, 999)}",
            "c_acctbal": self._money(-999, 9999),
            "c_mktsegment": self.draw.choice(SEGMENTS),
        }

    def order(self, key: int) -> Row:
        return {
            "o_orderkey": key,
            "o_custkey": self._buyer(),
            "o_orderstatus": self.draw.choice("FOP"),
            "o_totalprice": self._money(900, 400_000),
            "o_orderdate": FIRST + timedelta(days=self.draw.randrange(DAYS)),
            "o_orderpriority": self.draw.choice(PRIORITIES),
            "o_shippriority": 0,
            "o_comment": self.draw.choice(COMMENTS),
        }

    def lines(self, order: Row) -> Iterator[Row]:
        for number in range(1, self.draw.randrange(1, 8) + 1):
            shipped = order["o_orderdate"] + timedelta(days=self.draw.randrange(1, 122))
            yield {
                "l_orderkey": order["o_orderkey"],
                "l_linenumber": number,
                "l_partkey": self.draw.randrange(1, self.parts + 1),
                "l_suppkey": self.draw.randrange(1, self.suppliers + 1),
                "l_quantity": Decimal(self.draw.randrange(1, 51)),
                "l_extendedprice": self._money(900, 90000),
                "l_discount": Decimal(self.draw.randrange(11)).scaleb(-2),
                "l_tax": Decimal(self.draw.randrange(9)).scaleb(-2),
                "l_linestatus": self.draw.choice("OF"),
                "l_shipinstruct": self.draw.choice(("DELIVER IN PERSON", "NONE")),
                "l_shipmode": self.draw.choice(MODES),
                "l_returnflag": self.draw.choice("RAN"),
                "l_shipdate": shipped,
                "l_commitdate": order["o_orderdate"] + timedelta(days=self.draw.randrange(30, 91)),
                "l_receiptdate": shipped + timedelta(days=self.draw.randrange(1, 31)),
            }

    def _buyer(self) -> int:
        """A customer; those whose number three divides never order."""
        number = self.draw.randrange(1, self.customers + 1)
        return number - (number % 3 == 0)

    def _money(self, least: int, most: int) -> Decimal:
        return Decimal(self.draw.randrange(least * 100, most * 100)).scaleb(-2)

    def _rows(self, name: str) -> list[Row]:
        return list(self.lake.state[name].values())
