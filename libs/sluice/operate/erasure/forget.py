"""Erasure of subjects from a source and from all tables computed from their rows.

The subjects are noted first, so no delivery brings them back. Their rows are deleted by an ordinary
commit, and views follow by their feeds. Then every place that still has these rows is cleaned, and
the whole lake is searched. Each step may run twice, so another attempt finishes one that was
killed. Landing files and topics are not touched.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sluice.declare.environment_folders import names
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.notes.erasures import Unfinished, begun
from sluice.delta.places.claims import unfinished
from sluice.delta.places.delta_rs import keeps_versions
from sluice.delta.places.environments import read
from sluice.delta.places.failpoint import passing
from sluice.delta.places.inventory import leftovers
from sluice.delta.places.lake_layout import LakeLayout, layout
from sluice.delta.places.overlay import lock, previews
from sluice.engine.context import Context
from sluice.engine.judging.forgotten import Forgotten, keep, noted, with_line
from sluice.engine.planning.nodes import nodes_of
from sluice.engine.planning.plan import plan_batch, plan_rebuild
from sluice.engine.planning.rehearsal import engine_of_rebuild
from sluice.errors import Retryable, UsageError
from sluice.extras import require
from sluice.language.internal import FORGOTTEN, PREVIEWS, declared
from sluice.operate.definitions.dependents import built_from, fed_by, looks_up
from sluice.operate.erasure.forgetting import Done, Forgetting
from sluice.operate.erasure.holders import delivered_in
from sluice.operate.erasure.remains import SearchResult, Sought
from sluice.operate.erasure.subject import Asked, rows_of
from sluice.read.stored.snapshot import Snapshot
from sluice.spark.session import PROCESS, Spark

NOWHERE = "and no file of the lake names it"
LOOK = "look for it with `sluice read --where`"
KEYS = "only --key, or a condition on the key alone, also finds rows of earlier versions"


@dataclass(frozen=True)
class Receipt:
    """Proof of an erasure: its id, what was done where, and what a search of the lake has found.

    `left`: places that still name the subjects, with how often; `elsewhere`: those in tables that
    have no rows of the source. `outside`: the origin of its rows, which was not touched.
    `in_versions`: true if the lake's bucket keeps earlier versions of objects, with the subjects.
    """

    id: str
    source: str
    begun_at: datetime
    ended_at: datetime
    done: tuple[Done, ...]
    searched: SearchResult
    left: dict[str, int]
    elsewhere: dict[str, int]
    outside: str
    in_versions: bool

    @property
    def is_proven(self) -> bool:
        """True if no file of these tables, nor any other file of the lake, names the subjects."""
        return not self.left


def forget(spark: Spark, project: Project, table: Table, asked: Asked) -> Receipt:
    """Remove subjects from a source or a dimension, and return the receipt. Safe to repeat.

    Raises UsageError if nothing in the lake has them.
    """
    holders = delivered_in(table)
    with _alone(project):
        tables = fed_by(project, table)
        _check(spark, project, tables)
        kept = Unfinished.of(layout(project), table.id, asked.words)
        sought = _sought(project, table, asked, kept, layout(project).uri(holders[-1].id))
        note = _noted(spark, project, table, sought)
        passing("noted", table.id)
        for done in Forgetting(spark, project, table, tables, sought, note.id).steps():
            note = with_line(note, done.plain())
            keep(_notes(project, table), note)
            passing("forgotten", done.place)
        searched = sought.search(layout(project).root, leaving_out=kept.place)
        receipt = _receipt(project, tables, note, searched)
        passing("searched", table.id)
        if receipt.is_proven:
            keep(_notes(project, table), replace(note, ended_at=receipt.ended_at))
            passing("ended", table.id)
            kept.end()
        return receipt


@contextmanager
def _alone(project: Project) -> Iterator[None]:
    """Hold the lake's folder against another erasure; the lock ends with the process."""
    root = Path(layout(project).root)
    held = lock(root) if root.is_dir() else -1
    if held is None:
        raise Retryable(
            f"another `sluice forget` is running in {root}",
            hint="wait until it has ended, and run this again",
        )
    try:
        yield
    finally:
        if held >= 0:
            os.close(held)


