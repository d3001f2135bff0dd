"""Sluice's own log store for Delta on S3, compiled once by the Scala compiler inside Spark.

The log stores in Delta's jar create files by a Hadoop call that S3A 3.5.0 never makes conditional.
This one asks for the condition by its name.
"""

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from sluice.cache import cache_folder
from sluice.errors import MissingDependency
from sluice.spark.java import java_home

SOURCE = Path(__file__).with_name("ConditionalLogStore.scala")
_COMPILER = ("scala-compiler", "scala-library", "scala-reflect", "jline")
_USED = ("scala-library", "hadoop-client-api", "hadoop-client-runtime")
TIMEOUT_S = 300


def log_store(jars: Iterable[Path], environ: Mapping[str, str]) -> Path:
    """Return the jar with the log store, compiled against these and Spark's own.

    Safe to repeat, even at the same time. Takes some seconds the first time.
    """
    against = [*jars, *_sparks(_USED)]
    known = "\n".join([SOURCE.read_text("utf-8"), *(jar.name for jar in against)])
    name = f"sluice-log-store-{hashlib.sha256(known.encode()).hexdigest()[:16]}.jar"
    folder = cache_folder(environ) / "jars"
    if not (folder / name).is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".compile-") as draft:
            _compile(Path(draft, name), against, environ).replace(folder / name)
    return folder / name


def _compile(to: Path, against: Iterable[Path], environ: Mapping[str, str]) -> Path:
    command = [
        str(java_home(environ) / "bin" / "java"),
        *("-cp", _joined(_sparks(_COMPILER)), "scala.tools.nsc.Main", "-nowarn"),
        *("-d", str(to), "-classpath", _joined(against), str(SOURCE)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode or not to.is_file():
        said = (done.stdout + done.stderr).strip().splitlines()
        raise MissingDependency(
            f"the log store for S3 does not compile: {said[0] if said else 'no reason given'}",
            hint="install the pyspark of Sluice's lock again, and the Java that it needs",
        )
    return to


def _sparks(names: Iterable[str]) -> list[Path]:
    """Return jars of the installed Spark."""
    found = find_spec("pyspark")
    folder = Path(found.origin).parent / "jars" if found and found.origin else Path()
    return sorted(jar for name in names for jar in folder.glob(f"{name}-[0-9]*.jar"))


def _joined(jars: Iterable[Path]) -> str:
    return os.pathsep.join(map(str, jars))
