"""Windows, groups and orders that Spark refuses, or reads otherwise, are left to it."""

from collections.abc import Callable, Iterator
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from operator import add
from random import Random

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from tests.interpreter.refusing import refused

from sluice.interpreter import UnsupportedLocally, rehearse, relations
from sluice.interpreter.local_session import Session, interpreting
from sluice.interpreter.relations import aggregates

MAP = "map(CAST(id AS STRING), id)"
MOST, LEAST = (f"CAST('{sign}{'9' * 38}' AS DECIMAL(38, 0))" for sign in ("", "-"))


@pytest.fixture
def rows() -> Iterator[DataFrame]:
    session = Session()
    with interpreting(session):
        yield session.range(1, 4)


@pytest.mark.parametrize(
    "frame",
    [
        "ROWS BETWEEN 2 FOLLOWING AND 1 FOLLOWING",
        "ROWS BETWEEN CURRENT ROW AND 1 PRECEDING",
        "ROWS BETWEEN UNBOUNDED FOLLOWING AND CURRENT ROW",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED PRECEDING",
        "RANGE BETWEEN 1 PRECEDING AND 2 PRECEDING",
        "RANGE BETWEEN 0 PRECEDING AND CURRENT ROW",
    ],
)
def test_frames_without_a_meaning(frame: str) -> None:
    refused(f"count(*) OVER (ORDER BY CAST(id AS INT) {frame})")


@pytest.mark.parametrize(
    "sql",
    [
        "count(*) OVER (RANGE UNBOUNDED PRECEDING)",
        "rank() OVER (ORDER BY id ROWS 1 PRECEDING)",
        "lag(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING)",
        "lag(id) FILTER (WHERE id > 1) OVER (ORDER BY id)",
        "row_number() FILTER (WHERE id > 1) OVER (ORDER BY id)",
        "row_number() IGNORE NULLS OVER (ORDER BY id)",
        "sum(id) IGNORE NULLS OVER (ORDER BY id)",
        "row_number(1) OVER (ORDER BY id)",
        "sum(id) OVER (ORDER BY INT(id + 2147483646) RANGE BETWEEN CURRENT ROW AND 1 FOLLOWING)",
        "approx_count_distinct(id) OVER (ORDER BY id)",
        "lag(id, true) OVER (ORDER BY id)",
        "lag(id, 1.0) OVER (ORDER BY id)",
        f"count(*) OVER (PARTITION BY {MAP})",
    ],
)
def test_window_functions_of_such_a_form(sql: str) -> None:
    refused(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "count(DISTINCT *)",
        "collect_list(*)",
        "collect_list(DISTINCT -CAST(0 AS DOUBLE))",
        "mode(DISTINCT id)",
        "collect_list(id, id)",
        "count_if(id > 1, id > 2)",
        "approx_count_distinct(id, 0.1)",
        "first(id, NULL)",
        "max_by(id, id, 1.0)",
        "max_by(id, id, true)",
        "max_by(id, id, 0)",
        "min_by(id, id > 0, 2)",
        f"count(DISTINCT {MAP})",
        f"sum(if(id < 3, {MOST}, {LEAST}))",
        f"avg(CASE id WHEN 1 THEN {MOST} WHEN 2 THEN 1 ELSE {LEAST} END)",
    ],
)
def test_aggregates_of_such_a_form(sql: str) -> None:
    refused(sql, count=3)


@pytest.mark.parametrize(
    "query",
    [
        lambda t: t.select(F.expr(MAP)).distinct(),
        lambda t: t.groupBy(F.expr("2")).agg(F.expr("count(*)")),
        lambda t: t.orderBy(F.expr("1").desc()),
    ],
)
def test_keys_of_maps_and_numbers_of_columns(
    rows: DataFrame, query: Callable[[DataFrame], DataFrame]
) -> None:
    with pytest.raises(UnsupportedLocally):
        query(rows).toArrow()


def test_comparisons_of_maps_are_refused_before_any_row(rows: DataFrame) -> None:
    with pytest.raises(UnsupportedLocally):
        rehearse(rows.where(f"struct({MAP}) = struct({MAP})"))


def test_pairs_are_limited_in_joins_without_equalities(
    rows: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "MOST_PAIRS", 9)
    others = rows.withColumnRenamed("id", "other")
    assert rows.crossJoin(others).count() == 9
    assert rows.union(rows).join(others, F.expr("id = other")).count() == 6
    with pytest.raises(UnsupportedLocally):
        rows.union(rows).crossJoin(others).count()


def test_pairs_by_equalities_are_limited_by_memory_except_if_only_a_match_counts() -> None:
    session = Session(10_000)
    with interpreting(session):
        some, same = session.range(200).selectExpr("1 AS a"), session.range(2).selectExpr("1 AS a")
        assert some.join(same, "a", "left_semi").count() == 200
        assert some.join(same, "a", "left_anti").count() == 0
        assert same.join(some.limit(100), "a").count() == 200
        with pytest.raises(UnsupportedLocally, match="too many rows"):
            some.join(same, "a").count()


def test_a_column_is_named_as_it_is_asked_for(rows: DataFrame) -> None:
    assert rows.select("ID").columns == ["ID"]
    assert rows.withColumn("ID", F.lit(1)).select("id").columns == ["id"]


