"""What nobody reads is not computed; what is kept is computed at once."""

from collections.abc import Iterator

import pytest

from sluice.interpreter.errors import NotHere
from sluice.interpreter.session import Session, interpreting


@pytest.fixture
def session() -> Iterator[Session]:
    with interpreting(Session.open()) as session:
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
    with pytest.raises(NotHere):
        both.select("more").collect()


def test_rows_that_are_kept_are_computed_before_anything_else(session: Session) -> None:
    with pytest.raises(NotHere):
        session.range(3).selectExpr("id", "id div 0 AS bad").persist()


@pytest.mark.parametrize("count", [1, 2])
def test_a_sum_of_one_row_is_that_of_any_number(session: Session, count: int) -> None:
    rows = session.range(count).selectExpr("-double(0) AS x", "id AS n", "id > 5 AS no")
    (found,) = rows.selectExpr("sum(x)", "min(x)", "sum(n) FILTER (WHERE no)", "count(*)").collect()
    assert [str(value) for value in found] == ["0.0", "-0.0", "None", str(count)]
