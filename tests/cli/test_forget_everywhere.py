"""`sluice forget` of a condition's values: nobody is said to be forgotten while he is anywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.forgetting import places
from tests.cli.trips import Here, Project

TRAVEL = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-03
sources:
  clicks:
    path: "landing/clicks/{interval_start:%Y-%m-%d}/"
    format: json
    schema: event_id INT, user_id BIGINT, page STRING
    key: [event_id]
  bookings:
    path: "landing/bookings/{interval_start:%Y-%m-%d}/"
    format: json
    schema: booking_id INT, user_id BIGINT, price INT
    key: [booking_id]
  refunds:
    path: "landing/refunds/{interval_start:%Y-%m-%d}/"
    format: json
    schema: refund_id INT, user_id STRING, price INT
    key: [refund_id]
  offers:
    path: "landing/offers/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id INT, price INT
views:
  trail:
    kind: sql
    sql: |
      SELECT user_id, page FROM clicks
      UNION ALL SELECT user_id, CAST(price AS STRING) AS page FROM bookings
  sold: {kind: select, from: bookings, select: {user_id: user_id, price: price}}
"""
WHO, OTHER = 950753123, 950753124
CLICKS = [{"event_id": 1}, {"event_id": 2}, {"user_id": WHO}]
ASKED = f"user_id = '{WHO}'"  # quoted, it compares with numbers and with texts


def land(project: Project, day: int) -> None:
    """Land a day; on the second day, the click 2 is no longer his."""
    users = {1: (WHO, WHO, OTHER), 2: (OTHER, OTHER, OTHER)}[day]
    clicks = [{"event_id": i, "user_id": u, "page": f"p{i}"} for i, u in enumerate(users, 1)]
    project.land("clicks", day, clicks[day - 1 :])
    booked = enumerate((WHO, OTHER), 10 * day)
    project.land("bookings", day, [{"booking_id": i, "user_id": u, "price": i} for i, u in booked])
    project.land("offers", day, [{"id": day, "price": day}])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Here(tmp_path_factory.mktemp("travel"))
    project.declare(TRAVEL)
    for day in (1, 2):
        land(project, day)
    project.complete("run", "trips")
    return project.folder


def forget(project: Project, code: int, *arguments: str) -> dict[str, Any]:
    done = project.sluice("forget", *arguments, "--json")
    assert done.code == code, done.err + done.out
    return json.loads(done.out)


def users(project: Project, *tables: str) -> set[Any]:
    found = (project.sluice("read", table, "--json").records for table in tables)
    return {row["user_id"] for rows in found for row in rows}


def test_persons_in_another_source_are_named_with_the_command(project: Here) -> None:
    told = project.sluice("forget", "clicks", "--where", ASKED)
    assert told.code == 1
    assert f"trips.clicks: event_id = 1; event_id = 2; user_id = {WHO}; not touched:" in told.out
    assert "forgotten:" not in told.out
    for place in ("bookings", "bookings__deliveries", "trail", "sold"):
        assert f"still found: trips.{place}, " in told.err
    assert f'hint: `sluice forget trips.bookings --where "{ASKED}"`' in told.err
    assert f'`sluice forget --where "{ASKED}" --all`' in told.err
    assert "forgetting:" not in project.sluice("status").out
    receipt = forget(project, 0, "bookings", "--where", ASKED)
    assert (receipt["is_proven"], receipt["left"]) == (True, {})
    assert list(places(project, str(WHO))) == []


def test_one_command_forgets_in_every_source_that_has_the_column(project: Here) -> None:
    receipt = forget(project, 0, "--where", ASKED, "--all")
    assert [one["source"] for one in receipt["forgotten"]] == [
        *("trips.clicks", "trips.bookings", "trips.refunds")
    ]
    assert receipt["forgotten"][0]["subjects"] == CLICKS
    assert list(places(project, str(WHO))) == []
    assert users(project, "clicks", "bookings", "trail", "sold") == {OTHER}
    assert [row["event_id"] for row in project.sluice("read", "clicks", "--json").records] == [3]
    assert project.sluice("doctor").out.startswith("nothing is wrong")


def test_a_later_row_is_withheld_also_by_a_source_that_had_none(project: Here) -> None:
    forget(project, 0, "--where", ASKED, "--all")
    new = [{"event_id": 98 + i, "user_id": u, "page": "new"} for i, u in enumerate((WHO, OTHER))]
    project.land("clicks", 2, new)
    theirs = [{"refund_id": i, "user_id": f"{u}", "price": 1} for i, u in enumerate((WHO, OTHER))]
    project.land("refunds", 2, theirs)
    project.complete("run", "trips", "--start", "2024-01-02", "--end", "2024-01-03")
    assert list(places(project, str(WHO))) == []
    assert users(project, "refunds") == {str(OTHER)}
    kept = project.sluice("read", "clicks__quarantine", "--json").records
    assert [row["reason"] for row in kept] == ["the row's subject was forgotten"]


@pytest.mark.parametrize("place", ["committed:clicks", "noted:bookings", "searched:clicks"])
def test_a_killed_command_is_finished_by_the_same(project: Here, place: str) -> None:
    assert project.killed(place, "forget", "--where", ASKED, "--all") == -9
    assert "forgetting: trips.bookings since" in project.sluice("status").out
    receipt = forget(project, 0, "--where", ASKED, "--all")
    assert receipt["forgotten"][0]["subjects"] == CLICKS
    assert "forgetting:" not in project.sluice("status").out
    assert list(places(project, str(WHO))) == []


def test_tables_that_were_dropped_and_undeclared_ones_are_named(project: Here) -> None:
    project.declare(TRAVEL[: TRAVEL.index("  sold:")])
    refused = project.sluice("forget", "--where", ASKED, "--all")
    assert "not declared: trips.sold" in refused.err
    project.complete("drop", "sold")
    told = project.sluice("forget", "clicks", "--where", ASKED)
    assert (told.code, "still found: __dropped/trips.sold@" in told.err) == (1, True), told.err
    assert "`sluice maintain` deletes it when it is a week old" in told.err
    forget(project, 0, "--where", ASKED, "--all")
    assert list(places(project, str(WHO))) == []


def test_a_condition_that_names_no_values_says_which_keys_went(project: Here) -> None:
    told = project.sluice("forget", "clicks", "--where", "page like 'p1%'")
    assert (told.code, "trips.clicks: event_id = 1; not touched:" in told.out) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--all", "--key", "5"), "give --where with --all"),
        (("clicks", "--all", "--where", ASKED), "name a source, or give --where with --all"),
        (("--where", ASKED), "name a source, or give --where with --all"),
        (("--all", "--where", "nobody = 5"), "no source or dimension has the columns of"),
        (("--all", "--where", "user_id = '5'"), "trips.refunds have no such row, and no file"),
        (("--all", "--where", "user_id ="), "does not parse"),
    ],
)
def test_what_names_nobody_is_refused(project: Here, arguments: tuple[str, ...], says: str) -> None:
    refused = project.sluice("forget", *arguments)
    assert (refused.code, says in refused.err) == (2, True), refused.err
