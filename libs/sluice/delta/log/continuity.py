"""Check that a table is still the one that was read, built by the current definition and not
overtaken by another writer.

A table restored from a backup and then written reuses version numbers for other commits. A reader
of the earlier commits would skip these. So a pin also names the attempt that made its version. If
the log no longer shows the attempt, nothing is proven. Pins without this record are compared by
number only. Cost: for an input that moved on, one commit of the log.

A table that no batch has filled yet takes the current definition, because nobody has read it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from sluice.declare.meaning import differences, fingerprint, meaning, meaning_of_deliveries
from sluice.declare.table import Table
from sluice.delta.log import Log
from sluice.delta.log.opened import newest_version
from sluice.delta.log.position import Head, Pin, Position
from sluice.delta.places.lake_layout import made_of
from sluice.errors import (
    ConfigError,
    InputBehind,
    InputReplaced,
    InputRewritten,
    LogCleaned,
    LostRace,
    TableAltered,
)
from sluice.language.names import declared_id

_SPARK = re.compile(
    r"\[DELTA_(CONCURRENT_[A-Z_]+|METADATA_CHANGED|PROTOCOL_CHANGED)|s3a\.RemoteFileChangedException"
)
_CREATED = "already exists"
T = TypeVar("T")


def position_at(uri: str, version: int) -> Position | None:
    """Return the position that holds at a version: its own, or else the last one before it.

    None if the log was cleaned.
    """
    log = Log(uri)
    for number in range(version, -1, -1):
        try:
            position = Position.of_commit(number, log.metadata(number))
        except FileNotFoundError:
            return None
        if position:
            return position
    return None


def as_of(at: Head, version: int) -> Head:
    """Return the head as it was at an earlier version."""
    if version == at.version:
        return at
    changed, position = min(at.data_version, version), position_at(at.uri, version)
    if position and at.position:
        position = position.as_named_in(at.position)
    return replace(at, version=version, data_version=changed, position=position)


def last_with_rows_of(at: Head, version: int) -> Head:
    """Return the table's last state that has the rows of an earlier version.

    A vacuum deletes the files of that state last. Cost: one commit of the log, and one for each
    that changed no data.
    """
    log = Log(at.uri)
    try:
        later = range(version + 1, at.version + 1)
        changed = next((v for v in later if log.changes_data(v)), at.version + 1)
    except FileNotFoundError:  # the log was cleaned
        return as_of(at, version)
    return as_of(at, changed - 1)


def is_still(at: Head, pin: Pin) -> bool:
    """True if the commit that was read is surely the one that has its number now."""
    return not pin.attempt or as_of(at, pin.version).pin.attempt == pin.attempt


def is_past(at: Head, pin: Pin) -> bool:
    """True if the version that was read certainly is in the table's history."""
    return at.table == pin.table and at.version >= pin.version and is_still(at, pin)


def unreflected_versions(at: Head, pin: Pin, upto: int | None = None) -> tuple[int, int] | None:
    """Return the versions (from, to] after a pin, if they have new rows; else None.

    `upto`: the version to end with, if it is not the newest.
    """
    last = at.version if upto is None else upto
    return (pin.version, last) if pin.version < min(last, at.data_version) else None


def check_fit(name: str, at: Head | None) -> None:
    """Raise TableAltered if somebody has set up the table `name` differently from Sluice."""
    for what, repair in at.altered if at else ():
        raise TableAltered(f"{name}: {what}", hint=repair)


def check_input(reader: str, name: str, at: Head | None, pin: Pin | None) -> None:
    """Raise HistoryLost unless the version of `name` that `reader` has read is still in its
    history.

    `reader`: the table to rebuild in that case.
    """
    check_fit(name, at)
    if pin is None:
        return
    hint = f"run `sluice rebuild {reader}`: it recomputes and commits what differs"
    if at is None:
        raise InputReplaced(
            f"{reader} was built from {name}, which does not exist any more",
            hint=f"restore it; or rebuild it, and then {hint}",
        )
    if pin.table != at.table:
        raise InputReplaced(
            f"{reader} was built from {name} as table {pin.table}, "
            f"but that has been replaced by another table ({at.table})",
            hint=hint,
        )
    if pin.version > at.version:
        raise InputBehind(
            f"{reader} reflects version {pin.version} of {name}, which is now only at {at.version}",
            hint=hint,
        )
    if is_still(at, pin):
        return
    if as_of(at, pin.version).position is None:
        raise LogCleaned(
            f"{reader} reflects version {pin.version} of {name}, whose log no longer shows "
            "whether that is the commit that was read",
            hint=f"{hint}; keep logs longer than the slowest consumer's lag",
        )
    raise InputRewritten(
        f"{reader} reflects version {pin.version} of {name}, which is another commit now: "
        "an older state was restored, as from a backup, and written again",
        hint=hint,
    )


