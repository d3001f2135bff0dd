"""A broker's warehouse of 51 views in SQL: after each delivery all equal the same SQL in DuckDB."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.examples.medallion import market
from tests.examples.medallion.recompute import PIPELINE, PROJECT, VIEWS, differing_rows, recompute

import sluice
from sluice.cli.main import main
from sluice.spark import session

SCALE = 0.01
LANDING = Path("landing")


@pytest.fixture
def broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> market.Market:
    """A broker that has delivered nothing yet, and the project in the current folder."""
    shutil.copytree(PROJECT, tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(session, "open_session", None)  # no JVM: a call fails
    market.land_reference(LANDING / "reference")
    return market.Market(SCALE)


def run(day: int) -> None:
    """Run the pipeline for what was landed as the delivery of this number."""
    start = market.FIRST_DAY + timedelta(days=day)
    bounds = ["--start", f"{start}", "--end", f"{start + timedelta(days=1)}"]
    done = CliRunner().invoke(main, ["run", "brokerage", *bounds])
    assert done.exit_code == 0, done.output


def check() -> None:
    """Every table has rows, and they are DuckDB's."""
    database = recompute(LANDING)
    for name in (*PIPELINE["sources"], *VIEWS):
        assert database.execute(f"FROM {name}").fetchall(), f"{name} has no rows to compare"
    assert differing_rows(database, sluice.open("config")) == {}


@pytest.mark.usefixtures("long")
def test_every_view_equals_its_query_after_each_delivery(broker: market.Market) -> None:
    broker.deliver(LANDING)
    run(0)
    check()
    corrected = broker.deliver(LANDING, share=0.007)
    run(1)
    check()
    broker.deliver(LANDING, share=0.014)
    run(2)
    check()
    market.remove_rows(corrected, every=3)
    run(1)
    check()
