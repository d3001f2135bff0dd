"""Number of a lake's format, in a small file at its root, so that no older release writes to it.

The number rises with a change that an older release would misread. A lake without the file has
format 1: it is older than the number, or has no table yet.
"""

import json
import re

from sluice.delta.places.folders import SmallFiles
from sluice.errors import NewerLake
from sluice.language.names import ENVIRONMENTS, PREVIEWS, REBUILT

FORMAT = 1
FILE = "__format"
_checked: set[str] = set()
INSIDE = re.compile(f"/(?:{ENVIRONMENTS}|{PREVIEWS}|{REBUILT})/")


def check_format(lake: str) -> None:
    """Raise NewerLake if the lake's format is newer than this release; asks once in a process.

    A lake that can't be read is asked again: what reads it next names the reason.
    """
    whole = _whole_lake(lake)
    if whole in _checked:
        return
    try:
        content = SmallFiles(whole).read(FILE)
    except OSError:
        return
    found = json.loads(content)["format"] if content else FORMAT
    if found > FORMAT:
        raise NewerLake(
            f"the lake {whole} has format {found}; this release of Sluice reads formats up to "
            f"{FORMAT}",
            hint="install the release that wrote it, or a newer one, wherever this lake is used; "
            "nothing was changed",
        )
    _checked.add(whole)


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
