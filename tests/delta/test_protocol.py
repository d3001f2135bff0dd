"""The protocol of positions, fences and upkeep, played at random against dictionaries.

A source and a view over it, which counts its values, are kept by the real log, commits, feeds and
upkeep; what computes the counts is a few lines of Python. Anything may happen at any time: batches,
batches that sleep over others, compaction, vacuum, checkpoints, foreign commits, restores, lost
history. Whatever happens, the view is what it was at the version that it names, or is refused.
"""

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from pyspark.sql.types import StructType
from tests.delta.tables import ID_AND_V, Small, a_position
from tests.support.games import games

from sluice.changes import Direction
from sluice.delta.log.continuity import check_input
from sluice.delta.log.position import REBUILD, Head, Pin, Position, head_as_found, positions
from sluice.delta.reading.local import read_feed
from sluice.delta.reading.spark_reads import check_feed
from sluice.delta.upkeep.maintenance import Filing, vacuum
from sluice.delta.upkeep.rewriting import may_merge, merge
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults
from sluice.delta.writing.commit import commit_arrow, commit_position
from sluice.errors import ForeignCommit, HistoryLost, LostRace
from sluice.limits import Limits

COUNTS = StructType().add("v", "string").add("n", "long")
COUNTED = pa.schema([("v", pa.string()), ("n", pa.int64())])
Changes = list[tuple[str, dict[str, Any]]]
Batch = tuple[Head, Changes, Position]
rows = st.dictionaries(st.integers(1, 4), st.sampled_from(["a", "b", "c"]), max_size=3)
gone = st.sets(st.integers(1, 4), max_size=2)
sides = st.sampled_from(["source", "view"])


