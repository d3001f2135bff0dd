"""`why` names the commit that gave a row its values, as reading every version does."""

from collections import Counter
from typing import Any

import pytest
from tests.cli.previewed import World
from tests.cli.trips import Here

import sluice
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.read.commits import commit
from sluice.read.lake import Lake, open_lake

NAMES = {"trips.flights": "trips.flights__deliveries", "trips.carriers": "trips.carriers"}
Rows = dict[tuple[Any, ...], dict[str, Any]]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """Five runs of random deliveries, through a table of every kind."""
    return World.of_runs(5, tmp_path_factory.mktemp("why"), 7).project


def named(lake: Lake) -> list[Table]:
    """Stored tables whose rows have a visible key."""
    tables = [t for t in lake.project.graph.tables.values() if exists(lake.uri(t))]
    opened = {t.name: lake.table(t.name) for t in tables}
    return [t for t in tables if t.key and opened[t.name].key.names == opened[t.name].identity]


def versions(lake: Lake, table: Table) -> list[Rows]:
    every = (lake.stored(table, v) for v in range(lake.stored(table).version + 1))
    return [{tuple(r[c] for c in at.identity): dict(r) for r in at.read()} for at in every]


def last_change(history: list[Rows], key: tuple[Any, ...], column: str | None = None) -> int:
    """The last version in which the row, or a column of it, differs from the one before."""

    def value(version: int) -> Any:
        row = history[version].get(key) if version >= 0 else None
        return row if row is None or column is None else (row[column],)

    return next(v for v in range(len(history) - 1, -1, -1) if value(v) != value(v - 1))


def asked(project: Here, table: Table, key: tuple[Any, ...], *options: str) -> dict[str, Any]:
    texts = [v.isoformat() if hasattr(v, "isoformat") else str(v) for v in key]
    ended = project.complete("why", table.name, *options, "--json", *texts)
    (record,) = ended.records
    return record


def test_the_commit_is_the_last_in_which_the_row_differs(project: Here) -> None:
    lake, changed = open_lake(project.folder / "config"), set()
    assert {t.kind for t in named(lake)} >= {"source", "dimension", "cogroup", "topk", "lookup"}
    for table in named(lake):
        history = versions(lake, table)
        for key in sorted({key for rows in history for key in rows if None not in key}, key=str):
            found = asked(project, table, key)
            last = last_change(history, key)
            assert found["version"] == last, (table.name, key)
            assert (found["before"] is None) == (last == 0 or key not in history[last - 1])
            assert (found["after"] is None) == (key not in history[last])
            changed.add(found["change"])
    assert changed == {"insert", "update", "delete"}


def test_when_names_the_commit_that_last_changed_a_column(project: Here) -> None:
    lake = open_lake(project.folder / "config")
    table, earlier = lake.project.graph.table("delays"), 0
    history = versions(lake, table)
    for key in sorted(history[-1], key=str):
        if None in key:
            continue
        for column in ("n", "worst", "s"):
            found = asked(project, table, key, "--when", column)
            assert found["version"] == last_change(history, key, column), (key, column)
            earlier += found["version"] < last_change(history, key)
    assert earlier


def test_it_names_the_deliveries_that_the_commit_was_the_first_to_reflect(project: Here) -> None:
    lake = open_lake(project.folder / "config")
    table, checked = lake.project.graph.table("delays"), dict.fromkeys(NAMES, 0)
    history = versions(lake, table)
    for key in sorted({key for rows in history for key in rows if None not in key}):
        found = asked(project, table, key)
        made = commit(lake.uri(table), found["version"])
        assert made
        assert made.position
        for read in found["reads"]:
            stored = NAMES[read["source"]]
            assert read["to_version"] == made.position.frontier[stored]
            uri = lake.uri(table).replace("delays", stored.removeprefix("trips."))
            within = range(read["to_version"], read["after_version"], -1)
            commits = [c for c in (commit(uri, v) for v in within) if c and c.changes_data]
            assert read["count"] == len(commits)
            assert [c["version"] for c in read["commits"]] == [c.version for c in commits[:5]]
            runs = {c.position.run for c in commits if c.position}
            checked[read["source"]] += len(commits)
            if read["source"] == "trips.flights":
                assert made.position.run in runs
    assert all(checked.values()), checked


