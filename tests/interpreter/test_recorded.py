"""What the interpreter answers is what Spark answered, as `answers.jsonl` records it."""

from collections.abc import Callable

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.interpreter import answers
from tests.interpreter.answers import Answer
from tests.support.engines import differs

PIECES = 4  # of the expressions of rows, one test each


@pytest.fixture(scope="module")
def sampled() -> tuple[pa.Table, StructType]:
    return answers.sampled()


def check(
    recorded: list[answers.Recorded], ask: Callable[[str, list[int | None]], Answer | None]
) -> None:
    """Require the recorded answers."""
    wrong = []
    for sql, type_, rows in recorded:
        if differs(sql):
            continue
        ours = ask(sql, [row for some in rows.values() for row in some])
        told = answers.describe(sql, ours) if ours else None
        if told != (sql, type_, rows):
            wrong.append(f"{sql}: {told and told[1:]} here, {type_} {rows} in Spark")
    assert len(recorded) > 20
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("piece", range(PIECES))
def test_functions_and_casts(sampled: tuple[pa.Table, StructType], piece: int) -> None:
    recorded = answers.read("rows")[piece::PIECES]
    check(recorded, lambda sql, rows: answers.of_all_rows(*sampled, sql, rows))


def test_window_functions(sampled: tuple[pa.Table, StructType]) -> None:
    check(answers.read("windows"), lambda sql, _: answers.of_all_rows(*sampled, sql))


@pytest.mark.parametrize("by", answers.GROUPS)
def test_aggregates(sampled: tuple[pa.Table, StructType], by: str) -> None:
    check(answers.read(by), lambda sql, _: answers.of_groups(*sampled, by, sql))
