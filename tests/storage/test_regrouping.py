"""Slices that become longer where they have few rows, and shorter where they have many."""

import pytest

from sluice.limits import Limits
from sluice.storage.filing import Slice
from sluice.storage.regrouping import due

DAY, MONTH = 8, 6
LIMITS = Limits(gathered_slice_rows=100)


def slices(**rows: int) -> list[Slice]:
    """By number, written `n20240105=7`."""
    found = (Slice(int(n[1:]), (n,), (count,)) for n, count in rows.items())
    return sorted(found, key=lambda s: s.number or 0)


def regrouped(digits: int = DAY, **rows: int) -> tuple[list[int | None], list[int]]:
    found = due(slices(**rows), digits, LIMITS)
    return sorted(s.number or 0 for s in found.slices), sorted(found.longer)


def test_few_rows_of_a_past_month_are_one_slice() -> None:
    assert regrouped(n20240105=40, n20240106=60, n20240201=1) == ([20240105, 20240106], [202401])
    assert regrouped(n20240105=40, n20240106=61, n20240201=1) == ([], [])


def test_few_rows_of_a_past_year_are_one_slice_whatever_they_lie_in() -> None:
    assert regrouped(n202301=50, n202302=20, n20230301=30, n20240201=1) == (
        [202301, 202302, 20230301],
        [2023],
    )


@pytest.mark.parametrize("newest", ["n20240107", "n20240131"])
def test_the_month_of_the_newest_slice_is_left(newest: str) -> None:
    assert regrouped(n20240105=1, n20240106=1, **{newest: 1}) == ([], [])


def test_one_slice_alone_is_left() -> None:
    assert regrouped(n20230105=1, n20240106=1) == ([], [])
    assert regrouped(n2023=1, n20240106=1) == ([], [])


def test_a_slice_that_has_grown_beyond_twice_as_many_is_taken_apart() -> None:
    months = [202300 + n for n in range(1, 13)]
    assert regrouped(n2023=201, n20240106=1) == ([2023], months)
    assert regrouped(n202301=201, n20240106=1) == ([202301], [])
    assert regrouped(MONTH, n2023=201, n202401=1) == ([2023], [])
    assert regrouped(n2023=200, n20240106=1) == ([], [])


def test_slices_of_months_become_years_and_years_nothing() -> None:
    assert regrouped(MONTH, n202301=1, n202305=1, n202401=1) == ([202301, 202305], [2023])
    assert regrouped(4, n2022=1, n2023=1, n2024=1) == ([], [])


def test_what_is_replaced_are_the_slices_before_and_after() -> None:
    assert due(slices(n2023=201, n20240106=1), MONTH, LIMITS).where("n") == (
        "n IN (2023) OR n BETWEEN 202300 AND 202399"
    )
    gathered = due(slices(n20240105=1, n20240106=1, n20240201=1), DAY, LIMITS)
    assert gathered.where("n").startswith("n IN (202401, 20240105, 20240106) OR ")
    assert due([], DAY, LIMITS).slices == ()
