"""Where every table stands: its version and rows, how far behind its inputs it is, and since when.

And what stands in its way: its last failure, those of tables before it, intervals that are missing.
Read from the heads of the logs alone, no data file is opened but the small table of deliveries.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from sluice.errors import HistoryLost
from sluice.serving.commits import Commit, back_from
from sluice.serving.scan import Scan
from sluice.serving.snapshot import NotBuilt, Snapshot
from sluice.specs.definition import definition
from sluice.specs.project import Project
from sluice.specs.spans import Span, gaps
from sluice.specs.table import Table
from sluice.storage.failures import Failure, kept
from sluice.storage.intervals import deliveries
from sluice.storage.lake import LakeLayout, layout
from sluice.storage.lineage import is_past
from sluice.storage.position import UPKEEP, Head, head

Range = tuple[int | None, int]  # (from, to] versions; from is None where nothing was read yet
REDEFINED = "built by another definition: run `sluice rebuild {}`, or take the change back"
WORKERS = 8


@dataclass(frozen=True)
class Lag:
    """What an input has that a table does not reflect yet."""

    input: str
    read: int | None
    newest: int
    versions: int
    since: datetime | None


@dataclass(frozen=True)
class LastBatch:
    """The last commit that was not upkeep."""

    number: int
    kind: str
    run: str
    at: datetime


@dataclass(frozen=True)
class TableStatus:
    """One table; `version` is None while it has not been built.

    `failure`: its last one, if no batch has succeeded since; `blocked_by`: the tables that it
    depends on and that have failed; `waits_for`: its inputs that are not there yet; `missing`:
    intervals that were not delivered, between others that were.
    """

    table: str
    kind: str
    version: int | None = None
    rows: int | None = None
    lag: tuple[Lag, ...] = ()
    last: LastBatch | None = None
    quarantined: int = 0
    refills: int = 0
    problem: str = ""
    failure: Failure | None = None
    blocked_by: tuple[str, ...] = ()
    waits_for: tuple[str, ...] = ()
    missing: tuple[Span, ...] = ()

    @property
    def is_behind(self) -> bool:
        return bool(self.lag)


@dataclass
class _Heads:
    """The heads of a lake's tables, each read once."""

    lake: LakeLayout
    _known: dict[str, Head | None] = field(default_factory=dict)

    def of(self, table_id: str) -> Head | None:
        if table_id not in self._known:
            self._known[table_id] = head(self.lake.uri(table_id))
        return self._known[table_id]


def pending(project: Project, table: Table) -> dict[str, Range]:
    """Which versions of which inputs the table does not reflect yet; empty if it is up to date.

    A view whose inputs are not all built yet has nothing to do either; one whose definition has
    changed has everything to do, so that somebody hears of it.
    """
    return _pending(project, table, _Heads(layout(project)))


def status(project: Project, tables: Iterable[Table] | None = None) -> list[TableStatus]:
    """The status of these tables, or of all, in the order of the graph."""
    chosen = project.graph.tables.values() if tables is None else tables
    stored = [table for table in chosen if table.is_stored]
    heads, failures = _Heads(layout(project)), kept(layout(project))
    with ThreadPoolExecutor(WORKERS) as workers:
        found = workers.map(partial(_status, project, heads), stored)
        troubled = (_troubled(project, failures, *one) for one in zip(stored, found, strict=True))
        return list(troubled)


def _troubled(
    project: Project, failures: Mapping[str, Failure], table: Table, stands: TableStatus
) -> TableStatus:
    """The status with what is kept of failures."""
    before = sorted(project.graph.needed_by(table) & failures.keys())
    return replace(stands, failure=failures.get(table.id), blocked_by=tuple(before))


def missing(project: Project, table: Table) -> tuple[Span, ...]:
    """The intervals of a source that were not delivered, between others that were."""
    if table.kind != "source" or table.spec.delivery != "interval":  # type: ignore[union-attr]
        return ()
    known = deliveries(layout(project).uri(table.id, "intervals"))
    schedule = project.pipelines[table.pipeline].schedule
    return tuple(gaps((d.interval for d in known), schedule))


