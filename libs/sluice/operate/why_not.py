"""Explanation of a row that is not there: what keeps it out, and where on its way.

Search for the reason why rows are absent, from the table down to its deliveries.

At each view, the rows are computed that it would have without its conditions, from the versions
that it reflects. Conditions then come back one by one, and each keeps some rows out. If there is no
such row even without conditions, the search continues in the inputs. Cost: every table on the way
is read whole, and computed once for each condition.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.declare.column_lineage import MadeFrom, made_from_inputs
from sluice.declare.registry import kind
from sluice.declare.table import Graph, Table
from sluice.declare.table_spec import TableSpec
from sluice.delta.log.opened import exists, open_version
from sluice.delta.log.position import Pins
from sluice.delta.reading.local import read_where, to_arrow
from sluice.delta.reading.spark_reads import is_readable
from sluice.engine.forgotten import read_forgotten
from sluice.engine.operator import names, within
from sluice.engine.plan import Node, nodes_of
from sluice.engine.tracing import NTH, Absence, Condition, conditions
from sluice.engine.windows import Horizon
from sluice.errors import HistoryLost
from sluice.language.names import FORGOTTEN, QUARANTINE, RESERVED_PREFIX, declared_id
from sluice.operate.lineage import At, Walk, walking
from sluice.read.changelog import Changelog
from sluice.read.key_order import KeyRange, only
from sluice.read.lake import Lake
from sluice.read.naming import Given, absent_of, origin, row_of, values_named

Wanted = tuple[KeyRange, ...]
AbsenceCause = Literal[
    "filtered",
    "outranked",
    "expired",
    "no match",
    "excluded",
    "no such value",
    "quarantined",
    "deleted",
    "withdrawn",
    "not reflected yet",
    "never delivered",
    "differs",
    "not explained",
    "forgotten",
]
ALIVE = "_sluice_alive"
FOLLOWED = 3  # keys without a match that are searched in the other table


@dataclass(frozen=True)
class AbsenceReason:
    """One reason why rows are absent from the requested table or one of its inputs.

    `what`: the condition, or the reason in words. `rows`: those kept out, as they would be or were.
    `others`: those that keep them out.
    """

    table: str
    why: AbsenceCause
    what: str
    rows: pa.Table | None = None
    others: pa.Table | None = None


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
    there = values_named(table, wanted, table.identity)
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


@dataclass(frozen=True)
class Reflected:
    """Places of the inputs of a table's version, and the horizon of its retention."""

    inputs: Mapping[str, At]
    pins: Pins
    horizon: Horizon | None


