"""The slices of a table that upkeep makes longer or shorter, by how many rows they have.

Slices of a past month, or year, that have few rows in all become one. One that has grown beyond
twice as many since (late rows, a past that was brought afterwards) is taken apart again. So a row
is written again a few times at most, and a slice has few rows or a short time.

A slice's number begins with that of each longer one that holds it: 20170514, 201705, 2017.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from sluice.limits import Limits
from sluice.storage.filing import Slice

YEAR, MONTH = 4, 6  # digits


@dataclass(frozen=True)
class Regrouping:
    """Slices to be written again, and the longer ones that their rows go to, if one holds them."""

    slices: tuple[Slice, ...] = ()
    longer: frozenset[int] = frozenset()

    def where(self, number: str) -> str:
        """SQL: the slices before and after; `number` is the column of their numbers."""
        known = sorted({*(s.number for s in self.slices if s.number is not None), *self.longer})
        within = (f"{number} BETWEEN {n}00 AND {n}99" for n in known)
        return " OR ".join((f"{number} IN ({', '.join(map(str, known))})", *within))


def due(slices: Sequence[Slice], digits: int, limits: Limits) -> Regrouping:
    """What is to be written again; `digits`: of the numbers of the shortest slices."""
    most = limits.gathered_slice_rows
    large = [s for s in slices if len(str(s.number)) < digits and s.row_count > 2 * most]
    found, longer = list(large), {n for s in large for n in _parts(s, digits)}
    rest = [s for s in slices if s not in large]
    for length in (length for length in (YEAR, MONTH) if length < digits):
        for number, held in _held(rest, length).items():
            is_past = not str(slices[-1].number).startswith(str(number))
            if is_past and len(held) > 1 and sum(s.row_count for s in held) <= most:
                found += held
                longer.add(number)
                rest = [s for s in rest if s not in held]
    return Regrouping(tuple(found), frozenset(longer))


def _parts(slice_: Slice, digits: int) -> set[int]:
    """The longer slices that a year is taken apart into; none for what has none in between."""
    number = slice_.number or 0
    is_halfway = len(str(number)) + 2 < digits
    return {number * 100 + month for month in range(1, 13)} if is_halfway else set()


def _held(slices: Sequence[Slice], length: int) -> dict[int, list[Slice]]:
    """The slices by the longer one of so many digits that holds them, or that they are."""
    found: dict[int, list[Slice]] = defaultdict(list)
    for slice_ in slices:
        found[int(str(slice_.number)[:length])].append(slice_)
    return found
