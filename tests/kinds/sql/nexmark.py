"""Small data in the shape of Nexmark's auction house, with retractions added.

Of fifty events one is a person, three are auctions, the others bids. Later events favour hot
auctions and bidders. People move, auctions are prolonged or withdrawn, and bids are corrected.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tests.kinds.sql.shop import written
from tests.support.lake import Lake, Row

SCHEMAS = {
    "person": (
        "id BIGINT, name STRING, email STRING, city STRING, state STRING, date_time TIMESTAMP"
    ),
    "auction": (
        "id BIGINT, item_name STRING, description STRING, initial_bid BIGINT, reserve BIGINT, "
        "date_time TIMESTAMP, expires TIMESTAMP, seller BIGINT, category BIGINT"
    ),
    "bid": (
        "id BIGINT, auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, "
        "date_time TIMESTAMP, extra STRING"
    ),
}
SOURCES = "sources:\n" + "".join(
    f'  {name}: {{path: "{name}/{{interval_start:%Y-%m-%d}}/", key: [id], schema: "{ddl}"}}\n'
    for name, ddl in SCHEMAS.items()
)
FIRST = datetime(2024, 1, 1, 7, 59, tzinfo=UTC)
STATES = ("az", "ca", "id", "or", "wa", "wy")
CHANNELS = ("apple", "baidu", "facebook", "google")


class Nexmark:
    """The events of one lake, from a seed."""

    def __init__(self, lake: Lake, seed: int = 7):
        self.lake, self.draw, self.count = lake, Random(seed), 0

    def happen(self, events: int) -> None:
        """Put further events, one commit for each table."""
        rows: dict[str, list[Row]] = {name: [] for name in SCHEMAS}
        for number in range(self.count, self.count + events):
            of_fifty = number % 50
            name = "person" if of_fifty == 0 else "auction" if of_fifty < 4 else "bid"
            rows[name].append(getattr(self, name)(number))
        self.count += events
        for name, new in rows.items():
            self.lake.put(name, *new)

    def retract(self, count: int) -> None:
        """Change and remove earlier rows of each table; keys of joins move."""
        for name in SCHEMAS:
            known = self.draw.sample([*self.lake.state[name].values()], count)
            half = count // 2
            changed = [getattr(self, name)(row["id"]) for row in known[:half]]
            self.lake.put(name, *changed, gone=known[half:])

    def person(self, number: int) -> Row:
        return {
            "id": number,
            "name": self.draw.choice(("Ada Abel", "Bo Bond", "Cy Cook")),
            "email": f"{number}@example.org",
            "city": self.draw.choice(("Boise", "Bend", "Kent")),
            "state": self.draw.choice(STATES),
            "date_time": self._time(number),
        }

    def auction(self, number: int) -> Row:
        at, price = self._time(number), self._price()
        return {
            "id": number,
            "item_name": f"item {number}",
            "description": "as new",
            "initial_bid": price,
            "reserve": price + self._price(),
            "date_time": at,
            "expires": at + timedelta(seconds=self.draw.randint(1, 60)),
            "seller": self._earlier(number, of_fifty=0),
            "category": self.draw.randint(10, 14),
        }

    def bid(self, number: int) -> Row:
        channel = self.draw.choice(CHANNELS)
        return {
            "id": number,
            "auction": self._earlier(number, of_fifty=self.draw.randint(1, 3)),
            "bidder": self._earlier(number, of_fifty=0),
            "price": self._price(),
            "channel": channel,
            "url": f"https://example.org/{channel}/{number % 7}",
            "date_time": self._time(number),
            "extra": self.draw.choice(("", "abc", "cocoa")),
        }

    def _earlier(self, number: int, of_fifty: int) -> int:
        """A row of that kind: half of the time the newest, which is hot."""
        newest = number // 50
        epoch = newest if self.draw.random() < 0.5 else self.draw.randint(0, newest)
        return epoch * 50 + of_fifty

    def _price(self) -> int:
        return round(10 ** (self.draw.random() * 6) * 100)

    def _time(self, number: int) -> datetime:
        return FIRST + timedelta(milliseconds=200 * number)


QUERIES = written(Path(__file__).parent / "nexmark.sql")


PROCESSING_TIME = {"q12"}


KEPT = {name: sql for name, sql in QUERIES.items() if name not in PROCESSING_TIME}
