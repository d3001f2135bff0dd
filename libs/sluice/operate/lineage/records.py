"""Explanations of rows as JSON, for programs: of commands and of the server."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from sluice.read.ordered.rows import rows_of
from sluice.read.origin import Origin
from sluice.read.stored.commits import Commit

if TYPE_CHECKING:
    from sluice.operate.lineage.reasons import AbsenceReason
    from sluice.operate.lineage.why import ContributingRows, Delivered

COMMITS = 5  # of each source


def commit_record(commit: Commit) -> dict[str, Any]:
    """Return a commit: version, time, batch, run and kind."""
    made = commit.position
    return {
        "version": commit.version,
        "at": commit.at,
        "batch": made.batch if made else None,
        "run": made.run if made else None,
        "kind": made.kind if made else commit.operation,
    }


def row_record(found: Origin, sources: Iterable["ContributingRows"], most: int) -> dict[str, Any]:
    """Return why a row is as it is, with the first rows that it comes from, for programs."""
    made = commit_record(found.commit) | change_record(found) | {"reads": read_records(found)}
    return made | {"from": [source_record(source, most) for source in sources]}


def change_record(found: Origin) -> dict[str, Any]:
    """Return what a commit did to a row, and the row before and after it."""
    return {"change": found.change, "before": found.before, "after": found.after}


def read_records(found: Origin) -> list[dict[str, Any]]:
    """Return each source's versions, and the newest of their commits, for programs."""
    return [
        {
            "source": read.source,
            "after_version": read.after,
            "to_version": read.upto,
            "count": len(read.commits),
            "commits": [commit_record(commit) for commit in read.commits[:COMMITS]],
        }
        for read in found.reads
    ]


def source_record(source: "ContributingRows", most: int) -> dict[str, Any]:
    """Return a table that the row comes from, with its first rows, for programs."""
    return {
        "table": source.table,
        "version": source.version,
        "count": source.rows.num_rows,
        "rows": rows_of(source.rows.slice(0, most)),
        "deliveries": [_delivery(delivery) for delivery in source.deliveries],
        "untraced": source.untraced or None,
    }


def _delivery(delivery: "Delivered") -> dict[str, Any]:
    start, end = delivery.interval.start, delivery.interval.end
    commit = commit_record(delivery.commit) if delivery.commit else None
    found = {"interval_start": start, "interval_end": end, "rows": delivery.rows}
    return found | {"commit": commit, "files": delivery.files}


def reason_record(reason: "AbsenceReason", most: int) -> dict[str, Any]:
    """Return a reason with its first rows, for programs."""
    return {
        "table": reason.table,
        "why": reason.why,
        "what": reason.what,
        "count": reason.rows.num_rows if reason.rows else None,
        "rows": rows_of(reason.rows.slice(0, most)) if reason.rows else [],
        "others": rows_of(reason.others.slice(0, most)) if reason.others else [],
    }
