"""Files of a table from which a changelog removes rows, and the actions for them.

A file is marked or, if it is small, combined with the new rows, so that reads don't open many small
files.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from sluice.changes.diff import CHANGE
from sluice.changes.feed_columns import CHANGE_TYPE
from sluice.delta.log.actions import Action
from sluice.delta.log.added import Added
from sluice.delta.log.vectors import file_name
from sluice.delta.writing import file_actions
from sluice.delta.writing.file_actions import Partition, by_part, rows_of
from sluice.delta.writing.filing import by_key
from sluice.delta.writing.keyed_rows import Matched, Numbers, rows_at
from sluice.limits import Limits


@dataclass(frozen=True)
class MarkedFiles:
    """The files of one version of a table, and the rows that a changelog alters or deletes.

    `folder`: the table's path. `kept`: the rows that files still have, by name. `schema`: that of
    the rows. `partition`: the column by which they are in folders, if any.
    """

    folder: str
    files: Added
    kept: Mapping[str, pa.BooleanArray]
    found: Sequence[Matched]
    schema: pa.Schema
    limits: Limits
    partition: str | None = None

    def actions(self, rows: pa.Table, key: Sequence[str]) -> Iterator[Action]:
        """Write the changelog's new rows and its feed; yield the actions of its commit."""
        come = self._shown(rows.filter(pc.not_equal(rows[CHANGE], "delete")))
        parts = [(part, new, self._loose(part)) for part, new in by_part(come, self.partition)]
        loose = [path for _, _, some in parts for path in some]
        marked = [one.path for one in self.found if one.path not in loose]
        for path in (*marked, *loose):
            yield file_actions.gone(self.files[path], changes=True)
        for path in marked:
            yield from self._marked(path)
        for part, new, some in parts:
            left = [rows_at(self.folder, path, self._numbers(path), new.schema) for path in some]
            yield from self._added(by_key(pa.concat_tables([new, *left]), key), part)
        for part, changes in by_part(self._changes(rows), self.partition):
            yield file_actions.fed(self.folder, changes, part)

    def _loose(self, partition: Partition) -> list[str]:
        """Return the small files of a partition, once they are many.

        A piece of upkeep has few rows where they are wide, and is not small.
        """
        files = self._by_part[partition.folder]
        whole = sum(map(rows_of, files))
        usual = min(self.limits.file_rows, whole) if self.partition else self.limits.file_rows
        few = (file for file in files if 2 * rows_of(file) < usual)
        small = [file["path"] for file in few if 4 * file["size"] < self.limits.piece_bytes]
        return small if len(small) >= self.limits.small_files else []

    @cached_property
    def _by_part(self) -> Mapping[str, Sequence[Action]]:
        found = defaultdict[str, list[Action]](list)
        for file in self.files.values():
            found[Partition.of(file).folder].append(file)
        return found

    @cached_property
    def _gone(self) -> dict[str, Numbers]:
        return {one.path: one.numbers for one in self.found}

    def _still(self, path: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return, for each row of a file, whether it stays."""
        still = np.ones(rows_of(self.files[path]), dtype=bool)
        if (mask := self.kept.get(file_name(path))) is not None:
            still[: len(mask)] = mask.to_numpy(zero_copy_only=False)
        still[self._gone.get(path, [])] = False
        return still

    def _numbers(self, path: str) -> Numbers:
        return np.flatnonzero(self._still(path))

    def _marked(self, path: str) -> Iterator[Action]:
        """Yield a file with all rows marked that have gone, unless no row stays."""
        still, file = self._still(path), self.files[path]
        if still.any():
            lost = BitMap64(np.flatnonzero(~still).astype(np.uint64))
            yield file_actions.marked(file, lost, changes=True)

    def _added(self, rows: pa.Table, partition: Partition) -> Iterator[Action]:
        """Write rows; yield their file, if there are any."""
        if rows.num_rows:
            yield file_actions.come(self.folder, rows, partition, changes=True)

    def _changes(self, rows: pa.Table) -> pa.Table:
        """Return the change data, with old rows as the files had them."""
        parts = [self._fed(rows, "insert", "insert")]
        parts.append(self._fed(rows, "update", "update_postimage"))
        for one in self.found:
            old = one.rows.append_column(CHANGE, rows[CHANGE].take(pa.array(one.places)))
            parts.append(self._fed(old, "update", "update_preimage"))
            parts.append(self._fed(old, "delete", "delete"))
        return pa.concat_tables(parts)

    def _fed(self, rows: pa.Table, change: str, name: str) -> pa.Table:
        chosen = self._shown(rows.filter(pc.equal(rows[CHANGE], change)))
        names = pa.array([name] * chosen.num_rows, pa.string())
        return chosen.append_column(CHANGE_TYPE, names)

    def _shown(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.schema.names).cast(self.schema)
