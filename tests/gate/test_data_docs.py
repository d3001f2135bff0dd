"""Data Docs: Great Expectations renders what the compiled gate kept."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

from tests.gate.rows import expect

from sluice.gate import engine, history
from sluice.gate.counts import RowCounts
from sluice.gate.results import ExpectationOutcome, Verdict, measure_outcome, row_outcome
from sluice.gate.suite import build_suite

NOW = dt.datetime(2017, 3, 9, tzinfo=dt.UTC)


def kept(outcomes: Sequence[ExpectationOutcome], at: dt.datetime) -> list[dict[str, Any]]:
    verdict = Verdict("shop.sales", 10, 10, tuple(outcomes))
    return history.rows(verdict, run="run-1", batch=1, checked_at=at).to_pylist()


def test_the_newest_results_are_rendered_by_great_expectations() -> None:
    rules = (
        expect("column_values_to_be_between", column="price", min_value=0),
        expect("table_row_count_to_be_between", min_value=5),
    )
    suite = build_suite("shop.sales", rules)
    failed = row_outcome(suite.rows[0], RowCounts(10, 10, 2, ('{"price":-1}', '{"price":-7}')))
    counted = measure_outcome(suite.measures[0], 10)
    old = kept([failed], NOW - dt.timedelta(days=1))
    made = engine.pages({"shop.sales": [*old, *kept([failed, counted], NOW)], "shop.empty": []})
    (name, html) = next(iter(made.items()))
    assert (len(made), name) == (1, "data_docs.shop.sales.html")
    for part in ("shop.sales", "price", "-7", "run-1"):
        assert part in html


def test_nothing_kept_makes_no_page() -> None:
    assert engine.pages({"shop.sales": []}) == {}
