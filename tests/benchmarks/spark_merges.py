"""Merges by Spark, into a table of Delta, Iceberg or Paimon, in one warm session.

FORMAT FOLDER: rows from FOLDER/base, then each of FOLDER/merges in their order. Prints a JSON line
for each merge, and for scans of the table before them and after the tenth. Needs PySpark alone, of
whichever version.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

COLUMNS = "id BIGINT, shop BIGINT, amount DECIMAL(12,2), note STRING"
DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
}
ICEBERG = {
    "spark.sql.extensions": ("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"),
    "spark.sql.catalog.spark_catalog": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.spark_catalog.type": "hadoop",
}
PAIMON = {
    "spark.sql.extensions": "org.apache.paimon.spark.extensions.PaimonSparkSessionExtensions",
    "spark.sql.catalog.paimon": "org.apache.paimon.spark.SparkCatalog",
    "spark.sql.defaultCatalog": "paimon",
}
SETTINGS = {"delta": DELTA, "iceberg": ICEBERG, "paimon": PAIMON}
CATALOGS = {"iceberg": "spark_catalog", "paimon": "paimon"}  # which take the folder
PROPERTIES = {
    "delta": "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'",
    "iceberg": (
        "'format-version' = '2', 'write.merge.mode' = 'merge-on-read',"
        " 'write.update.mode' = 'merge-on-read', 'write.delete.mode' = 'merge-on-read'"
    ),
    "paimon": "'primary-key' = 'id', 'bucket' = '8', 'changelog-producer' = 'lookup'",
}
MERGE = """
MERGE INTO default.rows t USING came s ON t.id = s.id
WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"""
SCAN = "SELECT count(*), sum(shop), sum(amount), max(note) FROM default.rows"


def session(format_: str, folder: Path, jars: str) -> SparkSession:
    """Start Spark on two cores, with the format's tables below the folder."""
    builder = SparkSession.builder.master("local[2]").appName("merges")
    place = str(folder / format_)
    settings = {
        **SETTINGS[format_],
        "spark.sql.warehouse.dir": place,
        "spark.driver.memory": "4g",
        "spark.driver.extraClassPath": jars,
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
    }
    if catalog := CATALOGS.get(format_):
        settings[f"spark.sql.catalog.{catalog}.warehouse"] = place
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def measure(work: Callable[[], Any]) -> tuple[float, float]:
    """Return the seconds of some work, and the CPU seconds of this process and of Java."""
    began, used = time.monotonic(), cpu()
    work()
    return time.monotonic() - began, cpu() - used


def cpu() -> float:
    """Return the CPU seconds of this process and of its running children."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    others = (p.cpu_times() for p in psutil.Process().children(recursive=True))
    return own.ru_utime + own.ru_stime + sum(t.user + t.system for t in others)


def size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main(format_: str, folder: Path, jars: str) -> None:
    """Merge and scan; print what each took."""
    spark = session(format_, folder, jars)
    spark.sparkContext.setLogLevel("ERROR")
    spark.sql("CREATE NAMESPACE IF NOT EXISTS default")
    using = "" if format_ == "paimon" else f"USING {format_} "
    properties = f"TBLPROPERTIES ({PROPERTIES[format_]})"
    spark.sql(f"CREATE TABLE default.rows ({COLUMNS}) {using}{properties}")
    base = spark.read.parquet(str(folder / "base"))
    say("base", 0, folder / format_, lambda: base.writeTo("default.rows").append())
    scan = lambda: spark.sql(SCAN).collect()  # noqa: E731
    scan()
    say("scan", 0, folder / format_, scan)
    for nth, merge in enumerate(sorted((folder / "merges").iterdir()), 1):
        spark.read.parquet(str(merge)).createOrReplaceTempView("came")
        say("merge", nth, folder / format_, lambda: spark.sql(MERGE).collect())
        if nth == 10:
            scan()
            say("scan", nth, folder / format_, scan)
    print(json.dumps({"what": "rows", "rows": [str(value) for value in scan()[0]]}))
    spark.stop()


def say(what: str, nth: int, place: Path, work: Callable[[], Any]) -> None:
    """Do some work and print what it took."""
    before = size(place)
    seconds, used = measure(work)
    line = {"what": what, "nth": nth, "seconds": round(seconds, 2), "cpu_seconds": round(used, 1)}
    print(json.dumps({**line, "bytes": size(place) - before}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])
