"""One run and one backfill by a real scheduler, with a correction: the tables end as by one run."""

import shutil
from collections.abc import Iterator

import pytest
from tests.airflow.live.corner import (
    CORNER,
    DAYS,
    SALES,
    await_all,
    await_run,
    backfill,
    clean_run,
    contents,
    sell,
)

from sluice.language.interval import parse_time
from sluice.read.lake import Lake
from stack import ROOT, Ports, Stack

pytestmark = pytest.mark.timeout(900)

WRONG = [(1, "ham", 7, 5)]  # what is delivered of the first day before it is corrected


@pytest.fixture(scope="module")
def corner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A project with one pipeline in an Airflow of its own, whose tasks need no Java."""
    folder = tmp_path_factory.mktemp("airflow")
    for name in ("dags", "jobs"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "config/pipelines").mkdir(parents=True)
    shutil.copy(ROOT / "config/sluice.yaml", folder / "config")
    (folder / "config/pipelines/corner.yaml").write_text(CORNER.replace("catchup: true\n", ""))
    places = {"SLUICE_LAKE": folder / "lake", "SLUICE_LANDING": folder / "landing"}
    variables = {name: str(place) for name, place in places.items()}
    stack = Stack(folder / "airflow", "submit", Ports.free(), root=folder, variables=variables)
    with stack.running():
        yield stack


@pytest.fixture(scope="module")
def states(corner: Stack) -> dict[str, str]:
    """Hashes of the tables after a run, a backfill that corrects it, and a clean run."""
    client, landing = corner.airflow.client(), corner.root / "landing"
    lake = Lake(corner.project)
    for day in DAYS:
        sell(landing, day, SALES[day])
    sell(landing, DAYS[0], WRONG)
    client.await_dag("corner")
    client.unpause("corner")
    run = client.trigger("corner", parse_time(f"{DAYS[1]}T00:00:00.5"))
    ended = await_run(client, "corner", run)
    found = {"run": ended, "wrong": str(contents(lake))}
    sell(landing, DAYS[0], SALES[DAYS[0]])
    number = backfill(client, "corner", DAYS)
    await_all(client, "corner", len(DAYS))
    client.finish(number)
    states = {run.state for run in client.runs("corner")}
    clean = contents(clean_run(corner, corner.root / "clean"))
    return found | {"backfill": str(states), "right": str(contents(lake)), "clean": str(clean)}


def test_a_dag_run_delivers_a_day_and_advances_its_views(states: dict[str, str]) -> None:
    assert states["run"] == "success"
    assert states["wrong"] != states["right"]


def test_a_backfill_corrects_a_day_and_every_table_follows(states: dict[str, str]) -> None:
    assert states["backfill"] == "{'success'}"
    assert states["right"] == states["clean"]
