"""A folder of files, and the rows and reasons that are read of it."""

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from tests.support.landed import Content, write

from sluice.delta.reading.landing import list_files
from sluice.files.reading import Reading, read_files
from sluice.limits import Limits
from sluice.sources import Source

SCHEMA = "id INT, t STRING, d DECIMAL(6,2)"
Values = tuple[Any, ...]


class Files:
    """A folder that is read as declared."""

    def __init__(self, spark: SparkSession, folder: Path):
        self.spark, self.folder = spark, folder

    def read(self, format_: str, schema: str = SCHEMA, **declared: Any) -> Reading:
        self.spark.conf.set("spark.sql.ansi.enabled", "true")
        spec, files = source(format_, schema, **declared), list_files(str(self.folder))
        return read_files(self.spark, spec, files, Limits())

    def put(self, **files: Content) -> "Files":
        for name, content in files.items():
            write(self.folder / name.replace("_", "."), content)
        return self

    def good(self, *how: str, **declared: Any) -> list[Values]:
        rows, bad = self.rows(*how, **declared)
        assert bad == []
        return rows

    def bad(self, *how: str, **declared: Any) -> list[Values]:
        """(reason, raw) of the rows that have one."""
        return self.rows(*how, **declared)[1]

    def rows(self, *how: str, **declared: Any) -> tuple[list[Values], list[Values]]:
        found = self.read(*how, **declared).rows.toArrow().to_pylist()
        good = [
            tuple(v for c, v in r.items() if not c.startswith("_sluice_"))
            for r in found
            if r["_sluice_reason"] is None
        ]
        bad = [(r["_sluice_reason"], r["_sluice_raw"]) for r in found if r["_sluice_reason"]]
        return sorted(good, key=repr), sorted(bad)


def source(format_: str, schema: str = SCHEMA, **declared: Any) -> Source:
    return Source(
        name="events",
        pipeline="shop",
        format=format_,
        schema=schema,
        path="x/{interval_start:%Y}/",
        **declared,
    )
