"""DataFrames say the same as queries: both become the same chain, with the same rows."""

from pathlib import Path
from typing import Any

import pytest
from tests.spark_pipelines.frames import (
    HEAD,
    OF_SHOP,
    OF_TPCH,
    SHOP,
    SHOP_FRAMES,
    SHOP_QUERIES,
    TPCH,
    TPCH_FRAMES,
    TPCH_QUERIES,
)
from tests.spark_pipelines.pairs import PAIRS, SOURCES
from tests.spark_pipelines.projects import land, read_here, write_project

from sluice.declare.building import DeclarationFile, build, read_tables
from sluice.declare.document import Document
from sluice.declare.mistakes import Mistakes
from sluice.declare.table import Graph

WAYS = ("frame", "query")


def build_graph(found: dict[str, Any]) -> Graph:
    """Return the tables of a project as read."""
    mistakes = Mistakes()
    document = Document("p", {"pipeline": found["name"], **found["sections"]})
    read = read_tables(DeclarationFile(document), mistakes)
    graph = build({d.id: d for d in read.declared}, mistakes)
    mistakes.raise_any()
    return graph


def shape(graph: Graph, name: str) -> tuple[object, ...]:
    """Return what distinguishes a view's chain: kinds and columns of its parts, or a refusal."""
    table = graph.table(name)
    parts = [(part.kind, len(part.inputs)) for part in table.parts]
    columns = tuple(table.columns.items())
    return (tuple(sorted(parts)), columns, bool(table.spec.caution), len(table.key))


def streams(tables: dict[str, str]) -> str:
    """Return the definitions of streaming tables with these schemas."""
    return "".join(f"stream({name!r}, {schema!r})\n" for name, schema in tables.items())


def of_queries(frames: dict[str, str], queries: dict[str, str]) -> dict[str, tuple[str, str]]:
    return {name: (frame, queries[name]) for name, frame in frames.items()}


@pytest.mark.parametrize(
    ("head", "pairs"),
    [
        (SOURCES, PAIRS),
        (HEAD + streams(SHOP) + OF_SHOP, of_queries(SHOP_FRAMES, SHOP_QUERIES)),
        (HEAD + streams(TPCH) + OF_TPCH, of_queries(TPCH_FRAMES, TPCH_QUERIES)),
    ],
    ids=["of two tables", "of every form", "of TPC-H"],
)
def test_a_dataframe_becomes_the_chain_of_the_query_that_says_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    head: str,
    pairs: dict[str, tuple[str, str]],
) -> None:
    frames = "".join(
        f"@dp.materialized_view\ndef {name}_frame():\n    return ({frame})\n"
        for name, (frame, _) in pairs.items()
    )
    queries = ";\n".join(
        f"CREATE MATERIALIZED VIEW {name}_query AS {query}" for name, (_, query) in pairs.items()
    )
    spec = write_project(tmp_path)
    (tmp_path / "transformations/a.py").write_text(head + frames)
    (tmp_path / "transformations/b.sql").write_text(queries)
    found = read_here(spec, monkeypatch)
    assert found["mistakes"] == found["left_out"] == []
    graph = build_graph(found)
    views = found["sections"]["views"]
    differing = {
        name: [(shape(graph, f"{name}_{way}"), views[f"{name}_{way}"]["sql"]) for way in WAYS]
        for name in pairs
        if len({shape(graph, f"{name}_{way}") for way in WAYS}) > 1
    }
    assert differing == {}


