"""DataFrames that say the same as TPC-H's queries, and as queries of every form.

The queries themselves are in the folder of the kind that keeps them.
"""

from pathlib import Path

from tests.kinds.join.tpch import SCHEMAS

SHOP = {
    "orders": "id INT, k INT, g STRING, v INT, m DECIMAL(8,2), at TIMESTAMP",
    "people": "pid INT, k BIGINT, w STRING, n INT",
    "events": "eid INT, id INT, kind STRING, x DOUBLE, d DATE",
}
TPCH = {name: ddl for name, (_, ddl) in SCHEMAS.items()}
HEAD = """
from pyspark import pipelines as dp
from pyspark.sql import functions as F
from pyspark.sql.functions import col
from pyspark.sql.window import Window

def stream(name, schema):
    @dp.table(name=name)
    def table():
        return spark.readStream.format("json").load(f"landing/{name}", schema=schema)
"""
OF_SHOP = """
o, p, e = (spark.table(name) for name in ("orders", "people", "events"))
by_v = Window.partitionBy("g").orderBy(F.desc("v"), "id")
by_id = Window.partitionBy("g").orderBy("id")
at_op = o.k == p.k
"""
OF_TPCH = """
customer, orders, lineitem, part, partsupp, supplier, nation, region = (
    spark.table(name)
    for name in "customer orders lineitem part partsupp supplier nation region".split()
)
volume = F.expr("l_extendedprice * (1 - l_discount)")
"""
SHOP_FRAMES = {
    "everything": "o",
    "computed": """o.where("v > 0 and g is not null").select(
        "id", (o.v * 2).alias("twice"), F.upper("g").alias("big"))""",
    "kinds": 'e.select("kind").distinct()',
    "by_group": """o.where(o.v > -2).groupBy("g").agg(
        F.count("*").alias("n"), F.sum("v").alias("s"), F.max("at").alias("latest"))""",
    "many": """o.groupBy("g", "k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))
        .where("n > 1 and s is not null").select("g", "k")""",
    "unseen_key": 'o.groupBy("g").agg(F.count("*").alias("n")).select("n")',
    "total": """o.where("v > 1").agg(
        F.count("*").alias("n"), F.sum("v").alias("s"), F.min("g").alias("least"))""",
    "pairs": """o.join(p, at_op & (o.v >= p.n)).select(
        o.id, p.pid, (o.v + p.n).alias("both"))""",
    "by_comma": """o.crossJoin(p).where(at_op & (p.w != "") & (o.v > 0)).select(o.id, p.w)""",
    "three": """o.join(p, at_op).join(e, e.id == o.id).where((e.kind == "buy") | (p.n == 1))
        .select(o.id, p.pid, e.eid)""",
    "lefts": """o.join(p, at_op & (p.n > 0) & (o.v > 0), "left").select(
        o.id, p.pid, F.coalesce(p.w, F.lit("none")).alias("w"))""",
    "filtered_left": """o.where("v > 0").alias("o").join(
        p.select("pid", "k", F.lit(1).alias("one")).alias("p"), F.expr("o.k = p.k"), "left"
        ).select("o.id", "p.pid")""",
    "rights": """o.join(p, at_op, "right").where((o.v > 0) | o.v.isNull()).select(o.id, p.pid)""",
    "fulls": """o.join(p, at_op, "full").where((p.n == 1) | (o.v == 1)).select(o.id, p.pid)""",
    "not_bought": """o.join(e, e.id == o.id, "left").where(e.eid.isNull()).select(o.id)""",
    "semis": """o.join(p, at_op & (p.n > 0), "semi").select(o.id, o.g)""",
    "existing": """o.join(e, (e.id == o.id) & (e.x > o.v), "semi").select("id")""",
    "among": """o.join(p.where("n > 0").select("k"), "k", "semi").select("id")""",
    "all_rows": """o.select(col("id").alias("i"), col("g").alias("name")).union(
        p.where("n > 0").select("pid", "w"))""",
    "each_once": 'o.select("k").union(p.select("k")).distinct()',
    "in_both": 'o.select("k").intersect(p.select("k"))',
    "in_one": 'p.select("k").subtract(o.where("v > 0").select("k"))',
    "both_all": 'o.select("k", "g").intersectAll(p.select("k", "w"))',
    "more_all": 'o.select("k").exceptAll(p.select("k"))',
    "firsts": """o.select("g", "id", F.row_number().over(by_v).alias("r"))
        .where("r <= 2").select("g", "id", "r", col("r").alias("again"))""",
    "top": 'o.orderBy(F.desc("v"), "id").limit(3).select("id", "v")',
    "top_groups": """o.where("g is not null").groupBy("g").agg(F.sum("v").alias("s"))
        .orderBy(F.desc("s"), "g").limit(2)""",
    "steps": """o.select("id", (o.v - F.lag("v").over(by_id)).alias("step"),
        F.sum("v").over(Window.partitionBy("g")).alias("whole"))""",
    "near": """o.select("id", F.sum("v").over(by_id.rangeBetween(-2, 0)).alias("s"))""",
    "running": """o.where(o.v.isNotNull()).select(
        "id", F.sum("v").over(by_id.rowsBetween(-1, 0)).alias("s"))""",
    "chained": """p.join(o.groupBy("k").agg(F.sum("v").alias("s")), "k")
        .groupBy("w").agg(F.max("s").alias("most"), F.count("*").alias("n"))""",
    "averages": """p.join(o, at_op).groupBy(p.w, o.g).agg(F.count("*").alias("n"))
        .groupBy("w").agg(F.avg("n").alias("m"))""",
    "itself": """o.alias("a").join(o.alias("b"), F.expr("a.k = b.k and a.id < b.id"))
        .select("a.id", col("b.id").alias("other"))""",
    "late": """e.join(o, e.id == o.id).where(F.to_date(o.at) <= e.d).select(e.eid)""",
    "groups_of_join": """o.join(p, at_op).where(o.g == "a").groupBy(p.w)
        .agg(F.sum(o.m).alias("m")).where("m > 0")""",
    "one_and_all": """e.agg(F.count("*").alias("n")).alias("s").join(
        o.alias("o"), F.expr("o.v < s.n")).select("s.n", "o.id")""",
    "shown_again": 'o.select("id", "k", "id", col("k").alias("other"), "k")',
    "sorted_list": 'o.groupBy("g").agg(F.sort_array(F.collect_list("v")).alias("l"))',
    "counted_if": 'o.groupBy("g").agg(F.count_if(o.v > 0).alias("n"))',
    "distinct_sum_of_all": """o.where("g = 'a'").agg(
        F.sum_distinct("v").alias("s"), F.count("k").alias("n"))""",
    "bits": """o.groupBy("g").agg(F.bit_or("v").alias("o"), F.bit_and("v").alias("a"),
        F.expr("bit_or(k) FILTER (WHERE v > 1)").alias("f"))""",
    "shapes": """o.groupBy("g").agg(F.skewness("v").cast("decimal(20,6)").alias("s"),
        F.kurtosis("v").cast("decimal(20,6)").alias("k"))""",
}
TPCH_FRAMES = {
    "q1": """lineitem.where("l_shipdate <= date '1998-12-01' - interval 90 days")
        .groupBy("l_returnflag", "l_linestatus").agg(
            F.sum("l_quantity").alias("sum_qty"),
            F.sum("l_extendedprice").alias("sum_base_price"),
            F.sum(volume).alias("sum_disc_price"),
            F.expr("sum(l_extendedprice * (1 - l_discount) * (1 + l_tax))").alias("sum_charge"),
            F.avg("l_quantity").alias("avg_qty"),
            F.avg("l_extendedprice").alias("avg_price"),
            F.avg("l_discount").alias("avg_disc"),
            F.count("*").alias("count_order"))""",
    "q3": """customer.where("c_mktsegment = 'BUILDING'")
        .join(orders.where("o_orderdate < date '1996-03-15'"), col("c_custkey") == col("o_custkey"))
        .join(lineitem.where("l_shipdate > date '1995-03-15'"),
              col("l_orderkey") == col("o_orderkey"))
        .groupBy("l_orderkey", "o_orderdate", "o_shippriority").agg(F.sum(volume).alias("revenue"))
        .select("l_orderkey", "revenue", "o_orderdate", "o_shippriority")
        .orderBy(F.desc("revenue"), "o_orderdate").limit(10)""",
    "q4": """orders
        .where("o_orderdate >= date '1993-07-01' and "
               "o_orderdate < date '1993-07-01' + interval 13 months")
        .join(lineitem.where("l_commitdate < l_receiptdate"),
              col("l_orderkey") == col("o_orderkey"), "semi")
        .groupBy("o_orderpriority").agg(F.count("*").alias("order_count"))""",
    "q5": """customer.join(orders, customer.c_custkey == orders.o_custkey)
        .join(lineitem, lineitem.l_orderkey == orders.o_orderkey)
        .join(supplier, (lineitem.l_suppkey == supplier.s_suppkey)
              & (customer.c_nationkey == supplier.s_nationkey))
        .join(nation, supplier.s_nationkey == nation.n_nationkey)
        .join(region, nation.n_regionkey == region.r_regionkey)
        .where("r_name = 'ASIA' and o_orderdate >= date '1993-01-01'")
        .groupBy("n_name").agg(F.sum(volume).alias("revenue"))""",
    "q6": """lineitem.where("l_shipdate >= date '1994-01-01'")
        .where("l_shipdate < date '1994-01-01' + interval 1 year")
        .where("l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01").where(lineitem.l_quantity < 24)
        .agg(F.expr("sum(l_extendedprice * l_discount)").alias("revenue"))""",
    "q10": """customer.join(orders, col("c_custkey") == col("o_custkey"))
        .join(lineitem, col("l_orderkey") == col("o_orderkey"))
        .where("o_orderdate >= date '1993-10-01'")
        .where("o_orderdate < date '1993-10-01' + interval 13 months and l_returnflag = 'R'")
        .join(nation, col("c_nationkey") == col("n_nationkey"))
        .groupBy("c_custkey", "c_name", "c_acctbal", "c_phone", "n_name")
        .agg(F.sum(volume).alias("revenue"))
        .select("c_custkey", "c_name", "revenue", "c_acctbal", "n_name", "c_phone")
        .orderBy(F.desc("revenue")).limit(20)""",
    "q12": """orders.join(lineitem, col("o_orderkey") == col("l_orderkey"))
        .where(col("l_shipmode").isin("MAIL", "SHIP"))
        .where("l_commitdate < l_receiptdate and l_shipdate < l_commitdate")
        .where("l_receiptdate >= date '1994-01-01'").groupBy("l_shipmode").agg(
            F.sum(F.when(col("o_orderpriority").isin("1-URGENT", "2-HIGH"), 1).otherwise(0))
            .alias("high_line_count"),
            F.sum(F.when(~col("o_orderpriority").isin("1-URGENT", "2-HIGH"), 1).otherwise(0))
            .alias("low_line_count"))""",
    "q13": """customer.join(orders, (col("c_custkey") == col("o_custkey"))
              & ~col("o_comment").like("%special%requests%"), "left")
        .groupBy("c_custkey").agg(F.count("o_orderkey").alias("c_count"))
        .groupBy("c_count").agg(F.count("*").alias("custdist"))""",
    "q14": """lineitem.join(part, col("l_partkey") == col("p_partkey"))
        .where("l_shipdate >= date '1995-09-01'")
        .agg((F.expr("100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN "
                     "l_extendedprice * (1 - l_discount) ELSE 0 END)")
              / F.sum(volume)).alias("promo_revenue"))""",
    "q19": """lineitem.join(part, col("p_partkey") == col("l_partkey")).where(
            "(p_brand = 'Brand#12' and p_container in ('SM CASE', 'SM BOX') and l_quantity >= 1 "
            "and l_quantity <= 41 and p_size between 1 and 5 and l_shipmode in ('AIR', 'AIR REG'))"
            " or (p_brand = 'Brand#23' and p_container in ('MED BAG', 'MED BOX') "
            "and l_quantity >= 10 and l_quantity <= 50 and p_size between 1 and 10 "
            "and l_shipmode in ('AIR', 'AIR REG')) or (p_brand = 'Brand#34' and l_quantity >= 20 "
            "and p_size between 1 and 15 and l_shipinstruct = 'DELIVER IN PERSON')"
        ).agg(F.sum(volume).alias("revenue"))""",
}
FORMS = Path(__file__).parents[1] / "kinds/sql"


def written(path: Path) -> dict[str, str]:
    """The queries of a file by name; each is behind a line `-- name`."""
    parts = path.read_text().split("\n-- ")[1:]
    named = (part.strip().partition("\n") for part in parts)
    return {name: query.removesuffix(";") for name, _, query in named}


SHOP_QUERIES = written(FORMS / "queries.sql")
TPCH_QUERIES = written(FORMS / "tpch.sql")
