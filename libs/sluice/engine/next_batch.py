"""The next batch of a table as data, as `sluice plan` shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluice.delta.log.position import REBUILD, head_as_found
from sluice.delta.writing.commit import most_marked
from sluice.engine.batch_plan import Context
from sluice.engine.engine_choice import Bound, RowsRead
from sluice.language.interval import Span

MARKED = "up to {} changed rows are marked; more, or rows in few files, rewrite these files"


@dataclass(frozen=True)
class NextBatch:
    """Next batch of one table.

    `pending`: input -> versions (from, to]. `rows`, `bytes`, `files`: sizes of what is read,
    at most; `touched`: the part of it that is read again for touched groups, by table.
    `engine`: as the batch's report will name it, unless a value decides otherwise; of several
    deliveries, that of the largest. `joins`: dimension -> how it is joined to the facts. A source's
    intervals: `missing` between delivered ones, `due` since they ended, `changed` in their files,
    `gone` without files now.
    """

    table: str
    next: str
    reason: str = ""
    engine: str = ""
    pending: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    references: Mapping[str, int] = field(default_factory=dict)
    joins: Mapping[str, str] = field(default_factory=dict)
    rows: int | None = None
    bytes: int = 0
    files: int = 0
    touched: Mapping[str, RowsRead] = field(default_factory=dict)
    missing: tuple[Span, ...] = ()
    due: tuple[Span, ...] = ()
    changed: tuple[Span, ...] = ()
    gone: tuple[Span, ...] = ()

    @property
    def is_most(self) -> bool:
        """True if less may be read than the sizes say."""
        return any(read.bound == Bound.UP_TO for read in self.touched.values())


def with_marking(context: Context, batch: NextBatch, key: Sequence[str]) -> NextBatch:
    """Return the batch with how few changed rows leave a large table's files as they are."""
    at = head_as_found(context.lake.uri(batch.table))
    if at is None or batch.next == REBUILD or context.settings.commit == "spark":
        return batch
    most = min(most_marked(at, key, context.limits), context.settings.small_changelog)
    said = MARKED.format(f"{most:,}")
    return replace(batch, reason=f"{batch.reason}; {said}") if most else batch
