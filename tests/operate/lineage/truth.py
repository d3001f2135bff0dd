"""Lineage of rows in plain Python."""

from collections.abc import Callable, Iterable
from typing import Any

from tests.cli.previewed import World

from sluice.delta.reading.local import read_where
from sluice.read.lake import Lake

MORE = """
  frozen: {kind: lookup, from: flights, select: {flight: flight, name: carriers.name},
    join: [{dimension: carriers, on: carrier = carriers.code, type: left}]}
  known: {kind: select, from: flights, distinct: true, select: {carrier: carrier}}
  trips: {kind: cogroup, key: [carrier], window: {type: session, time: at, gap: 3 hours},
    streams: {f: {from: flights, where: delay > 1, aggregates: {n: count(*)}}}}
  hops: {kind: cogroup, key: [carrier], window: {type: hopping, time: at, size: 6 hours,
    advance: 2 hours}, streams: {f: {from: flights, aggregates: {n: count(*)}}}}
  windy: {kind: join, type: semi, left: late, right: {table: weather, as: w},
    on: late.delay = w.wind, where: late.flight > w.station}
  calm: {kind: join, type: anti, left: late, right: {table: weather, as: w},
    on: late.delay = w.wind}
  maybe: {kind: join, type: full, left: {table: late, as: a}, right: {table: named, as: b},
    on: a.delay = b.delay, where: a.flight < b.flight, select: {one: a.flight, other: b.flight}}
  places: {kind: topk, from: flights, partition_by: [carrier], order_by: [delay desc], limit: 2,
    function: rank, rank: place, select: {delay: delay}}
  chained: {kind: sql, sql: "SELECT c.name AS name, count(*) AS n, max(f.delay) AS worst
    FROM flights f JOIN carriers c ON f.carrier = c.code WHERE f.delay > 2 GROUP BY c.name"}
  first: {kind: sql, sql: "SELECT flight, carrier FROM (SELECT flight, carrier, row_number() OVER
    (PARTITION BY carrier ORDER BY delay, flight) AS r FROM flights) WHERE r <= 2"}
"""
NAMED = ("named", "worst", "pairs", "frozen", "delays", "chained", "maybe")
Row = dict[str, Any]
Sources = tuple[set[Any], set[Any], set[Any]]  # flights, rows of weather, carriers


class Repeating(World):
    """A world in which a flight may be delivered on two days, the later of which counts."""

    def _flight(self, day: int) -> dict[str, Any]:
        row = super()._flight(day)
        if self.chance.random() < 0.3:
            row["flight"] = self.chance.randint(1, self.next)
        row["at"] = f"2024-01-0{day}T{row['flight'] % 7:02}:00:00Z"
        return row

    def land(self) -> None:
        super().land()
        for day, rows in self.flights.items():
            self.flights[day] = list({row["flight"]: row for row in rows}.values())
            if rows:
                self.project.land("flights", day, self.flights[day])

    def day_of(self, flight: int) -> int:
        """The last day with a row of that flight that is not in quarantine."""
        days = (
            day
            for day, rows in self.flights.items()
            if any(r["flight"] == flight and r["delay"] >= 0 for r in rows)
        )
        return max(days)


class Truth:
    """What each row must come from, by reading everything."""

    def __init__(self, lake: Lake):
        self.lake = lake
        self.flights = {row["flight"]: row for row in lake.table("flights").read()}
        weather = lake.project.graph.table("weather")
        self.weather = stored(lake, weather.name)
        self.names = {row["code"]: row["name"] for row in lake.table("carriers").read()}

    def name(self, flight: int) -> str | None:
        return self.names.get(self.flights[flight]["carrier"])

    def of(self, where: Callable[[Row], bool]) -> set[int]:
        return {key for key, row in self.flights.items() if where(row)}

    def carriers(self, flights: Iterable[int]) -> set[str]:
        return {self.flights[f]["carrier"] for f in flights} & self.names.keys()

    def windy(self, row: Row) -> set[Any]:
        met = (
            w for w in self.weather if w["wind"] == row["delay"] and row["flight"] > w["station"]
        )
        return {place(w) for w in met}

    def named(self, row: Row) -> set[int]:
        return self.of(lambda f: self.names.get(f["carrier"]) == row["name"])

    def alike(self, row: Row) -> set[int]:
        return self.of(lambda f: f["carrier"] == row["carrier"])

    def latest(self, row: Row) -> set[int]:
        same = self.of(lambda f: f["carrier"] == row["carrier"] and f["at"] == row["window_start"])
        return {max(same)}

    def within(self, row: Row, least: int) -> set[int]:
        return self.of(
            lambda f: (
                f["carrier"] == row["carrier"]
                and f["delay"] > least
                and row["window_start"] <= f["at"] < row["window_end"]
            )
        )

    def sources(self, table: str, row: Row) -> Sources:
        """Flights, weather and carriers of a row of any view."""
        flight = {row["flight"]} if row.get("flight") is not None else set[int]()
        flights = self.ways[table](row) if table in self.ways else flight
        shown = {row["other"]} - {None} if table == "maybe" else flights
        weather = self.windy(row) if table == "windy" else set()
        return flights, weather, self.carriers(shown) if table in NAMED else set()

    @property
    def ways(self) -> dict[str, Callable[[Row], set[int]]]:
        """The flights of a row, if it does not just show one."""
        late = {key for key, row in self.flights.items() if row["delay"] > 2}
        return {
            "delays": self.named,
            "chained": lambda row: self.named(row) & late,
            "known": self.alike,
            "query": self.alike,
            "steps": lambda row: self.alike(self.flights[row["flight"]]),
            "latest": self.latest,
            "trips": lambda row: self.within(row, 1),
            "hops": lambda row: self.within(row, -9),
            "maybe": lambda row: {row["one"], row["other"]} - {None},
            "places": lambda row: {row["_sluice_key_flight"]},
        }


def place(row: Row) -> tuple[Any, ...]:
    return row["_sluice_interval"], row["_sluice_id"]


def stored(lake: Lake, name: str) -> list[Row]:
    table = lake.project.graph.table(name)
    rows: list[Row] = read_where(lake.uri(table), lake.stored(table).version).to_pylist()
    return rows