class Protocol(RuleBasedStateMachine):
    """`states`: what the source holds by the model, at each of its versions and after each attempt.

    `line`: whose attempt holds at which version.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        self.source = Small.create(path, ID_AND_V, ["id"], commit_arrow)
        self.view = Small.create(path, COUNTS, ["v"], commit_arrow)
        self.states: dict[str, dict[int, str]] = {self.source.head.pin.attempt: {}}
        self.line = {0: self.source.head.pin.attempt}
        self.asleep: list[Batch] = []
        self.is_foreign = self.is_lost = False
        self.backups: list[tuple[Path, dict[int, str]]] = []

    def teardown(self) -> None:
        faults = [what for t in (self.source, self.view) for what in feed_faults(t.uri)]
        self.folder.cleanup()
        assert faults == []

    def table(self, side: str) -> Small:
        return self.source if side == "source" else self.view

    @property
    def now(self) -> dict[int, str]:
        return self.states[self.line[max(self.line)]]

    @property
    def is_rewritten(self) -> bool:
        """Whether the view has read what is not the source's past."""
        at = head_as_found(self.view.uri)
        pin = self.recorded(at) if at else None
        return pin is not None and self.line.get(pin.version) != pin.attempt

    @rule(come=rows, gone=gone)
    def the_source_changes(self, come: dict[int, str], gone: set[int]) -> None:
        changes: Changes = [
            ("delete", {"id": i, "v": self.now[i]}) for i in gone - come.keys() if i in self.now
        ]
        for i, v in come.items():
            if self.now.get(i) != v:
                changes.append(("update" if i in self.now else "insert", {"id": i, "v": v}))
        kept = {i: v for i, v in self.now.items() if i not in gone}
        if changes:
            self.source.commit(*changes)
        else:
            self.source.position_only()
        self.holds({**kept, **come})

    @rule()
    def a_batch_runs(self) -> None:
        try:
            batch = self.planned()
        except HistoryLost:
            assert self.is_foreign or self.is_lost or self.is_rewritten, "nothing was lost"
            self.rebuild()
            return
        assert not self.is_foreign, "rows of others were overlooked"
        assert not self.is_rewritten, "it was taken for what was read"
        if batch:
            self.commit(batch)

    @rule()
    def a_batch_is_planned_and_sleeps(self) -> None:
        is_well = not (self.is_foreign or self.is_lost or self.is_rewritten)
        if is_well and (batch := self.planned()):
            self.asleep.append(batch)

    @precondition(lambda self: self.asleep)
    @rule()
    def a_sleeper_wakes(self) -> None:
        batch = self.asleep.pop(0)
        version = DeltaTable(self.view.uri).version()
        try:
            self.commit(batch)
        except LostRace:
            assert version > batch[0].version, "nobody else was first"
            assert DeltaTable(self.view.uri).version() == version
        else:
            assert version == batch[0].version, "it was computed from rows that are gone"

    @rule(side=sides)
    def files_are_put_together(self, side: str) -> None:
        if not self.is_foreign:
            filing = Filing(self.table(side).head, Limits())
            filing.compact(filing.slices, "compact")
            self.follow(side)

    @rule(side=sides, piece_bytes=st.sampled_from([1, 200, 10_000]))
    def files_are_put_in_order_in_pieces(self, side: str, piece_bytes: int) -> None:
        if not self.is_foreign:
            limits, table = Limits(piece_bytes=piece_bytes), self.table(side)
            filing = Filing(table.head, limits, [Direction(table.key[0])])
            if may_merge(filing):
                merge(filing, filing.slices, "compact")
            self.follow(side)

    @rule(side=sides)
    def files_that_nobody_names_are_deleted(self, side: str) -> None:
        if self.is_foreign:
            return
        at = self.table(side).head
        named = self.recorded(self.view.head) if side == "source" else None
        oldest = named.version if named else 0 if side == "source" else at.version
        vacuum(at, oldest, datetime.now(UTC), least=timedelta(0))
        self.follow(side)

    @rule(side=sides)
    def a_checkpoint_is_made(self, side: str) -> None:
        DeltaTable(self.table(side).uri).create_checkpoint()

    @rule(side=sides)
    def somebody_changes_a_setting(self, side: str) -> None:
        properties = {"delta.checkpointInterval": "100"}
        DeltaTable(self.table(side).uri).alter.set_table_properties(properties)
        self.follow(side)

    @rule()
    def somebody_writes_into_the_view(self) -> None:
        write_deltalake(self.view.uri, pa.table({"v": ["z"], "n": [1]}), mode="append")
        self.is_foreign = True

    @precondition(lambda self: DeltaTable(self.view.uri).version() > 1)
    @rule()
    def somebody_restores_the_view(self) -> None:
        before = set(DeltaTable(self.view.uri).file_uris())
        try:
            DeltaTable(self.view.uri).restore(1)
        except Exception:  # noqa: BLE001 - its files were vacuumed: nothing happens
            return
        after = set(DeltaTable(self.view.uri).file_uris())
        self.is_foreign = self.is_foreign or after != before

    @rule()
    def the_log_of_the_source_is_cleaned(self) -> None:
        """All that is older than the newest commit of Sluice's."""
        DeltaTable(self.source.uri).create_checkpoint()
        log = Path(self.source.uri) / "_delta_log"
        for version in range(positions(self.source.uri)[0][0]):
            (log / f"{version:020d}.json").unlink(missing_ok=True)
        self.is_lost = True

    @rule()
    def the_source_is_copied(self) -> None:
        to = Path(self.folder.name) / f"backup-{len(self.backups)}"
        shutil.copytree(self.source.uri, to)
        self.backups.append((to, dict(self.line)))

    @precondition(lambda self: self.backups)
    @rule()
    def the_source_is_put_back(self) -> None:
        """Alone: the view, or a batch that sleeps, may have read what is not there any more."""
        backup, self.line = self.backups.pop()
        shutil.rmtree(self.source.uri)
        shutil.move(backup, self.source.uri)

    @invariant()
    def the_view_is_what_it_was_at_the_version_that_it_names(self) -> None:
        try:
            at = self.view.head
        except ForeignCommit:
            assert self.is_foreign
            return
        if not self.is_foreign and (pin := self.recorded(at)):
            found = {row["v"]: row["n"] for row in self.view.rows()}
            assert found == Counter(self.states[pin.attempt].values())
            assert list(position_faults(self.view.uri)) == []

    def planned(self) -> Batch | None:
        """The next batch of the view, as the runtime would have it."""
        before, now = self.view.head, self.source.head
        pin = self.recorded(before)
        check_input("view", "s", now, pin)
        if pin and pin.version >= now.data_version:
            return None
        counts = Counter(row["v"] for row in self.source.rows(now.version))
        old = {row["v"]: row["n"] for row in self.view.rows(before.version)}
        touched = old.keys() | counts.keys()
        if pin:
            check_feed(self.source.uri, "s", "view", pin.version, now.version)
            feed = read_feed(self.source.uri, pin.version, now.version)
            touched = set(feed["v"].to_pylist())
        position = a_position(before.next_batch, inputs={"s": now.pin})
        return before, difference(touched, old, counts), position

    def rebuild(self) -> None:
        before, now = head_as_found(self.view.uri), self.source.head
        assert before
        counts = Counter(row["v"] for row in self.source.rows())
        position = a_position(before.next_batch, kind=REBUILD, inputs={"s": now.pin})
        metadata = {"userMetadata": replace(position, after=before.version).to_json()}
        write_deltalake(
            self.view.uri,
            pa.table({"v": list(counts), "n": list(counts.values())}, COUNTED),
            mode="overwrite",
            commit_properties=CommitProperties(custom_metadata=metadata),
        )
        self.is_foreign = self.is_lost = False

    def commit(self, batch: Batch) -> None:
        before, changes, position = batch
        if changes:
            commit_arrow(before, self.view.changelog(changes), ["v"], position)
        else:
            commit_position(before, position)

    def recorded(self, at: Head) -> Pin | None:
        return at.position.inputs.get("s") if at.position else None

    def holds(self, rows: dict[int, str]) -> None:
        """The source, since its newest commit."""
        pin = self.source.head.pin
        self.line[pin.version] = pin.attempt
        self.states[pin.attempt] = rows

    def follow(self, side: str) -> None:
        """A commit that changes no row leaves the source as it is."""
        if side == "source":
            self.holds(self.now)


def difference(touched: Any, old: dict[str, int], new: Counter[str]) -> Changes:
    found: Changes = []
    for v in sorted(touched):
        if v in old and not new[v]:
            found.append(("delete", {"v": v, "n": old[v]}))
        elif new[v] and old.get(v) != new[v]:
            found.append(("update" if v in old else "insert", {"v": v, "n": new[v]}))
    return found


TestProtocol = Protocol.TestCase
TestProtocol.settings = games(default=(25, 15), deep=(1_000, 25))
