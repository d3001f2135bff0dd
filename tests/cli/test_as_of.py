"""`--as-of` shows one state: views equal their queries of the sources that are shown."""

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from tests.cli.previewed import PIPELINE, World
from tests.cli.trips import Here
from tests.support.games import seeds

from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.upkeep.maintenance import upkeep
from sluice.delta.writing.own_commits import unfenced_properties
from sluice.read.lake import Lake, open_lake
from sluice.terminal.output import to_json

VIEWS = ("named", "delays", "worst", "late", "steps", "both", "pairs", "latest", "query")
DAYS = ("--start", "2024-01-01", "--end", "2024-01-05")
DECLARED = PIPELINE.replace(
    "views:",
    """  known: {join: [{dimension: carriers}], select: {code: carriers.code, name: carriers.name}}
views:""",
)
Rows = list[dict[str, Any]]


def rows(lake: Lake, name: str) -> Rows:
    return [dict(row) for row in lake.table(name).read()]


def every(lake: Lake) -> dict[str, Counter[str]]:
    """The rows of every table that a reader sees."""
    tables = [t for t in lake.project.graph.tables.values() if exists(lake.uri(t))]
    names = ["known", *(t.name for t in tables)]
    return {name: Counter(to_json(row) for row in rows(lake, name)) for name in names}


def steps(chance: random.Random) -> Iterator[tuple[str, ...]]:
    """Whole runs, and between them parts of one, which leave tables behind others."""
    ways = (("ingest", "flights", *DAYS), ("ingest", "weather", *DAYS), ("load", "carriers"))
    for _ in range(3):
        yield "run", "trips", "--changed"
        for _ in range(2):
            yield chance.choice(ways)
            yield "advance", *(view for view in VIEWS if view == "late" or chance.random() < 0.5)
        yield "advance", *VIEWS


class History:
    """A lake with a past: each moment, whether no table was behind, and copies of all rows then."""

    def __init__(self, folder: Path, seed: int):
        self.project = Here(folder)
        self.project.declare(DECLARED)
        world, self.moments = World(self.project, random.Random(seed)), []
        for step in steps(random.Random(seed)):
            world.land()
            self.project.complete(*step)
            copies = every(self.lake)
            is_whole = step[0] == "run" or step[1:] == VIEWS
            self.moments.append((datetime.now(UTC), is_whole, copies))

    @property
    def lake(self) -> Lake:
        return open_lake(self.project.folder / "config")


@pytest.fixture(scope="module", params=seeds(1, deep=20))
def history(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> History:
    return History(tmp_path_factory.mktemp("past"), request.param)


def test_a_moment_at_which_no_table_was_behind_shows_all_rows_of_then(history: History) -> None:
    whole = [(moment, copies) for moment, is_whole, copies in history.moments if is_whole]
    assert len({str(copies) for _, copies in whole}) == 6
    for moment, copies in whole:
        assert every(history.lake.at(moment)) == copies


def test_at_every_moment_views_equal_their_queries_of_the_sources_shown(history: History) -> None:
    behind = 0
    for moment, _, copies in history.moments:
        lake = history.lake.at(moment)
        for name, query in QUERIES.items():
            assert query(lake) == Counter(), name
        behind += every(lake) != copies
    assert behind > 3


def test_moments_in_between_show_no_older_state(history: History) -> None:
    reached: dict[str, int] = {}
    for moment, is_whole, _ in history.moments:
        lake = history.lake.at(moment)
        shown = {t: lake.table(t).version for t in ("flights", "weather", "carriers")}
        assert all(version >= reached.get(name, 0) for name, version in shown.items())
        reached = shown if is_whole else reached


def named(lake: Lake) -> list[tuple[Any, ...]]:
    names = {c["code"]: c["name"] for c in rows(lake, "carriers")}
    return [(f["flight"], names.get(f["carrier"]), f["delay"]) for f in rows(lake, "flights")]


def differ(found: list[Any], wanted: list[Any]) -> Counter[Any]:
    one, other = Counter(map(str, found)), Counter(map(str, wanted))
    return (one - other) + (other - one)


def of(lake: Lake, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[c] for c in columns) for row in rows(lake, name)]


def delays(lake: Lake) -> Counter[Any]:
    groups: dict[Any, list[int]] = {}
    for _, name, delay in named(lake):
        groups.setdefault(name, []).append(delay)
    wanted = [(name, len(all_), max(all_), sum(all_)) for name, all_ in groups.items()]
    return differ(of(lake, "delays", "name", "n", "worst", "s"), wanted)


def worst(lake: Lake) -> Counter[Any]:
    groups: dict[Any, list[int]] = {}
    for _, name, delay in named(lake):
        groups.setdefault(name, []).append(delay)
    wanted = {n: sorted(all_, reverse=True)[:2] for n, all_ in groups.items()}
    found = {
        name: [ranks[rank]["delay"] for rank in sorted(ranks)]
        for name, ranks in lake.top("worst").items()
    }
    return differ(list(found.items()), list(wanted.items()))


def late(lake: Lake) -> list[tuple[int, int]]:
    return [(f["flight"], f["delay"]) for f in rows(lake, "flights") if f["delay"] > 5]


