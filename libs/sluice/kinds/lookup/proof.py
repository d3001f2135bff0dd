"""Expected rows of a lookup whose rows keep the dimension versions of their batches."""

from collections import defaultdict
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from sluice.changes.trees import balanced
from sluice.delta.log.position import REBUILD, Pin, Position, positions
from sluice.engine.computing.batch import Batch
from sluice.engine.query.operator import names, same, within
from sluice.kinds.lookup.operator import LookupJoin
from sluice.kinds.lookup.references import references_at
from sluice.language.hidden_columns import BATCH


def batch_by_batch(batch: Batch[LookupJoin], operator: LookupJoin, rows: DataFrame) -> DataFrame:
    """Join each fact to the dimensions of its batch.

    The batch of a fact without a row is recorded nowhere. Such a fact is missing only if it finds
    its dimension rows at the versions of every batch.
    """
    facts = batch.snapshots()[operator.facts.id]
    prepared = operator.prepare(operator.facts.id, facts)
    joined = names(operator.key)
    absent = prepared.alias("p").join(
        rows.select(*joined).alias("r"), same("p", "r", operator.key), "left_anti"
    )
    present, missing = [], []
    for references, batches in _batches_by_references(batch.plan.uri).items():
        at = replace(batch.plan, references=dict(references)).looked_up
        dimensions = references_at(batch.session, batch.context, operator, at)
        mine = rows.where(balanced(Column.__or__, [*map(_of_batch, batches)])).select(*joined)
        found = within(prepared, mine, operator.key)
        present.append(operator.combine({operator.facts.id: found}, dimensions))
        missing.append(operator.combine({operator.facts.id: absent}, dimensions))
    always = _in_each(missing, operator.key)
    expected = balanced(DataFrame.unionByName, [*present, within(missing[0], always, operator.key)])
    return expected.withColumn(BATCH, F.lit(None).cast("bigint"))


def _in_each(parts: list[DataFrame], key: tuple[str, ...]) -> DataFrame:
    """Return the keys that all of the parts have."""
    every = balanced(DataFrame.unionByName, [part.select(*names(key)) for part in parts])
    counted = every.groupBy(*names(key)).agg(F.count(F.lit(1)).alias("_n"))
    return counted.where(F.col("_n") == len(parts))


def _batches_by_references(uri: str) -> dict[tuple[tuple[str, Pin], ...], list[Position]]:
    """Group the batches from the last rebuild on by their references.

    A rebuild has joined all rows of earlier batches again.
    """
    found: dict[tuple[tuple[str, Pin], ...], list[Position]] = defaultdict(list)
    for _, position in positions(uri):
        if position.references:
            found[tuple(sorted(position.references.items(), key=lambda i: i[0]))].append(position)
        if position.kind == REBUILD:
            break
    return found


def _of_batch(position: Position) -> Column:
    """Return a condition for the rows that a batch joined.

    For a rebuild, it includes the rows that were already right.
    """
    number = F.col(BATCH)
    return number <= position.batch if position.kind == REBUILD else number == position.batch
