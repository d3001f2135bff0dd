"""How tables' data are, in a few words, for `sluice status`; and the report of a whole lake."""

import datetime as dt
from pathlib import Path

import pytest
from tests.report import lake

from sluice.declare.project import Project
from sluice.delta.note_tables import append_rows
from sluice.delta.places.lake_layout import layout
from sluice.gate import counts, history
from sluice.gate.anomalies import warnings
from sluice.gate.counts import RowCounts
from sluice.gate.results import Verdict, row_outcome
from sluice.gate.suite import build_suite
from sluice.report.health import Health, health
from sluice.report.publish import publish

NOW = dt.datetime(2017, 3, 9, 12, tzinfo=dt.UTC)
RULE = "{type: expect_column_values_to_be_between, column: price, min_value: 0}"


def check(project: Project, unexpected: int, at: dt.datetime) -> None:
    suite = build_suite("shop.sales", project.graph.table("sales").spec.expect)  # type: ignore[union-attr]
    outcome = row_outcome(suite.rows[0], RowCounts(10, 10, unexpected, ()))
    verdict = Verdict("shop.sales", 10, 10, (outcome,))
    rows = history.rows(verdict, run="r", batch=1, checked_at=at, interval_start=at)
    append_rows(f"{layout(project).root}/{history.TABLE}", rows)


def test_the_newest_check_shows_the_health(tmp_path: Path) -> None:
    project = lake.declare(tmp_path, RULE)
    tables = list(project.graph.tables.values())
    assert str(health(project, tables)["shop.sales"]) == ""
    check(project, 0, NOW)
    check(project, 2, NOW + dt.timedelta(hours=1))
    counts.keep(
        layout(project),
        "shop.sales",
        counts.KeptCounts(counts.BatchCounts(3), 1, "r", NOW, unusual=("shop.sales: odd",)),
        [],
    )
    found = health(project, tables)
    assert str(found["shop.sales"]) == "0 of 1 met, unusual"
    assert found["shop.sales"].unusual == ("odd",)
    assert found["shop.sales"].unmet[0].startswith("warn: price is at least 0: 2 of 10 rows")
    assert found["shop.totals"] == Health()
    check(project, 0, NOW + dt.timedelta(hours=2))
    mended = health(project, tables)["shop.sales"]
    assert str(mended) == "1 of 1 met, unusual"
    assert mended.met[0].startswith("warn: price is at least 0: ")


@pytest.mark.parametrize("content", [b"{gar", b'{"a":1}', b"\xff\xfe", b"null"])
def test_damaged_counts_are_named_until_the_next_batch_replaces_them(
    tmp_path: Path, content: bytes
) -> None:
    project = lake.declare(tmp_path, RULE)
    file = Path(layout(project).counts_uri, "shop.sales.json")
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    found = health(project, project.graph.tables.values())
    (said,) = found["shop.sales"].unusual
    assert said.startswith("__quality/facts/shop.sales.json can't be read: delete it")
    assert found["shop.totals"] == Health()
    verdict = Verdict("shop.sales", 3, 3, (), counts.BatchCounts(3))
    warnings(layout(project), verdict, run="r", batch=1, checked_at=NOW)
    assert health(project, project.graph.tables.values())["shop.sales"] == Health()


def test_the_report_of_a_lake_looks_at_whole_tables_and_has_data_docs_if_wanted(
    tmp_path: Path,
) -> None:
    whole = "{type: expect_table_row_count_to_equal, value: 5, over: table}"
    project = lake.declare(tmp_path, f"{RULE}, {whole}")
    lake.put(project, "sales", lake.sales())
    check(project, 0, NOW)
    index = publish(project)
    assert project.lake not in index.read_text("utf-8"), "a server shows no path of its machine"
    page = (index.parent / "shop.sales.html").read_text()
    assert "row count is 5, over the whole table" in page
    assert "Data Docs" not in page
    wanted = project.quality.model_copy(update={"data_docs": True})
    publish(project.model_copy(update={"quality": wanted}))
    assert 'href="data_docs.shop.sales.html"' in (index.parent / "shop.sales.html").read_text()
    assert (index.parent / "data_docs.shop.sales.html").exists()
