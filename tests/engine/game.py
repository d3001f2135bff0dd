"""A pipeline played over dictionaries: plans are the real code's, what they must give the model's.

Rows are computed by a line of Python a view, in the groups alone that the planned feeds touch. Each
commit must leave its view as its query has it of the source's rows at the version that the view's
frontier names; who has lost the past of what was read is told, nobody else, and rebuilt.
"""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis.stateful import RuleBasedStateMachine
from tests.engine.shapes import NODES, Declared
from tests.support.memory import Rows, Stored, Tables

from sluice.delta.log.position import REBUILD, Head, Pin, Position, head, head_as_found
from sluice.delta.places.lake_layout import layout
from sluice.delta.upkeep.table_invariants import position_faults
from sluice.engine.advance import Run, next_position
from sluice.engine.batch_plan import BatchPlan, Strategy
from sluice.engine.plan import plan_batch, plan_rebuild
from sluice.errors import ConfigError, ForeignCommit, HistoryLost, LostRace

S, D = "shop.s", "shop.d"
ABOVE_RIGHT = {  # view -> through which input it knows how `right` was declared
    "right": "right__state",
    "both__state": "right",
    "both": "both__state",
    "tail__state": "both",
    "tail": "tail__state",
    "paired": "tail",
    "listed": "paired",
    "seen": "listed",
    "steps": "paired",
}


@dataclass(frozen=True)
class Batch:
    """What a plan has come to: to be committed, now or later. `joined`: the prices it looked up."""

    name: str
    plan: BatchPlan
    rows: Rows
    position: Position
    by: Declared
    joined: Rows


@dataclass
class View:
    """What the model knows of a view: by which declaration each version was made, what was read.

    `read` for the newest version, `reads` for each; `looked_up`: the versions of the prices in its
    rows.
    """

    made: dict[int, Declared] = field(default_factory=dict)
    joined: dict[int, Rows] = field(default_factory=dict)
    read: dict[Any, Any] = field(default_factory=dict)
    reads: dict[int, dict[Any, Any]] = field(default_factory=dict)
    looked_up: set[int] = field(default_factory=set)


