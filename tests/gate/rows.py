"""Small random batches for the quality tests: every column has nulls, the doubles also NaN."""

import datetime as dt
import math
import random
from decimal import Decimal
from typing import Any

from sluice.declare.table_spec import Expectation

SCHEMA = (
    "id INT, quantity INT, price DECIMAL(12,2), weight DOUBLE, limit DOUBLE, department STRING,"
    " other STRING, at TIMESTAMP, day DATE"
)
DEPARTMENTS = ("GROCERY", "DELI", "MEAT-PCKGD", "it's", "a\\b", "", "été")


def expect(type_: str, on_failure: str = "warn", **kwargs: Any) -> Expectation:
    return Expectation.model_validate(
        {"type": f"expect_{type_}", "on_failure": on_failure, **kwargs}
    )


def random_rows(n: int, seed: int = 1) -> list[tuple[Any, ...]]:
    """Rows of SCHEMA; about one value in six is null."""
    rng = random.Random(seed)

    def maybe(value: Any) -> Any:
        return None if rng.random() < 1 / 6 else value

    start = dt.datetime(2017, 3, 1, tzinfo=dt.UTC)
    return [
        (
            maybe(rng.randrange(n)),
            maybe(rng.randrange(-1, 10)),
            maybe(Decimal(rng.randrange(-100, 2000)) / 100),
            maybe(rng.choice([rng.uniform(-1, 5), math.nan, 0.0, -0.0, math.inf])),
            maybe(rng.choice([1.0, 2.0, math.nan])),
            maybe(rng.choice(DEPARTMENTS)),
            maybe(rng.choice(DEPARTMENTS)),
            maybe(start + dt.timedelta(seconds=rng.randrange(200_000))),
            maybe((start + dt.timedelta(days=rng.randrange(4))).date()),
        )
        for _ in range(n)
    ]
