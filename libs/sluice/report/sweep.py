"""Sweep: expectations over whole tables (`over: table`), checked on the tables as they are.

Row counts come from the log. Small and simple tables are read by Arrow. Large ones are answered
from statistics, or from the previous result and the changes since. The rest is for a judge with
Spark; without one it is left for a sweep that has one. Nothing is ever stopped, because the data
are already there. Results are kept and reported as warnings.

In a large table, a greatest value lies in the few files whose statistics reach farthest; a share of
nulls is in the log. Sums go on from the sum kept at an earlier version. Values that were unique
then still are, unless one added since is there twice.

Arrow's results equal those of the compiled SQL in Spark; tests compare them. Row conditions, nested
columns, and floats as keys are left to Spark.
"""

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.declare.table_spec import Expectation
from sluice.delta.log.files import table_size
from sluice.delta.log.position import Head, head
from sluice.delta.note_tables import append_rows, read_rows
from sluice.delta.places.lake_layout import layout
from sluice.gate import history, suite
from sluice.gate.history import is_whole
from sluice.gate.results import (
    WHOLE,
    ExpectationOutcome,
    Json,
    Verdict,
    compare_numbers,
    measure_outcome,
    uniqueness_outcome,
)
from sluice.gate.suite import COMPILERS, SAMPLES, Measure, Repeats, UniquenessRule
from sluice.limits import Limits
from sluice.read.scan import Scan, small_feed
from sluice.read.snapshot import Snapshot


@dataclass(frozen=True)
class Stored:
    """A table as of one version."""

    name: str
    at: Head
    limits: Limits

    @cached_property
    def snapshot(self) -> Snapshot:
        return Snapshot.open(self.name, self.at.uri, self.at.version)

    @property
    def types(self) -> dict[str, pa.DataType]:
        return {field.name: field.type for field in self.snapshot.schema}

    @cached_property
    def is_small(self) -> bool:
        return table_size(self.at.uri, self.at.version).bytes <= self.limits.collected_bytes

    def rows(self, columns: Sequence[str]) -> pa.Table:
        """Return these columns of all rows."""
        wanted = tuple(dict.fromkeys(columns))
        schema = pa.schema([self.snapshot.schema.field(c) for c in wanted])
        pages = Scan(self.snapshot).read_unordered(wanted)
        return pa.concat_tables([schema.empty_table(), *pages])

    def sum(self, column: str) -> Any:
        """Return a column's sum, page by page; None of no rows.

        Exact for whole numbers and decimals.
        """
        total = None
        for page in Scan(self.snapshot).read_unordered((column,)):
            part = pc.sum(page[column]).as_py()
            total = part if total is None else total + (part or 0)
        return total


STATE, OTHER = "sluice", "sluice_other"  # in a result's meta: what was examined
LEAST, GREATEST = "expect_column_min_to_be_between", "expect_column_max_to_be_between"
SUM, MEAN = "expect_column_sum_to_be_between", "expect_column_mean_to_be_between"
SHARE = "expect_column_proportion_of_non_null_values_to_be_between"


@dataclass(frozen=True)
class Earlier:
    """State kept from an earlier check of a table."""

    version: int
    table: str
    total: Decimal | None = None
    is_unique: bool = False

    @classmethod
    def of(cls, result: Mapping[str, Any] | None, which: str = STATE) -> "Earlier | None":
        """Return the state in a kept result."""
        state = ((result or {}).get("meta") or {}).get(which)
        if not result or not state:
            return None
        unexpected = (result.get("result") or {}).get("unexpected_count")
        known = None if state["total"] is None else Decimal(state["total"])
        return cls(state["version"], state["table"], known, unexpected == 0)


def state(now: Stored, total: Decimal | None) -> dict[str, Any]:
    """Return the state kept of a check, for the next one to continue from."""
    known = None if total is None else str(total)
    return {"version": now.at.version, "table": now.at.table, "total": known}


def number(type_: str, column: str, now: Stored, total: Decimal | None) -> Any:
    """Return what such an expectation observes; None if statistics (and a sum) don't show it."""
    if column not in now.types or pa.types.is_floating(now.types[column]):
        return None
    if type_ in (LEAST, GREATEST):
        return extreme(now, column, greatest=type_ == GREATEST)
    given, rows = given_values(now, column), now.snapshot.count()
    if type_ == SHARE:
        return None if given is None else (given / rows if rows else 0.0)
    if total is None or type_ == SUM:
        return total
    return float(total / given) if given else None


