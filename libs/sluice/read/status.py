"""Status of every table: its version and rows, its lag behind its inputs, and since when; its cost.

It includes what blocks the table: its last failure, failures of tables before it, and missing
intervals. Only the heads of the logs are read, and the small table of deliveries; the brokers of
topics are asked on request.

In the cost of batches, bytes read are those of the new data; `whole` are those of all inputs, which
a rebuild would read. A batch that only delivers has no such inputs. Commits that Sluice made before
it noted costs are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from sluice.declare.meaning import definition_of_deliveries
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.failures import Failure, begun_at, stored_failures
from sluice.delta.intervals import IS_UNDATED, Note, deliveries
from sluice.delta.log.opened import exists, open_version
from sluice.delta.log.position import UPKEEP, Head
from sluice.delta.note_tables import count_rows
from sluice.delta.places.delta_rs import open_table
from sluice.delta.places.lake_layout import MissingFiles, layout, stored_tables
from sluice.delta.reading.landing import fingerprint
from sluice.errors import HistoryLost, SluiceError
from sluice.language.interval import Span, gaps, spans
from sluice.language.names import INTERVALS, QUARANTINE, STATE, declared_id, internal
from sluice.read.commits import Commit, back_from, range_of
from sluice.read.pending import (
    Heads,
    Range,
    Unread,
    first_redefinition,
    not_filled,
    pending_by,
    unread,
)
from sluice.read.snapshot import Snapshot

REDEFINED = "built by another definition ({}): run `sluice rebuild {}`, or revert the change"
WORKERS = 8


@dataclass(frozen=True)
class Lag:
    """An input's changes that a table does not reflect yet."""

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
    """Status of one table; `version` is None until it has been built.

    `failure`: its last one, if no batch has succeeded since. `blocked_by`: failed tables that it
    depends on and that stop it. `waits_for`: its inputs that are not there yet. `missing`:
    intervals that were not delivered, between others that were. `without_files`: intervals that
    were delivered without a file, though their source expects some. `forgetting`: the starts of
    unfinished `sluice forget` commands. `refills`: groups filled again from the input since the
    table was built. `unread`: the partitions of its topic. `unheard`: why they
    are not known. `caution`: why every batch computes the table whole, if it does.
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
    without_files: tuple[Span, ...] = ()
    forgetting: tuple[datetime, ...] = ()
    unread: tuple[Unread, ...] = ()
    unheard: str = ""
    caution: str = ""

    @property
    def is_behind(self) -> bool:
        return bool(self.lag) or any(one.messages for one in self.unread)

    @property
    def is_incomplete(self) -> bool:
        return bool(self.missing or self.without_files)

    @property
    def state(self) -> str:
        """A few words for its urgency."""
        if self.problem or self.failure:
            return "stopped"
        if self.blocked_by:
            return "blocked"
        if self.is_incomplete:
            return "incomplete"
        if self.version is None:
            return "not built"
        return "behind" if self.is_behind else "up to date"


def status(
    project: Project, tables: Iterable[Table] | None = None, *, asks_brokers: bool = False
) -> list[TableStatus]:
    """Return the status of these tables, or of all, in the order of the graph.

    Only with `asks_brokers` it includes what was not read of topics.
    """
    chosen = project.graph.tables.values() if tables is None else tables
    stored = [table for table in chosen if table.is_stored]
    heads, failures = Heads(layout(project)), stored_failures(layout(project))
    blocking = {name for name, failure in failures.items() if failure.blocks}
    with ThreadPoolExecutor(WORKERS) as workers:
        ask = _with_unread if asks_brokers else _status
        found = workers.map(partial(ask, project, heads), stored)
        return [
            replace(
                one,
                failure=failures.get(table.id),
                blocked_by=tuple(
                    sorted({t.id for t in project.graph.ancestors(table.id)} & blocking)
                ),
            )
            for table, one in zip(stored, found, strict=True)
        ]


def _with_unread(project: Project, heads: Heads, table: Table) -> TableStatus:
    """Return the status with the partitions of its topic, or why they are not known."""
    stands = _status(project, heads, table)
    try:
        return replace(stands, unread=unread(project, table))
    except HistoryLost as error:
        return replace(stands, problem=stands.problem or error.message)
    except SluiceError as error:
        return replace(stands, unheard=error.message)


def missing(project: Project, table: Table, noted: Iterable[Note]) -> tuple[Span, ...]:
    """Return a source's intervals that were not delivered, between others that were."""
    if not table.spec.is_by_interval:
        return ()
    schedule = project.pipelines[table.pipeline].schedule
    return tuple(gaps((d.interval for d in noted), schedule))


def without_files(project: Project, table: Table, noted: Iterable[Note]) -> tuple[Span, ...]:
    """Return a source's intervals that were delivered without a file, though it expects some."""
    if not table.spec.expects_files:
        return ()
    no_files = fingerprint((), definition_of_deliveries(table))
    empty = (d.interval for d in noted if not d.rows_read and d.files == no_files)
    return tuple(spans(empty, project.pipelines[table.pipeline].timezone))


