"""How lookups are run: what is shuffled, what is broadcast, and which files a refresh touches."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable
from tests.kinds.lookup.plans import DECLARED, FACTS, filled
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, away, counted, folded

from sluice.declare.settings import SparkSettings
from sluice.delta.log import Log
from sluice.delta.places.lake_layout import layout
from sluice.delta.reading.local import hand_as_stored, hand_over
from sluice.delta.writing.filing import Slice, slices_of
from sluice.engine import rows
from sluice.engine.batch_plan import Context
from sluice.engine.plan import nodes_of, plan_rebuild
from sluice.engine.upkeep import Kept
from sluice.kinds.lookup import batch as lookup_batch
from sluice.kinds.lookup import operator as lookup
from sluice.kinds.lookup.batch import memory_bytes
from sluice.limits import Limits
from sluice.operate import maintain as upkeep
from sluice.operate.explain import explain
from sluice.operate.verify import faults

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    return filled(new_lake(DECLARED))


def query(lake: Lake) -> "DataFrame":
    (node,) = nodes_of(lake.table("invoices"), lake.project.graph)
    plan = plan_rebuild(node, layout(lake.project), lake.project.graph)
    return node.batch(Context.of(lake.project), lake.session, plan, 1).query()


def exchanges(rows: "DataFrame") -> list[str]:
    """The shuffles of the physical plan."""
    plan: Any = rows._jdf.queryExecution().executedPlan()  # type: ignore[operator]
    lines = (line.strip(" :+-*()0123456789") for line in plan.toString().splitlines())
    return [line for line in lines if line.startswith("Exchange")]


@pytest.mark.usefixtures("real_spark")
def test_no_fact_is_shuffled_for_a_dimension(lake: Lake) -> None:
    assert exchanges(query(lake)) == []


@pytest.mark.usefixtures("real_spark")
def test_a_dimension_beyond_the_threshold_is_shuffled_and_the_plan_says_so(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = query(lake).toArrow().to_pylist()
    lake.session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    monkeypatch.setattr("sluice.kinds.lookup.batch.BROADCAST_SHARE", 0.0)
    try:
        large = query(lake)
        assert len(exchanges(large)) == 4, "both sides of both joins"
        assert counted(large.toArrow().to_pylist()) == counted(small)
    finally:
        lake.session.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    for what in ("build", "nothing"):
        (step,) = explain(lake.project, lake.table("invoices"))
        assert (step.next, step.joins["shop.products"].partition(":")[0]) == (what, "shuffle")
        assert "shop.products is joined by shuffle" in step.reason
        lake.advance()


def test_the_plan_mentions_no_dimension_that_is_broadcast(lake: Lake) -> None:
    (step,) = explain(lake.project, lake.table("invoices"))
    assert step.joins["shop.products"] == "broadcast"
    assert "is joined by" not in step.reason


def test_the_threshold_follows_the_memory_that_spark_has() -> None:
    small, large = (SparkSettings(conf={"spark.driver.memory": size}) for size in ("512m", "8g"))
    assert memory_bytes(large) == 16 * memory_bytes(small)
    cluster = large.model_copy(update={"master": "yarn"})
    assert memory_bytes(cluster) == 2**30, "its executors have what Spark gives them"


@pytest.fixture
def many(lake: Lake) -> None:
    """As where the tables are large."""
    lake.limit(read_here_bytes=-1)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("largest", [Limits().searched_bytes, -1], ids=["here", "by spark"])
@pytest.mark.parametrize("committer", ["auto", "spark"])
def test_a_refresh_rewrites_the_files_of_the_facts_concerned_only(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, committer: str, largest: int
) -> None:
    lake.limit(searched_bytes=largest)
    monkeypatch.setattr(lookup, "BUCKETS", {2: 2})
    settings = lake.project.spark.model_copy(update={"commit": committer})
    lake.project = lake.project.model_copy(update={"spark": settings})
    lake.advance()
    files = replaced(lake)
    lake.put("products", {"product": 3, "price": Decimal(99)})
    (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (0, 10, 0)
    assert replaced(lake) - files <= 2, "of four: those of the product, whoever bought it"
    assert wrong(lake) == {}


@pytest.mark.usefixtures("real_spark")
def test_what_a_refresh_may_change_is_not_known_from_what_it_reads(lake: Lake) -> None:
    """A changed row of a dimension concerns any number of facts: too many to be held here."""
    settings = lake.project.spark.model_copy(update={"small_changelog": 50})
    lake.project = lake.project.model_copy(update={"spark": settings})
    lake.advance()
    lake.put("products", *({"product": i, "price": Decimal(-1)} for i in range(10)))
    (report,) = lake.advance()
    assert report.updated == 100
    at = lake.head("invoices")
    (info,) = (a["commitInfo"] for a in Log(at.uri).actions(at.version) if "commitInfo" in a)
    assert "Apache-Spark" in info["engineInfo"]


@pytest.mark.usefixtures("many")
def test_few_facts_meet_only_the_rows_that_they_match(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: dict[str, int] = {}

    def noting(session: Any, uri: str, version: int, rows: Any) -> Any:
        handed[uri.rpartition("/")[2]] = rows.num_rows
        return hand_as_stored(session, uri, version, rows)

    def noting_facts(session: Any, rows: Any, types: Any) -> Any:
        handed["sales"] = rows.num_rows
        return hand_over(session, rows, types)

    lake.advance()
    monkeypatch.setattr(lookup_batch, "hand_as_stored", noting)
    monkeypatch.setattr(rows, "hand_over", noting_facts)
    lake.put("sales", {"id": 1000, "product": 7, "buyer": -3}, {"id": 1001, "product": None})
    (report,) = lake.advance()
    assert (report.inserted, handed) == (1, {"sales": 2, "products": 1, "buyers": 1})
    lake.put("products", {"product": 7, "price": Decimal(1)})
    assert lake.advance()[0].updated == 11
    assert handed == {"sales": 11, "products": 1, "buyers": 5, "invoices": 11}
    assert wrong(lake) == {}


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("most", "is_found"), [(1, True), (0, False)])
def test_this_process_finds_ten_times_as_many_rows_as_it_would_hand_to_spark(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, most: int, is_found: bool
) -> None:
    found = []

    def noting(session: Any, uri: str, version: int, rows: Any) -> Any:
        found.append(uri.rpartition("/")[2])
        return hand_as_stored(session, uri, version, rows)

    lake.advance()
    lake.limit(handed_rows=most)
    monkeypatch.setattr(lookup_batch, "hand_as_stored", noting)
    lake.put("products", {"product": 7, "price": Decimal(1)})
    assert lake.advance()[0].updated == 10
    assert ("invoices" in found) is is_found
    assert wrong(lake) == {}


@pytest.mark.usefixtures("many")
def test_the_facts_concerned_may_lie_in_files_far_apart(lake: Lake) -> None:
    for nth in range(1000, 7000, 1000):
        near = [{"id": nth, "product": 1}, {"id": nth + 1, "product": 38}]
        lake.put("sales", *near, *([{"id": 6002, "product": 5}] if nth == 6000 else []))
    lake.advance()
    lake.put("products", {"product": 5, "price": Decimal(55)})
    assert lake.advance()[0].updated == 11
    assert wrong(lake) == {}


@pytest.mark.parametrize("on", ["buyer", "abs(buyer)"], ids=["here", "by spark"])
def test_a_correction_opens_no_file_that_has_nothing_of_it(new_lake: NewLake, on: str) -> None:
    lake = filled(new_lake(DECLARED.replace("abs(buyer)", on)))
    lake.limit(read_here_bytes=-1)
    lake.put("sales", {"id": 5000, "product": 500, "buyer": 1})
    lake.put("products", {"product": 500, "price": Decimal(500)})
    lake.advance()
    (bucket,) = {r["_sluice_bucket"] for r in lake.stored("invoices") if r["price"] == 500}
    lake.put("products", {"product": 500, "price": Decimal(2)})
    others = [s for s in slices_of(DeltaTable(lake.uri("invoices"))) if s.number != bucket]
    older = [a["add"]["path"] for a in Log(lake.uri("sales")).actions(1) if "add" in a]
    hidden = {"sales": older, "invoices": [path for s in others for path in s.paths]}
    assert [len(paths) > 0 for paths in hidden.values()] == [True, True]
    with away(Path(lake.uri(name)) / path for name, paths in hidden.items() for path in paths):
        (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (0, 1, 0)
    assert wrong(lake) == {}


@pytest.mark.usefixtures("many")
def test_where_most_of_a_dimension_changes_all_facts_are_joined_again(lake: Lake) -> None:
    lake.advance()
    lake.put("products", *({"product": i, "price": Decimal(i + 1)} for i in range(20)))
    lake.put("sales", {"id": 0, "product": 1, "buyer": 1}, gone=[{"id": 399}])
    lake.put("sales", {"id": 9000, "product": 1, "buyer": 1})
    (report,) = lake.advance()
    assert (report.inserted, report.updated, report.deleted) == (2, 199, 1)
    assert wrong(lake) == {}


FOLLOWING = """
  regions:
    kind: cogroup
    key: [region]
    streams: {all: {from: invoices, aggregates: {total: sum(price), n: count(*)}}}
  best: {kind: topk, from: invoices, partition_by: [region], order_by: [price desc], limit: 2}
