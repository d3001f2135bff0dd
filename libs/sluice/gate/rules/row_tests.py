"""Row tests of expectations about one column, in Spark SQL with the meaning of Great Expectations.

As there, a row is unexpected only if the condition is false. Null is ignored by every test but the
two null tests. NaN, which Spark orders above every number, is a value like any other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sluice.gate.rules.sql import every, literal, name, some, text

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


def _not_null(kwargs: Kwargs) -> RowTest:
    column = kwargs["column"]
    return RowTest(f"{name(column)} IS NOT NULL", f"{column} is not null", (column,))


def _null(kwargs: Kwargs) -> RowTest:
    column = kwargs["column"]
    return RowTest(f"{name(column)} IS NULL", f"{column} is null", (column,))


def _between(kwargs: Kwargs) -> RowTest:
    return _of_column(kwargs, lambda c: bounds(c, kwargs), f"is {bounds_text(kwargs)}")


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


def _length_between(kwargs: Kwargs) -> RowTest:
    says = f"has a length of {bounds_text(kwargs)}"
    return _of_column(kwargs, lambda c: bounds(f"length({c})", kwargs), says)


def _length_equal(kwargs: Kwargs) -> RowTest:
    value = kwargs["value"]
    return _of_column(
        kwargs, lambda c: f"length({c}) = {literal(value)}", f"has a length of {value}"
    )


def _matching(operator: str, patterns_key: str, *, wanted: bool) -> Callable[[Kwargs], RowTest]:
    """Return a test of text that matches (or doesn't match) one pattern or a list of them."""

    def compiled(kwargs: Kwargs) -> RowTest:
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

    return compiled


SINGLE: Mapping[str, Callable[[Kwargs], RowTest]] = {
    "expect_column_values_to_not_be_null": _not_null,
    "expect_column_values_to_be_null": _null,
    "expect_column_values_to_be_between": _between,
    "expect_column_values_to_be_in_set": _in_set,
    "expect_column_values_to_not_be_in_set": _not_in_set,
    "expect_column_value_lengths_to_be_between": _length_between,
    "expect_column_value_lengths_to_equal": _length_equal,
    "expect_column_values_to_match_regex": _matching("RLIKE", "regex", wanted=True),
    "expect_column_values_to_not_match_regex": _matching("RLIKE", "regex", wanted=False),
    "expect_column_values_to_match_regex_list": _matching("RLIKE", "regex_list", wanted=True),
    "expect_column_values_to_not_match_regex_list": _matching("RLIKE", "regex_list", wanted=False),
    "expect_column_values_to_match_like_pattern": _matching("LIKE", "like_pattern", wanted=True),
    "expect_column_values_to_not_match_like_pattern": _matching(
        "LIKE", "like_pattern", wanted=False
    ),
}
