"""The log store for S3 is compiled once, by a script for the Java that runs the compiler."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sluice.errors import MissingDependency
from sluice.spark.jars import SOURCE, log_store

DELTA = [Path("/jars/delta-storage-4.4.0.jar")]
Environ = dict[str, str]


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    return {"SLUICE_CACHE": str(tmp_path / "cache"), "JAVA_HOME": str(tmp_path / "java")}


def java(environ: Environ, script: str) -> Path:
    """A Java that notes each of its runs and does what the script says; `$to` is the jar."""
    program = Path(environ["JAVA_HOME"], "bin", "java")
    program.parent.mkdir(parents=True)
    runs = program.parent / "runs"
    find = 'while [ "$1" != -d ]; do shift; done; to="$2"'
    program.write_text(f'#!/bin/sh\necho "$*" >> "{runs}"\n{find}\n{script}\n')
    program.chmod(0o755)
    (program.parent.parent / "release").write_text('JAVA_VERSION="17.0.1"\n')
    return runs


def test_it_is_compiled_once_for_the_jars_that_are_there(environ: Environ) -> None:
    runs = java(environ, 'echo compiled > "$to"')
    first = log_store(DELTA, environ)
    assert first.read_text() == "compiled\n"
    assert log_store(DELTA, environ) == first
    (run,) = runs.read_text().splitlines()
    assert str(SOURCE) in run
    assert str(DELTA[0]) in run
    assert log_store([Path("/jars/delta-storage-4.5.0.jar")], environ) != first
    assert len(runs.read_text().splitlines()) == 2
    assert {path.suffix for path in first.parent.iterdir()} == {".jar"}


def test_two_that_compile_it_at_once_get_one_whole_jar(environ: Environ) -> None:
    runs = java(environ, 'echo half > "$to"; sleep 0.3; echo whole > "$to"')
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(lambda _: log_store(DELTA, environ), range(2))
    assert first == second
    assert first.read_text() == "whole\n"
    assert len(runs.read_text().splitlines()) == 2
    assert list(first.parent.iterdir()) == [first]


def test_what_the_compiler_says_is_passed_on(environ: Environ) -> None:
    java(environ, "echo 'error: object delta is not a member of package io'; exit 1")
    with pytest.raises(MissingDependency, match="does not compile: error: object delta"):
        log_store(DELTA, environ)
