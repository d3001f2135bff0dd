"""Delta's two jars, for the installed Spark, and the drivers: found, or fetched once.

`classpath` looks in `SLUICE_JARS`, in the cache folder and beside the package. If the jars are in
none of them, it fetches them into the cache. A jar is put in place only after its SHA-256 was
checked, so later only its size is checked. `python -m sluice.spark.jars [DRIVER...]` fetches
Delta's jars, and those of drivers, and prints their paths.

Only the jars themselves are fetched. Spark already contains their dependencies, in the versions
that it runs.
"""

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from sluice.cache import cache_folder
from sluice.declare.settings import Driver
from sluice.errors import MissingDependency
from sluice.spark import ivy
from sluice.spark.jar import Jar
from sluice.spark.log_store import log_store
from sluice.spark.s3a_jars import S3A

STORAGE = Jar(
    "delta-storage",
    "4.4.0",
    113_863,
    "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
)
# Delta 4.4 for each release of Spark that Sluice runs on.
DELTA: Mapping[str, Jar] = {
    "4.2": Jar(
        "delta-spark_4.2_2.13",
        "4.4.0",
        9_515_916,
        "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    ),
}


DRIVERS: Mapping[Driver, tuple[Jar, ...]] = {
    "postgresql": (
        Jar(
            "postgresql",
            "42.7.8",
            1_116_727,
            "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
            "org.postgresql",
        ),
    ),
    "s3": S3A,
}


def classpath(
    environ: Mapping[str, str] = os.environ, drivers: Iterable[Driver] = ()
) -> list[Path]:
    """Return all jars for `spark.driver.extraClassPath`, fetching missing ones first."""
    asked = list(drivers)
    jars = [[delta(), STORAGE], *(DRIVERS[driver] for driver in asked)]
    found = [path for group in jars for path in _found(group, environ)]
    return [*found, log_store(found, environ)] if "s3" in asked else found


def delta() -> Jar:
    """Return Delta's jar for the PySpark that is installed.

    PySpark and its client share a folder: of two versions one has overwritten files of the other.
    """
    spark, client = version("pyspark"), version("pyspark-client")
    if spark != client:
        raise MissingDependency(
            f"pyspark is {spark}, but pyspark-client, whose files lie in the same folder, {client}",
            hint=f"run: pip install --force-reinstall --no-deps pyspark=={spark} "
            f"pyspark-client=={spark}",
        )
    if jar := DELTA.get(spark.rpartition(".")[0]):
        return jar
    raise MissingDependency(
        f"Delta's jar for pyspark {spark} is not known; known are {' and '.join(DELTA)}",
        hint="run: pip install 'sluice[spark]'",
    )


def _found(jars: Sequence[Jar], environ: Mapping[str, str]) -> list[Path]:
    for folder in folders(environ):
        if has_jars(folder, jars):
            return [folder / jar.file for jar in jars]
    if chosen := environ.get("SLUICE_JARS"):
        raise MissingDependency(
            f"SLUICE_JARS ({chosen}) lacks {' or '.join(jar.file for jar in jars)}, whole",
            hint="put them there, or unset SLUICE_JARS to have them fetched",
        )
    return fetch(cache_folder(environ) / "jars", jars, environ)


def folders(environ: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield the folders to search, in order; a folder that the user names is the only one."""
    if chosen := environ.get("SLUICE_JARS"):
        yield Path(chosen).absolute()
        return
    yield cache_folder(environ) / "jars"
    yield Path(__file__).resolve().parents[1] / "jars"


def has_jars(folder: Path, jars: Sequence[Jar]) -> bool:
    """True if all jars are in the folder at full size."""
    try:
        return all((folder / jar.file).stat().st_size == jar.size for jar in jars)
    except OSError:
        return False


def fetch(folder: Path, jars: Sequence[Jar], environ: Mapping[str, str]) -> list[Path]:
    """Download the jars into `folder` and check them. Safe to repeat, even at the same time."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as draft:
        _download(Path(draft), jars, environ)
        for jar in jars:
            check(Path(draft) / jar.file, jar)
        return [(Path(draft) / jar.file).replace(folder / jar.file) for jar in jars]


def check(file: Path, jar: Jar) -> None:
    """Refuse a file that is not the published artifact."""
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if digest != jar.sha256:
        raise MissingDependency(
            f"the file fetched for {jar.file} has the wrong SHA-256: {digest}, not {jar.sha256}",
            hint="ask the operator of that repository; the file was deleted",
        )


def _download(folder: Path, jars: Sequence[Jar], environ: Mapping[str, str]) -> None:
    names = " and ".join(jar.file for jar in jars)
    try:
        ivy.fetch([(jar.organisation, jar.name, jar.version) for jar in jars], folder, environ)
    except ivy.FetchFailed as failure:
        raise MissingDependency(
            f"jars are missing ({names}) and can't be fetched: {failure}",
            hint='with network, run "python -m sluice.spark.jars"; without, copy '
            f"{names} to a folder and set SLUICE_JARS to it",
        ) from failure


if __name__ == "__main__":
    try:
        print(*classpath(drivers=[name for name in DRIVERS if name in sys.argv[1:]]), sep="\n")
    except MissingDependency as error:
        sys.exit(f"error: {error}")
