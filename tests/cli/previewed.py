"""A pipeline to preview, its random days, and what a run of it did."""

import hashlib
import json
import random
from pathlib import Path
from typing import Any, Self

from tests.cli.trips import Ended, Here

COUNTS = ("rows_in", "inserted", "updated", "deleted", "quarantined", "expired")
DONE = ("committed", "position")
PIPELINE = """
pipeline: trips
schedule: "@daily"
start_date: 2024-01-01
end_date: 2024-01-05
sources:
  flights:
    path: "landing/flights/{interval_start:%Y-%m-%d}/"
    format: json
    schema: "flight INT, carrier STRING, delay INT, at TIMESTAMP"
    key: [flight]
    expect: [{type: expect_column_values_to_be_between, column: delay, min_value: 0,
      on_failure: quarantine}]
  weather:
    path: "landing/weather/{interval_start:%Y-%m-%d}/"
    format: json
    schema: station INT, wind INT
dimensions:
  carriers: {path: landing/carriers/, format: json, schema: "code STRING, name STRING", key: [code]}
views:
  named:
    kind: lookup
    from: flights
    join: [{dimension: carriers, on: carrier = carriers.code, type: left}]
    select: {flight: flight, name: carriers.name, delay: delay, at: at}
    refresh: true
  delays: {kind: cogroup, key: [name], streams: {f: {from: named, aggregates:
    {n: count(*), worst: max(delay), s: sum(delay)}}}}
  worst: {kind: topk, from: named, partition_by: [name], order_by: [delay desc], limit: 2}
  late: {kind: select, from: flights, where: delay > 5, select: {flight: flight, delay: delay}}
  steps: {kind: over, from: flights, partition_by: [carrier], order_by: [at],
    select: {flight: flight, was: lag(delay) OVER w}}
  both: {kind: union, from: [{table: flights, select: {n: delay}}, {table: weather,
    select: {n: wind}}], tag: which}
  pairs: {kind: join, left: late, right: {table: named, as: x}, on: late.flight = x.flight,
    select: {flight: late.flight, name: x.name}}
  latest: {kind: window_store, from: flights, key: [carrier], time: at, retention: 2 days}
  query: {kind: sql, sql: "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier"}
"""


class World:
    """What was landed, and how it changes by chance."""

    def __init__(self, project: Here, chance: random.Random):
        self.project, self.chance = project, chance
        self.flights: dict[int, list[dict[str, Any]]] = {day: [] for day in range(1, 5)}
        self.next = 0

    @classmethod
    def of_runs(cls, runs: int, folder: Path, seed: int, declared: str = PIPELINE) -> Self:
        """A project after several runs, each of which followed a random delivery."""
        project = Here(folder)
        project.declare(declared)
        world = cls(project, random.Random(seed))
        for _ in range(runs):
            world.land()
            project.complete("run", "trips", "--changed", "--json")
        return world

    def land(self) -> None:
        """Change one day of each source, and now and then the dimension."""
        day = self.chance.randint(1, 4)
        rows = self.flights[day]
        self.flights[day] = [self._changed(row) for row in rows if self.chance.random() > 0.2]
        self.flights[day] += [self._flight(day) for _ in range(self.chance.randint(1, 4))]
        self.project.land("flights", day, self.flights[day])
        winds = [{"station": n % 3, "wind": self.chance.randint(0, 9)} for n in range(4)]
        self.project.land("weather", day, winds[: self.chance.randint(1, 4)])
        self.carriers()

    def carriers(self) -> None:
        names = {code: f"{code} {self.chance.randint(0, 1)}" for code in "ABC"}
        folder = self.project.folder / "landing" / "carriers"
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps({"code": code, "name": name}) for code, name in names.items())
        (folder / "a.json").write_text("\n".join(lines))

    def _flight(self, day: int) -> dict[str, Any]:
        self.next += 1
        at = f"2024-01-0{day}T{self.next % 24:02}:00:00Z"
        delay = self.chance.randint(-2, 12)
        return {"flight": self.next, "carrier": self.chance.choice("ABD"), "delay": delay, "at": at}

    def _changed(self, row: dict[str, Any]) -> dict[str, Any]:
        return row if self.chance.random() < 0.5 else {**row, "delay": self.chance.randint(-2, 12)}


def digest(project: Here) -> dict[str, str]:
    """Every file of the lake, by its content."""
    lake = project.folder / "lake"
    files = (path for path in lake.rglob("*") if path.is_file())
    return {str(f.relative_to(lake)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def done(ended: Ended) -> dict[str, tuple[int, ...]]:
    """What a run did to each table, as its summary counts it."""
    by_table: dict[str, list[dict[str, Any]]] = {}
    for record in ended.records:
        if record["outcome"] in DONE:
            by_table.setdefault(record["table"].partition("__")[0], []).append(record)
    return {table: counted(table, records) for table, records in by_table.items()}


def counted(table: str, records: list[dict[str, Any]]) -> tuple[int, ...]:
    visible = [r for r in records if r["table"] == table]
    read = [r["rows_in"] for r in records if r["table"] == records[0]["table"]]
    changed = (sum(r[name] for r in visible) for name in COUNTS[1:4])
    return sum(n or 0 for n in read), *changed, *(sum(r[n] for r in records) for n in COUNTS[4:])


def foreseen(ended: Ended) -> dict[str, tuple[int, ...]]:
    rows = [r for r in ended.records if r["outcome"] != "unchanged"]
    return {r["table"]: tuple(r[name] or 0 for name in COUNTS) for r in rows}