def pairs(lake: Lake) -> Counter[Any]:
    chosen = {flight for flight, _ in late(lake)}
    wanted = [(flight, name) for flight, name, _ in named(lake) if flight in chosen]
    return differ(of(lake, "pairs", "flight", "name"), wanted)


def both(lake: Lake) -> Counter[Any]:
    return differ(of(lake, "both", "n"), of(lake, "flights", "delay") + of(lake, "weather", "wind"))


def latest(lake: Lake) -> Counter[Any]:
    times = of(lake, "flights", "carrier", "at")
    first = max((at for _, at in times), default=datetime.now(UTC)) - timedelta(days=2)
    found = [(r["carrier"], r["window_start"]) for r in lake.window("latest").fetch_all()]
    return differ(found, list({(carrier, at) for carrier, at in times if at > first}))


def query(lake: Lake) -> Counter[Any]:
    counts = Counter(carrier for (carrier,) in of(lake, "flights", "carrier"))
    return differ(of(lake, "query", "carrier", "n"), list(counts.items()))


QUERIES: dict[str, Callable[[Lake], Counter[Any]]] = {
    "named": lambda lake: differ(of(lake, "named", "flight", "name", "delay"), named(lake)),
    "delays": delays,
    "delays__state": lambda lake: differ(
        of(lake, "delays__state", "name"), of(lake, "delays", "name")
    ),
    "worst": worst,
    "late": lambda lake: differ(of(lake, "late", "flight", "delay"), late(lake)),
    "steps": lambda lake: differ(of(lake, "steps", "flight"), of(lake, "flights", "flight")),
    "pairs": pairs,
    "both": both,
    "latest": latest,
    "query": query,
}


MOMENT = "2024-05-01T00:00Z"  # long before any of these tables was made


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Here:
    """A lake after two runs."""
    project = Here(tmp_path_factory.mktemp("made"))
    project.declare(DECLARED)
    world = World(project, random.Random(7))
    for _ in range(2):
        world.land()
        project.complete("run", "trips", "--changed")
    return project


@pytest.fixture
def project(made: Here, tmp_path: Path) -> Here:
    """A copy of that lake, to be changed."""
    shutil.copytree(made.folder, tmp_path, dirs_exist_ok=True)
    return Here(tmp_path)


def now() -> str:
    return datetime.now(UTC).isoformat()


def lake_of(project: Here) -> Lake:
    return open_lake(project.folder / "config")


def uri_of(project: Here, name: str) -> str:
    lake = lake_of(project)
    return lake.uri(lake.project.graph.table(name))


def changed(project: Here) -> str:
    """Run once more, with another flight a day; return a time before that."""
    before = now()
    more = [
        {"flight": 70 + n, "carrier": "A", "delay": 9, "at": "2024-01-04T00:00:00Z"}
        for n in range(3)
    ]
    project.land("flights", 4, more)
    project.complete("run", "trips", "--changed")
    return before


@pytest.fixture(scope="module")
def later(made: Here, tmp_path_factory: pytest.TempPathFactory) -> tuple[Here, str]:
    """A copy of that lake after one more run, and a time before that."""
    folder = tmp_path_factory.mktemp("later")
    shutil.copytree(made.folder, folder, dirs_exist_ok=True)
    project = Here(folder)
    return project, changed(project)


@pytest.fixture
def grown(later: tuple[Here, str], tmp_path: Path) -> Here:
    """A copy of the lake after that run, to be changed."""
    shutil.copytree(later[0].folder, tmp_path, dirs_exist_ok=True)
    return Here(tmp_path)


@pytest.fixture
def before(later: tuple[Here, str]) -> str:
    """A time before the last run of that lake."""
    return later[1]


READS = [
    ("read", "named"),
    ("range", "late"),
    ("get", "flights", "70"),
    ("get", "known", "A"),
    ("top", "worst"),
    ("fetch", "latest"),
    ("changes", "late"),
    ("why", "late", "70"),
]


@pytest.mark.parametrize("read", READS, ids=lambda read: f"{read[0]} {read[1]}")
def test_every_read_takes_the_time(
    made: Here, later: tuple[Here, str], read: tuple[str, ...]
) -> None:
    was, (project, before) = made.sluice(*read, "--json"), later
    is_same = read[1] == "known"
    assert (project.sluice(*read, "--json").out == was.out) == is_same
    then = project.sluice(*read, "--as-of", before, "--json")
    assert (then.code, then.out) == (was.code, was.out), then.err


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--as-of", "yesterday"), 2, "'yesterday' is not a time"),
        (("--as-of", ""), 2, "'' is not a time"),
        (("--as-of", "2024-02-30"), 2, "is not a time"),
        (("--as-of", "9000-01-01"), 2, "9000-01-01 is in the future"),
        (("--as-of", MOMENT), 2, "table 'worst' had not been built by 2024-05-01"),
        (("--as-of", MOMENT, "--version", "1"), 2, "give either --as-of or --version"),
        (("--version", "0", "--as-of", MOMENT), 2, "give either --as-of or --version"),
    ],
)
def test_unshown_times_are_named(
    made: Here, options: tuple[str, ...], code: int, told: str
) -> None:
    for command in ("read", "top"):
        ended = made.sluice(command, "worst", *options)
        assert (ended.code, told in ended.err) == (code, True), ended.err


