"""Rows of all streams of a cogroup, as narrow as possible for the shuffle.

Prepared rows have a column for the argument of every aggregate, null except for those of their own
stream. Equal arguments of one stream become one. Arguments of different streams share a column if
they have the same type.
"""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.kinds.cogroup.aggregates.accumulator import Accumulator

STREAM = "_stream"


def packed(
    rows: DataFrame, accumulators: tuple[Accumulator, ...]
) -> tuple[DataFrame, Mapping[str, Column]]:
    """Return `rows` with shared columns for their arguments, and the new arguments."""
    places = {a.name: _place(a, accumulators, rows) for a in accumulators}
    shared: dict[str, list[str]] = {}
    for name, place in places.items():
        shared.setdefault(place, []).append(name)
    others = [f"`{c}`" for c in rows.columns if c not in places]
    columns = [F.coalesce(*[F.col(f"`{n}`") for n in names]) for names in shared.values()]
    found = rows.select(*others, *[c.alias(p) for c, p in zip(columns, shared, strict=True)])
    of_stream = {a.name: a.stream for a in accumulators}
    return found, {
        name: F.when(F.col(STREAM) == of_stream[name], F.col(f"`{place}`")).alias(name)
        for name, place in places.items()
    }


def _place(accumulator: Accumulator, every: tuple[Accumulator, ...], rows: DataFrame) -> str:
    """Return the name of the column that it shares: its type, and its number within its stream."""
    types = {a.name: rows.schema[a.name].dataType.simpleString() for a in every}
    type_ = types[accumulator.name]
    own = (a for a in every if a.stream == accumulator.stream and types[a.name] == type_)
    meanings = dict.fromkeys(a.meaning for a in own)
    return f"_{type_}_{list(meanings).index(accumulator.meaning)}"
