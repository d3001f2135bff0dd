"""A made-up broker: its customers, trades and prices, as files of one delivery after the other.

`Market(scale).deliver(folder)` lands the first delivery, with 400 days of the past: at scale 1 some
290,000 rows. Each further `deliver(folder, share)` lands a day with new rows, and new versions of
old ones, about `share` of the first delivery. The same calls always write the same files.
"""

import csv
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Rows = dict[str, list[Row]]

DAYS_BEFORE = 400
FIRST_DAY = date(2017, 7, 7)  # of delivery; the broker's own days pass faster
ROWS = {  # of the first delivery at scale 1, beside prices, filings and reference data
    "trades": 50_000,
    "watches": 10_000,
    "cash": 15_000,
    "customers": 800,
    "changes": 2_700,
    "prospects": 1_500,
    "employees": 150,
}
SYMBOLS = 250
SECTORS = ("Energy", "Health", "Finance", "Transport", "Retail")
CITIES = (("Leeds", "UK"), ("Lyon", "France"), ("Oslo", "Norway"), ("Porto", "Portugal"))
NAMES = ("Abel", "Baker", "Clark", "Dorn", "Evans", "Fox", "Gray", "Hale")
STATUSES = {
    "ACTV": "Active",
    "CMPT": "Completed",
    "CNCL": "Canceled",
    "INAC": "Inactive",
    "PNDG": "Pending",
    "SBMT": "Submitted",
}
TRADE_TYPES = {
    "TMB": ("Market Buy", False, True),
    "TMS": ("Market Sell", True, True),
    "TLB": ("Limit Buy", False, False),
    "TLS": ("Limit Sell", True, False),
}


