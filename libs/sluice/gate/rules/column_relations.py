"""Row tests of expectations about several columns, as Spark SQL (see `row_tests`)."""

from collections.abc import Callable, Mapping
from functools import reduce

from sluice.gate.rules.row_tests import Kwargs, RowTest, shorten
from sluice.gate.rules.sql import every, literal, name, some

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


def _a_equals_b(kwargs: Kwargs) -> RowTest:
    return _pair(kwargs, lambda x, y: f"{x} <=> {y}", f"equals {kwargs['column_B']}", BOTH)


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


def _all_equal(kwargs: Kwargs) -> RowTest:
    first, *others = (name(c) for c in kwargs["column_list"])
    return _columns(kwargs, every(f"{first} <=> {c}" for c in others), "are equal")


def _all_different(kwargs: Kwargs) -> RowTest:
    columns = [name(c) for c in kwargs["column_list"]]
    equal = [f"{a} <=> {b}" for i, a in enumerate(columns) for b in columns[i + 1 :]]
    return _columns(kwargs, f"NOT ({some(equal)})", "are different from each other")


RELATIONS: Mapping[str, Callable[[Kwargs], RowTest]] = {
    "expect_column_pair_values_a_to_be_greater_than_b": _a_above_b,
    "expect_column_pair_values_to_be_equal": _a_equals_b,
    "expect_column_pair_values_to_be_in_set": _pair_in_set,
    "expect_multicolumn_sum_to_equal": _sum_equals,
    "expect_multicolumn_values_to_be_equal": _all_equal,
    "expect_select_column_values_to_be_unique_within_record": _all_different,
}
