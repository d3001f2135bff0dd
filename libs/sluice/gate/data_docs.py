"""Great Expectations' own pages (Data Docs) of the newest results, for those who know them.

They are optional (`quality.data_docs: true`): they load styles and scripts from the internet, and
importing Great Expectations takes seconds. They are made from kept results: nothing is validated
again.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sluice.gate.engine import load
from sluice.gate.outcomes.standing import newest
from sluice.gate.outcomes.table_comparison import SUM
from sluice.language.row import Row

PREFIX = "data_docs"


def pages(tables: Mapping[str, Sequence[Row]]) -> dict[str, str]:
    """Return file names and HTML: a page per table of newest results (rows of history.SCHEMA)."""
    checked = {name: newest(rows) for name, rows in tables.items() if rows}
    if not checked:
        return {}
    load()
    return {file_of(name): _page(name, rows) for name, rows in checked.items()}


def file_of(table: str) -> str:
    """Return the file of a table's page, which lies beside the report's."""
    return f"{PREFIX}.{table}.html"


def _page(name: str, rows: Sequence[Row]) -> str:
    from great_expectations.core import ExpectationSuiteValidationResult
    from great_expectations.render.renderer import ValidationResultsPageRenderer
    from great_expectations.render.view import DefaultJinjaPageView

    kept = [json.loads(row["result"]) for row in rows]
    results = [_result(r) for r in kept if r["expectation_config"]["type"] != SUM]  # ours alone
    met = sum(bool(r.success) for r in results)
    checked = rows[0]["checked_at"]
    whole = ExpectationSuiteValidationResult(
        success=met == len(results),
        results=results,
        suite_name=name,
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": met,
            "unsuccessful_expectations": len(results) - met,
            "success_percent": 100 * met / len(results) if results else None,
        },
        meta={
            "run_id": {"run_name": rows[0]["run"], "run_time": checked.isoformat()},
            "validation_time": checked.isoformat(),
            "batch_kwargs": {},
        },
    )
    rendered = ValidationResultsPageRenderer().render(whole)
    return str(DefaultJinjaPageView().render(rendered))


def _result(kept: dict[str, Any]) -> Any:
    from great_expectations.core import ExpectationValidationResult
    from great_expectations.expectations.expectation_configuration import ExpectationConfiguration

    config = ExpectationConfiguration(**kept.pop("expectation_config"))
    return ExpectationValidationResult(expectation_config=config, **kept)
