"""Java's archive of the classes that Spark loads: a later start maps it and loads few.

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
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sluice.cache import cache_folder

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
        seen = "\n".join(_stamp(path) for path in (java / "release", *jars, sparks))
        return cls(java, folder, hashlib.sha256(seen.encode()).hexdigest()[:16])

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


def _stamp(path: Path) -> str:
    """Return what Java compares: a path and when it was written."""
    return f"{path} {path.stat().st_mtime_ns if path.exists() else 0}"


def _is_whole(draft: Path) -> bool:
    """True if Java has written the file's beginning, which it does last."""
    with draft.open("rb") as file:
        return any(file.read(4))
