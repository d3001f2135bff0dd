"""`sluice drop` and `sluice rename`: refused while needed, finished after a kill."""

import shutil
from pathlib import Path

import pytest
from tests.cli.trips import Here, invoked

HEAD = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-03
sources:
  flights:
    path: "landing/flights/{interval_start:%Y-%m-%d}/"
    format: json
    schema: carrier STRING, delay INT, flight INT
    key: [flight]
dimensions:
  carriers: {path: landing/carriers/, format: csv, schema: "code STRING, name STRING", key: [code]}
views:
"""
VIEWS = {
    "named": """{kind: lookup, from: flights, select: {flight: flight, name: carriers.name},
    join: [{dimension: carriers, on: carrier = carriers.code, type: left}]}""",
    "delays": "{kind: cogroup, key: [carrier], streams: {f: {from: flights, aggregates: "
    "{n: count(*), s: sum(delay)}}}}",
    "worst": "{kind: topk, from: delays, order_by: [s desc], limit: 1}",
    "both": "{kind: join, left: flights, right: {table: delays, as: d}, "
    "on: flights.carrier = d.carrier, select: {flight: flights.flight, n: d.n}}",
    "query": "{kind: sql, sql: 'SELECT f.carrier, count(*) AS n FROM flights f "
    "JOIN carriers c ON f.carrier = c.code GROUP BY f.carrier'}",
}


def declared(*without: str) -> str:
    """The pipeline's file without these views."""
    kept = {name: view for name, view in VIEWS.items() if name not in without}
    return HEAD + "".join(f"  {name}: {view}\n" for name, view in kept.items())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two days of flights, and all views of them."""
    project = Here(tmp_path_factory.mktemp("built"))
    project.declare(declared())
    folder = project.folder / "landing" / "carriers"
    folder.mkdir(parents=True)
    (folder / "a.csv").write_text("code,name\nUA,United\nAA,American\n")
    for day in (1, 2):
        rows = [{"carrier": c, "delay": day, "flight": day * 10 + n} for n, c in enumerate("UAB")]
        project.land("flights", day, [{**r, "carrier": f"{r['carrier']}A"} for r in rows])
    project.complete("run", "trips")
    return project.folder


def names(project: Here) -> set[str]:
    """Folders of the pipeline's tables."""
    return {path.name for path in (project.folder / "lake" / "trips").iterdir()}


def rows(project: Here, *tables: str) -> dict[str, list[str]]:
    return {t: sorted(project.sluice("read", t, "--json").out.splitlines()) for t in tables}


def test_a_table_that_others_need_is_not_dropped_and_they_are_named(project: Here) -> None:
    before = names(project)
    refused = project.sluice("drop", "flights")
    assert refused.code == 2
    assert refused.lines[0] == (
        "error: trips.flights can't be dropped, because other tables depend on it: "
        "trips.both, trips.delays, trips.named, trips.query"
    )
    project.declare(declared("worst", "both", "delays"))  # they lie in the lake still
    assert (
        "because other tables depend on it: trips.both, trips.worst"
        in project.sluice("drop", "delays").err
    )
    assert names(project) == before


def test_a_dropped_table_is_kept_for_a_week_and_put_back_by_hand(project: Here) -> None:
    project.declare(declared("worst"))
    assert "hint: declare it again, `sluice drop trips.worst`" in project.sluice("status").out
    assert "`sluice drop trips.worst`" in project.sluice("doctor", "--json").out
    dropped = project.sluice("drop", "worst", "--json")
    assert [record["table"] for record in dropped.records] == ["trips.worst", "trips.worst__state"]
    assert not {"worst", "worst__state"} & names(project)
    assert "worst" not in project.sluice("status").out
    assert "nothing is due" in project.sluice("maintain").out
    for record in dropped.records:
        shutil.move(record["kept_at"], project.folder / "lake" / "trips")
    project.declare(declared())
    assert project.sluice("run", "trips").out.startswith("nothing was new")


def test_maintenance_deletes_what_was_dropped_a_week_ago(project: Here) -> None:
    project.sluice("drop", "worst")
    (kept,) = (project.folder / "lake" / "__dropped").iterdir()
    kept.rename(kept.with_name("trips.worst@20240101T000000Z"))
    assert [r["done"] for r in project.sluice("maintain", "--json").records] == ["deleted"]
    assert not list((project.folder / "lake" / "__dropped").iterdir())


