"""Aggregators of a user's own, one that can take values back and one that can't."""

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc


class Product:
    """The product of what is not zero: divides where a value goes."""

    state = "STRUCT<product: DOUBLE, zeros: BIGINT>"
    type = "DOUBLE"

    def initialize(self) -> dict[str, float]:
        return {"product": 1.0, "zeros": 0}

    def add(self, state: dict[str, float], values: pa.Array) -> dict[str, float]:
        return {
            "product": state["product"] * _product(values),
            "zeros": state["zeros"] + _zeros(values),
        }

    def remove(self, state: dict[str, float], values: pa.Array) -> dict[str, float]:
        return {
            "product": state["product"] / _product(values),
            "zeros": state["zeros"] - _zeros(values),
        }

    def merge(self, a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
        return {"product": a["product"] * b["product"], "zeros": a["zeros"] + b["zeros"]}

    def result(self, state: dict[str, float]) -> float:
        return 0.0 if state["zeros"] else state["product"]


class Longest:
    """The longest text, of equal ones the greatest: what goes may have been it."""

    state = "STRING"
    type = "STRING"

    def initialize(self) -> str:
        return ""

    def add(self, state: str, values: pa.Array) -> str:
        return max([state, *values.to_pylist()], key=_size)

    def merge(self, a: str, b: str) -> str:
        return max(a, b, key=_size)

    def result(self, state: str) -> str:
        return state


class Texts:
    """How often each text is there, as a map; a text that can't be counted is an error."""

    state = "MAP<STRING, BIGINT>"
    type = "MAP<STRING, BIGINT>"

    def initialize(self) -> dict[str, int]:
        return {}

    def add(self, state: dict[str, int], values: pa.Array) -> dict[str, int]:
        found = values.to_pylist()
        if "bad" in found:
            raise ValueError("'bad' can't\nbe counted")
        return self.merge(state, Counter(found))

    def merge(self, a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
        return dict(Counter(dict(a)) + Counter(dict(b)))

    def result(self, state: dict[str, int]) -> dict[str, int]:
        return dict(state)


class Mistyped(Texts):
    """Its state is not what it says."""

    state = "DOUBLE"


class Untypable(Texts):
    """Its type is none."""

    state = "TEXTS"


class Costly(Texts):
    """Is not made without a parameter."""

    def __init__(self, limit: int) -> None:
        self.limit = limit


def _product(values: pa.Array) -> float:
    others = values.filter(pc.not_equal(values, 0))
    return float(pc.product(others).as_py() or 1)


def _zeros(values: pa.Array) -> int:
    return int(pc.sum(pc.equal(values, 0)).as_py() or 0)


def _size(text: str) -> tuple[int, str]:
    return len(text), text
