"""The patterns of spellings, read by Python, against the reader that is written from the page."""

import re
from decimal import Decimal
from random import Random

import pytest
from tests.files.cells import TYPES, cells
from tests.files.strict import NotTaken, value

from sluice.files.spelled import AROUND, spelling

BOUNDLESS = ("DECIMAL", "BOOLEAN")


def matches(text: str, type_: str) -> bool:
    """Whether the patterns hold the text, its exponent written out."""
    taken, trimmed = spelling(type_), text.strip(AROUND)
    if not re.fullmatch(taken.shape, trimmed):
        return False
    plain = f"{Decimal(trimmed):f}" if taken.exact and "e" in trimmed.lower() else trimmed
    return not taken.exact or bool(re.fullmatch(taken.exact, plain))


def is_taken(text: str, type_: str) -> bool:
    try:
        value(text, type_, "json")
    except NotTaken:
        return False
    return True


@pytest.mark.parametrize("seed", range(3))
def test_all_that_is_taken_matches_and_what_has_no_bounds_matches_only_if_it_is_taken(
    seed: int,
) -> None:
    for cell in cells(Random(seed), "json", 20_000):
        if cell.type == "STRING":
            continue
        matched, taken = matches(cell.text, cell.type), is_taken(cell.text, cell.type)
        assert matched == taken or (matched and not cell.type.startswith(BOUNDLESS)), cell


@pytest.mark.parametrize("type_", [type_ for type_ in TYPES if type_ != "STRING"])
def test_patterns_mean_the_same_in_every_engine(type_: str) -> None:
    pattern = spelling(type_).shape + spelling(type_).exact
    strange = ("(?=", "(?!", "(?<", r"\1", r"\d", r"\w", r"\s", "$", "^")
    assert [special for special in strange if special in pattern] == []
