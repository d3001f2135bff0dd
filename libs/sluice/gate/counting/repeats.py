"""Repeated values of a batch, found by grouping: one Spark job for all rules about them."""

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from sluice.changes.trees import balanced
from sluice.gate.rules.sql import as_json, name
from sluice.gate.rules.uniqueness import SAMPLES, Repeats, UniquenessRule


def find_repeats(rows: DataFrame, rules: Sequence[UniquenessRule]) -> tuple[Repeats, ...]:
    """Return what each rule's grouping of `rows` finds, all in one Spark job."""
    if not rules:
        return ()
    summaries = [_summary(rows, rule).withColumn("nth", F.lit(i)) for i, rule in enumerate(rules)]
    found = balanced(DataFrame.unionAll, summaries).toArrow().to_pylist()
    return tuple(_repeats(row) for row in sorted(found, key=lambda row: row["nth"]))


def _repeats(row: Mapping[str, Any]) -> Repeats:
    elements, considered, distinct, repeated = (
        row[key] or 0 for key in ("elements", "considered", "distinct", "repeated")
    )
    return Repeats(elements, considered, distinct, repeated, tuple(row["samples"] or ()))


def _summary(rows: DataFrame, rule: UniquenessRule) -> DataFrame:
    """Return one row, the counts of one rule; null is a value unless it is ignored."""
    keys = [F.expr(name(c)).alias(c) for c in rule.columns]
    judged = rows.filter(rule.domain).select(
        *keys, F.expr(f"NOT ({rule.ignored})").alias("_judged")
    )
    groups = judged.groupBy("_judged", *rule.columns).agg(F.count(F.lit(1)).alias("_rows"))
    key = f"struct({', '.join(f'`{c}`' for c in rule.columns)})"
    return groups.selectExpr(
        "sum(_rows) AS elements",
        "sum(_rows) FILTER (WHERE _judged) AS considered",
        "count(*) FILTER (WHERE _judged) AS distinct",
        "sum(_rows) FILTER (WHERE _judged AND _rows > 1) AS repeated",
        f"transform(max_by({key}, _rows, {SAMPLES}) FILTER (WHERE _judged AND _rows > 1),"
        f" k -> {as_json('k')}) AS samples",
    )