def _check(spark: Spark, project: Project, tables: Sequence[Table]) -> None:
    """Raise an error if a table could not follow, before anything is changed."""
    lake, ids = layout(project), {t.id for t in tables}
    strangers = {declared(name) for i in ids for name in built_from(lake, i)} - ids
    if strangers:
        raise UsageError(
            f"the lake has tables made from these rows that are not declared: {_listed(strangers)}",
            hint="declare them again, or `sluice drop` each with --now; then run this again",
        )
    if left := leftovers(project, tables):
        raise UsageError(
            f"an earlier query has left tables behind: {_listed(left)}",
            hint="`sluice maintain` removes them; then run this again",
        )
    stored = [t for t in tables if t.is_stored]
    again = [t for t in stored if looks_up(project, t, ids) and exists(lake.uri(t.id))]
    if not spark.is_there and (large := [t.id for t in again if _needs_spark(project, t)]):
        require("spark", f"a rebuild of {_listed(large)}, which looks rows up in it,")
    for node in (n for t in stored for n in nodes_of(t, project.graph)):
        if exists(lake.uri(node.id)):
            plan_batch(node, lake, project.graph, project.limits)
    _check_environments(lake.root)
    _check_previews(lake)


def _needs_spark(project: Project, table: Table) -> bool:
    """True if the rebuild of a table is not computed in this process."""
    context, lake = Context.of(project), layout(project)
    for node in nodes_of(table, context.graph):
        plan = plan_rebuild(node, lake, context.graph, context.limits)
        if engine_of_rebuild(context, node, plan, is_known=True) != PROCESS:
            return True
    return False


def _check_environments(lake: str) -> None:
    """Raise UsageError if other lakes share the tables' files, or this one shares another's."""
    if shared := names(lake):
        raise UsageError(
            f"environments have these rows, too: {_listed(shared)}",
            hint="`sluice env drop` each; then run this again",
        )
    if here := read(lake):
        raise UsageError(
            f"{lake} is the environment {here.name!r}, and its lake would keep the rows",
            hint=f"`sluice env drop {here.name}`; then run this without --env and SLUICE_ENV",
        )


def _check_previews(lake: LakeLayout) -> None:
    going_on = [f"{PREVIEWS}/{name}" for name in previews(lake)]
    if "://" in lake.root:
        going_on += unfinished(lake)
    if going_on:
        hint = "wait until it has ended, and run this again"
        if "://" in lake.root:
            hint += ". If it was killed, remove the folder, or wait until it is a day old"
        raise Retryable(
            f"a preview is running in {lake.root}/{going_on[0]}, which has the tables' files, too",
            hint=hint,
        )


def _sought(project: Project, table: Table, asked: Asked, kept: Unfinished, uri: str) -> Sought:
    """Return and keep the subjects; those of an unfinished attempt come first."""
    found = asked.find(Snapshot.open(table.name, uri).schema, uri)
    spec = table.spec
    sought = replace(found, in_files=spec.names_in_files, in_messages=spec.receives_messages)
    if (before := kept.subjects()) is not None:
        return replace(sought, subjects=before)
    if not sought.subjects.num_rows:
        raise _absent(project, table, f"{table.id} has no such row now", KEYS)
    at = head(uri)
    is_there = at and rows_of(sought, uri, at.version).num_rows
    if not (is_there or sought.search(layout(project).root, leaving_out=kept.place).found):
        raise _absent(project, table, f"{table.id} has no such row, {NOWHERE}")
    kept.begin(sought.subjects)
    return sought


def _noted(spark: Spark, project: Project, table: Table, sought: Sought) -> Forgotten:
    """Return the note of these subjects, a new one unless they were noted before."""
    before = noted(_notes(project, table))

    def note(session: Any) -> Forgotten:
        same = (one for one in before if one.is_of(session, sought.subjects))
        return next(same, None) or Forgotten.of(session, sought.subjects)

    found, _ = spark.best(note, lambda: spark.tune(small=True), project.limits, is_small=True)
    if found not in before:
        keep(_notes(project, table), found)
    return found


def _absent(project: Project, table: Table, what: str, hint: str = LOOK) -> UsageError:
    if begun(layout(project), table.id):
        hint = "an unfinished forget has deleted such rows: run exactly that command again"
    return UsageError(what, hint=f"nothing was changed; {hint}")


def _notes(project: Project, table: Table) -> str:
    return layout(project).uri(table.id, FORGOTTEN)


def _receipt(
    project: Project, tables: Sequence[Table], note: Forgotten, searched: SearchResult
) -> Receipt:
    source, ids = tables[0], {table.id for table in tables}
    others = {p: n for p, n in searched.found.items() if p[0] != "_" and declared(p) not in ids}
    return Receipt(
        note.id,
        source.id,
        note.begun_at,
        datetime.now(UTC),
        tuple(Done(**line) for line in json.loads(note.receipt)),
        searched,
        left={p: n for p, n in searched.found.items() if p not in others},
        elsewhere=others,
        outside=source.spec.outside or project.resolve(source.spec.place),
        in_versions=keeps_versions(layout(project).uri(delivered_in(source)[-1].id)),
    )


def _listed(names: Any) -> str:
    return ", ".join(sorted(names))
