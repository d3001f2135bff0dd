"""Finding Delta's jars, with small files for jars and a script for the Java that fetches them."""

import hashlib
from pathlib import Path

import pytest

from sluice.errors import MissingDependency
from sluice.spark import jars
from sluice.spark.jars import Jar, classpath, has_jars

CONTENT = {"delta": b"delta's classes", "storage": b"storage's classes"}
Environ = dict[str, str]


def published(name: str) -> Jar:
    content = CONTENT[name]
    return Jar(name, "1.0", len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture(autouse=True)
def small_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "DELTA", {"4.2": published("delta")})
    monkeypatch.setattr(jars, "STORAGE", published("storage"))
    installed(monkeypatch, "4.2.0", "4.2.0")


def installed(monkeypatch: pytest.MonkeyPatch, spark: str, client: str) -> None:
    versions = {"pyspark": spark, "pyspark-client": client}
    monkeypatch.setattr(jars, "version", versions.__getitem__)


@pytest.fixture
def environ(tmp_path: Path) -> Environ:
    return {"SLUICE_CACHE": str(tmp_path / "cache"), "JAVA_HOME": str(tmp_path / "java")}


def resolver(environ: Environ, script: str) -> None:
    """A Java whose Ivy does what the script says; `$out` is the pattern it is to retrieve to."""
    java = Path(environ["JAVA_HOME"]) / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\nfor out in "$@"; do :; done\nfolder="${{out%/*}}"\n{script}\n')
    java.chmod(0o755)
    (java.parent.parent / "release").write_text('JAVA_VERSION="17.0.1"\n')


def serving(contents: dict[str, bytes]) -> str:
    return "\n".join(
        f"""printf '%s' "{content.decode()}" > "$folder/{name}-1.0.jar" """
        for name, content in contents.items()
    )


def put(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True)
    for name, content in contents.items():
        (folder / f"{name}-1.0.jar").write_bytes(content)
    return folder


def test_jars_of_the_users_folder_come_first(environ: Environ, tmp_path: Path):
    put(tmp_path / "cache" / "jars", CONTENT)
    mine = put(tmp_path / "mine", CONTENT)
    found = classpath(environ | {"SLUICE_JARS": str(mine)})
    assert found == [mine / "delta-1.0.jar", mine / "storage-1.0.jar"]


def test_folders_that_lack_a_jar_are_refused_unfetched(environ: Environ, tmp_path: Path):
    mine = put(tmp_path / "mine", {"delta": CONTENT["delta"]})
    with pytest.raises(MissingDependency, match=r"SLUICE_JARS .*storage-1\.0\.jar"):
        classpath(environ | {"SLUICE_JARS": str(mine)})
    assert not (tmp_path / "cache").exists()


def test_missing_jars_are_fetched_once(environ: Environ, tmp_path: Path):
    resolver(environ, serving(CONTENT))
    fetched = classpath(environ)
    assert [jar.read_bytes() for jar in fetched] == list(CONTENT.values())
    assert {*fetched[0].parent.iterdir()} == {*fetched}
    (tmp_path / "java" / "bin" / "java").unlink()
    assert classpath(environ) == fetched


def test_a_jar_of_half_its_size_is_fetched_again(environ: Environ, tmp_path: Path):
    folder = put(tmp_path / "cache" / "jars", CONTENT | {"delta": b"delta's"})
    assert not has_jars(folder, [jars.delta(), jars.STORAGE])
    resolver(environ, serving(CONTENT))
    assert classpath(environ)[0].read_bytes() == CONTENT["delta"]


def test_a_jar_with_other_content_is_refused_and_not_kept(environ: Environ, tmp_path: Path):
    resolver(environ, serving(CONTENT | {"storage": b"storage's c1asses"}))
    with pytest.raises(MissingDependency, match=r"storage-1\.0\.jar has the wrong SHA-256"):
        classpath(environ)
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_without_a_network_the_resolvers_last_words_and_the_way_out_are_shown(environ: Environ):
    resolver(environ, "echo ':: resolving ::'; echo 'Server access error'; exit 1")
    with pytest.raises(MissingDependency) as raised:
        classpath(environ)
    assert "can't be fetched: Server access error" in raised.value.message
    assert "set SLUICE_JARS" in raised.value.hint


def test_a_settings_file_sends_ivy_elsewhere(environ: Environ, tmp_path: Path):
    resolver(environ, f'echo "$@" > {tmp_path}/said\n{serving(CONTENT)}')
    classpath(environ | {"SLUICE_IVY_SETTINGS": "/etc/ivysettings.xml"})
    assert "-settings /etc/ivysettings.xml" in (tmp_path / "said").read_text()


def test_drivers_are_fetched_where_declared(
    environ: Environ, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    driver = Jar("driver", "1.0", 3, hashlib.sha256(b"jar").hexdigest(), "org.example")
    monkeypatch.setitem(jars.DRIVERS, "postgresql", (driver,))  # type: ignore[arg-type]
    put(tmp_path / "cache" / "jars", CONTENT)
    resolver(environ, serving({"driver": b"jar"}))
    assert len(classpath(environ)) == 2
    assert classpath(environ, ["postgresql"])[2].read_bytes() == b"jar"


def test_a_jar_belongs_to_the_spark_that_is_installed(monkeypatch: pytest.MonkeyPatch):
    older = Jar("delta_4.1", "1.0", 3, "")
    monkeypatch.setattr(jars, "DELTA", {"4.1": older, **jars.DELTA})
    installed(monkeypatch, "4.1.3", "4.1.3")
    assert jars.delta() == older


@pytest.mark.parametrize(
    ("spark", "client", "said"),
    [
        ("4.1.3", "4.2.0", "pyspark is 4.1.3, but pyspark-client, .* 4.2.0"),
        ("4.3.0", "4.3.0", "Delta's jar for pyspark 4.3.0 is not known; known are 4.2"),
    ],
)
def test_a_spark_without_its_client_or_its_jar_is_refused(
    monkeypatch: pytest.MonkeyPatch, spark: str, client: str, said: str
):
    installed(monkeypatch, spark, client)
    with pytest.raises(MissingDependency, match=said):
        jars.delta()