def test_mistakes_are_named(project: Here) -> None:
    named = "a row of 'worst' is named by its key, or by --partition name=VALUE --rank N"
    for arguments, code, told in (
        (("delays", "nobody"), 1, "delays never had a row with the key nobody"),
        (("flights", "x"), 2, "'x' is not a value of column 'flight' (INT)"),
        (("flights", "1", "2"), 2, "the key of 'flights' is (flight): 2 values don't fit it"),
        (("worst", "A 0"), 2, "1 value doesn't fit it"),
        (("weather", "1"), 2, "have no key to identify one by"),
        (("weather", "1"), 2, "`sluice changes weather` what each commit changed"),
        (("weather", "--time", "2024-01-01"), 2, "`sluice read weather --where ...` shows rows"),
        (("delays", "A 0", "--when", "nothing"), 2, "nothing"),
        (("worst", "--rank", "1"), 2, named),
        (("worst", "--partition", "name=A 0"), 2, named),
        (("worst", "--partition", "name=A 0", "--rank", "99"), 1, "worst has no such row"),
        (("worst", "--partition", "name", "--rank", "1"), 2, "write column=value"),
        (("latest", "A"), 2, "1 value doesn't fit it"),
        (("latest", "--key", "A"), 2, "--key 'A': write column=value"),
        (("latest", "A", "--key", "carrier=A"), 2, "each by its column's name"),
        (("worst", "--key", "flight=1"), 2, "the key of 'worst' is (name, flight)"),
        (("worst", "--key", "fligth=1"), 2, "unknown key column 'fligth'; did you mean 'flight'?"),
        (("late", "--key", "flight=4711"), 1, "had a row with the key flight=4711"),
        (("latest", "--time", "2024-01-01"), 2, "is named by --key carrier=VALUE --time TIME"),
        (("late", "--time", "2024-01-01"), 2, "a row of 'late' is named by its key"),
        (("delays", "A 0", "--time", "2024-01-01"), 2, "is named by its key"),
        (("late",), 2, "no row is given"),
    ):
        ended = project.sluice("why", *arguments)
        assert (ended.code, told in ended.err) == (code, True), (arguments, ended.err)


def test_it_names_the_rows_that_a_row_comes_from_and_their_deliveries(project: Here) -> None:
    lake = open_lake(project.folder / "config")
    flights = lake.table("flights").read()
    of_a_day: dict[int, int] = {row["flight"]: row["at"].day for row in flights}
    many = 0
    for row in lake.table("delays").read(where="name is not null"):
        found = asked(project, lake.project.graph.table("delays"), (row["name"],), "--rows", "1")
        by_table = {part["table"]: part for part in found["from"]}
        named = list(lake.table("named").read(where=f"name = '{row['name']}'"))
        assert by_table["trips.named"]["count"] == len(named)
        assert len(by_table["trips.named"]["rows"]) == 1
        assert by_table["trips.carriers"]["rows"] == [{"code": row["name"][0], "name": row["name"]}]
        delivered = by_table["trips.flights__deliveries"]
        days = Counter(of_a_day[r["flight"]] for r in named)
        told = {int(d["interval_start"][8:10]): d for d in delivered["deliveries"]}
        assert {day: d["rows"] for day, d in told.items()} == days
        for day, one in told.items():
            assert one["files"] == [f"{project.folder}/landing/flights/2024-01-0{day}/a.json"]
            assert one["commit"]["run"].startswith(f"trips-2024010{day}")
        many += len(named) > 1
    assert many


def test_without_rows_only_the_commit_is_named(project: Here) -> None:
    lake = open_lake(project.folder / "config")
    (row, *_) = lake.table("late").read()
    table, key = lake.project.graph.table("late"), (row["flight"],)
    assert asked(project, table, key, "--rows", "0")["from"] == []
    shown = project.complete("why", "late", str(row["flight"])).out
    assert "change" in shown
    assert "newly read" in shown
    assert "from trips.flights, version" in shown
    assert "delivered by" in shown


def test_of_many_deliveries_the_first_are_shown(project: Here) -> None:
    lake = open_lake(project.folder / "config")
    stored = {row["name"] for row in lake.table("delays").read() if row["name"]}
    table = lake.project.graph.table("delays")
    for name in stored:
        found = asked(project, table, (name,))
        many = max(len(source["deliveries"]) for source in found["from"])
        if many > 1:
            shown = project.sluice("why", "delays", name, "--rows", "1").out.split("delivered by")[
                1
            ]
            assert f"and {many - 1} more" in shown
            return
    raise AssertionError("no row was delivered more than once")


def test_a_row_is_named_by_its_rank_or_by_key_and_time(project: Here) -> None:
    lake = sluice.open(project.folder / "config")
    for row in lake.table("worst").read(where="name is not null"):
        partition, rank = f"name={row['name']}", str(row["rank"])
        told = project.sluice("why", "worst", "--partition", partition, "--rank", rank, "--json")
        found = told.records[0]
        key = (row["name"], row["flight"])
        assert found == asked(project, lake.project.graph.table("worst"), key)
        one = lake.why("worst", partition={"name": row["name"]}, rank=row["rank"])
        assert one.origin.after["flight"] == found["after"]["flight"] == row["flight"]
        assert [s.table for s in one.sources] == [s["table"] for s in found["from"]]
        named = [f"--key={column}={row[column]}" for column in ("flight", "name")]
        assert project.sluice("why", "worst", *named, "--json").records[0] == found
        by_name = lake.why("worst", flight=row["flight"], name=row["name"])
        assert by_name.origin == one.origin
    for row in lake.table("latest").read():
        time = row["window_start"].isoformat()
        for key in ((row["carrier"],), ("--key", f"carrier={row['carrier']}")):
            told = project.sluice("why", "latest", *key, "--time", time, "--json")
            assert told.records[0]["after"]["flight"] == row["flight"]
            assert told.records[0]["from"][0]["rows"][0]["flight"] == row["flight"]
    assert lake.why("late", 4711) is None
