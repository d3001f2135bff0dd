"""A changed definition: the table is computed from its past in another place, then swapped."""

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, Row, counted, folded
from tests.support.landed import ALLOWED, Landed, NewLanded, day, folder_of

from sluice.engine.advance import Run
from sluice.errors import ColumnsChanged, ConfigError, HistoryLost, LostRace, UsageError
from sluice.operate.rebuild import rebuild
from sluice.sources import rebuild as again

HEAD = 'pipeline: shop\nschedule: "@daily"\nstart_date: 2024-01-01\n'
TOTALS = """
views:
  totals: {kind: cogroup, key: [id], streams: {e: {from: events, aggregates: {total: sum(v)}}}}
  best: {kind: topk, from: totals, order_by: [total desc], limit: 1}
"""


def events(schema: str = "id INT, v INT, s INT", extra: str = "key: [id]") -> str:
    more = f", {extra}" if extra else ""
    path = "landing/{interval_start:%Y-%m-%d}/"
    return f"sources:\n  events: {{path: '{path}', format: json, schema: '{schema}'{more}}}\n"


def things(schema: str = "id INT, v INT", extra: str = "") -> str:
    more = f", {extra}" if extra else ""
    return (
        f"dimensions:\n  things: {{path: landing/things/, format: json, schema: '{schema}', "
        f"key: [id]{more}}}\n"
    )


FIRST = [{"id": 1, "v": 1, "s": 2, "w": 7}, {"id": 2, "v": 5, "s": 1}]
SECOND = [{"id": 1, "v": 3, "s": 1, "w": 8}]


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    """Two days of a keyed source, and a view over a view over it."""
    return delivered(new_landed(events() + TOTALS))


def delivered(lake: Landed) -> Landed:
    lake.land(folder_of(0), a_json=FIRST)
    lake.land(folder_of(1), a_json=SECOND)
    for nth in (0, 1):
        lake.deliver(nth)
    lake.advance("totals", "best")
    return lake


def follow(lake: Lake) -> None:
    """The views catch up, and are what their queries give."""
    lake.advance()
    assert wrong(lake) == {}
    for name in lake.stored_names("totals", "best"):
        assert folded(lake.feed(name)) == counted(lake.stored(name))


def test_another_sequence_needs_the_deliveries_alone(lake: Landed) -> None:
    for nth in (0, 1):
        lake.land(folder_of(nth))  # the files are gone
    lake.declare(HEAD + events(extra="key: [id], sequence: [s]") + TOTALS)
    with pytest.raises(ConfigError, match="by a definition that differs") as refused:
        lake.deliver(0)
    assert "sluice rebuild shop.events" in refused.value.hint
    before = lake.versions("events", "events__deliveries")
    assert list(lake.rebuild()) == ["events"]
    assert lake.versions("events__deliveries")["events__deliveries"] == before["events__deliveries"]
    assert [(c["_change_type"], c["v"]) for c in lake.changes("events", before["events"])] == [
        ("update_preimage", 3),
        ("update_postimage", 1),
    ]
    follow(lake)
    assert lake.rows("best") == [{"id": 2, "total": 5, "rank": 1}]


def test_only_a_source_is_read_again_as_its_files_landed(lake: Landed) -> None:
    with pytest.raises(UsageError, match="totals is not a source"):
        lake.rebuild("totals", as_landed=True)
    lake.land(folder_of(1), a_json=[{**SECOND[0], "v": 6}])
    assert lake.rebuild()["events"].updated == 0, "what was delivered is kept"
    assert lake.rebuild(as_landed=True)["events"].updated == 1
    follow(lake)
    assert lake.rows("best")[0]["total"] == 6


def test_a_rebuild_before_its_inputs_says_what_to_run_first(new_landed: NewLanded) -> None:
    lake = new_landed(events() + TOTALS)
    with pytest.raises(UsageError, match="best__state waits for") as refused:
        lake.rebuild("best")
    assert "sluice run" in refused.value.hint


def test_a_new_column_is_read_from_the_files_that_were_delivered(lake: Landed) -> None:
    lake.declare(HEAD + events("id INT, v INT, s INT, w INT") + TOTALS)
    before, views = lake.versions("events"), lake.versions("totals", "best")
    reports = lake.rebuild()
    assert list(reports) == ["events__deliveries", "events"]
    assert lake.rows("events") == [
        {"id": 1, "v": 3, "s": 1, "w": 8},
        {"id": 2, "v": 5, "s": 1, "w": None},
    ]
    changed = lake.changes("events", before["events"])
    assert {c["id"] for c in changed} == {1}, "row 2 is as it was"
    follow(lake)
    assert {n: lake.head(n).data_version for n in views} == views, "they don't use the column"
    assert lake.deliver(0)[0].outcome == "unchanged", "its deliveries are noted as read anew"
    lake.land(folder_of(1), a_json=[{**SECOND[0], "v": 9}])
    lake.deliver(1)
    follow(lake)
    assert lake.rows("best")[0]["total"] == 9


