"""`sluice forget`: no byte of the subject is left, every view follows, no kill leaves it half."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.forgetting import ANNA, BOB, EVE, PEOPLE, forgotten, places, rows
from tests.cli.trips import Here, Project
from tests.support.games import seeds

from sluice.declare.project import load
from sluice.delta.places.overlay import lock
from sluice.operate.subjects import Sought, search
from sluice.operate.verify import faults

SHOP = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-04
sources:
  sales:
    path: "landing/sales/{interval_start:%Y-%m-%d}/"
    format: json
    schema: person STRING, shop INT, amount INT
    expect:
    - {type: expect_column_values_to_be_between, column: amount, min_value: 0,
       on_failure: quarantine}
  people:
    path: "landing/people/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, name STRING, town STRING
    key: [id]
  visits:
    path: "landing/visits/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, shop INT, at STRING
    key: [id, shop]
views:
  spent:
    kind: cogroup
    key: [person]
    streams:
      s: {from: sales, aggregates: {n: count(*), sum: sum(amount), most: max(amount)}}
  best: {kind: topk, from: spent, order_by: [sum desc, person], limit: 2}
  shops:
    kind: cogroup
    key: [shop]
    streams: {s: {from: sales, aggregates: {who: collect_set(person)}}}
  large:
    kind: select
    from: sales
    where: amount > 5
    select: {who: upper(person), person: person, amount: amount}
  known:
    kind: join
    left: sales
    right: {table: people, as: p}
    on: sales.person = p.name
    select: {person: sales.person, town: p.town, amount: sales.amount}
  towns:
    kind: sql
    sql: SELECT p.town, count(*) AS n, max(p.name) AS last FROM people p GROUP BY p.town
"""
EMPTY = '{"person":null,"shop":null,"amount":null}'
VIEWS = ("spent", "best", "shops", "large", "known", "towns")


def sale(person: str, shop: int, amount: int) -> dict[str, Any]:
    return {"person": person, "shop": shop, "amount": amount}


SALES = {
    1: [sale(ANNA, 1, 7), sale(BOB, 1, 3), sale(ANNA, 2, -1), sale(EVE, 2, -4)],
    2: [sale(ANNA, 1, 9), sale(BOB, 2, 8), sale(EVE, 2, 1)],
}


