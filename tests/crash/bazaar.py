"""A pipeline of every kind of table, and a history that a seed decides.

Sources with and without a key, a dimension with both kinds of lookup, cogroups that add, that keep
extremes and that count days for a while, a top-k, diamonds, a window store, a union, a distinct
select, joins of which one is bounded in time, window functions. A history lands files: new days,
days of keys from everywhere and of neighbouring ones, corrected days, late rows, rows for the
quarantine, another price list; it says which intervals are run over it, some again, some out of
order, some several at once; and it declares views otherwise, which are then rebuilt.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from string import Template
from typing import Any, Literal

from deltalake import DeltaTable
from pyarrow.fs import LocalFileSystem, copy_files
from tests.crash.shop import PASSING, Deployed, day
from tests.support.lake import counted, stored_rows

from sluice.declare.project import Project, load
from sluice.delta.intervals import notes
from sluice.delta.log.opened import exists
from sluice.delta.log.position import head
from sluice.delta.places.delta_rs import locate, open_table
from sluice.delta.upkeep.table_invariants import Digest, digest
from sluice.delta.writing import own_commits
from sluice.delta.writing.own_commits import GROUP_ROWS
from sluice.engine.plan import nodes_of
from sluice.language.interval import Interval
from sluice.operate.maintain import kept_in
from sluice.operate.verify import faults

PIPELINE = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales:
    path: "landing/sales/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "shop STRING, item STRING, amount DECIMAL(12,2), at TIMESTAMP"
    missing: empty
    expect:
      - {type: expect_column_values_to_not_be_null, column: item, on_failure: quarantine}
  orders:
    path: "landing/orders/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "id INT, shop STRING, item STRING, quantity INT, at TIMESTAMP"
    missing: empty
    key: [id]
    sequence: [at]
dimensions:
  items:
    path: landing/items/
    format: json
    schema: "item STRING, price DECIMAL(12,2)"
    key: [item]
views:
  priced:
    kind: lookup
    from: sales
    join: [{dimension: items, on: "item = items.item", type: left}]
    select: {shop: shop, item: item, amount: amount, price: items.price}
  fresh:
    kind: lookup
    from: orders
    refresh: true
    join: [{dimension: items, on: "item = items.item", type: $join}]
    select: {id: id, shop: shop, at: at, value: quantity * items.price}
  totals:
    kind: cogroup
    key: [shop, item]
    streams:
      sales: {from: sales, aggregates: {total: sum(amount), lines: count(*)$most}}
      orders: {from: orders, aggregates: {ordered: sum(quantity), last: max(at)}}
  best: {kind: topk, from: totals, partition_by: [shop], order_by: [total desc], limit: $limit}
  peaks:
    kind: cogroup
    key: [shop]
    streams:
      all: {from: totals, aggregates: {items: count(*), least: $extreme(total)}}
      best: {from: best, aggregates: {shown: sum(total)}}
  days:
    kind: cogroup
    key: [shop]
    window: {type: tumbling, time: at, size: 1 day}
    retention: $keep days
    streams: {orders: {from: orders, aggregates: {ordered: sum(quantity)}}}
  recent:
    kind: window_store
    from: orders
    key: [shop]
    time: at
    duplicates: true
    retention: 5 days
  flows:
    kind: union
    from:
      - {table: sales, where: amount > 2, select: {shop: shop, item: item}}
      - {table: orders, select: {shop: shop, item: item}}
    tag: flow
  shops: {kind: select, from: flows, select: {shop: shop}, distinct: true}
  beside:
    kind: join
    left: sales
    right: totals
    type: left
    on: [shop, item]
    where: totals.lines > 1
    select: {shop: sales.shop, item: sales.item, amount: sales.amount, total: totals.total}
  met:
    kind: join
    type: left
    left: {table: orders, as: o, time: at}
    right: {table: sales, as: s, time: at}
    on: [shop, item]
    within: 1 day
    retention: 4 days
    select: {id: o.id, at: o.at, amount: s.amount}
  steps:
    kind: over
    from: orders
    partition_by: [shop]
    order_by: [at]
    select:
      id: id
      n: row_number() OVER w
      before: lag(quantity) OVER w
      so_far: sum(quantity) OVER (w ROWS UNBOUNDED PRECEDING)
"""
NOTES = ("sales__quarantine", "sales__intervals", "orders__intervals", "items__intervals")
DAYS = 8
What = Literal["run", "maintain", "redefine", "verify"]
Where = Literal["few", "scattered", "near"]


@dataclass(frozen=True)
class Definition:
    """What the views are declared as, as far as that changes. `most`: an aggregate of `totals`."""

    join: Literal["inner", "left"] = "inner"
    most: bool = False
    limit: int = 2
    extreme: Literal["min", "max"] = "min"
    keep: int = 4

    @property
    def pipeline(self) -> str:
        """The pipeline's file."""
        told = {**vars(self), "most": ", most: max(amount)" if self.most else ""}
        return Template(PIPELINE).substitute(told)


