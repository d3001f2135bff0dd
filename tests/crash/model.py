"""What the bazaar's tables must hold, by plain Python over the files that were delivered.

It shares no code with what it is compared to. Left out is the lookup that keeps the prices of the
run that joined it: what it holds depends on the runs, and `verify` compares that.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.crash.bazaar import Definition, Step

from sluice.language.interval import Interval

Row = dict[str, Any]
Rows = Counter[tuple[Any, ...]]
COLUMNS = {
    "sales": ("shop", "item", "amount", "at"),
    "orders": ("id", "shop", "item", "quantity", "at"),
    "fresh": ("id", "value"),
    "totals": ("shop", "item", "total", "lines", "ordered", "last"),
    "best": ("shop", "item", "total", "rank"),
    "peaks": ("shop", "items", "least", "shown"),
    "days": ("shop", "window_start", "ordered"),
    "recent": ("shop", "window_start", "id", "quantity"),
    "flows": ("flow", "shop", "item"),
    "shops": ("shop",),
    "beside": ("shop", "item", "amount", "total"),
    "met": ("id", "at", "amount"),
    "steps": ("id", "n", "before", "so_far"),
}
DAY = timedelta(days=1)
Extreme = Callable[..., Any]
EXTREMES: dict[str, Extreme] = {"min": min, "max": max}


@dataclass
class Model:
    """Files that lie there, and what each interval delivered of them when it was run last."""

    files: dict[str, list[Row]] = field(default_factory=dict)
    sales: dict[datetime, list[Row]] = field(default_factory=dict)
    orders: dict[datetime, list[Row]] = field(default_factory=dict)
    prices: dict[str, Decimal] = field(default_factory=dict)
    definition: Definition = field(default_factory=Definition)

    def take(self, step: Step) -> None:
        """The step's files land and its intervals are run."""
        self.files |= step.files
        self.definition = step.definition or self.definition
        for interval in step.intervals:
            self.sales[interval.start] = self._read("sales", interval)
            self.orders[interval.start] = self._read("orders", interval)
        if step.intervals:
            self.prices = {r["item"]: Decimal(r["price"]) for r in self.files["items"]}

    def _read(self, source: str, interval: Interval) -> list[Row]:
        rows = self.files.get(f"{source}/{interval.start:%Y-%m-%d}", [])
        return [{**row, "at": datetime.fromisoformat(row["at"])} for row in rows]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The visible columns of each table."""
        more = ("most",) if self.definition.most else ()
        return COLUMNS | {"totals": (*COLUMNS["totals"], *more)}

    def tables(self) -> dict[str, Rows]:
        """The rows of each table, counted."""
        sales = [
            {**row, "amount": Decimal(row["amount"])}
            for rows in self.sales.values()
            for row in rows
            if row["item"] is not None
        ]
        orders = latest(self.orders)
        totals = list(summed(sales, orders))
        best = list(ranked(totals, self.definition.limit))
        found = {
            "sales": sales,
            "orders": orders,
            "fresh": list(self._priced(orders)),
            "totals": totals,
            "best": best,
            "peaks": list(peaks(totals, best, EXTREMES[self.definition.extreme])),
            "days": list(days(orders, self.definition.keep)),
            "recent": list(recent(orders)),
            "beside": list(beside(sales, totals)),
            "met": list(met(orders, sales)),
            "steps": list(steps(orders)),
        }
        found["flows"] = list(flows(sales, orders))
        found["shops"] = [{"shop": shop} for shop in {row["shop"] for row in found["flows"]}]
        return {name: counted(rows, self.columns[name]) for name, rows in found.items()}

    def _priced(self, orders: list[Row]) -> Iterable[Row]:
        for order in orders:
            price = self.prices.get(order["item"])
            if price is not None or self.definition.join == "left":
                value = None if price is None else order["quantity"] * price
                yield {"id": order["id"], "value": value}


def counted(rows: Iterable[Row], columns: Iterable[str]) -> Rows:
    """Rows of those columns, by how often they are there."""
    names = tuple(columns)
    return Counter(tuple(row[name] for name in names) for row in rows)


def latest(delivered: dict[datetime, list[Row]]) -> list[Row]:
    """Of each key the row that is last by time, then by interval, then by place in it."""
    best: dict[int, tuple[tuple[Any, ...], Row]] = {}
    for start, rows in delivered.items():
        for place, row in enumerate(rows):
            order = (row["at"], start, place)
            if row["id"] not in best or order > best[row["id"]][0]:
                best[row["id"]] = (order, row)
    return [row for _, row in best.values()]


def summed(sales: list[Row], orders: list[Row]) -> Iterable[Row]:
    for shop, item in {(r["shop"], r["item"]) for r in (*sales, *orders)}:
        sold = [r["amount"] for r in sales if (r["shop"], r["item"]) == (shop, item)]
        ordered = [r for r in orders if (r["shop"], r["item"]) == (shop, item)]
        yield {
            "shop": shop,
            "item": item,
            "total": sum(sold) if sold else None,
            "lines": len(sold),
            "most": max(sold, default=None),
            "ordered": sum(r["quantity"] for r in ordered) if ordered else None,
            "last": max((r["at"] for r in ordered), default=None),
        }


def ranked(totals: list[Row], limit: int) -> Iterable[Row]:
    """The greatest of each shop; nulls come last, ties go by item."""
    for shop in {row["shop"] for row in totals}:
        mine = [row for row in totals if row["shop"] == shop]
        mine.sort(key=lambda r: (r["total"] is None, -(r["total"] or 0), r["item"]))
        yield from ({**row, "rank": nth} for nth, row in enumerate(mine[:limit], 1))


def peaks(totals: list[Row], best: list[Row], extreme: Extreme) -> Iterable[Row]:
    for shop in {row["shop"] for row in totals}:
        mine = [row["total"] for row in totals if row["shop"] == shop]
        shown = [r["total"] for r in best if r["shop"] == shop and r["total"] is not None]
        least = extreme((total for total in mine if total is not None), default=None)
        known = sum(shown) if shown else None
        yield {"shop": shop, "items": len(mine), "least": least, "shown": known}


def days(orders: list[Row], keep: int) -> Iterable[Row]:
    """Sums of windows that end less than so many days before the newest order."""
    horizon = max((row["at"] for row in orders), default=None)
    sums: dict[tuple[str, datetime], int] = defaultdict(int)
    for row in orders:
        start = row["at"].astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        sums[row["shop"], start] += row["quantity"]
    for (shop, start), ordered in sums.items():
        if horizon and start + DAY + keep * DAY > horizon:
            yield {"shop": shop, "window_start": start, "ordered": ordered}


def recent(orders: list[Row]) -> Iterable[Row]:
    """Orders less than five days before the newest one."""
    horizon = max((row["at"] for row in orders), default=None)
    for row in orders:
        if horizon and row["at"] > horizon - 5 * DAY:
            yield {**row, "window_start": row["at"]}


def flows(sales: list[Row], orders: list[Row]) -> Iterable[Row]:
    yield from ({**row, "flow": "sales"} for row in sales if row["amount"] > 2)
    yield from ({**row, "flow": "orders"} for row in orders)


def beside(sales: list[Row], totals: list[Row]) -> Iterable[Row]:
    """Sales with the total of their shop and item, if that has several lines."""
    of = {(row["shop"], row["item"]): row for row in totals}
    for row in sales:
        found = of[row["shop"], row["item"]]
        yield {**row, "total": found["total"] if found["lines"] > 1 else None}


def met(orders: list[Row], sales: list[Row]) -> Iterable[Row]:
    """Orders with the sales of their shop and item within a day; old ones are left out."""
    horizon = max((row["at"] for row in (*orders, *sales)), default=None)
    for row in orders:
        near = [
            sale
            for sale in sales
            if (sale["shop"], sale["item"]) == (row["shop"], row["item"])
            and abs(sale["at"] - row["at"]) <= DAY
        ]
        for found in near or [{"at": row["at"], "amount": None}]:
            if max(row["at"], found["at"]) + 4 * DAY > horizon:
                yield {**row, "amount": found["amount"]}


def steps(orders: list[Row]) -> Iterable[Row]:
    """Orders of each shop by time, then by id."""
    for shop in {row["shop"] for row in orders}:
        before, so_far = None, 0
        mine = sorted((r for r in orders if r["shop"] == shop), key=lambda r: (r["at"], r["id"]))
        for n, row in enumerate(mine, 1):
            so_far += row["quantity"]
            yield {"id": row["id"], "n": n, "before": before, "so_far": so_far}
            before = row["quantity"]
