"""Reports of `validate` on wrong expectations."""

import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml
from tests.gate.conftest import SALES
from tests.gate.rows import expect

from sluice.declare.table_spec import Expectation
from sluice.gate import engine, review
from sluice.gate.suite import other_column

COLUMNS = {"quantity": "INT", "price": "DECIMAL(12,2)", "department": "STRING", "at": "TIMESTAMP"}


@pytest.fixture(autouse=True)
def _nothing_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_CACHE", str(tmp_path))


RIGHT = """
column_values_to_not_be_null {on_failure: quarantine, column: quantity, mostly: 0.9}
column_values_to_be_between {column: at, min_value: "2017-01-01"}
column_values_to_be_between {column: price, max_value: 0.5}
column_values_to_match_like_pattern {column: department, like_pattern: "D%"}
column_value_lengths_to_be_between {column: department, max_value: 9}
column_values_to_be_unique {column: at, row_condition: quantity > 3}
column_median_to_be_between {column: quantity, min_value: 1}
column_unique_value_count_to_be_between {column: department, min_value: 1}
column_max_to_be_between {column: at, min_value: now - 36 hours, over: table}
table_row_count_to_equal_other_table {other_table_name: sales, over: table}
column_sum_to_equal_other_table
    {column: price, other_table_name: sales, tolerance: 0.5, over: table}
"""
WRONG = """
column_values_to_be_not_null {column: at} | did you mean expect_column_values_
column_values_to_not_be_null {column: at, mosty: 1} | did you mean mostly
column_values_to_be_between {min_value: 3} | needs the argument 'column'
column_values_to_not_be_null {column: at, mostly: 3} | mostly
column_values_to_be_between {column: department, min_value: 3} | is STRING
column_values_to_be_in_set {column: at, value_set: [1]} | which is TIMESTAMP
column_values_to_be_in_set {column: price, value_set: [x]} | 'x' can't be
column_values_to_be_between {column: price, min_value: 9, max_value: 3}
    | min_value 9 is greater than max_value 3
column_values_to_not_be_null {column: at, row_condition: quantty > 3}
    | unknown column 'quantty'; did you mean 'quantity'
column_values_to_not_be_null {column: at, row_condition: "reflect('a', 'b')"}
    | 'reflect' is not allowed
column_values_to_not_be_null {column: at, row_condition: quantity + 1}
    | row_condition: 'quantity + 1' is INT; a condition is true or false
column_values_to_not_be_null {column: at, row_condition: price > at}
    | row_condition: 'price > at': DECIMAL(12,2) can't be compared with TIMESTAMP
column_values_to_match_regex {column: department, regex: "[A-Z"}
    | regex: '[A-Z' is not a regular expression: a character class [ is not closed
column_values_to_match_regex_list {column: department, regex_list: [a, (]}
    | regex_list: '(' is not a regular expression
column_max_to_be_between {column: at, min_value: now - 3 lights, over: table} | '3 lights'
column_max_to_be_between {column: at, min_value: now - 3 hours}
    | min_value: only a rule with over: table may use now
table_row_count_to_equal_other_table {other_table_name: sales} | write over: table
column_sum_to_equal_other_table {column: price, over: table}
    | needs the argument 'other_table_name'
column_values_to_be_dateutil_parseable {column: department} | can't be evaluated on Spark
column_values_to_be_unique {on_failure: quarantine, column: at} | single row
column_values_not_null {on_failure: quarantine, column: at}
    | unknown expectation 'expect_column_values_not_null'; did you mean
column_values_to_be_between {column: price, min_value: abc}
    | min_value: 'abc' can't be compared with price, which is DECIMAL(12,2)
table_row_count_to_be_between {min_value: abc}
    | min_value: a time or a whole number is expected, and 'abc' is none of these
column_values_to_be_between {column: price, min_value: {$PARAMETER: x}} | no SQL literal
"""
HUGE = expect("column_values_to_be_between", column="price", min_value=10**400)


def read(text: str) -> list[tuple[Expectation, str]]:
    """Expectations, as a file declares them, and what is told of each."""
    found = []
    for line in re.sub(r"\n +", " ", text.strip()).splitlines():
        rule, _, told = line.partition(" | ")
        type_, _, arguments = rule.partition(" ")
        found.append((expect(type_, **yaml.safe_load(arguments)), told))
    return found


@pytest.mark.parametrize("expectation", [e for e, _ in read(RIGHT)], ids=lambda e: e.label)
def test_a_right_expectation_has_no_mistakes(expectation: Expectation) -> None:
    assert review.mistakes(expectation, COLUMNS) == []


@pytest.mark.parametrize(
    ("expectation", "told"),
    [*read(WRONG), (HUGE, "too large to convert to float")],
    ids=lambda value: value.label if isinstance(value, Expectation) else "",
)
def test_a_mistake_is_named(expectation: Expectation, told: str) -> None:
    (mistake,) = review.mistakes(expectation, COLUMNS)
    assert told in mistake


def test_what_was_found_right_is_not_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def mistakes(expectation: Expectation) -> list[str]:
        asked.append(expectation.label)
        return ["wrong"] if "mostly" in expectation.kwargs else []

    monkeypatch.setattr(engine, "mistakes", mistakes)
    of_some = {"row_condition": "quantity > 3"}  # of what is plain, nobody is asked
    right = expect("column_values_to_not_be_null", column="at", **of_some)
    other = expect("column_values_to_not_be_null", column="price", **of_some)
    wrong = expect("column_values_to_not_be_null", column="at", mostly=3)
    for _ in range(2):
        assert [review.mistakes(e, COLUMNS) for e in (right, other, wrong)] == [[], [], ["wrong"]]
    assert asked == [e.label for e in (right, other, wrong, wrong)]
    (file,) = tmp_path.iterdir()
    assert version("great-expectations") in file.name
    file.write_text("[[")
    assert review.mistakes(right, COLUMNS) == []
    assert len(asked) == 5


def test_validate_imports_only_what_it_needs_to_look_again(tmp_path: Path) -> None:
    config = tmp_path / "config" / "pipelines"
    config.mkdir(parents=True)
    (config / "shop.yaml").write_text(SALES)
    heavy = ("great_expectations", "pandas", "pyspark", "pyarrow", "numpy", "airflow")
    program = (
        "import sys\n"
        "from sluice.cli.main import main\n"
        "main(['validate'], standalone_mode=False)\n"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    command = [sys.executable, "-c", program]
    for _ in range(2):
        done = subprocess.run(command, check=True, cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["1 pipeline (shop), 1 table: no mistakes", "[]"]


def test_the_gate_does_not_import_great_expectations() -> None:
    program = (
        "import sys\n"
        "import sluice.gate.gate, sluice.report.quality_pages, sluice.gate.history\n"
        "import sluice.engine.judging, sluice.gate.review\n"
        "sys.exit('great_expectations' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))


def test_another_tables_column_has_the_same_name_unless_another_is_given() -> None:
    rule = expect("column_sum_to_equal_other_table", column="n", other_table_name="t", over="table")
    assert other_column(rule) == "n"
