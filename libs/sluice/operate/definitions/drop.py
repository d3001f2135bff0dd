"""Removal of a table from the lake, with its internal tables; refused while it is needed."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from sluice.declare.project import Project
from sluice.delta.notes import failures
from sluice.delta.notes.erasures import begun
from sluice.delta.places import dropped
from sluice.delta.places.folders import remove
from sluice.delta.places.inventory import names_in
from sluice.delta.places.lake_layout import layout
from sluice.errors import UsageError
from sluice.gate.counting import batch_counts
from sluice.language.internal import MARK, declared
from sluice.language.names import unknown
from sluice.operate.definitions.dependents import dependents


@dataclass(frozen=True)
class Dropped:
    """One table that was removed; `kept_at` is empty if its files were deleted at once."""

    table: str
    kept_at: str
    until: datetime | None


def drop(project: Project, table_id: str, now: datetime, *, at_once: bool = False) -> list[Dropped]:
    """Drop a table and those kept beside it. Safe to repeat: another attempt finishes the first.

    Raises UsageError while another table depends on it, and if its files would keep subjects for a
    week that somebody has begun to forget.
    """
    if needed_by := dependents(project, table_id):
        raise UsageError(
            f"{table_id} can't be dropped, because other tables depend on it: "
            f"{', '.join(needed_by)}",
            hint="drop these first; or declare them without it, and run `sluice rebuild` for each",
        )
    lake = layout(project)
    if not at_once and begun(lake, table_id):
        raise UsageError(
            f"{table_id} can't be kept for a week: a `sluice forget` of it has not ended",
            hint="run exactly that command again, then this; or give --now, which keeps nothing",
        )
    target, folders = dropped.drop(lake, table_id, now)
    failures.clear(lake, table_id)
    batch_counts.clear(lake, table_id)
    until = None if at_once else now + dropped.KEPT
    if at_once:
        remove(target)
    dropped.end(lake, table_id)
    pipeline = table_id.partition(".")[0]
    return [Dropped(f"{pipeline}.{f}", "" if at_once else f"{target}/{f}", until) for f in folders]


def found(project: Project, name: str) -> str:
    """Return the id of a table in the lake, declared or not, by its id or only its name."""
    if MARK in name:
        raise UsageError(
            f"{name} belongs to {declared(name)}, and is dropped with it",
            hint=f"name {declared(name)}",
        )
    lake = layout(project)
    known = sorted(names_in(lake) | {*dropped.begun(lake)})
    meant = [i for i in known if name in (i, i.partition(".")[2])]
    if len(meant) > 1:
        raise UsageError(
            f"{name!r} names several tables: {', '.join(meant)}", hint="write <pipeline>.<table>"
        )
    if not meant:
        raise _not_there(lake.root, name, known)
    return meant[0]


def _not_there(root: str, name: str, known: Iterable[str]) -> UsageError:
    message, _, hint = unknown("table", name, known).partition("; ")
    return UsageError(f"{message} in the lake {root}", hint=hint)