def test_an_aggregate_of_a_column_that_the_source_gets_with_it_is_computed(lake: Landed) -> None:
    weighed = TOTALS.replace("total: sum(v)", "total: sum(v), weight: sum(w)")
    lake.declare(HEAD + events("id INT, v INT, s INT, w INT") + weighed)
    lake.rebuild()
    follow(lake)
    assert {row["id"]: row["weight"] for row in lake.rows("totals")} == {1: 8, 2: None}


def test_a_column_of_another_type_replaces_the_table_and_the_views_over_it(lake: Landed) -> None:
    lake.declare(HEAD + events("id INT, v DECIMAL(9,2), s INT") + TOTALS)
    reports = lake.rebuild()
    views = ["totals__state", "totals", "best__state", "best"]
    assert [n for n in reports if not n.startswith("events")] == views
    assert counted(lake.rows("totals")) == counted(
        [{"id": 1, "total": Decimal(3)}, {"id": 2, "total": Decimal(5)}]
    )
    lake.land(folder_of(2), a_json=[{"id": 2, "v": 0.25, "s": 9}])
    lake.deliver(2)
    lake.advance()
    assert wrong(lake) == {}


def test_another_key_is_another_table_of_the_same_rows(lake: Landed) -> None:
    lake.declare(HEAD + events(extra="key: [s]") + TOTALS.replace("key: [id]", "key: [s]"))
    lake.rebuild()
    assert counted(lake.rows("events")) == counted(
        [{"id": 1, "v": 1, "s": 2}, {"id": 1, "v": 3, "s": 1}]
    )
    assert folded(lake.feed("events")) == counted(lake.stored("events"))
    follow(lake)


def test_a_key_may_come_and_go(lake: Landed) -> None:
    lake.declare(HEAD + events(extra="") + TOTALS)
    lake.rebuild()
    assert len(lake.rows("events")) == 3
    assert not DeltaTable.is_deltatable(lake.uri("events__deliveries"))
    assert wrong(lake, "totals", "best") == {}
    lake.declare(HEAD + events() + TOTALS)
    lake.rebuild()
    assert len(lake.rows("events")) == 2
    assert wrong(lake) == {}


