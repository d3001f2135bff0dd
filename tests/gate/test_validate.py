"""What `sluice validate` says of expectations: beside every other mistake, with file and line."""

from pathlib import Path

import pytest

from sluice.declare.project import load
from sluice.declare.table_spec import ROW_RULES
from sluice.errors import ConfigError
from sluice.gate.review import mistakes
from sluice.gate.row_rules import COMPILED

SHOP = """\
pipeline: shop
schedule: "@daily"
start_date: 2017-01-01
sources:
  sales:
    path: "s/{interval_start:%Y-%m-%d}/"
    schema: id INT, item STRING
    expect:
      - {type: expect_column_values_to_not_be_nul, column: id}
      - type: expect_column_values_to_match_regex
        column: item
        regex: "[A-Z"
      - {type: expect_column_values_to_be_unique, column: id, on_failure: quarantine}
      - {type: expect_table_row_count_to_equal, value: 3, over: table, on_failure: stop}
views:
  top: {kind: topk, from: sales, partition_by: [itm], order_by: [id], limit: 1}
  lost:
    {kind: topk, from: nowhere, order_by: [id], limit: 1, expect: [{type: expect_no}]}
"""


def told(folder: Path, text: str) -> list[str]:
    path = folder / "config" / "pipelines" / "shop.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load(folder / "config", review=mistakes)
    return [m.partition("shop.yaml:")[2] for m in caught.value.mistakes]


def test_every_mistake_is_reported_at_once_each_with_its_line(tmp_path: Path) -> None:
    without_stop = SHOP.replace("over: table, on_failure: stop", "over: table")
    starts = (
        "9: sources.sales.expect: unknown expectation 'expect_column_values_to_not_be_nul'; did",
        "10: sources.sales.expect: regex: '[A-Z' is not a regular expression: a character class",
        "13: sources.sales.expect: expect_column_values_to_be_unique is not a rule for single",
        "16: views.top.partition_by: unknown column 'itm'; did you mean 'item'?",
        "18: views.lost.expect: unknown expectation 'expect_no'",
        "18: views.lost.from: unknown table 'nowhere'",
    )
    for found, start in zip(told(tmp_path, without_stop), starts, strict=True):
        assert found.startswith(start)


def test_what_is_expected_of_the_whole_table_only_warns(tmp_path: Path) -> None:
    (*_, found) = [m for m in told(tmp_path, SHOP) if m.startswith("14:")]
    assert "an expectation over the whole table can't stop a batch" in found


def test_a_table_to_compare_with_must_be_there(tmp_path: Path) -> None:
    rule = (
        "{type: expect_table_row_count_to_equal_other_table, over: table, other_table_name: sale}"
    )
    text = SHOP.replace("limit: 1}", f"limit: 1, expect: [{rule}]}}", 1)
    (found,) = [m for m in told(tmp_path, text) if "sale'" in m]
    assert found.startswith("16: views.top.expect: unknown table 'sale'; did you mean 'sales'?")


def test_quarantine_takes_the_rules_that_are_compiled_for_rows() -> None:
    assert set(ROW_RULES) == set(COMPILED)