def extreme(now: Stored, column: str, *, greatest: bool) -> Any:
    """Return the least or greatest value; reads farthest files first, until none can top it."""
    files = now.snapshot.files([column])
    if any(not file.bounds[column].is_known for file in files):
        return None
    found, best = None, pc.max if greatest else pc.min
    reaches = [(f.bounds[column].high if greatest else f.bounds[column].low, f) for f in files]
    filled = (pair for pair in reaches if pair[0] is not None)
    for reach, file in sorted(filled, key=lambda pair: pair[0], reverse=greatest):
        if found is not None and best(pa.array([found, reach])).as_py() == found:
            break
        for group in now.snapshot.row_groups(file, [column]):
            values = now.snapshot.read(group, [column])[column]
            found = best(pa.array([found, best(values).as_py()], values.type)).as_py()
    return found


def given_values(now: Stored, column: str) -> int | None:
    """Return the number of non-null values, from the log; None if it does not show them."""
    if now.snapshot.kept:
        return None
    actions, names = now.snapshot.actions, ("num_records", f"null_count.{column}")
    if not set(names) <= set(actions.column_names) or any(actions[n].null_count for n in names):
        return None
    rows, nulls = (pc.sum(actions[n]).as_py() or 0 for n in names)
    return int(rows - nulls)


def total(now: Stored, column: str, earlier: Earlier | None) -> Decimal | None:
    """Return a sum of whole numbers or decimals, from an earlier sum and the changes since."""
    is_exact = column in now.types and not pa.types.is_floating(now.types[column])
    if not earlier or not is_exact or earlier.total is None or earlier.table != now.at.table:
        return None
    changed = _find_changes(now, earlier, column)
    if changed is None:
        return None
    went, came = (Decimal(pc.sum(rows[column]).as_py() or 0) for rows in changed)
    return earlier.total - went + came


def repeats(rule: UniquenessRule, now: Stored, earlier: Earlier | None) -> Repeats | None:
    """Return values added since that are now repeated, if all values were unique before."""
    if earlier is None or not earlier.is_unique or earlier.table != now.at.table:
        return None
    column, given = rule.columns[0], given_values(now, rule.columns[0])
    if len(rule.columns) > 1 or given is None or "row_condition" in rule.expectation.kwargs:
        return None
    changed = _find_changes(now, earlier, column)
    if changed is None:
        return None
    counted = _count_repeated(now, column, pc.unique(changed[1][column]).drop_null())
    repeated = sum(counted.values())
    samples = (json.dumps({column: value}, default=str) for value in list(counted)[:SAMPLES])
    distinct = given - repeated + len(counted)
    return Repeats(now.snapshot.count(), given, distinct, repeated, tuple(samples))


def _find_changes(now: Stored, earlier: Earlier, column: str) -> tuple[pa.Table, pa.Table] | None:
    """Return the column of rows removed and of rows added since; None if they are many."""
    versions = (earlier.version, now.at.version)
    return small_feed(now.name, now.at.uri, *versions, [column], now.limits)


def _count_repeated(now: Stored, column: str, values: pa.Array) -> Counter[Any]:
    """Count those of the values that the table has more than once, a page at a time."""
    found: Counter[Any] = Counter()
    for page in Scan(now.snapshot).read_unordered((column,)) if len(values) else ():
        mine = page[column]
        found.update(mine.filter(pc.is_in(mine, values)).to_pylist())
    return Counter({value: count for value, count in found.items() if count > 1})


SUMS = (SUM, MEAN)
# Outcomes that some expectations over batches have for a table at a URI, as of a version.
Judge = Callable[[str, int, Sequence[Expectation]], Sequence[ExpectationOutcome]]


def whole_table(table: Table) -> tuple[Expectation, ...]:
    """Return the expectations over the whole table."""
    return tuple(e for e in table.expect if e.over == "table")


def sweep(
    project: Project,
    table: Table,
    *,
    judge: Judge | None = None,
    run: str = "",
    now: dt.datetime | None = None,
) -> tuple[str, ...]:
    """Return what of the whole table is not as expected, in words. Results are kept.

    Safe to repeat. `judge` answers what is large or not simple; without it, that part is not
    answered.
    """
    expected, now = whole_table(table), now or dt.datetime.now(dt.UTC)
    at = head(layout(project).uri(table.id)) if expected else None
    if at is None:
        return ()
    checks = _Checks(
        project,
        table,
        Stored(table.name, at, project.limits),
        now,
        _read_kept(project, table),
        bool(judge),
    )
    outcomes = [checks.by_arrow(e) for e in expected]
    if judge and (left := [e for e, o in zip(expected, outcomes, strict=True) if o is None]):
        outcomes += checks.by_judge(left, judge)
    found = tuple(replace(o, says=o.says + WHOLE) for o in outcomes if o)
    rows = checks.stored.snapshot.count()
    verdict = Verdict(table.id, rows, rows, found)
    batch = at.position.batch if at.position else 0
    kept = history.rows(verdict, run=run, batch=batch, checked_at=now)
    append_rows(f"{layout(project).root}/{history.TABLE}", kept)
    return verdict.warnings