"""


@pytest.mark.usefixtures("real_spark")
def test_where_no_row_stays_as_it_is_all_are_replaced_and_views_over_them_follow(
    new_lake: NewLake,
) -> None:
    lake = filled(new_lake(DECLARED + FOLLOWING)).limit(read_here_bytes=-1)
    settings = lake.project.spark.model_copy(update={"small_changelog": 50})
    lake.project = lake.project.model_copy(update={"spark": settings})
    lake.advance()
    told = []
    for prices in (range(100, 139), range(100, 138)):
        lake.put("products", *({"product": i, "price": Decimal(p)} for i, p in enumerate(prices)))
        lake.put("buyers", {"buyer": 0, "region": f"r{len(told)}"})
        (report,) = lake.advance("invoices")
        told.append((report.inserted, report.updated, report.deleted, operation(lake)))
        lake.advance()
        assert wrong(lake) == {}
    bought = len([f for f in FACTS if f["buyer"] == 0 and f["product"] < 39])
    assert told == [(0, 390, 0, "WRITE"), (0, bought, 0, "MERGE")]
    assert folded(lake.feed("invoices")) == counted(lake.stored("invoices"))
    assert not any(faults(lake.project, lake.table("invoices")).values())


def operation(lake: Lake) -> str:
    """What the newest commit of the view says that it did."""
    at = lake.head("invoices")
    (info,) = (a["commitInfo"] for a in Log(at.uri).actions(at.version) if "commitInfo" in a)
    return str(info["operation"])


@pytest.mark.parametrize("is_small", [True, False])
def test_buckets_that_many_batches_came_to_are_filed_again_each_by_itself(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_small: bool
) -> None:
    monkeypatch.setattr(Kept, "loose_files", 1)
    monkeypatch.setattr(Slice, "unordered_rows", 5_000 if is_small else 0)
    monkeypatch.setattr(lookup, "BUCKETS", {2: 2})
    for nth in range(2):
        lake.advance()
        lake.put("sales", *({**fact, "id": fact["id"] + 1000 * (nth + 1)} for fact in FACTS))
    (done, *_) = upkeep.maintain(lake.spark, lake.project, [lake.table("invoices")])
    assert (done.table, done.done) == ("shop.invoices", "compact")
    assert [len(s.paths) for s in slices_of(DeltaTable(lake.uri("invoices")))] == [1] * 4
    lake.advance()
    assert wrong(lake) == {}


def replaced(lake: Lake) -> int:
    """How many files the view's commits have removed."""
    at = lake.head("invoices")
    actions = (a for v in range(at.version + 1) for a in Log(at.uri).actions(v))
    return sum("remove" in action for action in actions)


