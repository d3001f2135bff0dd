"""`sluice drop` and `sluice rename` beside `sluice forget`: what was to be forgotten stays so."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.cli.forgetting import PEOPLE, forgotten, places
from tests.cli.trips import Here

from sluice.declare.project import load
from sluice.delta.intervals import deliveries
from sluice.delta.log.position import Head
from sluice.delta.places.lake_layout import layout
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import unmark
from sluice.delta.upkeep.table_invariants import rows_by
from sluice.delta.writing.filing import Slice
from sluice.limits import Limits
from sluice.operate import forgetting
from sluice.operate.forget import forget
from sluice.operate.subjects import Asked
from sluice.read.lake import open_lake
from sluice.spark.session import Spark

SHOP = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-04
sources:
  visits:
    path: "landing/visits/{interval_start:%Y-%m-%d}/"
    format: json
    schema: id BIGINT, shop INT, at STRING
    key: [id, shop]
"""


@pytest.fixture
def project(tmp_path: Path) -> Here:
    """Three days of visits."""
    made = Here(tmp_path)
    made.declare(SHOP)
    for day in (1, 2, 3):
        seen = [{"id": i, "shop": shop, "at": f"day {day}"} for i in PEOPLE for shop in (1, 2)]
        made.land("visits", day, seen)
    made.complete("run", "trips")
    return made


def test_a_table_is_not_kept_for_a_week_in_the_middle_of_a_forget(project: Here) -> None:
    asked = ("visits", "--where", "id = 471004711")
    assert project.killed("noted:visits", "forget", *asked) == -9
    refused = project.sluice("drop", "visits")
    assert (refused.code, "a `sluice forget` of it has not ended" in refused.err) == (2, True)
    assert (project.folder / "lake/trips/visits").is_dir()
    forgotten(project, *asked)
    project.complete("drop", "visits")
    assert not [place for place in places(project, "471004711") if "visits" in place]


def test_with_now_it_leaves_nothing_of_the_subjects(project: Here) -> None:
    asked = ("visits", "--where", "id = 471004711")
    assert project.killed("noted:visits", "forget", *asked) == -9
    project.complete("drop", "visits", "--now")
    assert not [place for place in places(project, "471004711") if "visits" in place]
    left = {path.name for path in (project.folder / "lake/trips").glob("visits*")}
    assert left == {"visits__forgotten"}


def test_deliveries_between_pieces_are_kept(project: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large table it first marks the rows, then writes their files again."""
    large = Limits(merged_bytes=-1, marked_share=1_000)
    loaded = load(project.folder / "config").model_copy(update={"limits": large})
    visits, races = loaded.graph.table("visits"), list[int]()

    def beside(filing: Filing, slices: Sequence[Slice]) -> Head:
        if any(s.gone for s in slices) and len(races) < 4:
            project.land("visits", 2, [{"id": 99, "shop": len(races), "at": "day 2"}])
            day = ("--start", "2024-01-02", "--end", "2024-01-03")
            project.complete("ingest", "visits", *day)
            races.append(filing.before.version)
        return unmark(filing, slices)

    monkeypatch.setattr(forgetting, "unmark", beside)
    asked = Asked(where="id = 471004711")
    assert forget(Spark(loaded.spark), loaded, [visits], asked).is_proven
    assert len(races) == 4
    assert not list(places(project, "471004711"))
    assert {471004712, 471004713, 99} == {
        row["id"] for row in open_lake(project.folder / "config").table("visits").read()
    }


def test_a_delivery_while_rows_are_counted_keeps_its_note_and_counts(
    project: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = SHOP.replace("    key: [id, shop]\n", "")
    shutil.rmtree(project.folder / "lake")
    project.declare(pipeline)
    for day in (1, 3):
        bounds = ("--start", f"2024-01-0{day}", "--end", f"2024-01-0{day + 1}")
        project.complete("ingest", "visits", *bounds)
    loaded = load(project.folder / "config")
    visits, counted = loaded.graph.table("visits"), list[str]()

    def beside(uri: str, column: str) -> dict[Any, int]:
        found = rows_by(uri, column)
        if not counted:
            project.land("visits", 2, [{"id": 99, "shop": 1, "at": "day 2"}])
            day = ("--start", "2024-01-02", "--end", "2024-01-03")
            project.complete("ingest", "visits", *day)
        counted.append(uri)
        return found

    monkeypatch.setattr(forgetting, "rows_by", beside)
    asked = Asked(where="id = 471004711")
    assert forget(Spark(loaded.spark), loaded, [visits], asked).is_proven
    noted = deliveries(layout(loaded).uri(visits.id, "intervals"))
    assert [d.rows_accepted for d in noted] == [4, 1, 4]


def as_calls() -> str:
    """The pipeline with `calls` in place of `visits`, from the same files."""
    return SHOP.replace("  visits:", "  calls:")


def test_names_with_forgotten_subjects_are_given_to_no_other(project: Here) -> None:
    forgotten(project, "visits", "--where", "id = 471004711")
    project.complete("drop", "visits", "--now")
    project.declare(as_calls())
    project.complete("run", "trips")
    project.declare(SHOP)
    refused = project.sluice("rename", "calls", "visits")
    assert (refused.code, "(trips.visits__forgotten)" in refused.err) == (2, True), refused.err
    shutil.rmtree(project.folder / "lake/trips/visits__forgotten")
    project.complete("rename", "calls", "visits")
    assert project.sluice("doctor").out.startswith("nothing is wrong")


@pytest.mark.parametrize("before", ["visits__intervals", "visits__forgotten", "visits#2"])
def test_a_rename_that_was_killed_moves_forgotten_subjects_once(project: Here, before: str) -> None:
    forgotten(project, "visits", "--where", "id = 471004711")
    project.declare(as_calls())
    assert project.killed(f"renaming:{before}", "rename", "visits", "calls") == -9
    project.complete("rename", "visits", "calls")
    moved = {path.name for path in (project.folder / "lake/trips").glob("calls*")}
    assert moved == {"calls", *(f"calls__{n}" for n in ("deliveries", "forgotten", "intervals"))}
    assert not list((project.folder / "lake/trips").glob("visits*"))
    project.complete("run", "trips", "--start", "2024-01-01", "--end", "2024-01-02")
    ids = {row["id"] for row in project.sluice("read", "calls", "--json").records}
    assert ids == PEOPLE.keys() - {471004711}
