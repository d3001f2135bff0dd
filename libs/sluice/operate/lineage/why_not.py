"""Explanation of a row that is not there: what keeps it out, and where on its way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sluice.operate.lineage.absent import AbsenceSearch
from sluice.operate.lineage.reasons import AbsenceReason
from sluice.operate.lineage.walk import walking
from sluice.read.changelog import Changelog
from sluice.read.lake import Lake
from sluice.read.naming import Given, absent_of, named, row_of


@dataclass(frozen=True)
class WhyNot:
    """Row that a table lacks, and the reasons, those of the table itself first."""

    table: str
    version: int
    reasons: tuple[AbsenceReason, ...]


def why_not(
    lake: Lake,
    name: str,
    /,
    *key: Any,
    partition: Mapping[str, Any] | None = None,
    version: int | None = None,
    **named: Any,
) -> WhyNot | None:
    """Return why a table has no such row; None if it has one.

    The row is named as for `why`, or by any columns with `partition` alone.
    """
    given = Given.of(key, partition, named)
    return reasons_of(Changelog.open(lake, name, version), given)


def reasons_of(changelog: Changelog, given: Given) -> WhyNot | None:
    """Return why the table has no row of that name, like `why_not`."""
    table, project = changelog.table, changelog.lake.project
    wanted = absent_of(changelog, given)
    there = named(table, wanted, table.identity)
    if there and (not given.is_place or row_of(changelog, given)):
        return None
    declared = project.graph.table(changelog.name)
    hint = f"`sluice read {declared.inputs[0]}` looks for it in an input" if declared.inputs else ""
    with walking(project, declared, f"why {declared.id} lacks a row", hint) as walk:
        found = list(AbsenceSearch(walk).reasons((declared.id, table.version), wanted))
    if there:
        what = f"this partition has {len(there)} rows"
        found.append(AbsenceReason(declared.id, "no such value", what))
    return WhyNot(declared.id, table.version, tuple(found))