CHANGES: dict[str, tuple[str, tuple[Any, Any]]] = {  # view -> what of it, and its values
    "fresh": ("join", ("inner", "left")),
    "totals": ("most", (False, True)),
    "best": ("limit", (2, 3)),
    "peaks": ("extreme", ("min", "max")),
    "days": ("keep", (4, 2)),
}


@dataclass(frozen=True)
class Step:
    """Files that land (path below the landing folder -> rows), and what is run then.

    Of a redefinition: what is declared then, and the views to rebuild before the run.
    """

    files: dict[str, list[dict[str, Any]]]
    intervals: tuple[Interval, ...]
    what: What = "run"
    definition: Definition | None = None
    views: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reader:
    """A table that was opened, and the rows that it had then."""

    name: str
    table: DeltaTable
    rows: Counter[Any]

    @property
    def is_undisturbed(self) -> bool:
        return counted(stored_rows(self.table)) == self.rows


MARKING, LARGE = "marking", "large"  # a committer, and the file that says so
BY_SPARK = "by_spark"  # the file that leaves all batches to Spark


class Bazaar(Deployed):
    """Every kind of table, declared as a history says."""

    @classmethod
    def create(
        cls, folder: Path, prefix: str, commit: str, definition: Definition | None = None
    ) -> "Bazaar":
        bazaar = cls(folder, prefix)
        bazaar.define((definition or Definition()).pipeline)
        bazaar.committer("auto" if commit == MARKING else commit)
        if commit == MARKING:
            (bazaar.config / LARGE).touch()
        return bazaar

    def engine(self, *, is_spark: bool) -> None:
        """Choose what computes the batches from now on."""
        if is_spark:
            (self.config / BY_SPARK).touch()
        else:
            (self.config / BY_SPARK).unlink(missing_ok=True)

    def land(self, step: Step) -> None:
        """Each file in place of the one that was there; no rows: no file. So with definitions."""
        if step.definition:
            self.define(step.definition.pipeline)
        for name, rows in step.files.items():
            lines = "\n".join(json.dumps(row) for row in rows)
            self.deliver(f"{name}/rows.json", lines or None)

    def fetch(self) -> None:
        """Copy what lies in a store to beside the configuration, to be looked at later."""
        if self.prefix:
            files, path = locate(self.prefix)
            copy_files(path, str(self.folder), files, LocalFileSystem())

    def faults(self) -> list[str]:
        """What does not hold, also while a crash has not been mended yet."""
        project = self.project
        found = [faults(project, table) for table in project.graph.tables.values()]
        return [f"{i}: {what}" for told in found for i, all_ in told.items() for what in all_]

    def state(self) -> dict[str, str]:
        """The canonical hash of every table that must not depend on what happened on the way."""
        rows = self._digests()
        kept = {name: self.uri(name) for name in NOTES if "__intervals" not in name}
        rows |= {n: digest(uri, ignore=PASSING) for n, uri in kept.items() if exists(uri)}
        found = {name: str(one) for name, one in sorted(rows.items()) if one.rows}
        return found | {n: str(self._noted(n)) for n in NOTES if n not in kept}

    def _digests(self) -> dict[str, Digest]:
        """Those of tables whose rows depend on the data alone: without states that have spare rows.

        Spare rows depend on earlier batches, as does the number of the batch that joined a row.
        """
        graph, found = self.project.graph, dict[str, Digest]()
        nodes = {node.id: node for t in graph.tables.values() for node in nodes_of(t, graph)}
        for table_id, uri in self._stored().items():
            node = nodes.get(table_id)
            if node is None or not node.operator.has_slack:
                found[table_id] = digest(uri, ignore=node.ignored if node else ())
        return found

    def _stored(self) -> dict[str, str]:
        """The Delta tables that have been built, with their places."""
        project = self.project
        kept = (k for t in project.graph.tables.values() for k in kept_in(t, project))
        return {k.table: k.uri for k in kept if exists(k.uri)}

    def _noted(self, name: str) -> list[dict[str, Any]]:
        """The notes of deliveries that stand; of two at once, both are in the table."""
        return [
            {column: value for column, value in note.items() if column not in PASSING}
            for note in notes(self.uri(name))
        ]

    def rows(self, name: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Those columns of a table as readers see them; none while it has not been built."""
        uri = self.uri(name)
        if not exists(uri):
            return []
        return [{c: row[c] for c in columns} for row in stored_rows(open_table(uri))]

    def readers(self) -> "list[Reader]":
        """Everybody who has a table open now, one for each."""
        uris = {t.name: self.uri(t.name) for t in self.project.graph.tables.values() if t.is_stored}
        tables = {name: open_table(uri) for name, uri in uris.items() if exists(uri)}
        return [Reader(n, table, counted(stored_rows(table))) for n, table in tables.items()]

    def versions(self) -> dict[str, int]:
        heads = {table_id: head(uri) for table_id, uri in self._stored().items()}
        return {table_id: at.version for table_id, at in heads.items() if at}


@dataclass
class History:
    """Steps without end, decided by the seed."""

    seed: str
    landed: list[int] = field(default_factory=list)
    definition: Definition = Definition()

    def steps(self) -> Iterator[Step]:
        chance = random.Random(self.seed)
        yield Step({**self._prices(chance), **self._days(chance, [1])}, (day(1),))
        while True:
            yield self._step(chance)

    def _step(self, chance: random.Random) -> Step:
        match chance.choices(KINDS, WEIGHTS):
            case ["new"]:
                numbers = [chance.randint(1, DAYS)]
            case ["scattered" | "near" as where]:
                numbers = [chance.randint(1, DAYS)]
                return Step(self._days(chance, numbers, where), (day(numbers[0]),))
            case ["correct"]:
                numbers = [chance.choice(self.landed)]
            case ["several"]:
                numbers = sorted(chance.sample(range(1, DAYS + 1), 3))
                numbers = numbers if chance.random() < 0.5 else numbers[::-1]
            case ["again"]:
                return Step({}, tuple(day(n) for n in dict.fromkeys(self.landed)))
            case ["maintain"]:
                return Step({}, (), "maintain")
            case ["redefine"]:
                return self._redefined(chance)
            case _:
                return Step(self._prices(chance), (day(chance.choice(self.landed)),))
        prices = self._prices(chance) if chance.random() < 0.2 else {}
        return Step({**prices, **self._days(chance, numbers)}, tuple(map(day, numbers)))

    def _days(
        self, chance: random.Random, numbers: Sequence[int], where: Where = "few"
    ) -> dict[str, list[Any]]:
        files: dict[str, list[Any]] = {}
        for number in numbers:
            self.landed.append(number)
            sold, ordered = keys(chance, where), keys(chance, where)
            files[f"sales/2024-01-{number:02}"] = [sale(chance, number, i) for _, i in sold]
            files[f"orders/2024-01-{number:02}"] = [order(chance, number, *key) for key in ordered]
        return files

    def _redefined(self, chance: random.Random) -> Step:
        """One view or two, and a day again for the views over them to follow."""
        chosen = chance.sample(list(CHANGES), chance.choice([1, 1, 2]))
        views = tuple(view for view in CHANGES if view in chosen)  # inputs first
        for view in views:
            what, values = CHANGES[view]
            now = getattr(self.definition, what)
            self.definition = replace(self.definition, **{what: values[now == values[0]]})
        return Step({}, (day(chance.choice(self.landed)),), "redefine", self.definition, views)

    def _prices(self, chance: random.Random) -> dict[str, list[Any]]:
        known = [item for item in ITEMS if chance.random() < 0.8] or ITEMS
        return {"items": [{"item": i, "price": str(chance.randint(1, 9))} for i in known]}


KINDS = (
    "new",
    "scattered",
    "near",
    "correct",
    "several",
    "again",
    "prices",
    "maintain",
    "redefine",
)
WEIGHTS = (4, 3, 3, 5, 3, 1, 2, 2, 2)
SHOPS, ITEMS = ["a", "b", "c"], ["tea", "oil", "jam", "nut", "fig"]
RANGE, MANY = 2_000, 150  # keys that scattered and near days draw from, and how many they have


def loaded(config: Path) -> Project:
    """The project; all of its tables count as large if the committer is MARKING.

    Then they lie in small files of several row groups.
    """
    changed: dict[str, float] = {}
    is_large = (config / LARGE).exists()
    own_commits.GROUP_ROWS = 40 if is_large else GROUP_ROWS
    if is_large:
        changed |= {"merged_bytes": -1, "marked_share": 1_000, "read_here_bytes": -1}
        changed |= {"piece_bytes": 2_000, "file_rows": 120}
    if (config / BY_SPARK).exists():
        changed["computed_here_bytes"] = -1
    project = load(config)
    return project.model_copy(update={"limits": replace(project.limits, **changed)})


def keys(chance: random.Random, where: Where) -> list[tuple[int, str]]:
    """Ids of orders and items: few, which come again and again, or many of a long range."""
    if where == "few":
        count = chance.choice([0, 1, 3, 8, 15])
        return [(chance.randint(1, 20), chance.choice(ITEMS)) for _ in range(count)]
    first = chance.randrange(RANGE - MANY)
    numbers = (
        chance.sample(range(RANGE), MANY) if where == "scattered" else range(first, first + MANY)
    )
    return [(100 + number, f"item {number:04}") for number in numbers]


def sale(chance: random.Random, number: int, item: str) -> dict[str, Any]:
    known = None if chance.random() < 0.1 else item
    amount = f"{chance.randint(-300, 2000) / 100:.2f}"
    return {"shop": chance.choice(SHOPS), "item": known, "amount": amount, "at": at(chance, number)}


def order(chance: random.Random, number: int, key: int, item: str) -> dict[str, Any]:
    told = {"id": key, "shop": chance.choice(SHOPS), "item": item}
    return {**told, "quantity": chance.randint(1, 9), "at": at(chance, number)}


def at(chance: random.Random, number: int) -> str:
    """Some time of that day, or long before."""
    late = timedelta(days=chance.choice([0, 0, 0, 0, 0, 1, 3, 9]))
    moment = datetime(2024, 1, number, tzinfo=UTC) + timedelta(minutes=chance.randrange(1440))
    return (moment - late).isoformat()
