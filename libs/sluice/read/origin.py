"""Origin of a row's values: the commit that wrote them, and the sources' versions that it reflects.

The change feed is read backwards, version by version, up to the commit in question. So the cost
follows the feeds of the versions since then. It names commits, not single rows of the inputs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from sluice.delta.log.position import Position
from sluice.delta.places.lake_layout import MissingFiles
from sluice.errors import HistoryLost
from sluice.language.names import CHANGE_TYPE, GOES, Row, declared_id
from sluice.read.changelog import Changelog
from sluice.read.conditions.key_order import KeyRange
from sluice.read.conditions.values import check_columns
from sluice.read.ordered.rows import rows_of
from sluice.read.stored.commits import Commit, back_from, range_of


@dataclass(frozen=True)
class ReflectedVersions:
    """Versions of a delivered table that a commit was the first to reflect.

    They are greater than `after`, and at most `upto`. `commits`: those that changed rows and are
    still in the log, newest first. For a source with a key, they are those of its deliveries.
    """

    source: str
    after: int
    upto: int
    commits: tuple[Commit, ...] = field(repr=False)


@dataclass(frozen=True)
class Origin:
    """The commit that gave a row its values; `before` is None if it is new, `after` if it went."""

    commit: Commit
    before: Row | None
    after: Row | None
    reads: tuple[ReflectedVersions, ...]

    @property
    def change(self) -> str:
        """Kind of change that the commit made to the row: insert, update or delete."""
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"


def origin(changelog: Changelog, row: KeyRange, when: str | None = None) -> Origin | None:
    """Return the commit that last changed the row, or its column `when`.

    None if no version ever had the row. Raises UsageError for a column that the table does not
    have, and HistoryLost if the log no longer reaches back to the change.
    """
    table = changelog.table
    if when is not None:
        check_columns(table.name, [when], table.schema.names)
    oldest, hint = table.version + 1, f"`sluice get {table.name}` shows the row as it is"
    for commit in back_from(table.snapshot.uri, table.version):
        oldest = commit.version
        try:
            before, after = _at(changelog, commit, row)
        except MissingFiles:
            raise
        except HistoryLost as lost:
            raise HistoryLost(lost.message, hint=hint) from None
        if when is None or before is None or after is None:
            is_changed = before != after
        else:
            is_changed = bool(before[when] != after[when])
        if is_changed:
            return Origin(commit, before, after, tuple(_reads(changelog, commit)))
    if oldest > 0:
        raise HistoryLost(
            f"the log of {table.name!r} begins at version {oldest}, after the change", hint=hint
        )
    return None


def _at(changelog: Changelog, commit: Commit, key_range: KeyRange) -> tuple[Row | None, Row | None]:
    """Return the row as it was before the commit and after it; None and None if untouched."""
    if not commit.changes_data:
        return None, None
    rows = pa.concat_tables(map(key_range.rows, changelog.read(commit.version)))
    before = after = None
    for row in rows_of(rows):
        shown = {name: row[name] for name in changelog.snapshot.visible}
        if row[CHANGE_TYPE] in GOES:
            before = shown
        else:
            after = shown
    return before, after


def _reads(changelog: Changelog, commit: Commit) -> Iterator[ReflectedVersions]:
    """Yield, for each delivered table, the versions that this commit was the first to reflect."""
    if commit.position is None:
        return
    below = back_from(changelog.snapshot.uri, commit.version - 1)
    last = next((c.position for c in below if c.position), None)
    earlier = _versions_of(last.as_named_in(commit.position)) if last else {}
    lake = changelog.lake
    for name, upto in sorted(_versions_of(commit.position).items()):
        after, base = earlier.get(name, -1), declared_id(name)
        table = lake.project.graph.tables.get(base)
        if table is not None and after != upto:
            uri = lake.uri(table) + name.removeprefix(base)
            every = range_of(uri, after, upto)
            changing = tuple(found for found in every if found.changes_data)
            yield ReflectedVersions(base, after, upto, changing)


def _versions_of(position: Position) -> dict[str, int]:
    references = {name: pin.version for name, pin in position.references.items()}
    return {**references, **position.frontier}
