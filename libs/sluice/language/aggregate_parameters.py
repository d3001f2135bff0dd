"""Constants that an aggregate takes after its argument: ranks, errors, counts."""

from collections.abc import Iterator, Sequence
from typing import Any

SMALLEST_DEVIATION = 0.0008  # limit of the largest HyperLogLog sketch
MOST_ACCURATE = 20_000  # limit of the largest KLL sketch


def parameter_problem(function: str, parameters: Sequence[Any]) -> str:
    """Return why an aggregate can't take these parameters; '' if it can."""
    match function:
        case "approx_count_distinct":
            found = _of_distinct(*parameters)
        case "approx_percentile":
            found = _of_percentile(*parameters)
        case "percentile":
            found = _of_percentile(*parameters)
        case "approx_top_k":
            found = _of_top_k(*parameters)
        case _:
            return ""
    return next((f"{function}: {why}" for why in found), "")


def _of_distinct(deviation: Any = 0.05) -> Iterator[str]:
    if not (_is_number(deviation) and SMALLEST_DEVIATION <= deviation < 1):
        yield (
            f"{deviation!r} is not a relative standard deviation; it is a number from "
            f"{SMALLEST_DEVIATION} up to 1, such as 0.05"
        )


def _of_percentile(ranks: Any, accuracy: Any = 1000) -> Iterator[str]:
    each = ranks if isinstance(ranks, tuple) else (ranks,)
    if not each:
        yield "the array is empty; a rank is a number from 0 to 1"
    for rank in each:
        if not (_is_number(rank) and 0 <= rank <= 1):
            yield f"{rank!r} is not a rank; a rank is a number from 0 to 1, such as 0.5"
    if not (_is_count(accuracy) and accuracy <= MOST_ACCURATE):
        yield f"{accuracy!r} is not an accuracy; it is a whole number from 1 to {MOST_ACCURATE}"


def _of_top_k(most: Any = 5, tracked: Any = 10_000) -> Iterator[str]:
    if not _is_count(most):
        yield f"{most!r} is not a number of values; it is a whole number from 1 on"
    elif not (_is_count(tracked) and tracked >= most):
        yield f"{tracked!r} values can't be tracked; it is a whole number from {most} on"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0
