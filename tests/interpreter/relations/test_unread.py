"""What nobody reads is not computed; what is kept is computed at once."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql import types as T

from sluice.delta.reading.local import to_arrow
from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting


@pytest.fixture
def session() -> Iterator[Session]:
    with interpreting(Session()) as session:
        yield session


def test_a_column_that_nobody_reads_is_not_computed(session: Session) -> None:
    rows = session.range(3).selectExpr("id", "id div 0 AS bad")
    both = rows.unionByName(rows).withColumn("more", rows.bad + 1).where("id > 0").drop("bad")
    assert sorted(row.id for row in both.select("id").collect()) == [1, 1, 2, 2]
    assert [
        row[1]
        for row in both.groupBy("id")
        .agg({"id": "count", "more": "max"})
        .select("id", "count(id)")
        .orderBy("id")
        .collect()
    ] == [2, 2]
    with pytest.raises(UnsupportedLocally):
        both.select("more").collect()


def test_rows_that_are_kept_are_computed_before_anything_else(session: Session) -> None:
    with pytest.raises(UnsupportedLocally):
        session.range(3).selectExpr("id", "id div 0 AS bad").persist()


@pytest.mark.parametrize("count", [1, 2])
def test_a_sum_of_one_row_is_that_of_any_number(session: Session, count: int) -> None:
    rows = session.range(count).selectExpr("-double(0) AS x", "id AS n", "id > 5 AS no")
    (found,) = rows.selectExpr("sum(x)", "min(x)", "sum(n) FILTER (WHERE no)", "count(*)").collect()
    assert [str(value) for value in found] == ["0.0", "-0.0", "None", str(count)]


@pytest.mark.parametrize("count", [0, 3, 2_000])
def test_rows_that_are_handed_over_come_back_without_being_read(
    session: Session, count: int
) -> None:
    values = {"id": range(count), "price": [None] * count, "at": [7] * count}
    types = {"id": pa.int64(), "price": pa.decimal128(8, 2), "at": pa.timestamp("us", "UTC")}
    rows = pa.table({name: pa.array(values[name], type_) for name, type_ in types.items()})
    schema = T.StructType()
    for name, type_ in zip(
        types, (T.LongType(), T.DecimalType(8, 2), T.TimestampType()), strict=True
    ):
        schema.add(name, type_)
    handed = session.createDataFrame(rows, schema)
    (relation,) = session.service.tables.values()
    assert to_arrow(handed).equals(rows)
    assert relation._rows is None
    assert to_arrow(handed.where("id < 2")).equals(rows.slice(0, 2))
    assert relation._rows is not None


def test_rows_that_take_more_memory_than_allowed_are_left_to_spark(session: Session) -> None:
    """All tables of a batch count together, and a table that is not read doesn't."""
    schema = T.StructType().add("id", T.LongType())
    first, second, unread = (
        session.createDataFrame(pa.table({"id": range(2_000)}), schema) for _ in range(3)
    )
    session.upto(2 * 8 * 2_000)
    assert first.where("id >= 0").count() == second.where("id >= 0").count() == 2_000
    with pytest.raises(UnsupportedLocally, match=r"^more than 0\.0 MB of rows in memory$"):
        unread.where("id >= 0").count()
    session.service.plans.forget()
    assert session.createDataFrame(pa.table({"id": range(4_000)}), schema).where("id>=0").count()


def test_rows_are_taken_as_spark_takes_them(session: Session) -> None:
    """0.0 stands for -0.0 where rows are grouped; NaN is missing as null is; names come first."""
    numbers = "element_at(array(-0D, 0D, double('NaN'), CAST(NULL AS DOUBLE)), CAST(id + 1 AS INT))"
    rows = session.range(4).selectExpr("id", f"{numbers} AS x")
    assert sorted(str(row.x) for row in rows.select("x").distinct().collect()) == [
        "0.0",
        "None",
        "nan",
    ]
    assert [row.id for row in rows.dropna().collect()] == [0, 1]
    assert rows.join(rows.select("x"), "x", "left_semi").columns == ["x", "id"]
    found = session.range(1).selectExpr("id", "7 AS n")
    assert [row.n for row in rows.join(found, "id", "left").collect()] == [7, None, None, None]
    assert rows.where("x IS NULL").selectExpr("max_by(id, x, 2) AS n").collect()[0].n is None


@pytest.mark.parametrize(
    ("sql", "type_"),
    [
        ("lag(m, 1, 0) OVER (ORDER BY id)", (10, 2)),
        ("id + m", (23, 2)),
        ("id * 1.5", (23, 1)),
        ("CAST(id AS DECIMAL(5))", (5, 0)),
    ],
)
def test_digits_of_decimals(session: Session, sql: str, type_: tuple[int, int]) -> None:
    rows = session.range(2).selectExpr("CAST(id AS DECIMAL(10, 2)) AS m", "id")
    assert rows.selectExpr(f"{sql} AS n").schema["n"].dataType == T.DecimalType(*type_)


def test_a_field_beside_an_interval(session: Session) -> None:
    rows = session.range(2).selectExpr("named_struct('i', INTERVAL '1' DAY, 'n', id).n AS n")
    assert [row.n for row in rows.collect()] == [0, 1]


def test_entries_of_a_group_by_a_map_are_in_the_order_of_its_keys(session: Session) -> None:
    made = F.expr("map_from_arrays(array('b', 'a'), array(1, 2))").alias("m")
    (found,) = session.range(2).groupBy(made).count().collect()
    assert [*found.m.items()] == [("a", 2), ("b", 1)]


def test_constants_beside_a_sum_are_of_one_row(session: Session) -> None:
    for count in (0, 3):
        rows = session.range(count)
        assert [tuple(row) for row in rows.selectExpr("7 AS n", "count(*) AS c").collect()] == [
            (7, count)
        ]
        assert len(rows.selectExpr("7 AS n", "id").collect()) == count