def _read_kept(project: Project, table: Table) -> dict[str, Json]:
    """Return the last result of each expectation over the whole table, by its label."""
    mine = [("pipeline", "=", table.pipeline), ("table", "=", table.name)]
    rows = read_rows(f"{layout(project).root}/{history.TABLE}", mine)
    whole = sorted(filter(is_whole, rows), key=lambda row: row["checked_at"])
    return {row["expectation"]: json.loads(row["result"]) for row in whole}


@dataclass(frozen=True)
class _Checks:
    """One check of one table; `is_full`: large tables are read as well."""

    project: Project
    table: Table
    stored: Stored
    now: dt.datetime
    kept: Mapping[str, Json] = field(default_factory=dict)
    is_full: bool = False

    def by_arrow(self, expectation: Expectation) -> ExpectationOutcome | None:
        """Return the outcome, or None if it needs Spark."""
        if expectation.type in suite.COMPARISONS:
            return self._compare(expectation)
        fixed = suite.at(expectation, self.now)
        compiler = COMPILERS.get(fixed.type)
        rule = compiler(fixed) if compiler else None
        outcome = self._answer(rule) if isinstance(rule, Measure | UniquenessRule) else None
        return _as_written(outcome, expectation) if outcome else None

    def by_judge(self, expected: Sequence[Expectation], judge: Judge) -> list[ExpectationOutcome]:
        """Return the outcomes that Arrow has no answer to: the table is judged like a batch."""
        asked = [e for e in expected if e.type not in suite.COMPARISONS]
        batch = [suite.at(e, self.now).model_copy(update={"over": "batch"}) for e in asked]
        found = judge(self.stored.at.uri, self.stored.at.version, batch) if batch else ()
        answers = (_as_written(o, e) for e, o in zip(asked, found, strict=True))
        return [_note_state(o, {STATE: state(self.stored, None)}) for o in answers]

    def _answer(self, rule: Measure | UniquenessRule) -> ExpectationOutcome | None:
        stored, expectation = self.stored, rule.expectation
        if expectation.type in ROW_COUNTS and "row_condition" not in expectation.kwargs:
            assert isinstance(rule, Measure)
            return measure_outcome(rule, stored.snapshot.count())
        if not is_simple(expectation, stored.types):
            return None
        return self._measure(rule) if isinstance(rule, Measure) else self._check_grouped(rule)

    def _measure(self, rule: Measure) -> ExpectationOutcome | None:
        type_, column = rule.expectation.type, str(rule.expectation.kwargs.get("column"))
        if type_ not in NUMBERS:
            return None
        if self.stored.is_small:
            return measure_outcome(rule, NUMBERS[type_](self.stored.rows([column])[column]))
        summed = self._total(self.stored, column, rule.expectation) if type_ in SUMS else None
        observed = number(type_, column, self.stored, summed)
        if observed is None:
            return None
        return _note_state(measure_outcome(rule, observed), {STATE: state(self.stored, summed)})

    def _check_grouped(self, rule: UniquenessRule) -> ExpectationOutcome | None:
        stored = self.stored
        if not is_a_simple_key(rule, stored.types):
            return None
        if stored.is_small:
            found = find_repeats_by_arrow(rule, stored.rows(rule.columns))
        elif self.is_full or not (since := self._since(rule, stored)):
            return None
        else:
            found = since
        return _note_state(uniqueness_outcome(rule, found), {STATE: state(stored, None)})

    def _since(self, rule: UniquenessRule, stored: Stored) -> Repeats | None:
        earlier = Earlier.of(self.kept.get(rule.expectation.label))
        return repeats(rule, stored, earlier) if rule.is_about_rows else None

    def _total(
        self, of: Stored, column: str, expectation: Expectation, which: str = STATE
    ) -> Decimal | None:
        """Return a sum: computed in a small table or full check, else from the previous sum."""
        if of.is_small or self.is_full:
            return Decimal(of.sum(column) or 0)
        return total(of, column, Earlier.of(self.kept.get(expectation.label), which))

    def _compare(self, expectation: Expectation) -> ExpectationOutcome | None:
        """Compare with the other table, at the version that this one reflects."""
        other = self._other(str(expectation.kwargs["other_table_name"]))
        if other is None:
            return None
        if expectation.type == suite.ROW_COUNT:
            counts = (stored.snapshot.count() for stored in (self.stored, other))
            return compare_numbers(expectation, *counts)
        columns = str(expectation.kwargs["column"]), suite.other_column(expectation)
        mine = self._total(self.stored, columns[0], expectation)
        others = self._total(other, columns[1], expectation, OTHER)
        if mine is None or others is None:
            return None
        states = {STATE: state(self.stored, mine), OTHER: state(other, others)}
        return _note_state(compare_numbers(expectation, mine, others), states)

    def _other(self, name: str) -> Stored | None:
        other = self.project.graph.table(self.table.reference(name))
        at = head(layout(self.project).uri(other.id))
        if at is None:
            return None
        reflected = replace(at, version=self._version_of(other.id, at.version))
        return Stored(other.name, reflected, self.project.limits)

    def _version_of(self, table_id: str, newest: int) -> int:
        position = self.stored.at.position
        if position is None:
            return newest
        read = position.inputs.get(table_id)
        return read.version if read else position.frontier.get(table_id, newest)