def test_changes_take_one_end(made: Here) -> None:
    ended = made.sluice("changes", "late", "--as-of", MOMENT, "--to-version", "1")
    assert (ended.code, "give either --as-of or --to-version" in ended.err) == (2, True)


def test_a_cleaned_log_is_named_and_other_tables_are_shown(grown: Here, before: str) -> None:
    uri = uri_of(grown, "late")
    was = Counter(map(to_json, rows(lake_of(grown).at(before), "steps")))
    DeltaTable(uri).create_checkpoint()
    newest = DeltaTable(uri).version()
    for version in range(newest):
        (Path(uri) / "_delta_log" / f"{version:020}.json").unlink()
    ended = grown.sluice("read", "late", "--as-of", before)
    assert ended.code == 5
    assert f"'late' can't be shown as of {before[:10]}" in ended.err
    assert f"its log begins with version {newest}" in ended.err
    assert Counter(map(to_json, rows(lake_of(grown).at(before), "steps"))) == was
    grown.complete("read", "late", "--as-of", now())


def test_a_log_that_can_not_be_read_stops_only_what_is_made_from_it(project: Here) -> None:
    then = now()
    was = rows(lake_of(project), "steps")
    for file in Path(uri_of(project, "late"), "_delta_log").glob("*.json"):
        file.write_text("{")
    assert rows(lake_of(project).at(then), "steps") == was
    assert project.sluice("read", "late", "--as-of", then).code != 0
    ended = project.sluice("read", "pairs", "--as-of", then)
    assert (ended.code, "'pairs' can't be shown as of" in ended.err) == (5, True), ended.err


def vacuum(uri: str) -> None:
    gone = DeltaTable(uri).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert gone


def test_vacuumed_rows_are_named(grown: Here, before: str) -> None:
    uri = uri_of(grown, "late")
    DeltaTable(uri).optimize.compact(
        commit_properties=unfenced_properties(upkeep(head(uri), "compact"))
    )
    vacuum(uri)
    ended = grown.sluice("read", "late", "--as-of", before)
    assert (ended.code, "were vacuumed" in ended.err) == (5, True), ended.err
    grown.complete("read", "late", "--as-of", now())


def test_rows_whose_files_upkeep_has_replaced_are_read_from_the_new_files(grown: Here) -> None:
    then, uri = now(), uri_of(grown, "late")
    was = every(lake_of(grown))
    DeltaTable(uri).optimize.compact(
        commit_properties=unfenced_properties(upkeep(head(uri), "compact"))
    )
    vacuum(uri)
    assert every(lake_of(grown).at(then)) == was


def test_rows_that_somebody_else_wrote_are_refused(project: Here) -> None:
    uri = uri_of(project, "late")
    DeltaTable(uri).delete("flight > 0")
    ended = project.sluice("read", "late", "--as-of", now())
    assert ended.code == 5
    assert "(DELETE) was not written by Sluice" in ended.err


def test_a_table_without_a_version_at_the_state_of_the_others_is_refused(project: Here) -> None:
    few = "  few: {kind: select, from: flights, where: delay > 8, select: {flight: flight}}\n"
    project.declare(DECLARED + few)
    was = every(lake_of(project))
    project.land(
        "flights", 4, [{"flight": 77, "carrier": "A", "delay": 9, "at": "2024-01-04T00:00:00Z"}]
    )
    project.complete("ingest", "flights", *DAYS)
    project.complete("advance", "few")
    then = now()
    ended = project.sluice("read", "few", "--as-of", then)
    assert (ended.code, "no version of it reflects the same state" in ended.err) == (5, True)
    lake = lake_of(project).at(then)
    assert {name: Counter(map(to_json, rows(lake, name))) for name in was} == was


def test_a_renamed_table_keeps_its_past(grown: Here, before: str) -> None:
    was = rows(lake_of(grown).at(before), "pairs")
    grown.declare(DECLARED.replace("late", "tardy"))
    grown.complete("rename", "late", "tardy")
    assert rows(lake_of(grown).at(before), "pairs") == was


def test_a_handle_of_the_past_stays_there(project: Here) -> None:
    lake = lake_of(project).at(now())
    changed(project)
    assert lake.table("late").refresh().version == lake.table("late").version
    assert lake.table("late").version < lake_of(project).table("late").version


def test_a_quarantine_is_that_of_the_time(project: Here) -> None:
    moments = []
    for flight in (90, 91):
        bad = {"flight": flight, "carrier": "A", "delay": -3, "at": "2024-01-01T00:00:00Z"}
        project.land("flights", 1, [bad])
        project.complete("run", "trips", "--changed")
        moments.append((now(), rows(lake_of(project), "flights__quarantine")))
    assert moments[0][1] != moments[1][1]
    for moment, kept in moments:
        assert rows(lake_of(project).at(moment), "flights__quarantine") == kept