class Game(RuleBasedStateMachine):
    """`by` is how the views are declared now, `other` how they are not."""

    by: Declared
    other: Declared

    def __init__(self) -> None:
        super().__init__()
        self.tables = Tables()
        self.patched = self.tables.in_place()
        self.patched.__enter__()
        self.lake = layout(self.by.project)
        self.views = {name: View() for name in NODES}
        self.asleep: list[Batch] = []
        self.late: list[Head] = []
        self.backups: list[Stored] = []
        for name in ("s", "d"):
            self.tables.create(self.uri(name), made_by("create"))

    def teardown(self) -> None:
        try:
            self.all_is_right_in_the_end()
        finally:
            self.patched.__exit__(None, None, None)

    def advance(self, name: str, *, is_pinned: bool = False) -> None:
        if batch := self.planned(name, is_pinned=is_pinned):
            self.commit(batch)

    def intrude(self, name: str, *, is_below: bool) -> None:
        """Also below a batch that was computed from the rows before."""
        before, rows = self.head(name), self.rows(name)
        self.tables.intrude(before.uri, {**rows, "z": None})
        if is_below and before.position:
            batch = replace(before.position, batch=before.next_batch, after=before.version)
            self.tables.land(before.uri, rows, replace(batch, kind="batch", unchanged_since=None))
        with pytest.raises(ForeignCommit):
            head(before.uri)
        self.rebuild(name)

    def all_is_right_in_the_end(self) -> None:
        for name in ("s", "d"):
            self.put(name, self.rows(name), "ingest")
        self.bring_up_to_date(NODES)
        for name in filter(self.is_there, NODES):
            assert self.planned(name) is None, f"{name} is never done"
            found, facts, prices = self.rows(name), self.rows("s"), self.rows("d")
            if name == "priced":
                assert {k: row[:2] for k, row in found.items()} == facts
            else:
                assert found == self.by.whole(name, facts, prices), name

    def is_lost(self, name: str) -> bool:
        """Whether a commit that it has read, or the feed from there, is not in its place."""
        for (uri, version), (log, _) in self.views[name].read.items():
            table = self.tables[uri]
            later = (v for v in table.log if v > version and len(table.log[v]) > 1)
            if table.log.get(version) is not log or any(
                f"feed-{v}" not in table.files for v in later
            ):
                return True
        return False

    @property
    def lacking(self) -> set[str]:
        """Who has lost a past, or a version that `verify` would ask for."""
        found = {name for name in NODES if self.is_lost(name)}
        for name, view in self.views.items():
            kept = [*view.read, *((self.uri("d"), version) for version in view.looked_up)]
            if any(f"rows-{version}" not in self.tables[uri].files for uri, version in kept):
                found.add(name)
        return found

    def is_sound(self, name: str) -> bool:
        """Whether nothing that it was made from has lost its past."""
        before = (n for n in self.inputs_of(name) if n in NODES)
        return not self.is_lost(name) and all(map(self.is_sound, before))

    def inputs_of(self, name: str) -> list[str]:
        return [uri.rpartition("/")[2] for uri, _ in self.views[name].read]

    def is_astray(self, name: str, version: int) -> bool:
        """Whether that version of it, or of what it was made from, was made from what never was."""
        if name not in self.views:
            return False
        return all(map(self.is_made_from_astray, self.of_the_same_rows(name, version).values()))

    def of_the_same_rows(self, name: str, version: int) -> dict[int, dict[Any, Any]]:
        """What each commit of these rows has read: between them no row differs."""
        log, reads = self.tables[self.uri(name)].log, self.views[name].reads
        first = max(v for v in reads if v <= version)
        while len(log.get(version + 1, ())) == 1:
            version += 1
        return {v: read for v, read in reads.items() if first <= v <= version}

    def declarations(self, name: str, version: int) -> set[Declared]:
        """How `right` was declared for these rows: both ways, if both have made them."""
        source, same = ABOVE_RIGHT.get(name), self.of_the_same_rows(name, version)
        if source is None:
            return {self.views[name].made[v] for v in same}
        found = (at for read in same.values() for uri, at in read if uri == self.uri(source))
        return set().union(*(self.declarations(source, at) for at in found))

    def is_made_from_astray(self, read: Mapping[Any, Any]) -> bool:
        below = ((uri.rpartition("/")[2], at) for uri, at in read)
        return self.is_otherwise(read) or any(self.is_astray(*one) for one in below)

    def is_otherwise(self, read: Mapping[Any, Any]) -> bool:
        """Whether these are rows that never were."""
        return any(self.tables[u].rows.get(v) != rows for (u, v), (_, rows) in read.items())

    def planned(self, name: str, *, is_pinned: bool = False) -> Batch | None:
        pins = {D: self.loaded_before} if is_pinned else {}
        node = self.by.nodes[name]
        try:
            plan = plan_batch(node, self.lake, self.by.project.graph, pins)
        except ConfigError:
            assert self.is_redefined(name)
            return None
        except HistoryLost:
            assert self.is_lost(name), f"{name} has lost nothing"
            self.rebuild(name)
            return None
        assert not self.is_redefined(name), "another definition was overlooked"
        is_astray = not plan.replaces and self.is_otherwise(self.views[name].read)
        assert not is_astray, f"{name} has read other rows"
        for input_id, (after, upto) in plan.ranges.items():
            table = self.tables[self.uri(short(input_id))]
            is_new = any(len(table.log[v]) > 1 for v in range(after + 1, upto + 1))
            assert is_new or upto < table.version, "nothing was to be done"
        return self.computed(name, plan, Run("r")) if plan.is_pending else None

    @property
    def loaded_before(self) -> int:
        """The version of the prices before the newest, as a run pins it: a vacuum leaves it."""
        newest = self.head("d").version
        is_kept = f"rows-{newest - 1}" in self.tables[self.uri("d")].files
        return newest - 1 if is_kept else newest

    def rebuild(self, name: str) -> None:
        """Of the state first, and once the inputs agree."""
        view = name.removesuffix("__state")
        for node in (n for n in self.by.nodes.values() if n.table.name == view):
            plan = plan_rebuild(node, self.lake, self.by.project.graph)
            if "same state" in plan.waiting_for:
                self.bring_up_to_date(NODES[: NODES.index(self.nodes_of(view)[0])])
                plan = plan_rebuild(node, self.lake, self.by.project.graph)
            if plan.waiting_for:
                return
            batch = self.computed(node.id.removeprefix("shop."), plan, Run("r"), is_whole=True)
            self.commit(replace(batch, position=replace(batch.position, kind=REBUILD)))

    def bring_up_to_date(self, names: Iterable[str]) -> None:
        for name in names:
            if self.is_redefined(name):
                self.rebuild(name)
            self.advance(name)

    def nodes_of(self, view: str) -> list[str]:
        return [name for name in NODES if name in (view, f"{view}__state")]

    def computed(self, name: str, plan: BatchPlan, run: Run, *, is_whole: bool = False) -> Batch:
        pins = {**plan.pins, **plan.references}
        of = {i: self.tables.snapshot(self.uri(i), p.version) for i, p in by_name(pins).items()}
        new, position = self.by.query(name, of), next_position(plan, run, None)
        if name == "priced":
            new = {key: (*row, position.batch) for key, row in new.items()}
        if plan.before and not is_whole and plan.strategy is not Strategy.BUILD:
            old = self.tables.snapshot(plan.uri, plan.before.version)
            touched = set(self.touched(name, plan, of, old))
            kept = {k: row for k, row in old.items() if group_of(name, k, row) not in touched}
            new = kept | {k: row for k, row in new.items() if group_of(name, k, row) in touched}
        return Batch(name, plan, new, position, self.by, of.get("d", {}))

    def touched(
        self, name: str, plan: BatchPlan, of: Mapping[str, Rows], old: Rows
    ) -> Iterator[Any]:
        """The groups that the planned feeds tell of."""
        is_lookup = name in ("priced", "fresh")
        for input_id, (after, upto) in plan.ranges.items():
            for change in self.tables.changes(self.uri(short(input_id)), after, upto):
                if input_id == D:
                    rows = (*of["s"].items(), *old.items())
                    yield from (key for key, row in rows if row[0] == change.key)
                elif name == "listed":
                    yield short(input_id), change.key
                elif name == "seen":
                    yield from (row[1] for row in (change.old, change.new) if row)
                elif name == "steps" or (input_id == S and not is_lookup):
                    yield from (row[0] for row in (change.old, change.new) if row)
                else:
                    yield change.key

    def commit(self, batch: Batch) -> None:
        plan, view = batch.plan, self.views[batch.name]
        before = plan.before or plan.replaces
        if before is None:
            if self.is_there(batch.name):
                raise LostRace("somebody has made it")
            before = self.tables.create(plan.uri, made_by("create"))
        version = self.tables.commit(before, batch.rows, batch.position)
        if len(plan.pins) > 1:
            pins = by_name(plan.pins).items()
            astray = [name for name, pin in pins if self.is_astray(name, pin.version)]
            assert astray == [], "what it read has to be rebuilt"
        view.made[version] = batch.by
        view.joined[batch.position.batch] = batch.joined
        view.looked_up = view.looked_up if batch.position.kind != REBUILD else set()
        view.looked_up |= {pin.version for pin in plan.references.values()}
        view.read = dict(self.as_read({**plan.references, **plan.pins}))
        view.reads[version] = view.read
        if self.is_sound(batch.name):
            self.check(batch.name)

    def as_read(self, pins: Mapping[str, Pin]) -> Iterator[tuple[Any, Any]]:
        for name, pin in by_name(pins).items():
            uri = self.uri(name)
            table = self.tables[uri]
            yield (uri, pin.version), (table.log.get(pin.version), table.rows[pin.version])

    def check(self, name: str) -> None:
        """It is what its query has it, and its positions are in order."""
        at, found = self.head(name), self.rows(name)
        assert at.position
        frontier = at.position.frontier
        facts, prices = (
            self.tables[self.uri(short(i))].rows[frontier[i]] if i in frontier else {}
            for i in (S, D)
        )
        if name == "priced":
            joined = self.views[name].joined
            assert found == {
                key: (*facts[key], joined[row[3]].get(facts[key][0]), row[3])
                for key, row in found.items()
            }
            assert found.keys() == facts.keys()
        else:
            every = self.declarations(name, at.version)
            assert found in [by.whole(name, facts, prices) for by in every], f"{name} mixes states"
        faults = [what for what in position_faults(at.uri) if "not computed" not in what]
        assert faults == []

    def is_redefined(self, name: str) -> bool:
        """Whether another definition has filled it, and somebody may have read it."""
        at = head_as_found(self.uri(name))
        view = head_as_found(self.uri(name.removesuffix("__state")))
        is_read = at is not None and at.is_filled and view is not None and view.is_filled
        made = at.position.definition if is_read and at and at.position else ""
        return bool(made) and made != self.by.nodes[name].definition

    def put(self, name: str, rows: Rows, kind: str) -> None:
        before = self.head(name)
        self.tables.commit(before, rows, made_by(kind, batch=before.next_batch))

    def uri(self, name: str) -> str:
        return self.lake.uri(f"shop.{name}")

    def is_there(self, name: str) -> bool:
        return self.uri(name) in self.tables

    def head(self, name: str) -> Head:
        return self.tables.head(self.uri(name))

    def rows(self, name: str) -> Rows:
        table = self.tables[self.uri(name)]
        return table.rows[table.version]


def group_of(name: str, key: Any, row: Any) -> Any:
    """The group of a view's row; of most views, its key."""
    return row[0] if name in ("paired", "steps") else key


def made_by(kind: str, **given: Any) -> Position:
    return Position(given.pop("batch", 0), uuid.uuid4().hex, kind, **given)


def by_name(pins: Mapping[str, Pin]) -> dict[str, Pin]:
    return {short(table_id): pin for table_id, pin in pins.items()}


def short(table_id: str) -> str:
    return table_id.removeprefix("shop.")
