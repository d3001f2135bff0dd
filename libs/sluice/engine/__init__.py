"""Batches of any table: plan, changes in, changed rows out, one commit. Knows no kind.

The report of a batch is plain data: printed by jobs, shown by commands, passed to Airflow.
"""

import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar

from sluice.meter import METER

if TYPE_CHECKING:
    from sluice.delta.writing.own_commits import Committed

T = TypeVar("T")

BatchOutcome = Literal["committed", "position", "unchanged", "waiting", "failed", "skipped"]
IntervalBounds = tuple[str, str]  # of an interval, as ISO 8601


@dataclass(frozen=True)
class BatchReport:
    """One batch of one table. `inputs`: id -> [from, to] versions consumed; times in seconds.

    `reason` explains the strategy. `recomputed`: groups that were read again from the inputs.
    `expired`: arrived rows that were not applied, because their windows had ended too long ago. A
    failed table has an `error`, its hint and exit code. It also has the intervals that the run did
    not deliver, with the zone in which people read them. `is_absent`: no file came for its
    interval. A skipped table has the failed tables that it depends on. `engine`: `process`, or
    `spark` with the reason, unless the settings leave all batches to it.
    """

    table: str
    kind: str
    outcome: BatchOutcome
    version: int | None = None
    batch: int | None = None
    strategy: str = ""
    reason: str = ""
    engine: str = ""
    rows_in: int | None = None
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    quarantined: int = 0
    refills: int = 0
    recomputed: int | None = None
    expired: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    inputs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    quality: tuple[Mapping[str, Any], ...] = ()
    interval: IntervalBounds | None = None
    is_absent: bool = False
    error: str = ""
    hint: str = ""
    exit_code: int = 0
    because: tuple[str, ...] = ()
    undelivered: tuple[IntervalBounds, ...] = ()
    timezone: str = "UTC"

    @classmethod
    def of(cls, table: str, kind: str, done: "Committed", clock: "Clock") -> Self:
        """Return the report of a commit and its time."""
        return cls(
            table,
            kind,
            "committed" if done.changed else "position",
            done.version,
            inserted=done.inserted,
            updated=done.updated,
            deleted=done.deleted,
            seconds=clock.seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, for JSON."""
        return asdict(self)

    @property
    def rows_out(self) -> int:
        """Rows in the table's changelog of this batch."""
        return self.inserted + self.updated + self.deleted


class Clock:
    """Seconds by phase, and the cost of the work since the clock was created."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._began = datetime.now(UTC)
        self._since = time.monotonic()
        weakref.finalize(self, METER.forget, id(self))

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time the work inside."""
        began = time.monotonic()
        METER.begin(id(self))
        try:
            yield
        finally:
            METER.end(id(self))
            self.add(name, time.monotonic() - began)

    @contextmanager
    def timed(self, name: str, context: AbstractContextManager[T]) -> Iterator[T]:
        """Enter `context`, and add the time that entering takes."""
        with ExitStack() as held:
            with self.phase(name):
                entered = held.enter_context(context)
            yield entered

    def spent(self, attempt: str, read: int, whole: int | None = None) -> "Spent":
        """Return the cost of an attempt up to its commit, for its position.

        `read`: bytes of new data; `whole`: bytes of the inputs, which a rebuild would read.
        """
        return Spent(self, attempt, read, whole)

    def to_now(self) -> dict[str, Any]:
        """Return the start of the work, and its seconds and CPU until now."""
        return {
            "began": self._began.isoformat(),
            "seconds": round(time.monotonic() - self._since, 3),
            "cpu": round(METER.note_seconds(id(self)), 3),
        }

    def add(self, name: str, seconds: float) -> None:
        """Add time to a phase."""
        self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)


class Spent(Mapping[str, Any]):
    """Cost of a batch for its commit: computed only when the commit is made."""

    def __init__(self, clock: Clock, attempt: str, read: int, whole: int | None) -> None:
        self._clock = clock
        self._known: dict[str, Any] = {"attempt": attempt, "read": read}
        self._known |= {} if whole is None else {"whole": whole}

    def __getitem__(self, name: str) -> Any:
        return {**self._clock.to_now(), **self._known}[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._clock.to_now(), *self._known))

    def __len__(self) -> int:
        return sum(1 for _ in self)
