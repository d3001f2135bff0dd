"""The place of tables: `<lake>/<pipeline>/<table>`, internal ones beside them as `<table>__x`.

The number of the lake's format is in a small file at its root, so that no older release writes to
it. The number rises with a change that an older release would misread. A lake without the file has
format 1: it is older than the number, or has no table yet.
"""

import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from deltalake.exceptions import DeltaError

from sluice.declare.project import Project
from sluice.delta.places.folders import SUFFIX, SmallFiles
from sluice.errors import HistoryLost, NewerLake, SluiceError
from sluice.language.names import ENVIRONMENTS, PREVIEWS, QUALITY, REBUILT, declared_id, internal


@dataclass(frozen=True)
class LakeLayout:
    """The folders of one lake. `root` is a local path or an object-store URI."""

    root: str

    def uri(self, table_id: str, suffix: str = "") -> str:
        """Return the URI of `pipeline.table`, or of its internal table `__suffix`."""
        pipeline, table = table_id.split(".", 1)
        return f"{self.root}/{pipeline}/{internal(table, suffix) if suffix else table}"

    @property
    def quality_uri(self) -> str:
        """Folder of quality results and reports."""
        return f"{self.root}/{QUALITY}"

    @property
    def counts_uri(self) -> str:
        """Folder of what was counted in each batch."""
        return f"{self.quality_uri}/facts"


def layout(project: Project) -> LakeLayout:
    """Return the layout of the project's lake; a relative root starts at the project's folder.

    Raises NewerLake if a newer release has written the lake in another format.
    """
    if "://" in project.lake:
        root = project.lake.rstrip("/")
    else:
        root = str((Path(project.root) / project.lake).resolve())
    check_format(root)
    return LakeLayout(root)


def table_at(uri: str) -> str:
    """Return the id of the declared table to which the table at a URI belongs."""
    pipeline, table = uri.rstrip("/").split("/")[-2:]
    return f"{pipeline}.{declared_id(table)}"


def moved_away(uri: str) -> str:
    """Return the repair for a table that can't be fixed in place."""
    return f"restore {uri} from a backup, or move it away and run `sluice rebuild {table_at(uri)}`"


class DamagedLog(HistoryLost, DeltaError):
    """A table's log that can't be read."""

    def __init__(self, uri: str, why: object) -> None:
        name, said = ".".join(uri.rstrip("/").split("/")[-2:]), str(why).partition("\n")[0]
        message = f"the log of {name} can't be read: {shorten(said, 160, placeholder=' …')}"
        super().__init__(message, hint=moved_away(uri))


class MissingFiles(HistoryLost):
    """A table whose newest version has lost data files."""

    def __init__(self, uri: str, version: int, paths: Sequence[str]) -> None:
        name, more = ".".join(uri.rstrip("/").split("/")[-2:]), len(paths) - 1
        others = f", and {more} more" if more else ""
        message = f"version {version} of {name} has lost a data file: {paths[0]}{others}"
        super().__init__(message, hint=moved_away(uri))


FORMAT = 1
FILE = "__format"
ASKED_AGAIN = 10.0  # seconds for which a process relies on an answer
_checked: dict[str, float] = {}
INSIDE = re.compile(f"/(?:{ENVIRONMENTS}|{PREVIEWS}|{REBUILT})/")


def check_format(lake: str) -> None:
    """Raise NewerLake if the lake's format is newer than this release. A server asks repeatedly.

    A lake that can't be read is asked again: what reads it next names the reason.
    """
    whole = _whole_lake(lake)
    if time.monotonic() < _checked.get(whole, 0.0):
        return
    try:
        content = SmallFiles(whole).read(FILE)
    except OSError:
        return
    found = FORMAT if content is None else _number(content, whole)
    if found > FORMAT:
        raise NewerLake(
            f"the lake {whole} has format {found}; this release of Sluice reads formats up to "
            f"{FORMAT}",
            hint="install the release that wrote it, or a newer one, wherever this lake is used; "
            "nothing was changed",
        )
    _checked[whole] = time.monotonic() + ASKED_AGAIN


def _number(content: bytes, lake: str) -> int:
    try:
        return int(json.loads(content)["format"])
    except (ValueError, TypeError, LookupError):
        raise SluiceError(
            f"{lake}/{FILE}{SUFFIX} does not say the lake's format: {content[:80]!r}",
            hint=f'write {{"format": {FORMAT}}} there if this release wrote the lake; nothing was '
            "changed",
        ) from None


def note_format(table_uri: str) -> None:
    """Note the format of the lake in which a table is about to be created, if it has no note.

    A preview's tables leave no note.
    """
    if f"/{PREVIEWS}/" in table_uri:
        return
    notes = SmallFiles(_whole_lake(table_uri.rstrip("/").rsplit("/", 2)[0]))
    if notes.read(FILE) is None:
        notes.write(FILE, json.dumps({"format": FORMAT}).encode())


def _whole_lake(lake: str) -> str:
    """Return the lake in which this one is an environment or a preview; else itself."""
    return INSIDE.split(lake)[0]