EXPRESSIONS = {  # of a DataFrame, and as they are written in its query
    "F.struct(o.amount.alias('a'), 'day', o.id + 1)": (
        "STRUCT(orders_1.amount AS a, orders_1.at AS day, orders_1.id + 1)"
    ),
    "o.amount.try_cast('int')": "TRY_CAST(orders_1.amount AS INT)",
    "o.amount.isNull() == o.price.isNull()": (
        "(orders_1.amount IS NULL) = (orders_1.price IS NULL)"
    ),
    "(o.amount > 1) == F.lit(True)": "(orders_1.amount > 1) = TRUE",
    "o.amount.isin(1, 2) == o.id.between(1, 2)": (
        "(orders_1.amount IN (1, 2)) = (orders_1.id >= 1 AND orders_1.id <= 2)"
    ),
    "o.id.bitwiseOR(o.amount).bitwiseAND(4)": "(orders_1.id | orders_1.amount) & 4",
    "o.id.bitwiseAND(4).bitwiseXOR(o.id.bitwiseOR(1))": "orders_1.id & 4 ^ (orders_1.id | 1)",
    "o.id.isin([])": "FALSE",
    "F.array('id', 'amount')[1]": "ARRAY(orders_1.id, orders_1.amount)[1]",
    "F.expr('aggregate(array(1), 0, (s, day) -> s + day) + day(day)')": (
        "AGGREGATE(ARRAY(1), 0, (s, day) -> s + day) + DAY(orders_1.at)"
    ),
    "F.lit(float('nan'))": "CAST('nan' AS DOUBLE)",
    "F.lit(float('-inf'))": "CAST('-inf' AS DOUBLE)",
    "F.expr('struct(day, amount as b)')": "STRUCT(orders_1.at AS day, orders_1.amount AS b)",
}


def test_an_expression_of_a_dataframe_keeps_its_meaning_as_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ", ".join(f"({one}).alias('c{n}')" for n, one in enumerate(EXPRESSIONS))
    view = "@dp.materialized_view\ndef texts():\n"
    text = f"{SOURCES}{view}    return o.withColumnRenamed('at', 'day').select({shown})\n"
    found = read_here(write_project(tmp_path, a_py=text), monkeypatch)
    written = ", ".join(f"{one} AS c{n}" for n, one in enumerate(EXPRESSIONS.values()))
    assert found["left_out"] == []
    assert found["sections"]["views"]["texts"]["sql"] == f"SELECT {written} FROM orders AS orders_1"


def test_as_many_pairs_are_compared_as_are_claimed() -> None:
    assert len(PAIRS) + len(SHOP_FRAMES) + len(TPCH_FRAMES) >= 60
    assert len(TPCH_FRAMES) >= 10


def test_parts_that_no_query_says_leave_out_their_view_and_what_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    land(tmp_path / "landing/orders", "1.json")
    text = SOURCES + (
        "@F.udf\n"
        "def twice(x):\n    return x + x\n"
        "@dp.materialized_view\ndef by_udf():\n    return o.select(twice('state').alias('s'))\n"
        "@dp.materialized_view\ndef over_it():\n    return spark.table('by_udf')\n"
        "@dp.materialized_view\ndef sampled():\n    return o.sample(0.5)\n"
        "@dp.materialized_view\ndef in_pandas():\n"
        "    return o.groupBy('state').applyInPandas(lambda rows: rows, 'id BIGINT')\n"
        "@dp.table\ndef with_state():\n"
        "    found = spark.readStream.table('orders').groupBy('state')\n"
        "    return found.transformWithState(None, 'id BIGINT', 'append', 'none')\n"
        "@dp.table\ndef written():\n"
        "    stream = spark.readStream.table('orders')\n"
        "    stream.writeStream.foreachBatch(print).start()\n"
        "@dp.table\ndef writer():\n"
        "    return spark.readStream.table('orders').writeStream.foreachBatch(print)\n"
        "@dp.materialized_view\ndef nested():\n"
        "    return o.where('cust in (select cust from customers)')\n"
        "@dp.materialized_view(spark_conf={'spark.sql.session.timeZone': 'UTC'})\n"
        "def in_utc():\n    return o\n"
        "@dp.materialized_view(spark_conf={'spark.sql.session.timeZone': 'Asia/Tokyo'})\n"
        "def in_tokyo():\n    return o\n"
        "@dp.materialized_view\ndef by_window():\n"
        "    return o.groupBy(F.window('at', '1 day')).count()\n"
        "@dp.materialized_view\ndef with_arguments():\n"
        "    return spark.sql('select * from orders where id > :n', args={'n': 1})\n"
        "@dp.materialized_view\ndef starred():\n    return o.select('amount.*')\n"
        "@dp.materialized_view\ndef mistaken():\n    return o.select('amounts')\n"
        "dp.create_sink('out', 'kafka', {})\n"
        "@dp.append_flow(target='out')\ndef to_out():\n    return"
        " spark.readStream.table('orders')\n"
    )
    query = "CREATE MATERIALIZED VIEW several AS SELECT posexplode(tags) AS (n, t) FROM customers"
    found = read_here(write_project(tmp_path, a_py=text, b_sql=query), monkeypatch)
    shown = [f"{line}: {what}" for _, line, what, _ in found["left_out"]]
    assert [one.split(":")[1].strip() for one in shown] == [
        *("by_udf", "over_it", "sampled", "in_pandas", "with_state", "written", "writer"),
        *("nested", "in_tokyo", "by_window", "with_arguments", "starred", "mistaken"),
        *("out", "several"),
    ]
    assert "a Python function (UDF)" in shown[0]
    assert "it reads by_udf, which is left out" in shown[1]
    assert "applyInPandas runs Python code over rows" in shown[3]
    assert "transformWithState runs Python code over rows" in shown[4]
    assert "start writes to another system" in shown[5]
    assert "DataStreamWriter writes to another system" in shown[6]
    assert "a query inside an expression: join the table" in shown[7]
    assert "spark.sql.session.timeZone = Asia/Tokyo: Sluice computes by UTC" in shown[8]
    assert "window, a struct of times: use date_trunc" in shown[9]
    assert "spark.sql with arguments: write them into the text" in shown[10]
    assert "amount.*: name the fields" in shown[11]
    assert "unknown column 'amounts'; did you mean 'amount'?" in shown[12]
    assert "POSEXPLODE(tags) AS (n, t): write it as a LATERAL VIEW" in shown[14]
    assert {*found["sections"]["sources"]} == {"orders", "customers"}


