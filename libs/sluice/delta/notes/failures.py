"""The last failure of each table, kept until a batch of that table succeeds.

Each table has one small JSON file, `<lake>/__quality/failures/<pipeline>.<table>.json`. Nothing is
written while nothing fails. A process that is killed keeps nothing.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.small_files import SmallFiles


@dataclass(frozen=True)
class Failure:
    """A table's last failure: its time, reason, hint and exit code.

    `blocks`: tables that depend on this one could not continue.
    """

    table: str
    at: datetime
    reason: str
    hint: str = ""
    exit_code: int = 0
    run: str = ""
    blocks: bool = True

    @classmethod
    def from_json(cls, text: bytes) -> "Failure | None":
        """Read a failure; None if the text is not one, as from a newer release."""
        try:
            fields = json.loads(text)
            return cls(**{**fields, "at": datetime.fromisoformat(fields["at"])})
        except (ValueError, TypeError, KeyError):
            return None

    def to_json(self) -> bytes:
        """Return the content of its file."""
        return json.dumps({**asdict(self), "at": self.at.isoformat()}, indent=1).encode()


def keep(lake: LakeLayout, failure: Failure) -> None:
    """Store a failure in place of the table's earlier one."""
    _files(lake).write(failure.table, failure.to_json())


def clear(lake: LakeLayout, table_id: str) -> None:
    """Delete a table's failure; do nothing if there is none."""
    _files(lake).delete(table_id)


def rename(lake: LakeLayout, table_id: str, to: str) -> None:
    """Rename the table of a kept failure. Safe to repeat."""
    if failure := kept(lake).get(table_id):
        keep(lake, replace(failure, table=to))
        clear(lake, table_id)


def kept(lake: LakeLayout) -> dict[str, Failure]:
    """Return the stored failures, by table."""
    files = _files(lake)
    found = (Failure.from_json(files.read(name) or b"") for name in files.names())
    return {failure.table: failure for failure in found if failure}


def _files(lake: LakeLayout) -> SmallFiles:
    return SmallFiles(f"{lake.quality_uri}/failures")
