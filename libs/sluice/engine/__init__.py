"""Batches of any table: plan, changes in, changed rows out, one commit. Knows no kind.

The report of a batch is plain data: printed by jobs, shown by commands, passed to Airflow.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from sluice.delta.log.position import Head
    from sluice.delta.writing.own_commits import Committed
    from sluice.meter import Clock

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

    @classmethod
    def unchanged(cls, table: str, kind: str, at: "Head | None") -> Self:
        """Return the report of a table that has nothing to do."""
        batch = at.position.batch if at and at.position else None
        return cls(table, kind, "unchanged", at.version if at else None, batch)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dict, for JSON."""
        return asdict(self)

    @property
    def rows_out(self) -> int:
        """Rows in the table's changelog of this batch."""
        return self.inserted + self.updated + self.deleted