def test_a_dataset_is_left_out_if_its_rows_have_other_columns_than_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = SOURCES + (
        "import pyspark.sql.types as T\n"
        "def declare(name, schema):\n"
        "    dp.materialized_view(name=name, schema=schema)(lambda: o.select('id', 'state'))\n"
        "declare('same', 'state STRING, id LONG')\n"
        "declare('typed', T.StructType([T.StructField('id', T.IntegerType())]))\n"
        "@dp.table(schema='id INT')\ndef raw():\n"
        "    return spark.readStream.schema('id BIGINT').json('landing/raw')\n"
    )
    queries = """\
    CREATE MATERIALIZED VIEW alike (id BIGINT NOT NULL COMMENT 'a, b') AS SELECT id FROM orders;
    CREATE MATERIALIZED VIEW wider (id BIGINT, n INT) AS SELECT id FROM orders;
    """
    found = read_here(write_project(tmp_path, a_py=text, b_sql=queries), monkeypatch)
    differ = "its schema and its rows differ:"
    assert [what for _, _, what, _ in found["left_out"]] == [
        f"typed: {differ} id is INT there, BIGINT here",
        f"raw: {differ} id is INT there, BIGINT here",
        f"wider: {differ} n is INT there, missing here",
    ]
    assert found["left_out"][2][:2] == ["transformations/b.sql", 2]
    assert {*found["sections"]["views"]} == {"same", "alike"}


def test_a_name_that_no_table_can_have_becomes_the_same_in_dataframes_as_in_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"Total Value": "total_value", "_id": "id", "größe": "gr_e", "1st": "t_1st"}
    given = [*names, "Total Value", "Total Value"]
    frames = [f"o.select((o.id + 1).alias({name!r}))" for name in names]
    frames += [
        f"o.select('id').withColumn({given[0]!r}, o.id).drop('id')",
        f"o.select('id').toDF({given[0]!r})",
    ]
    text = SOURCES + "".join(
        f"@dp.materialized_view\ndef frame_{n}():\n    return {frame}\n"
        for n, frame in enumerate(frames)
    )
    text += "@dp.table\ndef twice():\n    stream = spark.readStream.schema('a_b INT, `a-b` INT')\n"
    text += "    return stream.json('landing/twice')\n"
    queries = ";\n".join(
        f"CREATE MATERIALIZED VIEW query_{n} AS SELECT id + 1 AS `{name}` FROM orders"
        for n, name in enumerate(given)
    )
    found = read_here(write_project(tmp_path, a_py=text, b_sql=queries), monkeypatch)
    ((_, _, problem, _),) = found["left_out"]
    assert problem.startswith("twice: the name of column 'a_b' is that of another")
    graph = build_graph(found)
    for n, name in enumerate(given):
        of_both = [[*graph.table(f"{way}_{n}").columns] for way in WAYS]
        assert of_both == [[names[name]]] * 2, name