def land(project: Project, sales: dict[int, list[dict[str, Any]]], people: dict[int, str]) -> None:
    for day in (1, 2, 3):
        project.land("sales", day, sales.get(day, []))
        towns = ("Oslo", "Rome") if day < 3 else ("Rome", "Oslo")
        given = [
            {"id": i, "name": name, "town": towns[(i + day) % 2]} for i, name in people.items()
        ]
        project.land("people", day, given)
        seen = [{"id": i, "shop": shop, "at": f"day {day}"} for i in people for shop in (1, 2)]
        project.land("visits", day, seen)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of sales, three states of people, and all views of them."""
    project = Here(tmp_path_factory.mktemp("shop"))
    project.declare(SHOP)
    land(project, SALES, PEOPLE)
    project.complete("run", "trips")
    return project.folder


TABLES = ("sales", "people", "visits", *VIEWS)


def as_without(
    project: Here,
    folder: Path,
    sales: dict[int, Any],
    people: dict[int, str],
    tables: tuple[str, ...] = TABLES,
) -> None:
    """Assert that tables are as if the rows had never been delivered, and all of them sound."""
    other = Here(folder)
    other.declare(SHOP)
    land(other, sales, people)
    other.complete("run", "trips")
    assert rows(project, *tables) == rows(other, *tables)
    loaded = load(str(project.folder / "config"))
    found = (faults(loaded, table) for table in loaded.graph.tables.values())
    assert [bad for each in found for bad in each.values() if bad] == []


def without(name: str) -> dict[int, list[dict[str, Any]]]:
    return {day: [r for r in given if r["person"] != name] for day, given in SALES.items()}


def test_no_byte_of_a_subject_is_left_and_every_view_follows(project: Here, tmp_path: Path) -> None:
    assert len(list(places(project, ANNA))) > 10
    receipt = forgotten(project, "sales", "--where", f"person = '{ANNA}'", code=1)
    done = {(line["place"], line["what"]): line["count"] for line in receipt["done"]}
    assert done["trips.sales", "rows deleted"] == 2
    assert done["trips.sales__quarantine", "rows deleted"] == 1
    assert receipt["left"].keys() == {"trips.people", "trips.people__deliveries"}
    assert set(receipt["remedies"].values()) == {
        "forget it in trips.people, by the column that has it there or by its rows' key"
    }
    receipt = forgotten(project, "people", "--key", "471004711")
    assert receipt["elsewhere"].keys() == {"trips.visits", "trips.visits__deliveries"}
    assert list(places(project, ANNA)) == []
    forgotten(project, "visits", "--where", "id = 471004711")
    others = {i: name for i, name in PEOPLE.items() if name != ANNA}
    as_without(project, tmp_path / "other", without(ANNA), others)
    assert project.sluice("doctor").out.startswith("nothing is wrong")


@pytest.mark.usefixtures("long")
def test_later_rows_are_quarantined_without_values(project: Here, tmp_path: Path) -> None:
    forgotten(project, "sales", "--where", f"person = '{ANNA}'", code=1)
    forgotten(project, "people", "--key", "471004711")
    land(project, {**SALES, 3: [sale(ANNA, 3, 1), sale(EVE, 3, 1)]}, PEOPLE)
    project.land("sales", 2, [*SALES[2], sale(ANNA, 2, 2)])
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-04")
    assert list(places(project, ANNA)) == []
    found = project.sluice("read", "sales__quarantine", "--json").records
    reasons = [(r["reason"], r["raw"]) for r in found if "forgotten" in r["reason"]]
    assert reasons == [("the row's subject was forgotten", EMPTY)] * 5
    others = {i: name for i, name in PEOPLE.items() if name != ANNA}
    sales = {**without(ANNA), 3: [sale(EVE, 3, 1)]}
    as_without(project, tmp_path / "other", sales, others, ("sales", "people", *VIEWS))


def test_a_source_that_is_dropped_does_not_bring_a_forgotten_subject_back(project: Here) -> None:
    forgotten(project, "visits", "--where", "id = 471004711", code=1)
    dropped = project.sluice("drop", "visits", "--now", "--json")
    assert "trips.visits__forgotten" not in {record["table"] for record in dropped.records}
    assert "unknown table 'visits'" in project.sluice("drop", "visits").err
    project.declare(SHOP[: SHOP.index("  visits:")] + SHOP[SHOP.index("views:") :])
    assert "visits" not in project.sluice("status").out
    project.declare(SHOP)
    project.complete("run", "trips")
    ids = {row["id"] for row in project.sluice("read", "visits", "--json").records}
    assert ids == PEOPLE.keys() - {471004711}


KILLS = [*("noted:sales", "committed:sales", "committed:spent__state", "redacted:best__state")]


@pytest.mark.parametrize("place", KILLS)
def test_a_kill_at_any_place_is_finished_by_the_same_command(project: Here, place: str) -> None:
    asked = ("sales", "--where", f"person = '{ANNA}'")
    assert project.killed(place, "forget", *asked) == -9
    assert "forgetting: trips.sales since" in project.sluice("status").out
    forgotten(project, *asked, code=1)
    assert "forgetting:" not in project.sluice("status").out
    assert {place.split("/")[2] for place in places(project, ANNA)} == {
        *("people", "people__deliveries")
    }
    expected = {day: [r for r in given if r["amount"] >= 0] for day, given in without(ANNA).items()}
    kept = project.sluice("read", "sales", "--json").records
    assert sorted(map(str, kept)) == sorted(map(str, [r for day in expected.values() for r in day]))
    assert project.sluice("run", "trips").out.startswith("nothing was new")


CONDITIONS = [
    (("people", "--where", f"name = '{ANNA}'"), "committed:people__deliveries"),
    (("people", "--where", f"name = '{ANNA}'"), "redacted:people__deliveries"),
    (("people", "--where", f"name = '{ANNA}'"), "searched:people"),
    (("people", "--where", f"name = '{ANNA}'"), "ended:people"),
    (("sales", "--where", f"person like '{ANNA[:5]}%'"), "redacted:spent__state"),
]


@pytest.mark.parametrize(("asked", "place"), CONDITIONS)
def test_a_killed_attempt_by_a_condition_is_finished_though_no_row_meets_it_any_more(
    project: Here, asked: tuple[str, ...], place: str
) -> None:
    assert project.killed(place, "forget", *asked) == -9
    assert f"forgetting: trips.{asked[0]} since" in project.sluice("status").out
    other = project.sluice("forget", asked[0], "--where", f"{asked[2]} and true")
    assert (other.code, "run exactly that command again" in other.err) == (2, True), other.err
    is_named = asked[0] == "people"  # by a value, which `sales` has, too
    receipt = forgotten(project, *asked, code=int(is_named))
    counts = {(line["place"], line["what"]): line["count"] for line in receipt["done"]}
    delivered = "trips.sales" if asked[0] == "sales" else "trips.people__deliveries"
    assert counts[delivered, "rows deleted"] >= (0 if place.startswith("committed") else 2)
    assert "forgetting:" not in project.sluice("status").out
    word = "471004711" if asked[0] == "people" else ANNA
    left = {path.split("/")[2] for path in places(project, word)}
    kept = {f"{asked[0]}__forgetting", delivered.split(".")[1], "towns", "spent", "spent__state"}
    assert left & {asked[0], *kept} == set()
    assert not (project.folder / f"lake/trips/{asked[0]}__forgetting").exists()
    again = project.sluice("forget", *asked)
    assert (again.code, "has no such row" in again.err) == ((1, False) if is_named else (2, True))


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (
            ("people", "--where", "name = 'Nobody'"),
            2,
            "people has no such row, and no file of the lake names it\nhint: nothing was",
        ),
        (("sales", "--key", "1"), 2, "trips.sales has no `key` that names one of its rows"),
        (("people", "--where", "name like 'No%'"), 2, "people has no such row now\nhint: nothing"),
        (("visits", "--key", "1"), 2, "the key of trips.visits is (id, shop), and 1 of its 2"),
        (("people", "--key", "Anna"), 2, "'Anna' is not a value of column 'id' (BIGINT)"),
        (("people", "--key", "99"), 2, "has no such row, and no file of the lake names it"),
        (("people",), 2, "name the subject by --key, or its rows by --where"),
        (("people", "--where", "ide = 1"), 2, "unknown column 'ide'"),
        (("people", "--where", "id ="), 2, "does not parse"),
        (("spent", "--key", "1"), 2, "is of kind cogroup; only rows of a source or a"),
        (("persons", "--key", "1"), 2, "unknown table 'persons'"),
    ],
)
def test_what_names_no_subject_is_refused_and_changes_nothing(
    project: Here, arguments: tuple[str, ...], code: int, says: str
) -> None:
    before = {p: p.stat().st_mtime_ns for p in (project.folder / "lake").rglob("*")}
    refused = project.sluice("forget", *arguments)
    assert (refused.code, says in refused.err) == (code, True), refused.err
    assert {p: p.stat().st_mtime_ns for p in (project.folder / "lake").rglob("*")} == before


def test_the_origin_of_a_row_ends_with_the_past_and_points_to_the_row(project: Here) -> None:
    project.sluice("forget", "sales", "--where", f"person = '{ANNA}'")
    ended = project.sluice("why", "spent", BOB)
    assert ended.code == 5
    assert "their files are deleted\nhint: `sluice get spent` shows the row as it is" in ended.err


def test_two_at_once_and_a_preview_at_work_are_named(project: Here) -> None:
    lake = project.folder / "lake"
    held = lock(lake)
    refused = project.sluice("forget", "people", "--key", "471004711")
    assert (refused.code, "another `sluice forget` is running" in refused.err) == (3, True)
    os.close(held or 0)
    (lake / "__preview" / "a").mkdir(parents=True)
    held = lock(lake / "__preview" / "a")
    refused = project.sluice("forget", "people", "--key", "471004711")
    assert (refused.code, "a preview is running" in refused.err) == (3, True)
    os.close(held or 0)
    assert forgotten(project, "people", "--key", "471004711")["is_proven"]


def test_environments_which_share_the_rows_are_named(project: Here) -> None:
    project.complete("env", "create", "dev")
    refused = project.sluice("forget", "people", "--key", "471004711")
    assert (refused.code, "environments have these rows, too: dev" in refused.err) == (2, True)
    refused = project.sluice("--env", "dev", "forget", "people", "--key", "471004711")
    assert (refused.code, "is the environment 'dev'" in refused.err) == (2, True)
    project.complete("env", "drop", "dev")
    assert forgotten(project, "people", "--key", "471004711")["is_proven"]


def test_tables_that_can_not_follow_are_named_before_anything_is_done(project: Here) -> None:
    project.declare(SHOP.replace("limit: 2", "limit: 1"))
    refused = project.sluice("forget", "sales", "--where", f"person = '{ANNA}'")
    assert (refused.code, "trips.best" in refused.err) == (2, True)
    project.declare(SHOP[: SHOP.index("  best:")] + SHOP[SHOP.index("  shops:") :])
    refused = project.sluice("forget", "sales", "--where", f"person = '{ANNA}'")
    assert "made from these rows that are not declared: trips.best" in refused.err
    project.complete("drop", "best")
    receipt = forgotten(project, "sales", "--where", f"person = '{ANNA}'", code=1)
    assert "dropped table deleted" in {line["what"] for line in receipt["done"]}


def test_a_count_of_nulls_is_not_taken_for_a_number_and_a_least_value_is(project: Here) -> None:
    project.land("people", 3, [{"id": 0, "name": "Al", "town": "Oslo"}])
    bounds = ("--start", "2024-01-03", "--end", "2024-01-04")
    project.complete("run", "trips", *bounds)
    assert forgotten(project, "people", "--key", "0")["is_proven"]
    sought = Sought(pa.table({"id": [0]}))
    stats = json.dumps({"minValues": {"id": 0}, "nullCount": {"id": 3, "a": {"id": 0}}})
    assert sought.is_in(json.dumps({"add": {"stats": stats}}))
    for zero in ('"nullCount": {"a": {"id": 0}, "id": 0}', '"nulls": {"id": 0}'):
        assert not sought.is_in(json.dumps({"add": {"stats": f"{{{zero}}}"}}))
        assert not sought.is_in(f"{{{zero}}}")


CALLED = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-02
sources:
  calls:
    path: "landing/calls/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, seconds INT
    names: {id: Caller Nr}
    key: [id]
"""