def check_definition(
    table: Table, before: Head | None, current: dict[str, Any] | None = None
) -> None:
    """Raise ConfigError if a definition other than the current one made the head of `table`.

    Raises TableAltered if somebody has set the table up differently.

    `current`: the meaning to compare with, if it isn't the table's own.
    """
    check_fit(table.id, before)
    if what := what_differs(before, current or meaning(table)):
        name = declared_id(table.id)
        raise ConfigError(
            [f"{name} was built by a definition that differs from the configuration's: {what}"],
            hint=f"run `sluice rebuild {name}`, or `sluice rebuild --changed` for every such "
            "table; or revert the change",
        )


def meanings(table: Table) -> dict[str, dict[str, Any]]:
    """Return the meaning of each stored table behind a declared one, in order."""
    if table.is_delivered:
        is_apart = table.delivered_to != table.id
        visible = {table.id: meaning(table)} if is_apart else {}
        return {table.delivered_to: meaning_of_deliveries(table), **visible}
    return {name: meaning(part) for name, part in _kept_by(table).items()}


def redefinitions(table: Table, head_of: Callable[[str], Head | None]) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables.

    A view that no batch has filled has none: its first batch replaces its state.
    """
    parts = _kept_by(table)
    found = {
        name: what_differs(head_of(name), now)
        for name, now in meanings(table).items()
        if name not in parts or not is_unfilled(head_of(parts[name].id))
    }
    return {name: what for name, what in found.items() if what}


def _kept_by(table: Table) -> dict[str, Table]:
    return made_of(table) if table.is_view else {}


def what_differs(at: Head | None, current: dict[str, Any]) -> str:
    """Return the difference from the definition that built a table; nothing if there is none."""
    if at is None or at.position is None or is_unfilled(at):
        return ""
    is_other = is_of_another(at, fingerprint(current))
    return differences(at.position.meaning, current) if is_other else ""


def is_of_another(at: Head | None, current: str) -> bool:
    """True if the head of a table was built by a definition other than `current`."""
    made_by = at.position.definition if at and at.position else ""
    return bool(made_by) and made_by != current


def is_unfilled(at: Head | None) -> bool:
    """True if no batch has filled the table yet."""
    return at is None or not at.is_filled


def replaceable(at: Head | None, current: str) -> Head | None:
    """Return the head of an empty table of another definition, which the first batch replaces."""
    return at if at and not at.is_filled and is_of_another(at, current) else None


@contextmanager
def lost_race_of(uri: str, version: int) -> Iterator[None]:
    """Raise LostRace in place of a committer's error if `uri` has moved on from `version`.

    A missing table has the version -1.
    """
    try:
        yield
    except Exception as error:
        if _is_conflict(error) and newest_version(uri) > version:
            raise lost_race(uri, version) from error
        raise


def repeat_after_races(work: Callable[[], T], attempts: int) -> T:
    """Return what `work` returns; call it again if another writer committed first.

    Raises LostRace if that was so each time.
    """
    for _ in range(attempts - 1):
        with suppress(LostRace):
            return work()
    return work()


def _is_conflict(error: Exception) -> bool:
    """True for the errors of a lost race, all of which were observed.

    delta-rs, committing onto exactly one version, raises CommitFailedError, or a plain DeltaError
    if a table was created meanwhile. Spark raises one of Delta's concurrency errors. Their codes
    appear in the message, also through Spark Connect. In S3, Spark may also raise S3A's own error
    for a file that another writer created meanwhile, which Delta passes on.
    """
    if isinstance(error, CommitFailedError):
        return True
    if isinstance(error, DeltaError):
        return _CREATED in str(error)
    return bool(_SPARK.search(str(error)))


def lost_race(uri: str, version: int) -> LostRace:
    """Return the error for a writer that was not first."""
    return LostRace(
        f"another writer committed to {uri} after version {version}: this attempt was discarded",
        hint="nothing is lost; the next attempt starts from the new head",
    )
