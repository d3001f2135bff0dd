"""Every kind of table built, advanced, rebuilt and verified by Spark, by both committers.

What its tables must hold comes from a model in plain Python.
"""

from itertools import islice

import pytest
from pyspark.sql import SparkSession
from tests.crash.bazaar import Bazaar, History, Step
from tests.crash.model import COLUMNS, Model, counted
from tests.crash.worker import perform

from sluice.spark.session import Spark

pytestmark = pytest.mark.timeout(900)

SEED = "82"  # a day, its correction, and another day
COMMITTERS = {"built": "auto", "advanced": "auto", "advanced by Spark's committer": "spark"}
REBUILT = "rebuilt"


class Kept:
    """A lake that Spark keeps. `differences`: what differs from the model, by step and table."""

    def __init__(self, lake: Bazaar, session: SparkSession) -> None:
        lake.engine(is_spark=True)
        self.lake, self.model, self.session = lake, Model(), session
        self.differences: dict[tuple[str, str], object] = {}

    def take(self, name: str, step: Step, committer: str) -> None:
        self.lake.committer(committer)
        self.lake.land(step)
        self.model.take(step)
        self.perform(step, step.what)
        for table, wanted in self.model.tables().items():
            columns = self.model.columns[table]
            found = counted(self.lake.rows(table, columns), columns)
            if found != wanted:
                self.differences[name, table] = {"lacks": wanted - found, "has": found - wanted}

    def perform(self, step: Step, what: str) -> list[str]:
        bounds = [(i.start.isoformat(), i.end.isoformat()) for i in step.intervals]
        told = {"config": str(self.lake.config), "intervals": bounds, "views": step.views}
        return perform(Spark(self.lake.project.spark), {**told, "what": what})


@pytest.fixture(scope="module")
def kept(whole_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Kept:
    kept = Kept(Bazaar.create(tmp_path_factory.mktemp("bazaar"), "", "auto"), whole_spark)
    steps = islice(History(SEED).steps(), len(COMMITTERS))
    for (name, committer), step in zip(COMMITTERS.items(), steps, strict=True):
        kept.take(name, step, committer)
    views = tuple(kept.lake.project.pipelines["shop"].views)
    kept.take(REBUILT, Step({}, (), "redefine", views=views), "auto")
    return kept


@pytest.mark.parametrize("table", COLUMNS)
@pytest.mark.parametrize("step", [*COMMITTERS, REBUILT])
def test_spark_keeps_every_kind(kept: Kept, step: str, table: str) -> None:
    assert kept.differences.get((step, table)) is None


def test_spark_verifies_every_kind(kept: Kept) -> None:
    assert kept.perform(Step({}, ()), "verify") == []