@pytest.mark.parametrize("asked", [("--key", "471004711"), ("--where", "seconds = 5")])
def test_quarantined_rows_are_found_by_the_names_that_files_give_their_columns(
    tmp_path: Path, asked: tuple[str, ...]
) -> None:
    project = Here(tmp_path)
    project.declare(CALLED)
    good = [{"Caller Nr": 471004711, "seconds": 5}, {"Caller Nr": 471004712, "seconds": 6}]
    bad = [{"Caller Nr": i, "seconds": f"few of {who}"} for i, who in PEOPLE.items()]
    project.land("calls", 1, [*good, *bad])
    project.complete("run", "trips")
    assert list(places(project, ANNA)) != []
    if asked[0] == "--key":  # what the search alone would say
        found = Sought(pa.table({"id": [471004711]}), in_files={"id": "Caller Nr"})
        assert "trips.calls__quarantine" in search([found], f"{tmp_path}/lake", ()).found
    done = {line["place"]: line["count"] for line in forgotten(project, "calls", *asked)["done"]}
    assert done["trips.calls__quarantine"] >= 1
    assert (list(places(project, ANNA)), len(list(places(project, BOB))) > 0) == ([], True)
    project.land("calls", 1, [*good, *bad, *good[1:]])
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")
    assert (list(places(project, ANNA)), len(list(places(project, BOB))) > 0) == ([], True)


