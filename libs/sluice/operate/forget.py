"""Erasure of subjects from a source and from all tables computed from their rows.

The subjects are noted first, so no delivery brings them back. Their rows are deleted by an ordinary
commit, and views follow by their feeds. Then every place that still has these rows is cleaned, and
the whole lake is searched. Each step may run twice, so another attempt finishes one that was
killed. Landing files and topics are not touched.

Receipt of an erasure: what went, what a search of the lake still finds, and what to do there.

A condition like `user_id = 950753` names a person in every table with that column. So its values
are `left` wherever they are found. A key names a row of one source: the same number in the column
of another table may be somebody else, and is reported `elsewhere`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from sluice.declare.environment_folders import names
from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.failures import Unfinished, begun_at
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.delta_rs import keeps_versions
from sluice.delta.places.failpoint import passing
from sluice.delta.places.lake_layout import LakeLayout, layout, leftovers
from sluice.delta.places.overlay import lock, previews, read_environment, remove_unfinished
from sluice.engine.batch_plan import Context
from sluice.engine.engine_choice import engine_of_rebuild
from sluice.engine.forgotten import Forgotten, keep_forgotten, read_forgotten, with_line
from sluice.engine.plan import nodes_of, plan_batch, plan_rebuild
from sluice.errors import Retryable, UsageError
from sluice.extras import require
from sluice.language.names import DROPPED, FORGOTTEN, PREVIEWS, declared_id
from sluice.operate.forgetting import Done, Forgetting, delivered_in
from sluice.operate.subjects import Asked, SearchResult, Sought, rows_of_any, search
from sluice.operate.tables import built_from, fed_by, looks_up
from sluice.read.snapshot import Snapshot
from sluice.spark.engine import PROCESS
from sluice.spark.session import Spark

AGAIN = "run this again; a file of a killed attempt is deleted when it is a day old"
WITH_THEM = "it may be of the tables named here: forget it there"


@dataclass(frozen=True)
class ForgottenIn:
    """Subjects that were forgotten in a source: the values that name each.

    `outside`: the origin of the source's rows, which was not touched.
    """

    source: str
    subjects: tuple[dict[str, Any], ...]
    outside: str


@dataclass(frozen=True)
class Receipt:
    """Proof of an erasure: its id, what was done where, and what a search of the lake has found.

    `left`: places that still name the subjects, with how often; `remedies`: what removes them from
    each. `elsewhere`: tables that have no rows of the sources, but the same values.
    `in_versions`: true if the lake's bucket keeps earlier versions of objects, with the subjects.
    """

    id: str
    begun_at: datetime
    ended_at: datetime
    forgotten: tuple[ForgottenIn, ...]
    done: tuple[Done, ...]
    searched: SearchResult
    left: dict[str, int]
    elsewhere: dict[str, int]
    remedies: dict[str, str]
    in_versions: bool

    @property
    def is_proven(self) -> bool:
        """True if no file of the lake names the subjects."""
        return not self.left


def remedies(
    project: Project, asked: Asked, done: Sequence[Table], places: Iterable[str]
) -> dict[str, str]:
    """Return what removes the subjects from each of these places."""
    found = {place: _remedy(project, asked, done, place) for place in sorted(places)}
    if {*found.values()} != {AGAIN}:
        found |= {p: WITH_THEM for p, how in found.items() if p[0] == "_" and how == AGAIN}
    return found


def _remedy(project: Project, asked: Asked, done: Sequence[Table], place: str) -> str:
    if place.startswith(f"{DROPPED}/"):
        folder = f"{layout(project).root}/{place}"
        return f"`sluice maintain` deletes it when it is a week old; or delete {folder}"
    if place.startswith("_"):
        return AGAIN
    table = project.graph.tables.get(declared_id(place))
    if table is None:
        return f"no pipeline declares it: `sluice drop {declared_id(place)} --now`"
    delivered = (t for t in project.graph.tables.values() if t.is_delivered)
    sources = [t for t in delivered if t not in done and table in fed_by(project, t)]
    named = [t for t in sources if asked.where and asked.fits(t)]
    if named:
        return "; ".join(f'`sluice forget {t.id} --where "{asked.where}"`' for t in named)
    if sources:
        ids = ", ".join(t.id for t in sources)
        return f"forget it in {ids}, by the column that has it there or by its rows' key"
    return AGAIN


NOWHERE = "and no file of the lake names it"
LOOK = "look for it with `sluice read --where`"
KEYS = "only --key, or a condition on the key alone, also finds rows of earlier versions"


@dataclass(frozen=True)
class _Erasure:
    """Subjects of one source or dimension, in the order of their notes. `tables`: it, and those
    made from it.
    """

    table: Table
    tables: Sequence[Table]
    sought: tuple[Sought, ...]
    kept: Unfinished


def sources_with(project: Project, asked: Asked) -> list[Table]:
    """Return the sources and dimensions that have the columns of a condition.

    Raises UsageError if there is none.
    """
    delivered = (t for t in project.graph.tables.values() if t.is_delivered)
    found = [table for table in delivered if asked.fits(table)]
    if not found:
        raise UsageError(
            f"no source or dimension has the columns of {asked.where!r}",
            hint="`sluice tables` lists them; a source may call the column differently",
        )
    return found


def forget(spark: Spark, project: Project, chosen: Sequence[Table], asked: Asked) -> Receipt:
    """Remove subjects from sources and dimensions, and return the receipt. Safe to repeat.

    Raises UsageError if nothing in the lake has them.
    """
    for table in chosen:
        delivered_in(table)  # or it is refused
    with _alone(project):
        fed = [fed_by(project, table) for table in chosen]
        for tables in fed:
            _check(spark, project, tables)
        erasures = _begin(spark, project, fed, asked)
        noted = [_take_notes(spark, project, erasure) for erasure in erasures]
        for erasure, notes in zip(erasures, noted, strict=True):
            _take_steps(spark, project, erasure, notes)
        places = [erasure.kept.place for erasure in erasures]
        every = [sought for erasure in erasures for sought in erasure.sought]
        searched = search(every, layout(project).root, places)
        receipt = _receipt(project, asked, erasures, noted, searched)
        passing("searched", chosen[0].id)
        if AGAIN not in receipt.remedies.values():
            for erasure, notes in zip(erasures, noted, strict=True):
                _end(project, erasure, notes, receipt.ended_at)
        return receipt


def _begin(
    spark: Spark, project: Project, fed: Sequence[Sequence[Table]], asked: Asked
) -> list[_Erasure]:
    """Find the subjects of each table, and keep them for another attempt; then begin."""
    lake, erasures, is_there = layout(project), list[_Erasure](), False
    for tables in fed:
        kept = Unfinished.of(lake, tables[0].id, asked.words)
        if sought := _find_subjects(spark, project, tables[0], asked, kept):
            erasures.append(_Erasure(tables[0], tables, sought, kept))
            uri = lake.uri(tables[0].delivered_to)
            at = head(uri)
            has_rows = at is not None and rows_of_any(sought, uri, at.version).num_rows > 0
            is_there |= kept.subjects() is not None or has_rows
    places = [erasure.kept.place for erasure in erasures]
    every = [sought for erasure in erasures for sought in erasure.sought]
    if not is_there and not (every and search(every, lake.root, places).found):
        raise _absent(project, fed, every)
    for erasure in erasures:
        erasure.kept.begin(erasure.sought[0].subjects)
    return erasures


def _find_subjects(
    spark: Spark, project: Project, table: Table, asked: Asked, kept: Unfinished
) -> tuple[Sought, ...]:
    """Return the subjects of a table; those of an unfinished attempt replace the first."""
    uri, spec = layout(project).uri(table.delivered_to), table.spec
    is_filled = exists(uri)
    schema = (
        Snapshot.open(table.name, uri).schema
        if is_filled
        else _declared_schema(spark, project, table)
    )
    found = asked.find(table, schema, uri if is_filled else "")
    if (before := kept.subjects()) is not None:
        found = (replace(found[0], subjects=before), *found[1:])
    return tuple(
        replace(sought, in_files=spec.names_in_files, in_messages=spec.receives_messages)
        for sought in found
        if sought.subjects.num_rows
    )


def _declared_schema(spark: Spark, project: Project, table: Table) -> pa.Schema:
    """Return the columns of a table that no delivery has filled yet."""
    ddl = ", ".join(f"`{name}` {type_}" for name, type_ in table.columns.items())

    def schema(session: Any) -> pa.Schema:
        return pa.schema(session.createDataFrame([], ddl).toArrow().schema)

    return spark.best(schema, 0, project.limits)[0]


def _take_steps(spark: Spark, project: Project, erasure: _Erasure, notes: list[Forgotten]) -> None:
    """Take the steps of one table; the first note keeps what each has done."""
    steps = Forgetting(
        spark, project, erasure.table, erasure.tables, erasure.sought, notes[0].id
    ).steps()
    passing("noted", erasure.table.id)
    for done in steps:
        notes[0] = with_line(notes[0], done.to_dict())
        keep_forgotten(_notes(project, erasure.table), notes[0])
        passing("forgotten", done.place)


def _end(
    project: Project, erasure: _Erasure, notes: Sequence[Forgotten], ended_at: datetime
) -> None:
    for note in notes:
        keep_forgotten(_notes(project, erasure.table), replace(note, ended_at=ended_at))
    passing("ended", erasure.table.id)
    erasure.kept.end()


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
    strangers = {declared_id(name) for i in ids for name in built_from(lake, i)} - ids
    if strangers:
        raise UsageError(
            "the lake has tables made from these rows that are not declared: "
            + _enumerate(strangers),
            hint="declare them again, or `sluice drop` each with --now; then run this again",
        )
    if left := leftovers(project, tables):
        raise UsageError(
            f"an earlier query has left tables behind: {_enumerate(left)}",
            hint="`sluice maintain` removes them; then run this again",
        )
    stored = [t for t in tables if t.is_stored]
    again = [t for t in stored if looks_up(project, t, ids) and exists(lake.uri(t.id))]
    if not spark.is_there and (large := [t.id for t in again if _needs_spark(project, t)]):
        require("spark", f"a rebuild of {_enumerate(large)}, which looks rows up in it,")
    for node in (n for t in stored for n in nodes_of(t, project.graph)):
        if exists(lake.uri(node.id)):
            plan_batch(node, lake, project.graph)
    _check_environments(lake.root)
    _check_previews(lake)


def _needs_spark(project: Project, table: Table) -> bool:
    """True if the rebuild of a table is not computed in this process."""
    context, lake = Context.of(project), layout(project)
    for node in nodes_of(table, context.graph):
        plan = plan_rebuild(node, lake, context.graph)
        if engine_of_rebuild(context, node, plan, is_known=True) != PROCESS:
            return True
    return False


def _check_environments(lake: str) -> None:
    """Raise UsageError if other lakes share the tables' files, or this one shares another's."""
    if shared := names(lake):
        raise UsageError(
            f"environments have these rows, too: {_enumerate(shared)}",
            hint="`sluice env drop` each; then run this again",
        )
    if here := read_environment(lake):
        raise UsageError(
            f"{lake} is the environment {here.name!r}, and its lake would keep the rows",
            hint=f"`sluice env drop {here.name}`; then run this without --env and SLUICE_ENV",
        )


def _check_previews(lake: LakeLayout) -> None:
    going_on = [f"{PREVIEWS}/{name}" for name in previews(lake)]
    if "://" in lake.root:
        going_on += remove_unfinished(lake)
    if going_on:
        hint = "wait until it has ended, and run this again"
        if "://" in lake.root:
            hint += ". If it was killed, remove the folder, or wait until it is a day old"
        raise Retryable(
            f"a preview is running in {lake.root}/{going_on[0]}, which has the tables' files, too",
            hint=hint,
        )


def _take_notes(spark: Spark, project: Project, erasure: _Erasure) -> list[Forgotten]:
    """Return the notes of these subjects, new ones unless they were noted before."""
    place = _notes(project, erasure.table)
    before = read_forgotten(place)

    def notes(session: Any) -> list[Forgotten]:
        found = []
        for sought in erasure.sought:
            same = (one for one in before if one.is_of(session, sought.subjects))
            found.append(next(same, None) or Forgotten.of(session, sought.subjects))
        return found

    found, _ = spark.best(notes, 0, project.limits)
    for note in found:
        if note not in before:
            keep_forgotten(place, note)
    return found


def _absent(
    project: Project, fed: Sequence[Sequence[Table]], every: Sequence[Sought]
) -> UsageError:
    ids = [tables[0].id for tables in fed]
    what = f"{_enumerate(ids)} {'has' if len(ids) == 1 else 'have'} no such row"
    what, hint = (f"{what}, {NOWHERE}", LOOK) if every else (f"{what} now", KEYS)
    if any(begun_at(layout(project), table_id) for table_id in ids):
        hint = "an unfinished forget has deleted such rows: run exactly that command again"
    return UsageError(what, hint=f"nothing was changed; {hint}")


def _notes(project: Project, table: Table) -> str:
    return layout(project).uri(table.id, FORGOTTEN)


def _receipt(
    project: Project,
    asked: Asked,
    erasures: Sequence[_Erasure],
    noted: Sequence[Sequence[Forgotten]],
    searched: SearchResult,
) -> Receipt:
    ids = {table.id for erasure in erasures for table in erasure.tables}
    found = searched.found.items()
    others = {p: n for p, n in found if p[0] != "_" and declared_id(p) not in ids}
    left = {p: n for p, n in found if p not in others} | {
        p: n for p, n in searched.anywhere.items() if p in others
    }
    chosen = [erasure.table for erasure in erasures]
    uris = [layout(project).uri(table.delivered_to) for table in chosen]
    return Receipt(
        noted[0][0].id,
        min(notes[0].begun_at for notes in noted),
        datetime.now(UTC),
        tuple(_forgotten(project, erasure) for erasure in erasures),
        tuple(Done(**line) for notes in noted for line in json.loads(notes[0].receipt)),
        searched,
        left=left,
        elsewhere={p: n for p, n in others.items() if p not in left},
        remedies=remedies(project, asked, chosen, left),
        in_versions=any(keeps_versions(uri) for uri in uris),
    )


def _forgotten(project: Project, erasure: _Erasure) -> ForgottenIn:
    spec = erasure.table.spec
    return ForgottenIn(
        erasure.table.id,
        tuple(row for sought in erasure.sought for row in sought.subjects.to_pylist()),
        spec.outside or project.resolve(spec.place),
    )


def _enumerate(names: Any) -> str:
    return ", ".join(sorted(names))
