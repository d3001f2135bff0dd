"""Row rules: expectations about single rows, each a test and the rows that it is about.

A rule never looks beyond its row. So the same text can move rows to quarantine, count them, and be
printed by a plan. The rules listed in `COMPILED` are those that `quarantine` accepts.

Row tests of expectations about one column, in Spark SQL with the meaning of Great Expectations.

As there, a row is unexpected only if the condition is false. Null is ignored by every test but the
two null tests. NaN, which Spark orders above every number, is a value like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from sluice.declare.table_spec import Expectation
from sluice.gate.sql import every, literal, name, some, text
from sluice.language.expression import Expression

Kwargs = Mapping[str, Any]


@dataclass(frozen=True)
class RowTest:
    """Row test of one expectation."""

    holds: str
    says: str
    columns: tuple[str, ...]
    ignored: str | None = None  # rows that can't fail; None for a null test, which checks all rows


def bounds(value: str, kwargs: Kwargs) -> str:
    """Return SQL that `value` lies between `min_value` and `max_value`, if given."""
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    above = ">" if kwargs.get("strict_min") else ">="
    below = "<" if kwargs.get("strict_max") else "<="
    conditions = [] if low is None else [f"{value} {above} {literal(low)}"]
    return every(conditions + ([] if high is None else [f"{value} {below} {literal(high)}"]))


def bounds_text(kwargs: Kwargs) -> str:
    """Return the same bounds as text."""
    low, high = kwargs.get("min_value"), kwargs.get("max_value")
    words = [] if low is None else [f"{'above' if kwargs.get('strict_min') else 'at least'} {low}"]
    if high is not None:
        words.append(f"{'below' if kwargs.get('strict_max') else 'at most'} {high}")
    return " and ".join(words)


def shorten(values: Sequence[object], shown: int = 6) -> str:
    """Return the first few values of a list, for people."""
    listed = ", ".join(str(v) for v in values[:shown])
    return listed if len(values) <= shown else f"{listed}, … ({len(values)} values)"


def _of_column(kwargs: Kwargs, holds: Callable[[str], str], says: str) -> RowTest:
    column = kwargs["column"]
    return RowTest(holds(name(column)), f"{column} {says}", (column,), f"{name(column)} IS NULL")


def _null(kwargs: Kwargs, negation: str = "") -> RowTest:
    column, says = kwargs["column"], f"{negation}NULL"
    return RowTest(f"{name(column)} IS {says}", f"{column} is {says.lower()}", (column,))


def _in_set(kwargs: Kwargs) -> RowTest:
    values = list(kwargs["value_set"])
    listed = ", ".join(literal(v) for v in values)
    return _of_column(
        kwargs,
        lambda c: f"{c} IN ({listed})" if values else "false",
        f"is one of {shorten(values)}",
    )


def _not_in_set(kwargs: Kwargs) -> RowTest:
    member = _in_set(kwargs)
    says = f"{kwargs['column']} is none of {shorten(list(kwargs['value_set']))}"
    return RowTest(f"NOT ({member.holds})", says, member.columns, member.ignored)


def _matching(operator: str, patterns_key: str, *, wanted: bool) -> Callable[[Kwargs], RowTest]:
    """Return a test of text that matches (or doesn't match) one pattern or a list of them."""

    def compile_(kwargs: Kwargs) -> RowTest:
        given = kwargs[patterns_key]
        patterns = [given] if isinstance(given, str) else list(given)
        join = every if not wanted or kwargs.get("match_on") == "all" else some
        negation = "" if wanted else "NOT "
        verb = "matches" if wanted else "doesn't match"
        return _of_column(
            kwargs,
            lambda c: join(f"{negation}({c} {operator} {text(p)})" for p in patterns),
            f"{verb} {shorten(patterns)}",
        )

    return compile_


SINGLE: Mapping[str, Callable[[Kwargs], RowTest]] = {
    "expect_column_values_to_not_be_null": lambda kwargs: _null(kwargs, "NOT "),
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_between": lambda kwargs: _of_column(
        kwargs, lambda c: bounds(c, kwargs), f"is {bounds_text(kwargs)}"
    ),
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_value_lengths_to_be_between": lambda kwargs: _of_column(
        kwargs, lambda c: bounds(f"length({c})", kwargs), f"has a length of {bounds_text(kwargs)}"
    ),
    "expect_column_value_lengths_to_equal": lambda kwargs: _of_column(
        kwargs,
        lambda c: f"length({c}) = {literal(kwargs['value'])}",
        f"has a length of {kwargs['value']}",
    ),
    "expect_column_values_to_match_regex": _matching("RLIKE", "regex", wanted=True),
    "expect_column_values_to_not_match_regex": _matching("RLIKE", "regex", wanted=False),
    "expect_column_values_to_match_regex_list": _matching("RLIKE", "regex_list", wanted=True),
    "expect_column_values_to_not_match_regex_list": _matching("RLIKE", "regex_list", wanted=False),
    "expect_column_values_to_match_like_pattern": _matching("LIKE", "like_pattern", wanted=True),
    "expect_column_values_to_not_match_like_pattern": _matching(
        "LIKE", "like_pattern", wanted=False
    ),
}

