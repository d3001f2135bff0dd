"""The gate that every batch passes before it is committed; it tallies all counts in one pass.

    gate = Gate("retail.transactions", source.expect)
    batch = gate.split(parsed).cache()      # adds `_sluice_reasons`; empty: the row is accepted
    verdict = gate.check(batch)             # one Spark job (one more if uniqueness is expected)
    verdict.enforce()                       # QualityStop if an expectation marked `stop` failed
    accepted_rows(batch)                    # the rows to commit

The batch is a DataFrame of parsed rows. A reader marks rows that it could not use in the columns
that `declare.declared` names, such as REASON. No row is lost: `check` asserts that read = accepted
+ quarantined.

The pass counts each row rule, and collects up to twenty of its unexpected rows (the first ones, as
JSON, long text cut). It also returns each measure, and the numbers of rows read, accepted and
quarantined. Rules that quarantine judge all readable rows. All others judge the rows that remain,
because those would be committed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

from sluice.changes import balance
from sluice.declare.declared import CUT, FILE, KEPT, OP, RAW, REASON, UNDATED
from sluice.declare.table_spec import Expectation
from sluice.gate import counts, engine
from sluice.gate.counts import CONFLICT, BatchCounts, RowCounts, Tally
from sluice.gate.results import (
    ExpectationOutcome,
    Verdict,
    measure_outcome,
    row_outcome,
    uniqueness_outcome,
)
from sluice.gate.row_rules import EVERY_ROW, RowRule
from sluice.gate.sql import as_json, name, text
from sluice.gate.suite import SAMPLES, Repeats, Suite, UniquenessRule, build_suite
from sluice.interpreter import UnsupportedLocally, is_here
from sluice.language.names import RESERVED_PREFIX

REASONS = "_sluice_reasons"
OWN = (REASON, REASONS, RAW, KEPT, FILE, CUT, UNDATED, CONFLICT)
REASON_TYPE = "ARRAY<STRUCT<expectation: STRING, reason: STRING>>"
NO_REASONS = f"CAST(array() AS {REASON_TYPE})"


@dataclass(frozen=True)
class Gate:
    """Expectations of a table, ready to judge batches.

    With a `key` (empty if there is none) the batch's rows are counted in the same pass.
    """

    table: str
    expectations: tuple[Expectation, ...] = ()
    key: tuple[str, ...] | None = None

    @cached_property
    def suite(self) -> Suite:
        return build_suite(self.table, self.expectations)

    @property
    def fits(self) -> str:
        """SQL that is true if a row breaks none of the quarantine rules. Never null."""
        good = [f"NOT {rule.violated}" for rule in self.suite.quarantine]
        return " AND ".join(good) or EVERY_ROW

    def split(self, parsed: DataFrame) -> DataFrame:
        """Return `parsed` with `_sluice_reasons`, an array of (expectation, reason). Lazy."""
        broken = ", ".join(_reason(rule) for rule in self.suite.quarantine)
        by_rules = f"CAST(array_compact(array({broken})) AS {REASON_TYPE})"
        by_reader = f"array(named_struct('expectation', NULL, 'reason', {REASON}))"
        has_reasons = REASON in parsed.columns  # a reader says why it could not use a row
        marked = parsed if has_reasons else parsed.withColumn(REASON, F.lit(None).cast("string"))
        if judges := is_judged(parsed):
            by_rules = f"CASE WHEN {judges} THEN {by_rules} ELSE {NO_REASONS} END"
        usable = f"CASE WHEN {REASON} IS NULL THEN {by_rules} ELSE {by_reader} END"
        split = marked.withColumn(REASONS, F.expr(f"CAST({usable} AS {REASON_TYPE})"))
        if KEPT not in split.columns:
            return split
        return split.withColumn(KEPT, F.expr(f"CASE WHEN NOT {ACCEPTED} THEN {KEPT} END"))

    def check(self, split: DataFrame) -> Verdict:
        """Return the verdict on a split batch. Cache the batch: several jobs may read it."""
        tallied = tally(split, self.suite, self.key)
        found = [*self._judge_compiled(tallied), *self._judge_grouped(split)]
        found += self._others(split)
        order = {id(e): nth for nth, e in enumerate(self.expectations)}
        outcomes = tuple(sorted(found, key=lambda o: order[id(o.expectation)]))
        return Verdict(
            self.table,
            tallied.read,
            tallied.accepted,
            outcomes,
            tallied.counts,
            bytes_quarantined=tallied.bytes_quarantined,
            conflicts=tallied.conflicts,
            cut=tallied.cut,
            undated=tallied.undated,
        )

    def _others(self, split: DataFrame) -> tuple[ExpectationOutcome, ...]:
        if self.suite.others and is_here(split.sparkSession):
            raise UnsupportedLocally("an expectation that only Great Expectations can evaluate")
        rows = split.filter(ACCEPTED).select(*(f"`{c}`" for c in visible(split)))
        return engine.validate(rows, self.suite.others)

    def _judge_compiled(self, counts: Tally) -> list[ExpectationOutcome]:
        rows = [row_outcome(*pair) for pair in zip(self.suite.rows, counts.rows, strict=True)]
        measured = zip(self.suite.measures, counts.observed, strict=True)
        return [*rows, *(measure_outcome(*pair) for pair in measured)]

    def _judge_grouped(self, split: DataFrame) -> list[ExpectationOutcome]:
        rules = self.suite.uniqueness
        found = find_repeats(accepted_rows(split), rules) if rules else ()
        return [uniqueness_outcome(*pair) for pair in zip(rules, found, strict=True)]


def accepted_rows(split: DataFrame) -> DataFrame:
    """Return the accepted rows of a split batch, without the columns that reader and gate add."""
    return split.filter(ACCEPTED).drop(*OWN)


def _reason(rule: RowRule) -> str:
    label, says = text(rule.expectation.label), text(f"expected that {rule.test.says}")
    return (
        f"CASE WHEN {rule.violated} THEN named_struct('expectation', {label}, 'reason', {says}) END"
    )


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
    schema = split.schema
    for column in visible(split):
        quoted = name(column) if "." not in column else f"`{column}`"
        is_text = isinstance(schema[column].dataType, StringType)
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