def _status(project: Project, heads: _Heads, table: Table) -> TableStatus:
    try:
        at = heads.of(table.id)
        if at is None or not at.is_filled:
            waits = tuple(_not_filled(project, table, heads))
            return TableStatus(table.id, table.kind, waits_for=waits)
        ranges = _pending(project, table, heads)
    except HistoryLost as error:
        return TableStatus(table.id, table.kind, problem=error.message)
    return TableStatus(
        table.id,
        table.kind,
        version=at.version,
        rows=Snapshot.open(table.name, at.uri, at.version).count(),
        lag=tuple(_lag(heads, input_id, range_) for input_id, range_ in ranges.items()),
        last=_last_batch(at),
        quarantined=_quarantined(heads.lake, table),
        refills=_refills(heads, table),
        problem=REDEFINED.format(table.id) if _is_redefined(table, at) else "",
        missing=missing(project, table),
    )


def _pending(project: Project, table: Table, heads: _Heads) -> dict[str, Range]:
    at = heads.of(table.id)
    is_filled = at is not None and at.position is not None and at.is_filled
    if at is None or not is_filled or _is_redefined(table, at):
        return _unread(project, table, heads)
    return dict(_behind(table.id, at, heads))


def _is_redefined(table: Table, at: Head) -> bool:
    """Whether the table was built by another definition than the configuration has now."""
    built_by = at.position.definition if at.position else ""
    return table.is_view and bool(built_by) and built_by != definition(table)


def _unread(project: Project, table: Table, heads: _Heads) -> dict[str, Range]:
    """Everything, once all that the table reads is there."""
    if any(_not_filled(project, table, heads)):
        return {}
    found = {i: heads.of(i) for i in _read(project, table)}
    return {i: (None, h.version) for i, h in found.items() if h}


def _not_filled(project: Project, table: Table, heads: _Heads) -> Iterator[str]:
    """The stored tables that it reads and that no batch has filled yet."""
    for input_id in _read(project, table):
        at = heads.of(input_id)
        if at is None or not at.is_filled:
            yield input_id


def _read(project: Project, table: Table) -> list[str]:
    return list(dict.fromkeys(t for i in table.inputs for t in _stored(project, i)))


def _stored(project: Project, table_id: str) -> Iterator[str]:
    """The stored tables behind an input: a dimension view stands for those that it joins."""
    table = project.graph.tables[table_id]
    if table.is_stored:
        yield table_id
    else:
        for input_id in table.inputs:
            yield from _stored(project, input_id)


def _behind(table_id: str, at: Head, heads: _Heads) -> Iterator[tuple[str, Range]]:
    """The inputs that went on since the position; an internal input's own inputs as well."""
    assert at.position is not None
    for input_id, pin in at.position.inputs.items():
        newest = heads.of(input_id)
        if newest is None:
            yield input_id, (None, 0)
            continue
        if not is_past(newest, pin):
            yield input_id, (None, newest.version)
        elif newest.data_version > pin.version:
            yield input_id, (pin.version, newest.version)
        if input_id.startswith(f"{table_id}__") and newest.position:
            yield from _behind(table_id, newest, heads)


def _lag(heads: _Heads, input_id: str, range_: Range) -> Lag:
    read, newest = range_
    waiting = [c for c in _since(heads.lake.uri(input_id), newest, read) if c.changes_data]
    since = waiting[-1].at if waiting else None
    return Lag(input_id, read, newest, len(waiting), since)


def _since(uri: str, newest: int, read: int | None) -> Iterator[Commit]:
    for found in back_from(uri, newest):
        if read is not None and found.version <= read:
            return
        yield found


def _last_batch(at: Head) -> LastBatch | None:
    for found in back_from(at.uri, at.version):
        position = found.position
        if position and position.kind not in UPKEEP:
            return LastBatch(position.batch, position.kind, position.run, found.at)
    return None


def _refills(heads: _Heads, table: Table) -> int:
    """How many groups of a top-k were filled again from its input, since it was built."""
    state = heads.of(f"{table.id}__state") if table.kind == "topk" else None
    return state.position.refills if state and state.position else 0


def _quarantined(lake: LakeLayout, table: Table) -> int:
    """How many rows of a source or dimension lie in quarantine, by its deliveries."""
    if table.kind not in ("source", "dimension"):
        return 0
    column = ("rows_quarantined",)
    try:
        deliveries = Snapshot.open(table.name, lake.uri(table.id, "intervals"))
    except NotBuilt:
        return 0
    counts = (t[column[0]].to_pylist() for t in Scan(deliveries).unordered(column))
    return sum(n or 0 for page in counts for n in page)