BOTH = "both_values_are_missing"


def _pair(
    kwargs: Kwargs, holds: Callable[[str, str], str], says: str, never_ignored: str
) -> RowTest:
    a, b = kwargs["column_A"], kwargs["column_B"]
    nulls = {
        "both_values_are_missing": f"{name(a)} IS NULL AND {name(b)} IS NULL",
        "either_value_is_missing": f"{name(a)} IS NULL OR {name(b)} IS NULL",
        "neither": "false",
    }
    ignored = nulls[kwargs.get("ignore_row_if") or never_ignored]
    return RowTest(holds(name(a), name(b)), f"{a} {says}", (a, b), ignored)


def _a_above_b(kwargs: Kwargs) -> RowTest:
    b = kwargs["column_B"]
    if kwargs.get("or_equal"):
        return _pair(kwargs, lambda x, y: f"{x} >= {y} OR {x} <=> {y}", f"is at least {b}", BOTH)
    return _pair(kwargs, lambda x, y: f"{x} > {y}", f"is above {b}", BOTH)


def _pair_in_set(kwargs: Kwargs) -> RowTest:
    pairs = [tuple(pair) for pair in kwargs["value_pairs_set"]]
    return _pair(
        kwargs,
        lambda x, y: some(f"{x} <=> {literal(a)} AND {y} <=> {literal(b)}" for a, b in pairs),
        f"and {kwargs['column_B']} are one of the pairs {shorten(pairs)}",
        BOTH,
    )


def _columns(kwargs: Kwargs, holds: str, says: str) -> RowTest:
    columns = tuple(kwargs["column_list"])
    nulls = [f"{name(c)} IS NULL" for c in columns]
    ignored = {
        "all_values_are_missing": every(nulls),
        "any_value_is_missing": some(nulls),
        "never": "false",
    }[kwargs.get("ignore_row_if") or "all_values_are_missing"]
    return RowTest(holds, f"{', '.join(columns)} {says}", columns, ignored)


def _sum_equals(kwargs: Kwargs) -> RowTest:
    total = kwargs["sum_total"]
    first, *others = (f"coalesce({name(c)}, 0)" for c in kwargs["column_list"])
    added = reduce(
        lambda a, b: f"try_add({a}, {b})", others, first
    )  # null on overflow, so not the total
    holds = f"coalesce({added} = {literal(total)}, false)"
    return _columns(kwargs, holds, f"add up to {total}")


def _all_different(kwargs: Kwargs) -> RowTest:
    columns = [name(c) for c in kwargs["column_list"]]
    equal = [f"{a} <=> {b}" for i, a in enumerate(columns) for b in columns[i + 1 :]]
    return _columns(kwargs, f"NOT ({some(equal)})", "are different from each other")


RELATIONS: Mapping[str, Callable[[Kwargs], RowTest]] = {
    "expect_column_pair_values_a_to_be_greater_than_b": _a_above_b,
    "expect_column_pair_values_to_be_equal": lambda kwargs: _pair(
        kwargs, lambda x, y: f"{x} <=> {y}", f"equals {kwargs['column_B']}", BOTH
    ),
    "expect_column_pair_values_to_be_in_set": _pair_in_set,
    "expect_multicolumn_sum_to_equal": _sum_equals,
    "expect_multicolumn_values_to_be_equal": lambda kwargs: _columns(
        kwargs,
        every(f"{name(kwargs['column_list'][0])} <=> {name(c)}" for c in kwargs["column_list"][1:]),
        "are equal",
    ),
    "expect_select_column_values_to_be_unique_within_record": _all_different,
}

EVERY_ROW = "true"
COMPILED: Mapping[str, Callable[[Kwargs], RowTest]] = {**SINGLE, **RELATIONS}


@dataclass(frozen=True)
class RowRule:
    """An expectation with its conditions as SQL text."""

    expectation: Expectation
    test: RowTest
    domain: str

    @property
    def considered(self) -> str:
        ignored = self.test.ignored
        return self.domain if ignored is None else f"({self.domain}) AND NOT ({ignored})"

    @property
    def violated(self) -> str:
        """SQL that is true for an unexpected row, false for any other; never null."""
        return f"coalesce({self.considered} AND NOT ({self.test.holds}), false)"


def compile_row_rule(expectation: Expectation) -> RowRule:
    """Return the rule of an expectation whose type is in `COMPILED`."""
    kwargs = expectation.kwargs
    return RowRule(expectation, COMPILED[expectation.type](kwargs), domain(kwargs))


def domain(kwargs: Kwargs) -> str:
    """Return the condition on rows that an expectation is about."""
    condition = kwargs.get("row_condition")
    return f"({Expression.parse(str(condition)).sql})" if condition else EVERY_ROW