def _status(project: Project, heads: Heads, table: Table) -> TableStatus:
    known = TableStatus(table.id, table.declared_kind, caution=table.spec.caution)
    try:
        noted = deliveries(heads.lake.uri(table.id, INTERVALS)) if table.is_delivered else []
        known = replace(
            known,
            missing=missing(project, table, noted),
            without_files=without_files(project, table, noted),
        )
        at = heads.of(table.id)
        if at is None or not at.is_filled:
            return replace(known, waits_for=tuple(not_filled(project, table, heads)))
        found = Snapshot.open(table.name, at.uri, at.version)
        known = replace(known, version=at.version, rows=found.count(), last=_last_batch(at))
        if "://" not in at.uri and (lost := found.missing()):  # a store is not asked for each file
            raise MissingFiles(at.uri, at.version, lost)
        quarantine = heads.lake.uri(table.id, QUARANTINE)
        if exists(quarantine):
            open_version(quarantine)
        undated = count_rows(quarantine, IS_UNDATED) if table.spec.shares_files else 0
        known = replace(
            known,
            quarantined=sum(d.rows_quarantined for d in noted) + undated,
            forgetting=begun_at(heads.lake, table.id) if table.is_delivered else (),
        )
        ranges, redefined = pending_by(project, table, heads), first_redefinition(table, heads)
        state = heads.of(internal(table.id, STATE)) if table.is_view else None
        return replace(
            known,
            lag=tuple(_lag(heads, input_id, range_) for input_id, range_ in ranges.items()),
            refills=state.position.refills if state and state.position else 0,
            problem=REDEFINED.format(redefined, table.id) if redefined else "",
        )
    except HistoryLost as error:
        return replace(known, problem=error.message)


def _lag(heads: Heads, input_id: str, range_: Range) -> Lag:
    read, newest = range_
    later = range_of(heads.lake.uri(input_id), -1 if read is None else read, newest)
    waiting = [found for found in later if found.changes_data]
    return Lag(input_id, read, newest, len(waiting), waiting[-1].at if waiting else None)


def _last_batch(at: Head) -> LastBatch | None:
    for found in back_from(at.uri, at.version):
        position = found.position
        if position and position.kind not in UPKEEP:
            return LastBatch(position.batch, position.kind, position.run, found.at)
    return None


By = Literal["table", "pipeline", "day"]
FIELDS = {"table": "id", "pipeline": "pipeline"}


@dataclass(frozen=True)
class Cost:
    """Sum over batches, which count once, with the commits to their states and deliveries.

    `read_of_whole` and `whole` count only batches that have inputs.
    """

    name: str
    batches: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    read: int = 0
    written: int = 0
    read_of_whole: int = 0
    whole: int = 0

    @property
    def share(self) -> float | None:
        """Bytes read divided by those that rebuilds would have read; None if unknown.

        Changes may be more bytes than the tables that they end in, and the share above 1.
        """
        return round(self.read_of_whole / self.whole, 4) if self.whole else None

    def plus(self, other: "Cost") -> "Cost":
        """Return the sum of both, under this name."""
        pairs = zip(astuple(self)[1:], astuple(other)[1:], strict=True)
        return Cost(self.name, *(round(one + more, 3) for one, more in pairs))


def costs(
    project: Project, tables: Iterable[Table], by: By = "table", since: datetime | None = None
) -> list[Cost]:
    """Return the costs of these tables, including their states and deliveries.

    `since`: only commits that are not older.
    """
    found: dict[str, Cost] = {}
    wanted, lake = {table.id: table for table in tables}, layout(project)
    for table_id in sorted(stored_tables(lake)):
        table = wanted.get(declared_id(table_id))
        if table is None:
            continue
        batches = int(table_id == table.id)
        for commit, cost in _read_costs(lake.uri(table_id), since, batches):
            name = f"{commit.at:%Y-%m-%d}" if by == "day" else getattr(table, FIELDS[by])
            found[name] = found.get(name, Cost(name)).plus(cost)
    return [found[name] for name in sorted(found)]


def _read_costs(uri: str, since: datetime | None, batches: int) -> Iterator[tuple[Commit, Cost]]:
    """Yield the commits that note what they cost, each as so many batches."""
    for commit in back_from(uri, open_table(uri).version()):
        if since and commit.at < since:
            return
        if commit.position and commit.position.cost:
            yield commit, _cost(commit, commit.position.cost, batches)


def _cost(commit: Commit, note: Mapping[str, Any], batches: int) -> Cost:
    whole = note.get("whole", 0)
    began = datetime.fromisoformat(note["began"])
    return Cost(
        "",
        batches,
        max((commit.at - began).total_seconds(), note["seconds"]),
        note["cpu"],
        note["read"],
        commit.written,
        note["read"] if whole else 0,
        whole,
    )
