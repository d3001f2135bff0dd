"""A kind of view that nothing in the product knows, from its declaration to the page."""

import json
from datetime import UTC, datetime

import pytest
from click.testing import CliRunner
from tests.kinds.throwaway.kind import AboveKind
from tests.support.lake import Lake, NewLake

from sluice.airflow.blueprint import task_graph
from sluice.cli.main import main
from sluice.declare import registry
from sluice.declare.registry import register
from sluice.declare.schema import json_schema
from sluice.errors import ConfigError
from sluice.operate.explain import explain
from sluice.pages import html
from sluice.read.lake import open_lake
from sluice.read.status import status
from sluice.report import Visit
from sluice.report.pages import table

DECLARED = """
sources:
  sales: {path: "sales/{interval_start:%Y-%m-%d}", format: json, schema: "id INT, v INT", key: [id]}
views:
  high: {kind: above, from: sales, column: v, least: 5}
"""
VISIT = Visit(
    *("/sluice", "", ""),
    reports=(),
    now=datetime.now(UTC),
    sees=lambda _: True,
    has_run=lambda *_: True,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_added", {})
    monkeypatch.setattr(registry, "_added_commands", {})
    register(AboveKind, highest="tests.kinds.throwaway.kind:show_highest")


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    found = new_lake(DECLARED)
    found.put("sales", {"id": 1, "v": 4}, {"id": 2, "v": 6}, {"id": 3, "v": 7})
    return found


def test_it_is_validated_like_any_other(new_lake: NewLake) -> None:
    with pytest.raises(ConfigError, match=r"views\.high\.column: unknown column 'w'"):
        new_lake(DECLARED.replace("column: v", "column: w"))


def test_the_tables_that_it_names_are_looked_up_in_spite_of_other_mistakes(
    new_lake: NewLake,
) -> None:
    declared = DECLARED.replace("from: sales", "from: sale").replace("least: 5", "least: much")
    with pytest.raises(ConfigError) as refused:
        new_lake(declared)
    assert "unknown table 'sale'; did you mean 'sales'" in str(refused.value)
    assert "views.high.least: a whole number is expected" in str(refused.value)


def test_an_unknown_kind_lists_it(new_lake: NewLake) -> None:
    with pytest.raises(ConfigError, match="unknown kind 'abov'; did you mean 'above'"):
        new_lake(DECLARED.replace("above", "abov"))


def test_editors_know_it() -> None:
    views = json_schema()["properties"]["views"]["patternProperties"]
    (views,) = (named["anyOf"] for named in views.values())
    assert views[-1] == {"$ref": "#/$defs/Above"}
    assert json_schema()["$defs"]["Above"]["required"] == ["from", "column", "kind"]


def test_its_batches_are_planned_run_and_proved(lake: Lake) -> None:
    (step,) = explain(lake.project, lake.table("high"))
    assert (step.table, step.next) == ("shop.high", "build")
    lake.advance()
    assert lake.rows("high") == [{"id": 2, "v": 6}, {"id": 3, "v": 7}]
    lake.put("sales", {"id": 1, "v": 5}, {"id": 2, "v": 3}, {"id": 3, "v": 7})
    (step,) = explain(lake.project, lake.table("high"))
    assert (step.next, step.pending) == ("row-wise", {"shop.sales": (1, 2)})
    (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (1, 0, 1)
    (verdict,) = lake.verdicts()
    assert (verdict.table, verdict.is_equal, verdict.faults) == ("shop.high", True, ())


def test_its_status_and_its_task_are_shown(lake: Lake) -> None:
    (high,) = status(lake.project, [lake.table("high")])
    assert (high.kind, high.version) == ("above", None)
    lake.advance()
    (high,) = status(lake.project, [lake.table("high")])
    assert (high.version, high.rows, high.lag) == (lake.head("high").version, 2, ())
    graph = task_graph(lake.project, lake.project.pipelines["shop"])
    assert graph.tables == ("shop.sales", "shop.high")


def test_it_is_read_in_its_own_way(lake: Lake) -> None:
    lake.advance()
    config = str(lake.folder / "config")
    assert open_lake(config).highest("high") == {"id": 3, "v": 7}
    assert open_lake(config).table("high").get(2) == {"id": 2, "v": 6}
    shown = CliRunner().invoke(main, ["highest", "high", "--config", config])
    assert json.loads(shown.stdout) == {"id": 3, "v": 7}
    assert "Show the highest row." in CliRunner().invoke(main, ["--help"]).stdout


def test_its_changes_are_shown_as_its_own_maps(lake: Lake) -> None:
    lake.advance()
    lake.put("sales", {"id": 1, "v": 5}, {"id": 2, "v": 3}, {"id": 3, "v": 7})
    lake.advance()
    asked = ["changes", "high", "--as", "map", "--config", str(lake.folder / "config"), "--json"]
    shown = CliRunner().invoke(main, asked).stdout.splitlines()
    assert [json.loads(line)["ids"] for line in shown] == [[2, 3], [1, 3]]


def test_its_page_shows_its_own_block(lake: Lake) -> None:
    lake.advance()
    page = html(table(VISIT, lake.project, lake.table("high")))
    assert "<h2>The highest</h2>" in page
    assert '<a href="/sluice/tables/shop.high/why?key=3">3</a>' in page
