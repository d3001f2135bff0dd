"""Expectations whose arguments are certainly valid, so Great Expectations need not check them.

Using it means importing it, which takes seconds. This table is narrower: an argument that is not in
it, or a value of another type, is checked by Great Expectations. A test checks every expectation
that is plain by this table with Great Expectations itself.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sluice.declare.expectation import Expectation

Test = Callable[[Any], bool]
LARGEST = 10**15


def is_plain(expectation: Expectation) -> bool:
    """True if Great Expectations has the expectation and accepts its arguments, without asking."""
    if expectation.type not in ARGUMENTS:
        return False
    needed, more = ARGUMENTS[expectation.type]
    kwargs, accepted = expectation.kwargs, {**needed, **more}
    if not needed.keys() <= kwargs.keys() <= accepted.keys():
        return False
    if not all(accepted[name](value) for name, value in kwargs.items()):
        return False
    return "min_value" not in accepted or _is_range(kwargs)


def _is_range(kwargs: Mapping[str, Any]) -> bool:
    bounds = [kwargs[name] for name in ("min_value", "max_value") if name in kwargs]
    return bool(bounds) and bounds[0] <= bounds[-1]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _is_whole(value: Any) -> bool:
    return type(value) is int and abs(value) <= LARGEST


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (type(value) is float and abs(value) <= LARGEST)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _are_several(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 1 and all(map(_is_text, value))


def _are_values(value: Any) -> bool:
    is_list = isinstance(value, list) and bool(value)
    return is_list and (all(map(_is_text, value)) or all(map(_is_number, value)))


def _between(test: Test) -> dict[str, Test]:
    return {"min_value": test, "max_value": test, "strict_min": _is_flag, "strict_max": _is_flag}


_COLUMN: Mapping[str, Test] = {"column": _is_text}
_MOSTLY: Mapping[str, Test] = {"mostly": _is_share}
ARGUMENTS: Mapping[str, tuple[Mapping[str, Test], Mapping[str, Test]]] = {
    "expect_column_values_to_not_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_null": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_unique": (_COLUMN, _MOSTLY),
    "expect_column_values_to_be_between": (_COLUMN, {**_between(_is_number), **_MOSTLY}),
    "expect_column_value_lengths_to_be_between": (_COLUMN, {**_between(_is_whole), **_MOSTLY}),
    "expect_column_values_to_be_in_set": ({**_COLUMN, "value_set": _are_values}, _MOSTLY),
    "expect_column_values_to_not_be_in_set": ({**_COLUMN, "value_set": _are_values}, _MOSTLY),
    "expect_column_values_to_match_regex": ({**_COLUMN, "regex": _is_text}, _MOSTLY),
    "expect_column_values_to_not_match_regex": ({**_COLUMN, "regex": _is_text}, _MOSTLY),
    "expect_compound_columns_to_be_unique": ({"column_list": _are_several}, _MOSTLY),
    "expect_column_min_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_max_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_sum_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_column_mean_to_be_between": (_COLUMN, _between(_is_number)),
    "expect_table_row_count_to_be_between": ({}, _between(_is_whole)),
    "expect_table_row_count_to_equal": ({"value": _is_whole}, {}),
}