def _as_written(outcome: ExpectationOutcome, expectation: Expectation) -> ExpectationOutcome:
    """Return an outcome in its expectation's own words, in which `now` is no fixed time."""
    compiler = COMPILERS.get(expectation.type)
    rule = compiler(expectation) if compiler else None
    says = rule.says if isinstance(rule, Measure | UniquenessRule) else outcome.says
    return replace(outcome, expectation=expectation, says=says)


def _note_state(outcome: ExpectationOutcome, states: Json) -> ExpectationOutcome:
    """Return the outcome with the state from which the next check continues."""
    meta = {**outcome.result.get("meta", {}), **states}
    return replace(outcome, result={**outcome.result, "meta": meta})


ROW_COUNTS = ("expect_table_row_count_to_be_between", "expect_table_row_count_to_equal")


def _greatest(column: pa.ChunkedArray) -> Any:
    """Return the greatest value; like Spark, hold NaN for the greatest number."""
    has_nan = pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py()
    return float("nan") if has_nan else pc.max(column).as_py()


NUMBERS: Mapping[str, Callable[[pa.ChunkedArray], Any]] = {
    "expect_column_min_to_be_between": lambda column: pc.min(column).as_py(),
    "expect_column_max_to_be_between": _greatest,
    "expect_column_sum_to_be_between": lambda column: pc.sum(column).as_py(),
    "expect_column_mean_to_be_between": lambda column: pc.mean(column).as_py(),
    "expect_column_proportion_of_non_null_values_to_be_between": lambda column: (
        (len(column) - column.null_count) / len(column) if len(column) else 0.0
    ),
}


def is_simple(expectation: Expectation, types: Mapping[str, pa.DataType]) -> bool:
    """True if Arrow has the answer for a table of these columns."""
    if "row_condition" in expectation.kwargs or not set(expectation.columns) <= types.keys():
        return False
    return not any(pa.types.is_nested(types[c]) for c in expectation.columns)


def is_a_simple_key(rule: UniquenessRule, types: Mapping[str, pa.DataType]) -> bool:
    """True if Arrow groups the columns as Spark does."""
    floats = any(pa.types.is_floating(types[c]) for c in rule.columns if c in types)
    return is_simple(rule.expectation, types) and not floats


def find_repeats_by_arrow(rule: UniquenessRule, rows: pa.Table) -> Repeats:
    """Return the repeats found by grouping the rows by the rule's columns."""
    ignored = _find_ignored(rule, rows)
    judged = rows.filter(pc.invert(ignored)) if ignored is not None else rows
    groups = judged.select(rule.columns).group_by(rule.columns).aggregate([([], "count_all")])
    many = groups.filter(pc.greater(groups["count_all"], 1))
    repeated = pc.sum(many["count_all"]).as_py() or 0
    worst = many.sort_by([("count_all", "descending")]).slice(0, SAMPLES).select(rule.columns)
    samples = tuple(json.dumps(row, default=str) for row in worst.to_pylist())
    return Repeats(rows.num_rows, judged.num_rows, groups.num_rows, repeated, samples)


def _find_ignored(rule: UniquenessRule, rows: pa.Table) -> pa.ChunkedArray | None:
    nulls = [pc.is_null(rows[c]) for c in rule.columns]
    match rule.expectation.kwargs.get("ignore_row_if", "all_values_are_missing"):
        case "any_value_is_missing":
            return reduce(pc.or_, nulls)
        case "never":
            return None
    return reduce(pc.and_, nulls)
