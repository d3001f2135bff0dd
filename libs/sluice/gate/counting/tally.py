"""Tally of a batch: all counts for the compiled rules, in one pass.

The pass counts each row rule, and collects up to twenty of its unexpected rows (the first ones, as
JSON, long text cut). It also returns each measure, and the numbers of rows read, accepted and
quarantined. Rules that quarantine judge all readable rows. All others judge the rows that remain,
because those would be committed.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from sluice.changes.diff import balance
from sluice.declare.declared import CUT, KEPT, OP, RAW, REASON, UNDATED
from sluice.gate.counting import counts
from sluice.gate.counting.batch_counts import BatchCounts
from sluice.gate.counting.counts import RowCounts, Tally
from sluice.gate.rules.row_rules import EVERY_ROW, RowRule
from sluice.gate.rules.sql import as_json, name
from sluice.gate.rules.suite import SAMPLES, Repeats, Suite, UniquenessRule
from sluice.interpreter.refusals import is_here
from sluice.language.names import RESERVED_PREFIX

PLACE_IN_PARTITION = 2**33 - 1  # the bits of `monotonically_increasing_id` that number rows
NEAR = 1_000  # rows of each partition that an older Spark looks at for samples


def takes_number(session: SparkSession) -> bool:
    """True if `min_by` and `max_by` take a number of rows, as Spark's do since 4.2."""
    return is_here(session) or tuple(map(int, session.version.split(".")[:2])) >= (4, 2)


def find_repeats(rows: DataFrame, rules: Sequence[UniquenessRule]) -> tuple[Repeats, ...]:
    """Return what each rule's grouping of `rows` finds, all in one Spark job."""
    if not rules:
        return ()
    summaries = [_summary(rows, rule).withColumn("nth", F.lit(i)) for i, rule in enumerate(rules)]
    found = balance(DataFrame.unionAll, summaries).toArrow().to_pylist()
    return tuple(
        Repeats(
            row["elements"] or 0,
            row["considered"] or 0,
            row["distinct"] or 0,
            row["repeated"] or 0,
            tuple(row["samples"] or ()),
        )
        for row in sorted(found, key=lambda row: row["nth"])
    )


def _summary(rows: DataFrame, rule: UniquenessRule) -> DataFrame:
    """Return one row, the counts of one rule; null is a value unless it is ignored."""
    keys = [F.expr(name(c)).alias(c) for c in rule.columns]
    judged = rows.filter(rule.domain).select(
        *keys, F.expr(f"NOT ({rule.ignored})").alias("_judged")
    )
    groups = judged.groupBy("_judged", *rule.columns).agg(F.count(F.lit(1)).alias("_rows"))
    key = f"struct({', '.join(f'`{c}`' for c in rule.columns)})"
    aggregates = [
        "sum(_rows) AS elements",
        "sum(_rows) FILTER (WHERE _judged) AS considered",
        "count(*) FILTER (WHERE _judged) AS distinct",
        "sum(_rows) FILTER (WHERE _judged AND _rows > 1) AS repeated",
    ]
    samples = f"transform({{}}, k -> {as_json('k')}) AS samples"
    if takes_number(rows.sparkSession):
        most = f"max_by({key}, _rows, {SAMPLES}) FILTER (WHERE _judged AND _rows > 1)"
        return groups.selectExpr(*aggregates, samples.format(most))
    most_frequent = groups.filter("_judged AND _rows > 1").orderBy(F.desc("_rows")).limit(SAMPLES)
    found = most_frequent.selectExpr(samples.format(f"collect_list({key})"))
    return groups.selectExpr(*aggregates).crossJoin(found)


REASONS = "_sluice_reasons"
READABLE = f"{REASON} IS NULL"
ACCEPTED = f"size({REASONS}) = 0"
LONGEST_TEXT = 1000


def tally(split: DataFrame, suite: Suite, key: tuple[str, ...] | None = None) -> Tally:
    """Tally a split batch (see `Gate.split`) in one Spark job.

    With a `key`, even an empty one, the tally includes the batch's counts.
    """
    judges = is_judged(split)
    flags = [flag for i, rule in enumerate(suite.rows) for flag in _flags(i, rule, judges)]
    nth = "monotonically_increasing_id() AS _sluice_nth"
    judged = split.selectExpr("*", nth, f"{ACCEPTED} AS _sluice_accepted", *flags)
    row = f"struct({', '.join(_visible_columns(split))})"
    first = _first if takes_number(split.sparkSession) else _first_of_older_spark
    aggregates = [
        "count(*) AS read",
        "count_if(_sluice_accepted) AS accepted",
        f"sum(if(NOT _sluice_accepted, octet_length({whole(split)}), NULL)) AS bytes_quarantined",
        f"count_if({READABLE}) AS readable",
        *(
            aggregate
            for i, rule in enumerate(suite.rows)
            for aggregate in _counts(i, rule, first(row, f"_sluice_not_{i}"))
        ),
        *(
            f"{m.aggregate('_sluice_accepted')} AS observed_{i}"
            for i, m in enumerate(suite.measures)
        ),
        *(() if key is None else _count_columns(visible(split), key)),
        *((f"sum({CUT}) FILTER (WHERE _sluice_accepted) AS cut",) if CUT in split.columns else ()),
        *((f"count_if({UNDATED}) AS undated",) if UNDATED in split.columns else ()),
        *(counts.counts(key) if key and counts.CONFLICT in split.columns else ()),
    ]
    found = judged.selectExpr(*aggregates).toArrow().to_pylist()[0]
    nulls = {c: found.get(f"nulls_{nth}") for nth, c in enumerate(visible(split))}
    rows = []
    for i, rule in enumerate(suite.rows):
        usual = found["readable" if _is_first(rule) else "accepted"]
        elements = found.get(f"elements_{i}", usual)
        considered, samples = found.get(f"considered_{i}", elements), found[f"samples_{i}"]
        rows.append(RowCounts(elements, considered, found[f"unexpected_{i}"], tuple(samples or ())))
    return Tally(
        found["read"],
        found["accepted"],
        tuple(rows),
        tuple(found[f"observed_{i}"] for i in range(len(suite.measures))),
        None if key is None else BatchCounts(found["accepted"], found.get("keys"), nulls),
        found["bytes_quarantined"] or 0,
        counts.found_in(found),
        found.get("cut") or 0,
        found.get("undated", 0),
    )