def test_facts_without_a_match_are_found_when_their_row_comes(lake: Lake) -> None:
    lake.advance()
    assert len(lake.stored("invoices")) == 390
    lake.put("products", {"product": 39, "price": Decimal(1)})
    lake.put("buyers", {"buyer": 6, "region": "new"})
    (report,) = lake.advance()
    assert report.inserted == 10
    assert len(lake.stored("invoices")) == 400
    assert sum(r["region"] == "new" for r in lake.rows("invoices")) == sum(
        f["buyer"] == 6 for f in FACTS
    )
    lake.put("sales", gone=[{"id": 0}])
    lake.put("sales", {"id": 1, "product": 2, "buyer": 2})
    lake.put("products", gone=[{"product": 2}])
    lake.advance()
    assert wrong(lake) == {}


def test_a_run_pins_the_dimensions_that_drive_a_view_as_well(lake: Lake) -> None:
    lake.advance()
    pinned = {"shop.products": lake.head("products").version}
    lake.put("products", {"product": 1, "price": Decimal(77)})
    lake.put("sales", {"id": 1000, "product": 1, "buyer": 1})
    lake.advance(pins=pinned)
    prices = [r["price"] for r in lake.rows("invoices")]
    assert (len(prices), prices.count(Decimal(1)), Decimal(77) in prices) == (391, 11, False)
    lake.advance()
    lake.advance(pins=pinned)
    assert Decimal(1) not in {r["price"] for r in lake.rows("invoices")}
