"""Check that a table is still the one that was read, which a version number does not prove.

A table restored from a backup and then written reuses version numbers for other commits. A reader
of the earlier commits would skip these. So a pin also names the attempt that made its version. If
the log no longer shows the attempt, nothing is proven. Pins without this record are compared by
number only. Cost: for an input that moved on, one commit of the log.
"""

from dataclasses import replace

from sluice.delta.log.actions import Log
from sluice.delta.log.position import Head, Pin, Position
from sluice.errors import InputBehind, InputReplaced, InputRewritten, LogCleaned, TableAltered


def position_at(uri: str, version: int) -> Position | None:
    """Return the position that holds at a version: its own, or else the last one before it.

    None if the log was cleaned.
    """
    log = Log(uri)
    for number in range(version, -1, -1):
        try:
            position = Position.from_json(log.metadata(number))
        except FileNotFoundError:
            return None
        if position and not position.is_overtaken(number):
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


def unreflected(at: Head, pin: Pin, upto: int | None = None) -> tuple[int, int] | None:
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
