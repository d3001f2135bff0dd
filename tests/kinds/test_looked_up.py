"""The contract of views holds while rows are looked up in indexes of large tables."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.cogroup.cases import CASES as COGROUPS
from tests.kinds.join.cases import CASES as JOINS
from tests.kinds.lookup.cases import CASES as LOOKUPS
from tests.kinds.over.cases import CASES as OVERS
from tests.kinds.topk.cases import CASES as RANKINGS
from tests.kinds.ways import MARKED, NARROWED
from tests.sources.cases import CASES as SOURCES
from tests.support.contract import Case, hold
from tests.support.indexing import index_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = [RANKINGS[0], COGROUPS[4], LOOKUPS[4], SOURCES[1], JOINS[3], OVERS[5]]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_that_are_looked_up_give_the_same_views(
    case: Case, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.kinds.over.operator.LEAST_ROWS", 0)
    looked_up = index_all(monkeypatch, tmp_path / "cache")
    hold(replace(case, ways=({**MARKED, **NARROWED},)), spark, steps=4)
    assert looked_up()
