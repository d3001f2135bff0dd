"""DataFrames and queries that say the same, over two streaming tables."""

SOURCES = """
from decimal import Decimal
from pyspark import pipelines as dp
from pyspark.sql import functions as F
from pyspark.sql.window import Window

@dp.table
def orders():
    return (spark.readStream.format("json").load("landing/orders", schema=
        "id BIGINT, cust BIGINT, state STRING, amount BIGINT, price DOUBLE, at TIMESTAMP"))

@dp.table
def customers():
    return (spark.readStream.format("json").load("landing/customers", schema=
        "cust BIGINT, name STRING, state STRING, tags ARRAY<STRING>"))

o = spark.read.table("orders")
c = spark.table("customers")
"""
PAIRS = {
    "select": (
        "o.select('id', F.col('amount').alias('a'))",
        "SELECT id, amount AS a FROM orders",
    ),
    "where": (
        "o.where((o.amount > 5) & ~o.state.isin('CA', 'NY') | o.state.isNull())",
        "SELECT * FROM orders WHERE amount > 5 AND NOT state IN ('CA', 'NY') OR state IS NULL",
    ),
    "text": (
        "o.filter('amount > 5 and state is not null').selectExpr('id', 'amount * 2 as twice')",
        "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 5 AND state IS NOT NULL",
    ),
    "with_columns": (
        "o.withColumn('amount', o.amount + 1).withColumn('b', F.upper('state'))",
        "SELECT id, cust, state, amount + 1 AS amount, price, at, upper(state) AS b FROM orders",
    ),
    "dropped": (
        "o.drop('at', o.price).drop('nothing')",
        "SELECT id, cust, state, amount FROM orders",
    ),
    "rename": (
        "c.withColumnRenamed('name', 'called').select('called')",
        "SELECT name AS called FROM customers",
    ),
    "to_df": (
        "o.select('id', 'state').toDF('a', 'b')",
        "SELECT id AS a, state AS b FROM orders",
    ),
    "case": (
        (
            "o.select('id', F.when(o.amount > 5, 'big').when(o.amount > 1, 'some').otherwise('no')"
            ".alias('size'))"
        ),
        (
            "SELECT id, CASE WHEN amount > 5 THEN 'big' WHEN amount > 1 THEN 'some' ELSE 'no' END"
            " AS size FROM orders"
        ),
    ),
    "without_nulls": (
        "o.dropna(subset=['state', 'price']).select('id')",
        "SELECT id FROM orders WHERE state IS NOT NULL AND price IS NOT NULL AND NOT isnan(price)",
    ),
    "without_all_nulls": (
        "o.dropna(how='all', subset=['state', 'price']).select('id')",
        (
            "SELECT id FROM orders WHERE CASE WHEN state IS NOT NULL THEN 1 ELSE 0 END"
            " + CASE WHEN price IS NOT NULL AND NOT isnan(price) THEN 1 ELSE 0 END >= 1"
        ),
    ),
    "with_two_values": (
        "o.dropna(thresh=2).select('id')",
        (
            "SELECT id FROM orders WHERE CASE WHEN id IS NOT NULL THEN 1 ELSE 0 END"
            " + CASE WHEN cust IS NOT NULL THEN 1 ELSE 0 END"
            " + CASE WHEN state IS NOT NULL THEN 1 ELSE 0 END"
            " + CASE WHEN amount IS NOT NULL THEN 1 ELSE 0 END"
            " + CASE WHEN price IS NOT NULL AND NOT isnan(price) THEN 1 ELSE 0 END"
            " + CASE WHEN at IS NOT NULL THEN 1 ELSE 0 END >= 2"
        ),
    ),
    "cast": (
        "o.select(o.amount.cast('string').alias('a'), F.coalesce('price', F.lit(0.5)).alias('p'))",
        "SELECT cast(amount AS STRING) AS a, coalesce(price, cast(0.5 AS DOUBLE)) AS p FROM orders",
    ),
    "decimals": (
        "o.select((F.lit(Decimal('12.40')) + F.lit(Decimal('1E+3'))).alias('d'))",
        ("SELECT cast('12.40' AS DECIMAL(10,2)) + cast('1000' AS DECIMAL(10,0)) AS d FROM orders"),
    ),
    "group": (
        "o.groupBy('state').agg(F.sum('amount').alias('total'), F.count('*').alias('n'))",
        "SELECT state, sum(amount) AS total, count(*) AS n FROM orders GROUP BY state",
    ),
    "group_by_expression": (
        "o.groupBy(F.to_date('at').alias('day')).count()",
        "SELECT to_date(at) AS day, count(*) AS count FROM orders GROUP BY to_date(at)",
    ),
    "having": (
        "o.groupBy('state').agg(F.sum('amount').alias('total')).filter('total > 10')",
        "SELECT state, sum(amount) AS total FROM orders GROUP BY state HAVING sum(amount) > 10",
    ),
    "count_distinct": (
        "o.groupBy('state').agg(F.countDistinct('cust').alias('n'), F.max('price').alias('p'))",
        "SELECT state, count(DISTINCT cust) AS n, max(price) AS p FROM orders GROUP BY state",
    ),
    "whole": (
        "o.agg(F.sum('amount').alias('total'), F.min('at').alias('first'))",
        "SELECT sum(amount) AS total, min(at) AS first FROM orders",
    ),
    "rollup": (
        "o.rollup('state', 'cust').agg(F.sum('amount').alias('total'))",
        "SELECT state, cust, sum(amount) AS total FROM orders GROUP BY ROLLUP(state, cust)",
    ),
    "grouping_sets": (
        (
            "o.groupingSets([['state', 'cust'], ['cust']], 'state', 'cust')"
            ".agg(F.max('id').alias('latest'))"
        ),
        (
            "SELECT state, cust, max(id) AS latest FROM orders"
            " GROUP BY GROUPING SETS ((state, cust), (cust))"
        ),
    ),
    "filled_by_type": (
        "o.select('id', 'state', 'price').fillna(0)",
        (
            "SELECT CASE WHEN id IS NOT NULL THEN id ELSE cast(0 AS BIGINT) END AS id, state,"
            " CASE WHEN price IS NOT NULL AND NOT isnan(price) THEN price"
            " ELSE cast(0 AS DOUBLE) END AS price FROM orders"
        ),
    ),
    "filled_by_column": (
        "o.select('id', 'state', 'price').fillna({'state': '?', 'price': 1})",
        (
            "SELECT id, CASE WHEN state IS NOT NULL THEN state ELSE cast('?' AS STRING) END"
            " AS state, CASE WHEN price IS NOT NULL AND NOT isnan(price) THEN price"
            " ELSE cast(1 AS DOUBLE) END AS price FROM orders"
        ),
    ),
    "pivot": (
        "o.groupBy('cust').pivot('state', ['CA', 'NY']).agg(F.sum('amount'))",
        (
            "SELECT cust, CASE WHEN count(*) FILTER (WHERE state <=> 'CA') > 0 THEN"
            " sum(amount) FILTER (WHERE state <=> 'CA') END AS ca,"
            " CASE WHEN count(*) FILTER (WHERE state <=> 'NY') > 0 THEN"
            " sum(amount) FILTER (WHERE state <=> 'NY') END AS ny FROM orders GROUP BY cust"
        ),
    ),
    "join_using": (
        "o.join(c.select('cust', 'name'), 'cust').select('id', 'name', 'cust')",
        "SELECT id, name, o.cust FROM orders o JOIN customers c ON o.cust = c.cust",
    ),
    "left_join": (
        "o.join(c, o.cust == c.cust, 'left').select(o.id, c.name, c.state.alias('home'))",
        (
            "SELECT o.id, c.name, c.state AS home FROM orders o LEFT JOIN customers c"
            " ON o.cust = c.cust"
        ),
    ),
    "full_join": (
        "o.select('cust', 'id').join(c.select('cust', 'name'), 'cust', 'full')",
        (
            "SELECT coalesce(o.cust, c.cust) AS cust, id, name FROM orders o FULL JOIN customers c"
            " ON o.cust = c.cust"
        ),
    ),
    "aliases": (
        (
            "o.alias('a').join(o.alias('b'), F.col('a.cust') == F.col('b.id'))"
            ".select(F.col('a.id').alias('x'), 'b.amount')"
        ),
        "SELECT a.id AS x, b.amount FROM orders a JOIN orders b ON a.cust = b.id",
    ),
    "semi": (
        "o.join(c, 'cust', 'left_semi').select('id')",
        "SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON o.cust = c.cust",
    ),
    "anti": (
        "o.join(c, 'cust', 'left_anti').select('id')",
        "SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.cust = c.cust",
    ),
    "join_then_group": (
        "o.join(c, o.cust == c.cust).groupBy(c.name).agg(F.avg(o.price).alias('price'))",
        (
            "SELECT c.name, avg(o.price) AS price FROM orders o JOIN customers c ON o.cust = c.cust"
            " GROUP BY c.name"
        ),
    ),
    "by_hidden": (
        "o.select('id', 'amount').filter('price > 1').orderBy('state', F.desc('id')).limit(3)",
        "SELECT id, amount FROM orders WHERE price > 1 ORDER BY state, id DESC LIMIT 3",
    ),
    "fields": (
        "o.select('id', F.struct('state', 'amount').alias('s')).select('id', 's.*')",
        "SELECT id, s.state, s.amount FROM (SELECT id, struct(state, amount) AS s FROM orders)",
    ),
    "json_fields": (
        "o.select(F.from_json('state', 'a INT, b STRING').alias('j')).select('j.*')",
        "SELECT j.a, j.b FROM (SELECT from_json(state, 'a INT, b STRING') AS j FROM orders)",
    ),
    "distinct": ("o.select('state').distinct()", "SELECT DISTINCT state FROM orders"),
    "top": (
        "o.orderBy(F.desc('amount'), 'id').limit(3).select('id', 'amount')",
        "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 3",
    ),
    "window": (
        (
            "o.select('id',"
            " F.row_number().over(Window.partitionBy('state').orderBy(F.desc('amount'),"
            " 'id')).alias('rank')).filter('rank <= 2')"
        ),
        (
            "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY state ORDER BY amount"
            " DESC, id)"
            " AS rank FROM orders) WHERE rank <= 2"
        ),
    ),
    "running": (
        (
            "o.withColumn('sofar',"
            " F.sum('amount').over(Window.partitionBy('cust').orderBy('at', 'id')"
            ".rowsBetween(Window.unboundedPreceding, Window.currentRow))).select('id', 'sofar')"
        ),
        (
            "SELECT id, sum(amount) OVER (PARTITION BY cust ORDER BY at, id ROWS BETWEEN UNBOUNDED"
            " PRECEDING AND CURRENT ROW) AS sofar FROM orders"
        ),
    ),
    "union": (
        "o.select('id', 'state').union(c.select('cust', 'state'))",
        "SELECT id, state FROM orders UNION ALL SELECT cust, state FROM customers",
    ),
    "union_by_name": (
        (
            "o.select('state', 'cust').unionByName(c.select('cust', 'name', 'state'),"
            " allowMissingColumns=True)"
        ),
        (
            "SELECT state, cust, CAST(NULL AS STRING) AS name FROM orders UNION ALL"
            " SELECT state, cust, name FROM customers"
        ),
    ),
    "intersect": (
        "o.select('cust').intersect(c.select('cust'))",
        "SELECT cust FROM orders INTERSECT SELECT cust FROM customers",
    ),
    "except": (
        "c.select('cust').subtract(o.select('cust'))",
        "SELECT cust FROM customers EXCEPT SELECT cust FROM orders",
    ),
    "sql": (
        "spark.sql('SELECT id FROM {t} WHERE amount > 1', t=o.filter('state = \"CA\"'))",
        "SELECT id FROM orders WHERE state = 'CA' AND amount > 1",
    ),
    "explode": (
        "c.select('name', F.explode('tags').alias('tag')).filter(\"tag <> ''\")",
        "SELECT name, tag FROM (SELECT name, explode(tags) AS tag FROM customers) WHERE tag <> ''",
    ),
    "explode_dropped": (
        "c.withColumn('tag', F.explode('tags')).drop('tag').select('name')",
        "SELECT name FROM (SELECT name, explode(tags) AS tag FROM customers)",
    ),
    "explode_counted": (
        "c.select('name', F.explode_outer('tags').alias('t')).drop('t').groupBy('name').count()",
        (
            "SELECT name, count(1) AS count FROM (SELECT name, explode_outer(tags) AS t"
            " FROM customers) GROUP BY name"
        ),
    ),
    "posexplode": (
        "c.where('cust > 1').select('name', F.posexplode('tags').alias('n', 'tag')).where('n < 2')",
        (
            "SELECT name, n, tag FROM (SELECT name, n, tag FROM customers"
            " LATERAL VIEW posexplode(tags) l AS n, tag WHERE cust > 1) WHERE n < 2"
        ),
    ),
    "posexplode_unnamed": (
        "c.select(F.posexplode_outer('tags'), 'name').join(o, o.id == F.col('pos')).select('col')",
        (
            "SELECT t.col FROM (SELECT pos, col, name FROM customers"
            " LATERAL VIEW OUTER posexplode(tags) l AS pos, col) t JOIN orders o ON o.id = t.pos"
        ),
    ),
    "lambda": (
        "c.select('name', F.transform('tags', lambda x: F.upper(x)).alias('tags'))",
        "SELECT name, transform(tags, x -> upper(x)) AS tags FROM customers",
    ),
    "range": (
        "o.join(spark.range(3).withColumnRenamed('id', 'amount'), 'amount').select('id')",
        "SELECT o.id FROM orders o JOIN range(0, 3, 1) r ON o.amount = r.id",
    ),
    "local": (
        (
            "o.join(spark.createDataFrame([('CA', 1.5), ('NY', None)],"
            " 'state STRING, rate DOUBLE'), 'state').select('id', 'rate')"
        ),
        (
            "SELECT o.id, cast(rate AS DOUBLE) AS rate FROM orders o JOIN (VALUES ('CA', 1.5),"
            " ('NY', NULL)) AS r (state, rate) ON o.state = cast(r.state AS STRING)"
        ),
    ),
    "no_equality": (
        "o.join(c, o.amount > c.cust).select('id')",
        "SELECT o.id FROM orders o JOIN customers c ON o.amount > c.cust",
    ),
}
