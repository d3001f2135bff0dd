"""A loaded project, kept in Python's pickle for the next process.

Loading checks all of a configuration, which takes milliseconds for each table. A kept project is
read only if nobody but the user can write it.
"""

import pickle
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sluice.declare.kept import KeptResult, Noting
from sluice.declare.registry import has_added
from sluice.declare.text.document import Document, Where

MOST_KEPT = 32
OF_TABLE = 3  # parts of a field's place: section, table, field
PLAIN = {("lake",), ("start_date",), ("end_date",)}
SECRETIVE = re.compile("[@?;&]")  # stand beside passwords and tokens in a URL


def recalled(kept: KeptResult, environ: Mapping[str, str]) -> Any:
    """Return the project that is kept; None if there is none, or it is no longer valid."""
    content = None if has_added() else kept.read(environ)
    if content is None:
        return None
    try:
        return pickle.loads(content)  # noqa: S301 - only this user could write it
    except Exception:  # noqa: BLE001 - whatever is wrong with it, it can be loaded again
        return None


def keep(project: Any, documents: Iterable[Document], kept: KeptResult, noted: Noting) -> None:
    """Keep a project, unless it may hold a secret; delete old ones."""
    if has_added() or any(map(_may_hold_secrets, documents)):
        return
    kept.write(pickle.dumps(project, pickle.HIGHEST_PROTOCOL), noted)
    with suppress(OSError):
        files = sorted(kept.file.parent.glob("*.kept"), key=_age)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)


def _may_hold_secrets(document: Document) -> bool:
    """Return whether a value of the environment is used where it might be a secret."""
    for where, own in document.variables.items():
        value = str(document.at(where))
        if value != own and (not _is_plain(where) or SECRETIVE.search(value)):
            return True
    return False


def _is_plain(where: Where) -> bool:
    """Return whether a place holds the lake, a table's path, or a pipeline's dates."""
    return where in PLAIN or (len(where) == OF_TABLE and where[-1] == "path")


def _age(file: Path) -> float:
    return file.stat().st_mtime