NESTED = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-03
sources:
  labs:
    path: "landing/labs/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "id BIGINT, patient STRUCT<no: STRING, home: STRUCT<town: STRING>>"
    key: [id]
  visits:
    path: "landing/visits/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "patient STRUCT<no: STRING>, doctor STRUCT<no: STRING>, paid INT"
views:
  seen: {kind: select, from: visits, select: {no: patient.no, paid: paid}}
"""


def test_struct_fields_name_a_person_in_every_source(tmp_path: Path) -> None:
    project = Here(tmp_path)
    project.declare(NESTED)
    lab = [
        {"id": i, "patient": {"no": no, "home": {"town": f"Town of {no}"}}}
        for i, no in enumerate(("00042", "00043", "00042"))
    ]
    met = [
        {"patient": {"no": "00042"}, "doctor": {"no": "00007"}, "paid": 1},
        {"patient": {"no": "00043"}, "doctor": {"no": "00042"}, "paid": 2},
        {"patient": {"no": "00042"}, "doctor": {"no": "00007"}, "paid": "much"},
        {"patient": {"no": "00043"}, "doctor": {"no": "00042"}, "paid": "little"},
        {"patient": None, "doctor": {"no": "00007"}, "paid": 3},
    ]
    project.land("labs", 1, lab)
    project.land("visits", 1, met)
    project.complete("run", "trips")
    one = forgotten(project, "labs", "--where", "patient.no = '00042'", code=1)
    assert "trips.visits" in one["left"]
    shown = one["remedies"]["trips.visits"]
    assert shown == """`sluice forget trips.visits --where "patient.no = '00042'"`"""
    receipt = forgotten(project, "--where", "patient.no = '00042'", "--all")
    assert receipt["is_proven"]
    done = {(line["place"], line["what"]): line["count"] for line in receipt["done"]}
    assert done["trips.visits", "rows deleted"] == 1
    assert done["trips.visits__quarantine", "rows deleted"] == 1
    assert {"patient.no": "00042"} in receipt["forgotten"][-1]["subjects"]
    project.land("labs", 2, [{**row, "id": 10 + row["id"]} for row in lab])
    project.land("visits", 2, met)
    project.complete("run", "trips", "--start", "2024-01-02", "--end", "2024-01-03")
    labs = project.sluice("read", "labs", "--json").records
    assert sorted(row["id"] for row in labs) == [1, 11]
    kept = project.sluice("read", "visits", "--json").records
    assert sorted(row["paid"] for row in kept) == [2, 2, 3, 3]
    raw = project.sluice("read", "visits__quarantine", "--json").records
    reasons = [row["reason"] for row in raw]
    assert reasons.count("the row's subject was forgotten") == 2
    left = project.sluice("read", "seen", "--json").records
    assert {row["no"] for row in left} == {"00043", None}


def test_whole_rows_with_times_are_forgotten_and_withheld_without_spark(tmp_path: Path) -> None:
    project = Here(tmp_path)
    project.declare(SHOP.replace("amount INT", "amount INT, at TIMESTAMP"))
    early = {**sale(ANNA, 1, 7), "at": "2024-01-01T10:00:00.123456Z"}
    other = {**sale(ANNA, 1, 7), "at": "2024-01-01T10:00:00.123457Z"}
    land(project, {1: [early, other, sale(BOB, 1, 3)]}, PEOPLE)
    project.complete("run", "trips")
    times = "at < timestamp '2024-01-01 10:00:00.123457' or at is null"
    assert forgotten(project, "sales", "--where", times)["is_proven"]
    land(project, {2: [early, other, sale(BOB, 1, 3), sale(EVE, 1, 3)]}, PEOPLE)
    ran = project.complete("run", "trips", "--start", "2024-01-02", "--end", "2024-01-03", "--json")
    assert {record["engine"] for record in ran.records} <= {"process", ""}
    kept = project.sluice("read", "sales", "--json").records
    assert sorted(row["at"] or row["person"] for row in kept) == [*[kept[0]["at"]] * 2, EVE]


@pytest.mark.parametrize("seed", seeds(1, deep=20))
def test_random_histories_end_without_the_subject(tmp_path: Path, remote: str, seed: int) -> None:
    chance = random.Random(seed)
    names = [ANNA, BOB, EVE, "Zoë Saldaña"]

    def some() -> list[dict[str, Any]]:
        count = chance.randint(1, 6)
        return [
            sale(chance.choice(names), chance.randint(1, 3), chance.randint(-2, 9))
            for _ in range(count)
        ]

    project = Here(tmp_path / "first", remote)
    project.declare(SHOP)
    sales: dict[int, list[dict[str, Any]]] = {}
    for _ in range(3):
        sales[chance.randint(1, 3)] = some()
        land(project, sales, PEOPLE)
        project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-04")
    name = chance.choice(names)
    hit = any(row["person"] == name for rows_ in sales.values() for row in rows_)
    done = project.sluice("forget", "sales", "--where", f'person = "{name}"', "--json")
    assert done.code in (0, 1) or not hit, done.err
    if done.code == 1:
        theirs = {f"trips.{t}" for t in ("people", "people__deliveries", "towns", "towns__state")}
        assert json.loads(done.out)["left"].keys() <= theirs
    left = {day: [r for r in rows_ if r["person"] != name] for day, rows_ in sales.items()}
    if done.code < 2:
        others = ("lake/trips/people", "lake/trips/towns")
        assert not [p for p in places(project, name) if not p.startswith(others)]
        as_without(project, tmp_path / "other", left, PEOPLE)
