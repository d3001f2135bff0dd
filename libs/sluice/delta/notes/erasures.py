"""Subjects of an unfinished erasure, so that the same command can finish it after a kill.

Once a condition's rows are deleted, it finds nothing. So its subjects are kept in
`<source>__forgetting` until nothing else in the lake has them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow.fs import LocalFileSystem

from sluice.delta.places.delta_rs import located
from sluice.delta.places.folders import files_in, remove
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.small_files import replace_file
from sluice.language.internal import FORGETTING

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
        files, folder = located(f"{self.folder}/{self.name}")
        try:
            with files.open_input_file(f"{folder}/subjects{ENDING}") as file:
                return pq.read_table(file)
        except FileNotFoundError:
            return None

    def begin(self, subjects: pa.Table) -> None:
        """Keep the subjects, unless an earlier attempt has."""
        if self.subjects() is not None:
            return
        files, folder = located(f"{self.folder}/{self.name}")
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
        if not files_in(*located(self.folder)):
            remove(self.folder)

    @property
    def place(self) -> str:
        """Its folder within the lake."""
        return "/".join([*self.folder.split("/")[-2:], self.name])


def begun(lake: LakeLayout, table_id: str) -> tuple[datetime, ...]:
    """Return the starts of a source's unfinished erasures."""
    found = files_in(*located(lake.uri(table_id, FORGETTING)))
    times = (file.mtime for file in found if file.base_name.endswith(ENDING) and file.mtime)
    return tuple(sorted(time.astimezone(UTC) for time in times))
