"""A user's own aggregator: a Python class, run by Spark's workers over Arrow.

The class is shipped by value, with its package and this module: workers need neither. A group's
added and removed rows reach it as Arrow arrays, all groups of a batch in one call. Its state must
not depend on the order of `add`, or the table differs from its recompute.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import DataType

from sluice.engine.operator import import_object
from sluice.errors import ConfigError
from sluice.kinds.cogroup.accumulator import Accumulator
from sluice.language.types import canonical


class Aggregator(Protocol):
    """Interface of a user's class; without `remove`, groups that lose a value are recomputed.

    `state` and `type` are the Spark SQL types of the state and of the result. States are plain
    Python values. Values are never null and have no order.
    """

    state: str
    type: str

    def initialize(self) -> Any:
        """Return the state of no values."""

    def add(self, state: Any, values: pa.Array) -> Any:
        """Return the state with those values added."""

    def merge(self, a: Any, b: Any) -> Any:
        """Return the state of the values of both."""

    def result(self, state: Any) -> Any:
        """Return the value that readers see."""


@dataclass(frozen=True)
class Own(Accumulator):
    """Accumulator of a user's class; its state is a number of values and the class's own state."""

    @cached_property
    def aggregator(self) -> Aggregator:
        """An instance of the class that the aggregate names; ConfigError if there is none."""
        named = import_object(
            self.aggregate.function, f"{self.stream}.{self.name}: {self.aggregate.text}"
        )
        if not isinstance(named, type):
            raise self._refusal("is not a class")
        self._check(named, _METHODS)  # before the call, because the name may refer to anything
        try:
            made: Aggregator = named(*self.aggregate.parameters)
        except Exception as error:
            raise self._refusal(f"can't be made: {_describe(error)}") from error
        self._check(made, _TYPES)
        return made

    def _check(self, found: object, needed: Sequence[str]) -> None:
        if lacking := [name for name in needed if not hasattr(found, name)]:
            raise self._refusal(f"lacks {', '.join(lacking)}")

    def _type(self, name: str) -> str:
        """Return the Spark SQL type that `state` or `type` names."""
        try:
            return canonical(str(getattr(self.aggregator, name)))
        except ValueError as error:
            raise self._refusal(f"has a `{name}` that is none: {error}") from None

    def _refusal(self, why: str) -> ConfigError:
        return ConfigError([f"{self.stream}.{self.name}: {self.aggregate.function} {why}"])

    @property
    def can_break(self) -> bool:  # type: ignore[override]
        """True without `remove`: then any removed value breaks its group."""
        return not hasattr(self.aggregator, "remove")

    def takes_one_by_one(self, value: DataType) -> bool:
        return True

    def gather(self, weight: Column, value: DataType) -> Column:
        came = F.collect_list(F.when(weight > 0, self.value))
        gone = F.collect_list(F.when(weight < 0, self.value))
        return F.struct(came.alias("came"), gone.alias("gone"))

    def settle(self, was: Column | None, delta: Column, kept: DataType) -> Column:
        nothing = F.lit(None).cast(f"STRUCT<n: BIGINT, kept: {self._type('state')}>")
        old = nothing if was is None else was
        came, gone = delta.getField("came"), delta.getField("gone")
        change = F.coalesce(F.size(came), F.lit(0)) - F.coalesce(F.size(gone), F.lit(0))
        counted = F.coalesce(old.getField("n"), F.lit(0).cast("bigint")) + change
        update = _udf(_updating(self.aggregator, self.aggregate.text), self._type("state"))
        state = F.struct(counted.alias("n"), update(old.getField("kept"), came, gone).alias("kept"))
        return F.when(counted > 0, state)

    def breaks(self, was: Column, delta: Column) -> Column:
        return F.coalesce(F.size(delta.getField("gone")) > 0, F.lit(False))

    def finish(self, state: Column, kept: DataType) -> Column:
        type_ = self._type("type")
        read = _udf(_reading(self.aggregator, self.aggregate.text), type_)
        typed = F.lit(None).cast(type_)  # sets the function's Arrow type
        return F.when(state.isNotNull(), read(state.getField("kept"), typed))


_METHODS = ("initialize", "add", "merge", "result")
_TYPES = ("state", "type")


def _updating(aggregator: Any, text: str) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
    def update(was: pa.Array, came: pa.Array, gone: pa.Array) -> pa.Array:
        def of(i: int) -> Any:
            state = was[i].as_py() if was[i].is_valid else None
            if len(added := _values(came, i)):
                new = aggregator.add(aggregator.initialize(), added)
                state = new if state is None else aggregator.merge(state, new)
            if state is not None and len(removed := _values(gone, i)):
                state = aggregator.remove(state, removed) if can_remove else None
            return state

        with _naming(text):
            return pa.array([of(i) for i in range(len(was))], type=was.type)

    can_remove = hasattr(aggregator, "remove")
    return update


def _reading(aggregator: Any, text: str) -> Callable[[pa.Array, pa.Array], pa.Array]:
    def read(states: pa.Array, typed: pa.Array) -> pa.Array:
        with _naming(text):
            found = [aggregator.result(s.as_py()) if s.is_valid else None for s in states]
            return pa.array(found, type=typed.type)

    return read


@contextmanager
def _naming(text: str) -> Iterator[None]:
    """Raise a user's error again, as one line that begins with the aggregate."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - whatever a user's code raises
        raise RuntimeError(f"{text} failed: {_describe(error)}") from None


def _describe(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _udf(function: Callable[..., pa.Array], type_: str) -> Callable[..., Column]:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    made: Callable[..., Column] = arrow_udf(function, type_)  # type: ignore[call-overload]
    return made


def _values(lists: pa.Array, i: int) -> pa.Array:
    """Return the values of one group, as Arrow values."""
    return lists[i].values if lists[i].is_valid else pa.array([])