def test_sums_of_fractions_are_added_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that tie in the order are not added together first, and none is added twice."""
    monkeypatch.setattr(aggregates, "MOST_ADDITIONS", 0)
    session = Session()
    with interpreting(session):
        rows = session.range(6).selectExpr("sum(0.1D) OVER (ORDER BY id > 1) AS s")
        assert [row.s for row in rows.collect()] == [0.2, 0.2, 0.6, 0.6, 0.6, 0.6]


def test_long_frames_are_folded_a_few_times_per_row() -> None:
    """Seven million rows in all; folded frame by frame, they would be left to Spark."""
    session, count, back = Session(), 4000, 2500
    over = f"OVER (ORDER BY id ROWS {back} PRECEDING)"
    with interpreting(session):
        rows = session.range(count).selectExpr("id", "pmod(id * 7919, 4001) AS v")
        found = rows.selectExpr(*(f"{f}(v) {over} AS {f}" for f in ("min", "max", "sum", "count")))
        told = [tuple(row) for row in found.collect()]
    values = [i * 7919 % 4001 for i in range(count)]
    frames = [values[max(0, i - back) : i + 1] for i in range(count)]
    assert told == [(min(f), max(f), sum(f), len(f)) for f in frames]


def test_fractions_are_added_in_the_order_of_each_frame() -> None:
    """Nine million additions, of nulls, too; folded frame by frame, they would be left to Spark."""
    session, count, back = Session(), 4500, 2500
    over = f"OVER (ORDER BY id ROWS {back} PRECEDING)"
    with interpreting(session):
        cents = session.range(count).selectExpr("id", "nullif(pmod(id * 7919, 997), 5) AS n")
        rows = cents.selectExpr("id", "n", "n / 100D AS d", "CAST(n / 100D AS DECIMAL(5, 2)) AS m")
        found = rows.selectExpr(*(f"{f} {over}" for f in ("sum(d)", "avg(d)", "avg(n)", "avg(m)")))
        told = [tuple(row) for row in found.collect()]
    values = [None if i * 7919 % 997 == 5 else i * 7919 % 997 for i in range(count)]
    for row, i in zip(told, range(count), strict=True):
        given = [v for v in values[max(0, i - back) : i + 1] if v is not None]
        total, whole = reduce(add, (v / 100 for v in given), 0.0), sum(given)
        mean = (Decimal(whole) / 100 / len(given)).quantize(Decimal("1e-6"), ROUND_HALF_UP)
        assert row == (total, total / len(given), whole / len(given), mean)


def test_frames_that_begin_behind_the_last_row_are_empty() -> None:
    session, over = Session(), "OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING)"
    with interpreting(session):
        rows = session.range(4).selectExpr(
            *(
                f"{f} {over}"
                for f in ("sum(id)", "count(id)", "max(id)", "avg(id)", "sum(id / 10D)")
            )
        )
        told = [tuple(row) for row in rows.collect()]
    assert told == [(5, 2, 3, 2.5, 0.5), (3, 1, 3, 3.0, 0.3), *[(None, 0, None, None, None)] * 2]


def test_a_sum_that_only_some_orders_of_its_rows_keep_in_range() -> None:
    session = Session()
    near = "sum(element_at(array(9223372036854775807L, -7L), CAST(id AS INT))) AS s"
    with interpreting(session):
        assert session.range(1, 3).selectExpr(near).collect()[0].s == 9223372036854775800
    refused("sum(element_at(array(9223372036854775807L, 9L, -9L), CAST(id AS INT)))", count=3)


@pytest.mark.parametrize(
    ("type_", "most"),
    [("BIGINT", 2**63 - 1), ("DECIMAL(38, 0)", 10**38 - 1), ("DECIMAL(28, 0)", 10**38 - 1)],
)
def test_sums_at_the_ends_of_their_type_are_pythons_or_are_left_to_spark(
    type_: str, most: int
) -> None:
    """They are left to it if some order of a frame's rows would leave the type."""
    session, chance, least = Session(), Random(1), -most - (type_ == "BIGINT")
    largest = most if type_ != "DECIMAL(28, 0)" else 10**28 - 1
    ends = (largest, largest - 1, max(least, -largest), largest // 2 + 1, -largest // 2, 0, 1, -1)
    outcomes = set()
    with interpreting(session):
        for _ in range(40):
            values = [chance.choice((*ends, None)) for _ in range(chance.randint(1, 4))]
            texts = ", ".join("NULL" if v is None else f"'{v}'" for v in values)
            rows = session.range(1, len(values) + 1).selectExpr(
                "id", f"CAST(element_at(array({texts}), CAST(id AS INT)) AS {type_}) AS v"
            )
            over = "OVER (ORDER BY id ROWS UNBOUNDED PRECEDING)"
            frames = [[v or 0 for v in values[: i + 1]] for i in range(len(values))]
            fits = all(
                sum(v for v in frame if v > 0) <= most and sum(v for v in frame if v < 0) >= least
                for frame in frames
            )
            outcomes.add(fits)
            try:
                found = [r.s for r in rows.selectExpr(f"sum(v) {over} AS s").collect()]
            except UnsupportedLocally:
                assert not fits, values
                continue
            assert fits, values
            seen = [values[: i + 1].count(None) <= i for i in range(len(values))]
            assert found == [sum(f) if any_ else None for f, any_ in zip(frames, seen, strict=True)]
    assert True in outcomes
