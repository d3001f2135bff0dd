"""Work that did not succeed: the last failure of each table, and the subjects of erasures.

Each table has one small JSON file, `<lake>/__quality/failures/<pipeline>.<table>.json`, until a
batch of it succeeds. Nothing is written while nothing fails. A process that is killed keeps
nothing.

Once the rows of an erasure's condition are deleted, it finds nothing. So its subjects are kept in
`<source>__forgetting` until nothing else in the lake has them, and the same command can finish it
after a kill.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from sluice.delta.places.delta_rs import locate
from sluice.delta.places.folders import SmallFiles, files_in, remove, replace_file
from sluice.delta.places.lake_layout import LakeLayout
from sluice.language.names import FORGETTING

ENDING = ".parquet"


@dataclass(frozen=True)
class Unfinished:
    """Subjects of one command, in a separate folder with the drafts of the file."""

    folder: str
    name: str

    @classmethod
    def of(cls, lake: LakeLayout, table_id: str, words: str) -> "Unfinished":
        """Return the erasure of a command by its arguments, even if it has not begun."""
        return cls(lake.uri(table_id, FORGETTING), sha256(words.encode()).hexdigest()[:16])

    def subjects(self) -> pa.Table | None:
        """Return the subjects of an earlier attempt; None if there is none."""
        files, folder = locate(f"{self.folder}/{self.name}")
        try:
            with files.open_input_file(f"{folder}/subjects{ENDING}") as file:
                return pq.read_table(file)
        except FileNotFoundError:
            return None

    def begin(self, subjects: pa.Table) -> None:
        """Keep the subjects, unless an earlier attempt has."""
        if self.subjects() is not None:
            return
        files, folder = locate(f"{self.folder}/{self.name}")
        if isinstance(files, LocalFileSystem):  # a store needs no folders
            files.create_dir(folder, recursive=True)
        content = pa.BufferOutputStream()
        pq.write_table(subjects, content)
        replace_file(
            files, f"{folder}/subjects{ENDING}", content.getvalue().to_pybytes(), is_lasting=True
        )

    def end(self) -> None:
        """Remove the subjects, and the folder of all of them if there are no others."""
        remove(f"{self.folder}/{self.name}")
        if not files_in(*locate(self.folder)):
            remove(self.folder)

    @property
    def place(self) -> str:
        """Its folder within the lake."""
        return "/".join([*self.folder.split("/")[-2:], self.name])


def begun_at(lake: LakeLayout, table_id: str) -> tuple[datetime, ...]:
    """Return the starts of a source's unfinished erasures."""
    found = files_in(*locate(lake.uri(table_id, FORGETTING)))
    times = (file.mtime for file in found if file.base_name.endswith(ENDING) and file.mtime)
    return tuple(sorted(time.astimezone(UTC) for time in times))


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
    if failure := stored_failures(lake).get(table_id):
        keep(lake, replace(failure, table=to))
        clear(lake, table_id)


def stored_failures(lake: LakeLayout) -> dict[str, Failure]:
    """Return the stored failures, by table."""
    files = _files(lake)
    found = (Failure.from_json(files.read(name) or b"") for name in files.names())
    return {failure.table: failure for failure in found if failure}


def _files(lake: LakeLayout) -> SmallFiles:
    return SmallFiles(f"{lake.quality_uri}/failures")