def test_now_deletes_the_files_and_a_declared_table_is_built_again(project: Here) -> None:
    before = rows(project, "worst", "query")
    for view in ("worst", "query"):
        dropped = project.sluice("drop", view, "--now")
        assert (dropped.code, dropped.lines) == (
            0,
            [f"warning: trips.{view} is still declared: the next run builds it again"],
        )
    assert not {name for name in names(project) if name.startswith(("worst", "query"))}
    assert not list((project.folder / "lake" / "__dropped").iterdir())
    project.complete("run", "trips")
    assert rows(project, "worst", "query") == before


def values(project: Here, table: str) -> set[frozenset[tuple[str, object]]]:
    """Rows as the values of their columns, in any order."""
    return {frozenset(row.items()) for row in project.sluice("read", table, "--json").records}


REDEFINED = {
    "limit: 1": "limit: 2",
    "s: sum(delay)": "s: sum(delay), least: min(delay)",
    "n: d.n}": "n: cast(d.n AS STRING)}",
    "name: carriers.name}": "name: upper(carriers.name)}",
    "delay INT, ": "delay BIGINT, ",
    "name STRING": "name STRING, country STRING",
    "key: [flight]\n": "key: [flight]\n    sequence: [delay]\n",
}


def test_without_spark_small_tables_are_rebuilt_by_a_changed_definition(
    project: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = declared()
    for old, new in REDEFINED.items():
        text = text.replace(old, new)
    project.declare(text)
    carriers = project.folder / "landing" / "carriers" / "a.csv"
    carriers.write_text("code,name,country\nUA,United,US\nAA,American,US\n")
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    config = ["--config", str(project.folder / "config")]
    planned = {r["table"]: r for r in invoked(["plan", "--json", *config]).records}
    ended = invoked(["rebuild", "--changed", "--as-landed", "--json", *config])
    assert ended.code == 0, ended.err
    assert {record["engine"] for record in ended.records} == {"process"}
    again = {t: r["engine"] for t, r in planned.items() if r["next"] == "rebuild"}
    assert {t for t, engine in again.items() if engine != "process"} == {
        "trips.flights__deliveries"
    }
    afresh = Here(tmp_path / "afresh")
    shutil.copytree(project.folder, afresh.folder, ignore=shutil.ignore_patterns("lake"))
    afresh.complete("run", "trips")
    for name in ("flights", "carriers", *VIEWS):
        assert values(project, name) == values(afresh, name)


def test_without_spark_verify_says_what_to_install_only_where_the_settings_ask_for_spark(
    project: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.extras.is_installed", lambda extra: extra != "spark")
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    config = project.folder / "config"
    assert invoked(["verify", "--config", str(config)]).code == 0
    (config / "sluice.yaml").write_text("lake: lake\nspark: {small_batches: spark}\n")
    ended = invoked(["verify", "worst", "--config", str(config)])
    assert (ended.code, ended.lines) == (
        2,
        [
            (
                "error: a recompute of trips.worst__state, by `spark.small_batches`, needs Spark, "
                "which is not installed"
            ),
            "hint: run: pip install 'sluice-views[spark]'",
        ],
    )


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
def test_a_drop_that_was_killed_is_finished_by_the_next(project: Here, nth: int) -> None:
    project.declare(declared(*VIEWS))
    for view in reversed(VIEWS):
        project.complete("drop", view, "--now")
    assert project.killed(f"*#{nth}", "drop", "flights") == -9
    finished = project.sluice("drop", "flights", "--json")
    assert [record["table"] for record in finished.records] == [
        *("trips.flights", "trips.flights__deliveries", "trips.flights__intervals")
    ]
    assert names(project) == {"carriers", "carriers__intervals"}
    assert [p.is_dir() for p in (project.folder / "lake" / "__dropped").iterdir()] == [True]


def test_a_broken_table_is_dropped_and_named_when_another_is(project: Here) -> None:
    log = project.folder / "lake" / "trips" / "worst" / "_delta_log"
    for commit in log.iterdir():
        commit.write_text("{")
    refused = project.sluice("drop", "query")
    assert (refused.code, "the log of trips.worst can't be read" in refused.err) == (5, True)
    project.complete("drop", "worst")
    project.complete("drop", "query")


def test_what_can_not_be_dropped_is_named(project: Here) -> None:
    assert "'delayz' in the lake" in project.sluice("drop", "delayz").err
    assert "did you mean 'trips.delays'?" in project.sluice("drop", "trips.delayz").err
    assert "is dropped with it" in project.sluice("drop", "delays__state").err


RENAMES = {"flights": "departures", "carriers": "airlines", "delays": "lateness", "query": "counts"}


def renamed(old: str, new: str) -> str:
    """The pipeline's file after a search and replace, except for landing folders."""
    return declared().replace(old, new).replace(f"landing/{new}/", f"landing/{old}/")


@pytest.mark.parametrize("old", RENAMES)
def test_a_renamed_table_keeps_its_history_and_its_readers_go_on(project: Here, old: str) -> None:
    new = RENAMES[old]
    before = rows(project, *VIEWS)
    first = project.sluice("changes", old, "--json").out
    project.declare(renamed(old, new))
    done = project.sluice("rename", old, new, "--json")
    assert (done.code, done.lines) == (0, [])
    assert {r["what"] for r in done.records} <= {"moved", "follows"}
    assert not {name for name in names(project) if name.partition("__")[0] == old}
    now = [new if view == old else view for view in VIEWS]
    assert list(rows(project, *now).values()) == list(before.values())
    assert project.sluice("changes", new, "--json").out == first
    planned = project.sluice("plan", "--json").records
    assert {step["next"] for step in planned} <= {"nothing", "ingest", "load"}
    again = [{"carrier": "UA", "delay": 7, "flight": 10}]
    project.land("flights", 1, again)
    ran = project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02", "--json")
    assert {r["strategy"] for r in ran.records} & {"build"} == set()
    assert project.sluice("doctor").out.startswith("nothing is wrong")
    now_rows = rows(project, *now)
    shutil.rmtree(project.folder / "lake")
    project.complete("run", "trips")
    assert rows(project, *now) == now_rows


@pytest.mark.parametrize("nth", [1, 4, 7, 11])
def test_a_rename_that_was_killed_is_finished_by_the_next(project: Here, nth: int) -> None:
    before = rows(project, *VIEWS)
    project.declare(renamed("flights", "departures"))
    assert project.killed(f"*#{nth}", "rename", "flights", "departures") == -9
    project.complete("rename", "flights", "departures")
    assert rows(project, *VIEWS) == before
    assert project.sluice("run", "trips").out.startswith("nothing was new")
    assert project.sluice("doctor").out.startswith("nothing is wrong")


def test_a_change_besides_the_name_needs_a_rebuild(project: Here) -> None:
    project.declare(renamed("delays", "lateness").replace("limit: 1", "limit: 2"))
    done = project.sluice("rename", "delays", "lateness")
    assert [line.partition(": run")[0] for line in done.lines] == [
        "warning: trips.worst__state differs in more than this name"
    ]
    steps = {s["table"]: s["reason"] for s in project.sluice("plan", "--json").records}
    assert steps["trips.worst"] == "from delays -> lateness, limit 1 -> 2"


def test_a_rename_that_the_configuration_does_not_have_is_refused(project: Here) -> None:
    assert "is declared under that name" in project.sluice("rename", "delays", "worst").err
    assert project.sluice("rename", "delays", "late").lines == [
        "error: unknown table 'late': the configuration does not declare it yet",
        (
            "hint: write it there first, in place of 'delays', where that is declared and wherever "
            "it is named; then run this again"
        ),
    ]
    project.declare(renamed("delays", "lateness"))
    assert "has a table trips.worst already" in project.sluice("rename", "delays", "worst").err
    assert "delays" in names(project)


def test_a_union_whose_rows_name_the_table_is_not_taken_for_the_same(project: Here) -> None:
    union = "  all: {kind: union, from: [flights, {table: flights, as: again}], tag: which}\n"
    project.declare(declared() + union)
    project.complete("advance", "all")
    project.declare((declared() + union).replace("flights", "departures"))
    done = project.sluice("rename", "flights", "departures", "--json")
    assert [r["table"] for r in done.records if r["what"] == "rebuild"] == ["trips.all"]
    steps = {s["table"]: s["next"] for s in project.sluice("plan", "--json").records}
    assert [table for table, following in steps.items() if following == "rebuild"] == ["trips.all"]


def test_a_name_may_be_given_to_another_table_after_a_rename(project: Here) -> None:
    """`delays` becomes `lateness`; then `worst` becomes `delays`, over it."""
    before = rows(project, "delays", "worst")
    first = renamed("delays", "lateness")
    project.declare(first)
    project.complete("rename", "delays", "lateness")
    project.declare(first.replace("  worst:", "  delays:"))
    project.complete("rename", "worst", "delays")
    assert list(rows(project, "lateness", "delays").values()) == list(before.values())
    assert {s["next"] for s in project.sluice("plan", "--json").records} <= {
        *("nothing", "ingest", "load")
    }
    assert project.sluice("run", "trips").out.startswith("nothing was new")