@dataclass
class AbsenceSearch:
    """Search through the tables of a walk; `asked` questions are asked once."""

    walk: Walk
    asked: set[tuple[At, Wanted]] = field(default_factory=set)
    pins: dict[At, Pins] = field(default_factory=dict)

    def reasons(self, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
        """Yield why the wanted rows are not in a table; UsageError if that needs Spark."""
        if (at, wanted) in self.asked:
            return
        self.asked.add((at, wanted))
        table = self.graph.tables[at[0]]
        if table.is_delivered:
            yield from reasons_undelivered(self.walk, table, at, wanted)
        elif table.is_stored and (why := self._nodes(table)[-1].operator.untraced):
            yield not_explained(table, why)
        elif table.is_stored:
            yield from self._from_inputs(table, at[1], wanted)
        else:
            inputs = {name: self.walk.reference(name, self.pins[at]) for name in table.inputs}
            yield from self._below(table, inputs, wanted)

    @cached_property
    def graph(self) -> Graph:
        """All tables, and the parts of those in question."""
        tables = self.walk.context.graph.tables
        parts = {n.table.id: n.table for n in self.walk.nodes.values() if n.table.id not in tables}
        whole = {n.table.id: n.table for n in self.walk.nodes.values()}
        return Graph({**parts, **tables, **whole})

    def matching(self, at: At, wanted: Wanted) -> pa.Table:
        """Return the rows of a table that are wanted."""
        return of(self.walk.read(at).rows, wanted)

    def _from_inputs(self, table: Table, version: int, wanted: Wanted) -> Iterator[AbsenceReason]:
        made = self._find_reflected(table, version)
        absence, found = kind(table.kind), conditions(table.spec)
        if isinstance(absence, Absence):
            found = list(absence.list_conditions(table.spec, found))
        specs = [table.spec]  # with ever fewer of the conditions, the last one left out first
        for condition in reversed(found):
            specs.insert(0, condition.without(specs[0]))
        kept = self._find_kept(table, version, wanted, made)
        every = self._rows(table, specs[0], made, wanted)
        rows = _but(every, kept, table.key)
        for condition, spec in zip(found, specs[1:], strict=True):
            after = set(_each(self._rows(table, spec, made, wanted), table.key))
            if (lost := _but(rows, after, table.key)).num_rows:
                yield self._kept_out(table, version, condition, lost)
            rows = _but(rows, after, table.key, inside=True)
        yield from _give_other_reasons(table, rows)
        if not every.num_rows:
            yield from self._below(table, made.inputs, wanted)

    def _kept_out(self, table: Table, version: int, by: Condition, lost: pa.Table) -> AbsenceReason:
        """Return the reason of rows that a condition keeps out; with those that rank before."""
        name = declared_id(table.id)
        if not by.ranks:
            return AbsenceReason(name, "filtered", by.text, visible_columns(lost))
        own = self.walk.read((table.id, version)).rows
        group = self._nodes(table)[-1].operator.group
        groups = set(_each(lost, group))
        others = _but(own, groups, group, inside=True)
        others = others.sort_by(by.rank) if by.rank else others
        return AbsenceReason(
            name, "outranked", by.text, visible_columns(lost), visible_columns(others)
        )

    def _find_kept(
        self, table: Table, version: int, wanted: Wanted, made: Reflected
    ) -> set[tuple[Any, ...]]:
        """Return the keys of wanted rows that the table has, and shows."""
        there = self.walk.read((table.id, version)).frame(self.walk.session).drop(NTH)
        rows = of(to_arrow(there.withColumn(ALIVE, _alive(made.horizon, there))), wanted)
        return set(_each(rows.filter(rows[ALIVE]), table.key))

    def _rows(self, table: Table, spec: TableSpec, made: Reflected, wanted: Wanted) -> pa.Table:
        """Return the wanted rows by another declaration, with ALIVE."""
        rows: dict[str, DataFrame] = {}
        for node in self._nodes(replace(table, spec=spec)):
            operator = node.operator
            inputs = {
                i: rows[i] if i in rows else self._frame(node, i, made) for i in operator.inputs
            }
            references = {i: self._frame(node, i, made) for i in operator.references}
            found = operator.query(inputs, references)
            if operator.retention:
                found = found.withColumn(ALIVE, _alive(made.horizon, found))
            rows[node.id] = found
        last = rows[table.id]
        if ALIVE not in last.columns:
            state = next((r for r in rows.values() if ALIVE in r.columns), None)
            last = self._with_life(table, last, state)
        return of(to_arrow(last), wanted)

    def _with_life(self, table: Table, rows: DataFrame, state: DataFrame | None) -> DataFrame:
        """Return the rows of a view, which live if their group in the state does."""
        if state is None:
            return rows.withColumn(ALIVE, F.lit(True))
        group = self._nodes(table)[-1].operator.group
        dead = state.where(~F.col(ALIVE)).select(*names(group)).distinct()
        gone = within(rows, dead, group).withColumn(ALIVE, F.lit(False))
        on = [F.col(f"_r.`{c}`").eqNullSafe(F.col(f"_d.`{c}`")) for c in group]
        living = rows.alias("_r").join(dead.alias("_d"), on, "left_anti")
        return gone.unionByName(living.withColumn(ALIVE, F.lit(True)))

    def _frame(self, node: Node, name: str, made: Reflected) -> DataFrame:
        rows = self.walk.read(made.inputs[name]).frame(self.walk.session).drop(NTH)
        columns = node.operator.columns(name)
        return rows.select(*names(columns)) if columns else rows

    def _nodes(self, table: Table) -> tuple[Node, ...]:
        return nodes_of(replace(table, parts=()), self.graph)

    def _find_reflected(self, table: Table, version: int) -> Reflected:
        """Return what a version of a table was made from, through its state."""
        nodes = self._nodes(table)
        own, at = {node.id for node in nodes}, {nodes[-1].id: version}
        pins, places, horizon = dict[str, Any](), dict[str, At](), None
        for node in reversed(nodes):
            position = self.walk.position(node, at[node.id])
            at |= {name: pin.version for name, pin in position.inputs.items()}
            pins |= {**position.inputs, **position.references}
            if node.operator.retention:
                horizon = Horizon(node.operator.retention, None, position.horizon)
            places |= {i: (i, at[i]) for i in node.operator.inputs if i not in own}
            for name in node.operator.references:
                places[name] = self.walk.reference(name, pins)
                self.pins[places[name]] = pins
        return Reflected(places, pins, horizon)

    def _below(
        self, table: Table, inputs: Mapping[str, At], wanted: Wanted
    ) -> Iterator[AbsenceReason]:
        """Yield why the inputs lack what the rows would be made from."""
        made, absent = made_from_inputs(table, self.graph.tables), False
        mapped = {name: mapped_to(made, wanted, name) for name in inputs}
        there = dict[str, Wanted]()
        for name, ranges in mapped.items():
            if ranges and self.matching(inputs[name], ranges).num_rows:
                there[name] = ranges
            elif ranges:
                absent = True
                yield from self.reasons(inputs[name], ranges)
        if not absent:
            found = list(self._find_unmatched(table, inputs, there)) if table.is_stored else []
            yield from found or [no_such(table, inputs, wanted)]

    def _find_unmatched(
        self, table: Table, inputs: Mapping[str, At], there: Mapping[str, Wanted]
    ) -> Iterator[AbsenceReason]:
        absence = kind(table.kind)
        if not isinstance(absence, Absence):
            return
        node = self._nodes(table)[0]
        made = Reflected(inputs, {}, None)
        frames = {name: self._frame(node, name, made) for name in inputs}
        prepared = {i: node.operator.prepare(i, frames[i]) for i in node.operator.inputs}
        wanted = {
            i: node.operator.prepare(i, self._some(node, inputs[i], there[i]))
            for i in node.operator.inputs
            if i in there
        }
        references = {i: frames[i] for i in node.operator.references}
        for one in absence.find_unmatched(node.operator, wanted, prepared, references):
            rows = to_arrow(one.rows)
            if rows.num_rows and one.is_excluded:
                yield AbsenceReason(
                    declared_id(table.id), "excluded", one.on, others=visible_columns(rows)
                )
            elif rows.num_rows:
                yield AbsenceReason(
                    declared_id(table.id), "no match", f"{one.on}: {declared_id(one.table)}", rows
                )
                yield from self._follow(inputs[one.table], rows)

    def _some(self, node: Node, at: At, wanted: Wanted) -> DataFrame:
        """Return the wanted rows of an input, as its operator reads them."""
        known = self.walk.read(at)
        some = replace(known, rows=of(known.rows, wanted))
        return some.frame(self.walk.session, node.operator.columns(at[0])).drop(NTH)

    def _follow(self, at: At, rows: pa.Table) -> Iterator[AbsenceReason]:
        """Yield why the other table has no match for the first keys."""
        columns = [c for c in rows.column_names if c in self.walk.read(at).rows.column_names]
        for key in rows.select(columns).slice(0, FOLLOWED).to_pylist() if columns else ():
            ranges = tuple(only((name,), (value,)) for name, value in key.items())
            has_null = None in key.values()
            if not has_null and not self.matching(at, ranges).num_rows:
                yield from self.reasons(at, ranges)


def _give_other_reasons(table: Table, rows: pa.Table) -> Iterator[AbsenceReason]:
    """Yield the reasons of rows that no condition keeps out."""
    dead, living = rows.filter(pc.invert(rows[ALIVE])), rows.filter(rows[ALIVE])
    if dead.num_rows:
        what = f"retention: {table.spec.kept_for}"
        yield AbsenceReason(declared_id(table.id), "expired", what, visible_columns(dead))
    if living.num_rows:
        what = f"`sluice verify {table.name}` compares the table with its query"
        yield AbsenceReason(declared_id(table.id), "differs", what, visible_columns(living))


def _alive(horizon: Horizon | None, rows: DataFrame) -> Column:
    """Return a condition that is true of rows that have not expired."""
    if horizon is None or horizon.now is None:
        return F.lit(True)
    has_end = horizon.retention.end in rows.columns
    return horizon.is_alive() if has_end else F.lit(True)


def _each(rows: pa.Table, key: Sequence[str]) -> list[tuple[Any, ...]]:
    if not key:
        return [()] * rows.num_rows
    return list(zip(*(rows[column].to_pylist() for column in key), strict=True))


def _but(
    rows: pa.Table, keys: set[tuple[Any, ...]], key: Sequence[str], *, inside: bool = False
) -> pa.Table:
    """Return the rows whose key is not among these; if `inside`, those whose key is."""
    mask = [(one in keys) == inside for one in _each(rows, key)]
    return rows.filter(pa.array(mask, pa.bool_()))


def of(rows: pa.Table, wanted: Wanted) -> pa.Table:
    """Return the rows within all ranges."""
    for key_range in wanted:
        rows = key_range.rows(rows)
    return rows


def values(wanted: Wanted) -> dict[str, Any]:
    """Return the columns of which one value is wanted."""
    return {
        column: place[-1] if len(place) > 1 else None
        for key_range in wanted
        if key_range.low is not None and key_range.low == key_range.high and not key_range.is_open
        for column, place in zip(key_range.columns, key_range.low, strict=False)
    }


def visible_columns(rows: pa.Table) -> pa.Table:
    """Return the columns that readers see."""
    return rows.select([c for c in rows.column_names if not c.startswith(RESERVED_PREFIX)])


def not_explained(table: Table, why: str) -> AbsenceReason:
    """Return the reason for a table whose rows can't be traced, with where to look instead."""
    look = " and ".join(f"`sluice read {declared_id(name)}`" for name in table.inputs)
    what = f"{why}; {look} shows whether the rows are there that it would be made from"
    return AbsenceReason(declared_id(table.id), "not explained", what)


def no_such(table: Table, inputs: Iterable[str], wanted: Wanted) -> AbsenceReason:
    """Return the reason for a table whose inputs have rows, but none for the wanted ones."""
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    what = (
        f"no rows of {', '.join(dict.fromkeys(map(declared_id, inputs)))} produce {named or 'it'}"
    )
    return AbsenceReason(declared_id(table.id), "no such value", what)


def mapped_to(made: MadeFrom, wanted: Wanted, name: str) -> Wanted:
    """Return the wanted values of an input: of columns that are copied from it."""
    return tuple(
        only((one.column,), (value,))
        for column, value in values(wanted).items()
        for one in sorted(made.get(column, ()), key=lambda c: c.column)
        if one.table == name and one.is_same
    )


def reasons_undelivered(
    walk: Walk, table: Table, at: At, wanted: Wanted
) -> Iterator[AbsenceReason]:
    """Yield every known reason why a source or a dimension lacks the rows."""
    found = [
        *_find_forgotten(walk, table, at, wanted),
        *_find_quarantined(walk, table, wanted),
        *_find_deletions(walk, table, at, wanted),
        *_find_later(walk, table, at, wanted),
    ]
    named = ", ".join(f"{column} = {value}" for column, value in values(wanted).items())
    never = AbsenceReason(table.id, "never delivered", f"no row has {named}")
    yield from found or [*_find_withdrawn(walk, table, at, wanted)] or [never]


def _find_forgotten(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the erasures of subjects that have the wanted values, by their hashes."""
    given, schema = values(wanted), walk.read(at).rows.schema
    for note in read_forgotten(walk.context.lake.uri(table.id, FORGOTTEN)):
        if set(note.columns) <= given.keys():
            fields = [schema.field(name) for name in note.columns]
            subject = pa.table([[given[f.name]] for f in fields], schema=pa.schema(fields))
            if note.has(walk.session, subject):
                when = f"at {note.ended_at}" if note.ended_at else f"since {note.begun_at}"
                what = f"its subject was forgotten {when}; its rows are withheld"
                yield AbsenceReason(table.id, "forgotten", what)


def _find_quarantined(walk: Walk, table: Table, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the rows in quarantine that have the wanted values, by their reason."""
    uri = walk.context.lake.uri(table.id, QUARANTINE)
    given = values(wanted)
    if not given or not exists(uri):
        return
    rows = read_where(uri, _newest(uri))
    has_them = [_mentions(raw, given) for raw in rows["raw"].to_pylist()]
    met = rows.filter(pa.array(has_them, pa.bool_()))
    for reason in sorted(set(met["reason"].to_pylist()), key=str):
        of_it = met.filter(pa.array([r == reason for r in met["reason"].to_pylist()], pa.bool_()))
        yield AbsenceReason(table.id, "quarantined", str(reason), visible_columns(of_it))


def _find_deletions(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the deliveries of rows that the last of these deletes."""
    node = walk.nodes.get(table.id)
    if node is None:
        return
    for name, pin in walk.position(node, at[1]).inputs.items():
        rows = of(walk.read((name, pin.version)).rows, wanted)
        if rows.num_rows:
            yield AbsenceReason(
                table.id, "deleted", f"the last of its deliveries in {name} deletes it", rows
            )


def _find_later(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the rows that the table has by now, in a version that is not reflected yet."""
    uri = walk.context.lake.uri(table.id)
    newest = _newest(uri)
    if newest > at[1] and is_readable(uri, newest):
        rows = of(read_where(uri, newest), wanted)
        if rows.num_rows:
            what = f"version {newest} has it, version {at[1]} is reflected"
            yield AbsenceReason(table.id, "not reflected yet", what, visible_columns(rows))


def _find_withdrawn(walk: Walk, table: Table, at: At, wanted: Wanted) -> Iterator[AbsenceReason]:
    """Yield the row as it was, if a later delivery took it back."""
    given = values(wanted)
    if not given:
        return
    try:
        changelog = Changelog.open(Lake(walk.project), table.id, at[1])
        found = origin(changelog, only(tuple(given), tuple(given.values())))
    except HistoryLost:
        return
    if found and found.before is not None and found.after is None:
        made = found.commit.position
        run = f" by the run {made.run}" if made and made.run else ""
        what = f"a delivery removed it in version {found.commit.version}, at {found.commit.at}{run}"
        yield AbsenceReason(table.id, "withdrawn", what, pa.Table.from_pylist([found.before]))


def _mentions(raw: str | None, given: dict[str, Any]) -> bool:
    """True if a quarantined row has these values: in its columns, or anywhere in its text."""
    try:
        row = json.loads(raw or "")
    except ValueError:
        row = None
    if isinstance(row, dict) and given.keys() <= row.keys():
        return all(_text(row[name]) == _text(value) for name, value in given.items())
    return all(_text(value) in (raw or "") for value in given.values())


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _newest(uri: str) -> int:
    return open_version(uri).version()