class Market:
    """The broker's state between deliveries."""

    def __init__(self, scale: float) -> None:
        self.chance = random.Random(7)
        self.scale = scale
        self.today = date(2016, 6, 1)
        self.delivered = 0
        self.prices = {
            f"S{number:03}": self.chance.uniform(10, 90)
            for number in range(max(5, round(SYMBOLS * scale)))
        }
        self.symbols = [*self.prices]
        self.customers: dict[int, Row] = {}  # numbered from one, as accounts are
        self.accounts: dict[int, int] = {}  # the customer of each
        self.opened: list[Row] = []  # trades that still change
        self.positions: dict[tuple[int, str], tuple[int, int]] = {}  # by whom opened, how many
        self.watched: list[tuple[int, str]] = []
        self.numbers: dict[str, int] = {}  # the last one given

    def deliver(self, folder: Path, share: float | None = None) -> Path:
        """Land the next delivery; return its folder."""
        days = DAYS_BEFORE if share is None else max(1, round(DAYS_BEFORE * share))
        rows = self._first_rows() if share is None else {}
        much = 1.0 if share is None else share
        every = [self.today + timedelta(days=number) for number in range(days)]
        rows["daily_prices"] = [row for day in every for row in self._prices(day)]
        filings = [row for day in every if share is None for row in self._filings(day)]
        rows["filings"] = [*rows.get("filings", []), *filings]
        if share is not None:
            rows["filings"] += [self._company(cik) for cik in range(self._some(SYMBOLS * share))]
        events = [self._change(every) for _ in range(self._some(ROWS["changes"] * much))]
        rows["crm_events"] = [*rows.get("crm_events", []), *events]
        rows["watches"] = [self._watch(every) for _ in range(self._some(ROWS["watches"] * much))]
        rows["cash"] = [self._cash(every) for _ in range(self._some(ROWS["cash"] * much))]
        known = range(2 * self._some(ROWS["prospects"]))
        heard_of = self.chance.sample(known, self._some(ROWS["prospects"] * much))
        rows["prospects"] = [self._prospect(number) for number in heard_of]
        self._trade(every, self._some(ROWS["trades"] * much), rows)
        self.today = every[-1] + timedelta(days=1)
        landed = folder / f"{FIRST_DAY + timedelta(days=self.delivered)}"
        self.delivered += 1
        for source, found in rows.items():
            write(landed / source, found)
        return landed

    def _first_rows(self) -> Rows:
        began = [self.today]
        employees = [self._employee(n) for n in range(self._some(ROWS["employees"]))]
        events = [self._customer(began) for _ in range(self._some(ROWS["customers"]))]
        companies = [self._company(cik) for cik in range(len(self.prices))]
        securities = [self._security(cik, symbol) for cik, symbol in enumerate(self.prices)]
        return {"employees": employees, "crm_events": events, "filings": [*companies, *securities]}

    def _some(self, rows: float) -> int:
        return max(2, round(rows * self.scale))

    def _next(self, what: str) -> int:
        self.numbers[what] = self.numbers.get(what, 0) + 1
        return self.numbers[what]

    def _one_of(self, numbered: Mapping[int, Any]) -> int:
        return self.chance.choice(range(1, len(numbered) + 1))

    def _time(self, days: Sequence[date]) -> datetime:
        day = self.chance.choice(days)
        seconds = timedelta(seconds=self.chance.randrange(86_400))
        return datetime(day.year, day.month, day.day, tzinfo=UTC) + seconds

    def _prices(self, day: date) -> Iterable[Row]:
        for symbol, price in self.prices.items():
            price *= self.chance.uniform(0.96, 1.042)  # noqa: PLW2901
            price = min(max(price, 2.0), 900.0)  # noqa: PLW2901
            self.prices[symbol] = price
            yield {
                "symbol": symbol,
                "day": day,
                "close": f"{price:.2f}",
                "high": f"{price * self.chance.uniform(1, 1.03):.2f}",
                "low": f"{price * self.chance.uniform(0.97, 1):.2f}",
                "volume": self.chance.randrange(100, 100_000),
            }

    def _filing(self, kind: str, day: date, **content: Row) -> Row:
        filed = self._time([day])
        return {
            "filing_id": self._next("filing"),
            "kind": kind,
            "filed_ms": milliseconds(filed),
            **content,
        }

    def _company(self, cik: int) -> Row:
        city, country = self.chance.choice(CITIES)
        company = {
            "cik": cik,
            "name": f"Company {cik}",
            "industry": f"I{cik % 12:02}",
            "status": self.chance.choice(("ACTV", "ACTV", "INAC")),
            "ceo": self.chance.choice(NAMES),
            "headquarters": {"city": city, "country": country},
        }
        return self._filing("CMP", self.today - timedelta(days=2), company=company)

    def _security(self, cik: int, symbol: str) -> Row:
        security = {
            "symbol": symbol,
            "cik": cik,
            "name": f"Share of {cik}",
            "exchange": self.chance.choice(("NYSE", "NASDAQ")),
            "shares": self.chance.randrange(1_000, 1_000_000),
        }
        return self._filing("SEC", self.today - timedelta(days=1), security=security)

    def _filings(self, day: date) -> Iterable[Row]:
        """Results of the quarter that ends on that day, and changed companies and securities."""
        if day.day == 1 and day.month in (1, 4, 7, 10):
            for cik in range(len(self.prices)):
                shares = self.chance.randrange(100, 10_000)
                earnings = self.chance.randrange(-100_000, 1_000_000)
                results = {
                    "revenue": f"{earnings * 3 + 400_000}.50",
                    "earnings": f"{earnings}.25",
                    "eps": f"{earnings / shares:.2f}",
                }
                quarter = {"year": day.year, "quarter": (day.month + 2) // 3}
                yield self._filing("FIN", day, report={"cik": cik, **quarter, "results": results})
        elif day.day in (10, 20):
            cik = self.chance.randrange(len(self.prices))
            yield {**self._company(cik), "filed_ms": milliseconds(self._time([day]))}
            security = self._security(cik, self.symbols[cik])
            yield {**security, "filed_ms": milliseconds(self._time([day]))}

    def _event(self, action: str, days: Sequence[date], customer: Row) -> Row:
        return {
            "event_id": self._next("event"),
            "action": action,
            "action_ms": milliseconds(self._time(days)),
            "customer": customer,
        }

    def _account(self, customer: int) -> Row:
        account = self._next("account")
        self.accounts[account] = customer
        broker = self.chance.randrange(self._some(ROWS["employees"]))
        status = self.chance.randrange(3)
        return {
            "id": account,
            "broker_id": broker,
            "title": f"Plan {account}",
            "tax_status": status,
        }

    def _customer(self, days: Sequence[date]) -> Row:
        customer = self._next("customer")
        city, country = self.chance.choice(CITIES)
        family = self.chance.choice(NAMES)
        self.customers[customer] = known = {
            "id": customer,
            "tier": self.chance.randrange(1, 4),
            "born": f"{self.chance.randrange(1930, 2000)}-02-0{customer % 9 + 1}",
            "name": {"given": self.chance.choice(NAMES), "family": family},
            "address": {"city": city, "country": country},
            "contact": {"email": f"{family}.{customer}@Example.org", "phone": None},
        }
        return self._event("NEW", days, {**known, "account": self._account(customer)})

    def _change(self, days: Sequence[date]) -> Row:
        """A later event of the customers' system: it contains only what has changed."""
        customer = self._one_of(self.customers)
        account = self._one_of(self.accounts)
        of_account = {"id": self.accounts[account], "account": {"id": account}}
        action = self.chance.choices(
            ("NEW", "ADDACCT", "UPDCUST", "UPDACCT", "CLOSEACCT", "INACT"), (5, 38, 30, 20, 5, 2)
        )[0]
        if action == "NEW":
            return self._customer(days)
        if action == "ADDACCT":
            return self._event(action, days, {"id": customer, "account": self._account(customer)})
        if action == "UPDCUST":
            city, country = self.chance.choice(CITIES)
            changed = self.chance.choice(
                (
                    {"tier": self.chance.randrange(1, 4)},
                    {"address": {"city": city, "country": country}},
                    {"contact": {"phone": f"{self.chance.randrange(10**6)}"}},
                )
            )
            return self._event(action, days, {"id": customer, **changed})
        if action == "UPDACCT":
            broker = self.chance.randrange(self._some(ROWS["employees"]))
            moved = {**of_account["account"], "broker_id": broker}  # type: ignore[dict-item]
            return self._event(action, days, {**of_account, "account": moved})
        return self._event(action, days, of_account if action == "CLOSEACCT" else {"id": customer})

    def _watch(self, days: Sequence[date]) -> Row:
        ends = bool(self.watched) and self.chance.random() < 0.3
        customer, symbol = (
            self.chance.choice(self.watched)
            if ends
            else (self._one_of(self.customers), self.chance.choice(self.symbols))
        )
        self.watched.append((customer, symbol))
        action = "CNCL" if ends else "ACTV"
        at = self._time(days)
        return {"customer_id": customer, "symbol": symbol, "action": action, "at": shown(at)}

    def _cash(self, days: Sequence[date]) -> Row:
        return {
            "account_id": self._one_of(self.accounts),
            "at": shown(self._time(days)),
            "amount": f"{self.chance.uniform(-900, 1000):.2f}",
            "label": self.chance.choice(("fee", "deposit", "trade, settled")),
        }

    def _employee(self, number: int) -> Row:
        return {
            "employee_id": number,
            "manager_id": number // 10,
            "given_name": self.chance.choice(NAMES),
            "family_name": self.chance.choice(NAMES),
            "job": 314 if number % 10 else 412,
            "branch": self.chance.choice(CITIES)[0],
        }

    def _prospect(self, number: int) -> Row:
        known = self.customers[self._one_of(self.customers)]
        is_customer = self.chance.random() < 0.4
        return {
            "agency_id": f"A{number}",
            "email": known["contact"]["email"] if is_customer else f"Nobody{number}@example.org",
            "family_name": known["name"]["family"],
            "income": self.chance.randrange(10_000, 300_000),
            "net_worth": self.chance.randrange(0, 2_000_000),
            "age": self.chance.randrange(18, 90),
            "children": self.chance.randrange(6),
            "cars": self.chance.randrange(6),
            "credit_rating": self.chance.randrange(300, 850),
        }

    def _trade(self, days: Sequence[date], count: int, rows: Rows) -> None:
        """Close trades that were open, place `count` others, and add the rows of both."""
        again, self.opened = self.opened, []
        trades = [self._placed(days) for _ in range(count)]
        rows["trades"] = [*again, *trades]
        rows["holding_changes"] = []
        rows["trade_events"] = [
            {"trade_id": t["trade_id"], "status": "SBMT", "at": t["placed_at"]} for t in trades
        ]
        for trade in rows["trades"]:
            status = self.chance.choices(("CMPT", "CNCL", "PNDG"), (88, 11.6, 0.4))[0]
            if status == "PNDG":
                self.opened.append({**trade})
                continue
            if trade["status"] == "PNDG":  # it is closed by this delivery
                trade["changed_at"] = shown(self._time(days[-1:]))
            else:
                placed = datetime.fromisoformat(trade["placed_at"])
                trade["changed_at"] = shown(
                    placed + timedelta(seconds=self.chance.randrange(1, 9_999))
                )
            trade["status"] = status
            event = {"trade_id": trade["trade_id"], "status": status, "at": trade["changed_at"]}
            rows["trade_events"].append(event)
            if status == "CMPT" and self.chance.random() < 0.6:
                rows["holding_changes"].append(self._held(trade))

    def _placed(self, days: Sequence[date]) -> Row:
        symbol = self.chance.choice(self.symbols)
        price = self.prices[symbol]
        placed = shown(self._time(days))
        return {
            "trade_id": self._next("trade"),
            "account_id": self._one_of(self.accounts),
            "symbol": symbol,
            "type": self.chance.choice([*TRADE_TYPES]),
            "status": "PNDG",
            "is_cash": self.chance.random() < 0.8,
            "placed_at": placed,
            "changed_at": placed,
            "quantity": self.chance.randrange(1, 1_000),
            "bid": f"{price * 0.99:.2f}",
            "price": f"{price:.2f}",
            "fee": f"{self.chance.uniform(1, 9):.2f}",
            "commission": f"{self.chance.uniform(1, 90):.2f}",
        }

    def _held(self, trade: Row) -> Row:
        place = (trade["account_id"], trade["symbol"])
        opened_by, before = self.positions.get(place, (trade["trade_id"], 0))
        sells = TRADE_TYPES[trade["type"]][1]
        after = before + (-trade["quantity"] if sells else trade["quantity"])
        self.positions[place] = (opened_by, after)
        number = trade["trade_id"]
        return {"opened_by": opened_by, "trade_id": number, "before": before, "after": after}


def land_reference(folder: Path) -> None:
    """Write the tables that no delivery changes."""
    days = [date(2016, 5, 1) + timedelta(days=number) for number in range(700)]
    calendar: list[Row] = [
        {
            "day": day,
            "day_number": day.toordinal(),
            "year": day.year,
            "quarter": (day.month + 2) // 3,
            "month": day.month,
            "is_weekend": day.isoweekday() > 5,
        }
        for day in days
    ]
    industries = [
        {"industry": f"I{n:02}", "name": f"Industry {n}", "sector": SECTORS[n % len(SECTORS)]}
        for n in range(12)
    ]
    taxes = [{"tax_status": n, "name": f"Tax {n}", "rate": f"0.{n}2500"} for n in range(3)]
    types = [
        {"type": key, "name": name, "is_sell": sells, "is_market": is_market}
        for key, (name, sells, is_market) in TRADE_TYPES.items()
    ]
    write(folder / "calendar", calendar)
    write(folder / "industries", industries)
    write(folder / "tax_rates", taxes)
    write(folder / "trade_types", types)
    write(folder / "statuses", [{"status": key, "name": STATUSES[key]} for key in STATUSES])


def remove_rows(landed: Path, every: int = 10) -> None:
    """Write the files of a delivery again, without every tenth row."""
    for file in landed.iterdir():
        head = 1 if file.suffix == ".csv" else 0
        lines = file.read_text().splitlines(keepends=True)
        kept = [line for number, line in enumerate(lines[head:], 1) if number % every]
        file.write_text("".join([*lines[:head], *kept]))


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a file: of JSON if rows are nested, otherwise of CSV. Without rows, write none."""
    if not rows:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if any(isinstance(value, dict) for value in rows[0].values()):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        path.with_suffix(".json").write_text(lines)
        return
    with path.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def shown(time: datetime) -> str:
    return time.isoformat()