def is_judged(rows: DataFrame) -> str:
    """Return SQL for the rows that expectations judge, all but deletes; '' for all rows."""
    return f"{OP} <> 'delete'" if OP in rows.columns else ""


def visible(rows: DataFrame) -> list[str]:
    """Return the user's own columns."""
    return [c for c in rows.columns if not c.startswith(RESERVED_PREFIX)]


def whole(split: DataFrame) -> str:
    """Return SQL for a row as text: the reader's text if kept, else JSON."""
    parsed = as_json(f"struct({', '.join(f'`{c}`' for c in visible(split))})")
    kept = [c for c in (KEPT, RAW) if c in split.columns]
    return f"coalesce({', '.join([*kept, parsed])})" if kept else parsed


def _count_columns(columns: Sequence[str], key: Sequence[str]) -> Iterator[str]:
    quoted = [f"`{column}`" for column in columns]
    for nth, column in enumerate(quoted):
        yield f"count_if(_sluice_accepted AND {column} IS NULL) AS nulls_{nth}"
    if key:
        hashed = f"xxhash64({', '.join(f'`{column}`' for column in key)})"
        yield f"approx_count_distinct({hashed}) FILTER (WHERE _sluice_accepted) AS keys"


def _visible_columns(split: DataFrame) -> Iterator[str]:
    for column in visible(split):
        quoted = name(column) if "." not in column else f"`{column}`"
        is_text = isinstance(split.schema[column].dataType, StringType)
        yield f"left({quoted}, {LONGEST_TEXT}) AS {quoted}" if is_text else quoted


def _flags(i: int, rule: RowRule, judges: str) -> tuple[str, ...]:
    """Return flags computed once for each row, so that counting them is cheap."""
    population = " AND ".join(filter(None, (READABLE if _is_first(rule) else ACCEPTED, judges)))
    return (
        f"{population} AND {rule.domain} AS _sluice_in_{i}",
        f"{population} AND {rule.considered} AS _sluice_of_{i}",
        f"{population} AND {rule.violated} AS _sluice_not_{i}",
    )


def _is_first(rule: RowRule) -> bool:
    """True if the rule judges all readable rows, before the others."""
    return rule.expectation.on_failure == "quarantine"


def _first(row: str, of: str) -> str:
    """Return SQL for the first rows that meet a condition."""
    return f"min_by({row}, _sluice_nth, {SAMPLES}) FILTER (WHERE {of})"


def _first_of_older_spark(row: str, of: str) -> str:
    """Return SQL for rows that meet a condition: near the partitions' beginnings, or the first.

    It collects few rows, even if all of a large batch meet the condition.
    """
    is_near = f"(_sluice_nth & {PLACE_IN_PARTITION}L) < {NEAR}"
    near = f"collect_list(struct(_sluice_nth AS n, {row} AS r)) FILTER (WHERE {of} AND {is_near})"
    ordered = f"array_sort({near}, (a, b) -> CASE WHEN a.n < b.n THEN -1 ELSE 1 END)"
    alone = f"filter(array(min_by({row}, _sluice_nth) FILTER (WHERE {of})), r -> r IS NOT NULL)"
    some = f"slice(transform({ordered}, x -> x.r), 1, {SAMPLES})"
    return f"if(size({near}) > 0, {some}, {alone})"


def _counts(i: int, rule: RowRule, first: str) -> Iterator[str]:
    """Yield the aggregates of one rule; `first`: SQL for its samples."""
    if rule.domain != EVERY_ROW:
        yield f"count_if(_sluice_in_{i}) AS elements_{i}"
    if rule.test.ignored is not None:
        yield f"count_if(_sluice_of_{i}) AS considered_{i}"
    yield f"count_if(_sluice_not_{i}) AS unexpected_{i}"
    yield f"transform({first}, r -> {as_json('r')}) AS samples_{i}"
