"""Rows of dimensions, and of views over dimensions, that a lookup joins to its facts.

They are sent whole to every task, so that no fact is shuffled for them. A dimension may take a
share of the session's memory, estimated from its files. Compressed columns grow about eightfold in
a hash table, and the driver holds that twice while it sends it out. A larger one is joined by
shuffle, with the same result.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.settings import SparkSettings
from sluice.delta.log.files import table_size
from sluice.delta.log.position import Pins
from sluice.delta.reading.spark_reads import snapshot
from sluice.engine.context import Context
from sluice.engine.query.operator import CURRENT, Operator, names, unstored_rows
from sluice.spark.session import STATIC_CONF

BROADCAST_SHARE = 0.5  # of Spark's memory that a dimension may fill in every task
IN_MEMORY = 8 * 2  # bytes of memory per byte of files
SPARKS_OWN = "1g"  # if nothing else is set
UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def references_at(
    session: SparkSession,
    context: Context,
    operator: Operator,
    pins: Pins,
    known: Collection[str] = (),
) -> dict[str, DataFrame]:
    """Return all references but `known`, stored or not, at their pinned versions."""
    found = {}
    for table_id in (i for i in operator.references if i not in known):
        rows = dimension_at(session, context, table_id, pins)
        used = rows.select(*names(operator.columns(table_id)))
        is_broadcast = broadcast_of(context, table_id, pins).is_chosen
        found[table_id] = F.broadcast(used) if is_broadcast else used
    return found


def dimension_at(session: SparkSession, context: Context, table_id: str, pins: Pins) -> DataFrame:
    """Return a dimension, or a view over dimensions, at pinned versions."""
    table = context.graph.tables[table_id]
    if table.is_stored:
        uri, version = context.lake.uri(table_id), pins[table_id].version
        return snapshot(session, uri, version, context.limits)
    inputs = {i: dimension_at(session, context, i, pins) for i in table.inputs}
    for name, rows in inputs.items():
        if context.graph.tables[name].spec.has_history:
            inputs[name] = rows.where(CURRENT)
    return unstored_rows(table, inputs)


@dataclass(frozen=True)
class Broadcast:
    """Size of one dimension's files, and the size up to which one is broadcast."""

    bytes: int
    limit: int

    @property
    def is_chosen(self) -> bool:
        return self.bytes <= self.limit

    def __str__(self) -> str:
        if self.is_chosen:
            return "broadcast"
        return f"shuffle: {_mb(self.bytes)} MB of files, more than the {_mb(self.limit)} MB for it"


def broadcast_of(context: Context, table_id: str, pins: Pins) -> Broadcast:
    """Decide how a dimension, or a view over dimensions, is joined. Reads logs only."""
    stored = context.graph.stored([table_id])
    size = sum(table_size(context.lake.uri(i), pins[i].version).bytes for i in stored)
    return Broadcast(size, int(memory_bytes(context.settings) * BROADCAST_SHARE / IN_MEMORY))


def memory_bytes(settings: SparkSettings) -> int:
    """Return the driver's memory, or an executor's if that is less."""
    conf = {**STATIC_CONF, **settings.conf}
    driver = _bytes(conf.get("spark.driver.memory", SPARKS_OWN))
    if settings.master.startswith("local"):
        return driver
    return min(driver, _bytes(conf.get("spark.executor.memory", SPARKS_OWN)))


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", text.strip().lower())
    return int(found[1]) * UNITS.get(found[2] or "m", 1) if found else _bytes(SPARKS_OWN)


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"