def test_deliveries_during_rereading_are_kept(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = again._check_rows

    def beside(*given: Any, **named: Any) -> None:
        lake.land(folder_of(2), a_json=[{"id": 9, "v": 2, "s": 1}])
        lake.deliver(2)
        check(*given, **named)

    monkeypatch.setattr(again, "_check_rows", beside)
    with pytest.raises(LostRace, match="while its files were read again"):
        lake.rebuild(as_landed=True)
    monkeypatch.undo()
    for _ in range(2):
        assert 9 in {row["id"] for row in lake.rows("events")}
        follow(lake)
        lake.rebuild(as_landed=True)


def state(lake: Lake) -> Any:
    """All tables and files of a lake."""
    root = Path(lake.uri("x")).parents[1]
    return Counter(str(f.relative_to(root)) for f in root.rglob("*.parquet") if f.is_file())


@pytest.mark.parametrize("change", ["gone", "corrected"])
def test_unreadable_pasts_are_refused_without_loss(lake: Landed, change: str) -> None:
    lake.land(folder_of(0), **({"a_json": SECOND} if change == "corrected" else {}))
    lake.declare(HEAD + events("id INT, v INT, s INT, w INT") + TOTALS)
    before = state(lake)
    with pytest.raises(
        HistoryLost, match=r"the files of \[2024-01-01, .* are not those"
    ) as refused:
        lake.rebuild()
    assert "restore the files" in refused.value.hint
    assert state(lake) == before
    lake.declare(HEAD + events() + TOTALS)
    lake.deliver(0, run=ALLOWED)
    lake.declare(HEAD + events("id INT, v INT, s INT, w INT") + TOTALS)
    lake.rebuild()
    follow(lake)


def test_an_expectation_that_stops_the_rereading_leaves_everything(lake: Landed) -> None:
    text = events("id INT, v INT, s INT, w INT").replace("key: [id]", f"key: [id], {STOP}")
    lake.declare(HEAD + text + TOTALS)
    before = state(lake)
    with pytest.raises(Exception, match="w"):
        lake.rebuild()
    assert state(lake) == before


STOP = "expect: [{type: expect_column_values_to_not_be_null, column: w, on_failure: stop}]"


def test_what_the_new_definition_rejects_is_in_quarantine(lake: Landed) -> None:
    lake.land(folder_of(0), a_json=FIRST, b_json=[{"id": 3, "v": 1, "s": 1, "w": "x"}])
    lake.deliver(0)
    lake.declare(HEAD + events("id INT, v INT, s INT, w INT") + TOTALS)
    lake.rebuild()
    assert [q["reason"] for q in lake.quarantine()] == [
        "column w: x is not a valid INT"
    ] or lake.quarantine()
    assert 3 not in {r["id"] for r in lake.rows("events")}
    assert lake.noted()[day(0)] == (3, 2, 1)
    follow(lake)


def test_a_dimension_with_a_new_column_changes_where_it_has_a_value(new_landed: NewLanded) -> None:
    lake = new_landed(things())
    lake.land("things", a_json=[{"id": 1, "v": 1, "w": "x"}, {"id": 2, "v": 2}])
    lake.load()
    lake.declare(HEAD + things("id INT, v INT, w STRING"))
    with pytest.raises(ConfigError):
        lake.load()
    before = lake.versions("things")["things"]
    lake.rebuild("things")
    assert {c["id"] for c in lake.changes("things", before)} == {1}
    assert counted(lake.rows("things")) == counted(
        [{"id": 1, "v": 1, "w": "x"}, {"id": 2, "v": 2, "w": None}]
    )
    assert lake.load().outcome == "unchanged"


def test_a_history_is_taken_over_into_the_new_columns(new_landed: NewLanded) -> None:
    lake = new_landed(things(extra="history: true"))
    for v in (1, 2):
        lake.land("things", a_json=[{"id": 1, "v": v, "w": 5}])
        lake.load()
    versions = {r["v"]: (r["valid_from"], r["valid_to"]) for r in lake.rows("things")}
    lake.declare(HEAD + things("id INT, v INT, w INT", "history: true"))
    lake.rebuild("things")
    assert {r["v"]: (r["valid_from"], r["valid_to"]) for r in lake.rows("things")} == versions
    assert {r["v"]: r["w"] for r in lake.rows("things")} == {1: None, 2: 5}


def test_closed_versions_are_not_thrown_away(new_landed: NewLanded) -> None:
    lake = new_landed(things(extra="history: true"))
    lake.land("things", a_json=[{"id": 1, "v": 1}])
    lake.load()
    lake.land("things", a_json=[{"id": 1, "v": 2}])
    lake.load()
    lake.declare(HEAD + things())
    before = state(lake)
    with pytest.raises(HistoryLost, match="without a history, 1 earlier versions have no place"):
        lake.rebuild("things")
    assert [n for n in (state(lake) - before) if "__" not in n] == []
    assert len(lake.stored("things")) == 2


def test_a_rebuild_that_ended_before_the_views_over_its_table_is_gone_on_with(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = """
views:
  totals: {{kind: cogroup, key: [id], streams: {{e: {{from: events, aggregates: {{{}}}}}}}}}
  sums: {{kind: cogroup, key: [id], streams: {{t: {{from: totals, aggregates: {{n: count(*)}}}}}}}}
"""
    lake = delivered(new_landed(events() + views.format("total: sum(v), most: max(v)")))
    lake.advance()
    lake.declare(HEAD + events() + views.format("total: sum(v)"))
    with monkeypatch.context() as killed:
        killed.setattr("sluice.operate.rebuild._above", lambda *_: [])
        lake.rebuild("totals")
    with pytest.raises(ColumnsChanged):
        lake.advance("sums")
    assert "sums" in lake.rebuild("totals")
    assert {report.outcome for report in lake.advance()} == {"unchanged"}
    assert wrong(lake) == {}


def test_a_dimension_without_files_is_not_rebuilt_from_nothing(new_landed: NewLanded) -> None:
    lake = new_landed(things())
    lake.land("things", a_json=[{"id": 1, "v": 1}])
    lake.load()
    lake.land("things")
    lake.declare(HEAD + things("id INT"))
    with pytest.raises(UsageError, match="there are no files"):
        lake.rebuild("things")
    assert lake.stored("things") == [{"id": 1, "v": 1}]


PRICED = """
sources:
  sales: {path: "s/{interval_start:%Y}/", key: [id], schema: "id INT, product STRING, n INT"}
dimensions:
  products: {path: p/, schema: "product STRING, price INT", key: [product]}
views:
  invoices:
    kind: lookup
    from: sales
    join: [{dimension: products, on: product = products.product}]
    select: {total: n * products.price}
"""


@pytest.fixture
def priced(new_lake: NewLake) -> Lake:
    """A fact that was joined at a price of 6, and then changed along with the price."""
    lake = new_lake(PRICED)
    lake.put("products", {"product": "p", "price": 6})
    lake.put("sales", {"id": 1, "product": "p", "n": 1}, {"id": 2, "product": "q", "n": 1})
    lake.advance()
    lake.put("products", {"product": "p", "price": 2})
    lake.put("sales", {"id": 1, "product": "p", "n": 3})
    return lake


def rebuilt(lake: Lake) -> list[Row]:
    rebuild(lake.spark, lake.project, lake.table("invoices"), Run("test"))
    return lake.rows("invoices")


def test_a_rebuilt_lookup_reflects_the_dimensions_of_its_rebuild(priced: Lake) -> None:
    version = priced.head("invoices").data_version
    assert rebuilt(priced) == [{"total": 6}]
    assert priced.head("invoices").data_version == version, "no row differs"


def test_batches_after_a_rebuild_keep_their_own_dimensions(priced: Lake) -> None:
    rebuilt(priced)
    priced.put("products", {"product": "p", "price": 7}, {"product": "q", "price": 1})
    priced.put("sales", {"id": 3, "product": "p", "n": 1})
    priced.advance()
    assert sorted(r["total"] for r in priced.rows("invoices")) == [6, 7]
