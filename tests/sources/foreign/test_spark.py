"""Tables that Spark writes, with features that only it has, read by this process or by Spark."""

import random
from collections import Counter
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from tests.sources.foreign.conftest import Made

pytestmark = pytest.mark.usefixtures("real_spark")  # it is the writer
SETTINGS = {
    "feed": "'delta.enableChangeDataFeed' = 'true'",
    "vectors": "'delta.enableDeletionVectors' = 'true'",
    "mapping": "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
    "both": "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'",
}


class Theirs:
    """Somebody else's table, written by Spark."""

    def __init__(self, session: SparkSession, path: str, settings: str):
        self.session, self.path, self.table = session, path, f"delta.`{path}`"
        properties = f" TBLPROPERTIES ({settings})" if settings else ""
        self.sql(f"CREATE TABLE {self.table} (id BIGINT, v BIGINT, part STRING) USING delta"
                 f" PARTITIONED BY (part){properties}")  # fmt: skip
        self.sql(f"INSERT INTO {self.table} SELECT id, id, string(id % 2) FROM range(10)")

    def sql(self, text: str) -> list[Any]:
        return self.session.sql(text.replace("{t}", self.table)).collect()

    def rows(self) -> Counter[tuple[Any, ...]]:
        return Counter(tuple(row) for row in self.sql("SELECT id, part, v FROM {t}"))

    @property
    def version(self) -> int:
        return DeltaTable(self.path).version()


MERGE = """MERGE INTO {t} t
USING (SELECT id * {n} AS id, id AS v, '1' AS part FROM range(4) WHERE id > 0) s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET t.v = s.v
WHEN NOT MATCHED THEN INSERT (id, v, part) VALUES (s.id, s.v, s.part)"""
OPS = (
    "INSERT INTO {t} (id, v, part) SELECT id + 100 * {n}, id, string(id % 2) FROM range(3)",
    "DELETE FROM {t} WHERE id % 5 = {n} % 5",
    "UPDATE {t} SET v = v + 1 WHERE id % 4 = {n} % 4",
    MERGE,
    "OPTIMIZE {t}",
    "OPTIMIZE {t} ZORDER BY (id)",
    "INSERT OVERWRITE {t} (id, v, part) SELECT id + {n}, v, part FROM {t}",
    "RESTORE {t} TO VERSION AS OF 1",
    "ALTER TABLE {t} ADD COLUMN (more{n} STRING)",
    "REORG TABLE {t} APPLY (PURGE)",
)


@pytest.mark.parametrize(
    ("settings", "small"),
    [*((settings, True) for settings in SETTINGS), ("both", False)],
)
def test_the_rows_are_the_tables_that_spark_writes(
    following: Made, spark: SparkSession, settings: str, *, small: bool
) -> None:
    chance = random.Random(f"{settings} {small}")
    key = "key: [id]" if chance.random() < 0.5 else ""
    lake = following("id BIGINT, part STRING, v BIGINT", extra=key)
    theirs = Theirs(spark, lake.crm.path, SETTINGS[settings])
    if not small:
        lake.limit(computed_here_bytes=-1, collected_bytes=-1)
    lake.take()
    for nth in (1, 2):
        for op in chance.sample(OPS, 2):
            theirs.sql(op.replace("{n}", str(nth)))
        before = lake.crm.digest()
        engine = lake.take()[0].engine
        assert lake.crm.digest() == before
        assert lake.values() == theirs.rows(), nth
        assert lake.place().upto == theirs.version
        assert engine.startswith("process") == (small and settings != "mapping"), engine


def test_replaced_tables_are_followed(following: Made, spark: SparkSession) -> None:
    lake = following("id BIGINT, part STRING, v BIGINT", extra="key: [id]")
    theirs = Theirs(spark, lake.crm.path, "")
    lake.take()
    theirs.sql("CREATE OR REPLACE TABLE {t} USING delta AS "
               "SELECT id, 7L AS v, '1' AS part FROM range(5, 12)")  # fmt: skip
    (report, _) = lake.take()
    assert "replaced its rows; the difference is read" in str(report.warnings)
    assert lake.values() == theirs.rows()
