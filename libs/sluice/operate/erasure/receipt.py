"""Receipt of an erasure: what went, what a search of the lake still finds, and what to do there.

A condition like `user_id = 950753` names a person in every table with that column. So its values
are `left` wherever they are found. A key names a row of one source: the same number in the column
of another table may be somebody else, and is reported `elsewhere`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sluice.declare.project import Project
from sluice.declare.table import Table
from sluice.delta.places.lake_layout import layout
from sluice.language.internal import DROPPED, declared
from sluice.operate.definitions.dependents import fed_by
from sluice.operate.erasure.forgetting import Done
from sluice.operate.erasure.remains import SearchResult
from sluice.operate.erasure.subject import Asked

AGAIN = "run this again; a file of a killed attempt is deleted when it is a day old"
WITH_THEM = "it may be of the tables named here: forget it there"


@dataclass(frozen=True)
class ForgottenIn:
    """Subjects that were forgotten in a source: the values that name each.

    `outside`: the origin of the source's rows, which was not touched.
    """

    source: str
    subjects: tuple[dict[str, Any], ...]
    outside: str


@dataclass(frozen=True)
class Receipt:
    """Proof of an erasure: its id, what was done where, and what a search of the lake has found.

    `left`: places that still name the subjects, with how often; `remedies`: what removes them from
    each. `elsewhere`: tables that have no rows of the sources, but the same values.
    `in_versions`: true if the lake's bucket keeps earlier versions of objects, with the subjects.
    """

    id: str
    begun_at: datetime
    ended_at: datetime
    forgotten: tuple[ForgottenIn, ...]
    done: tuple[Done, ...]
    searched: SearchResult
    left: dict[str, int]
    elsewhere: dict[str, int]
    remedies: dict[str, str]
    in_versions: bool

    @property
    def is_proven(self) -> bool:
        """True if no file of the lake names the subjects."""
        return not self.left


def remedies(
    project: Project, asked: Asked, done: Sequence[Table], places: Iterable[str]
) -> dict[str, str]:
    """Return what removes the subjects from each of these places."""
    found = {place: _remedy(project, asked, done, place) for place in sorted(places)}
    if {*found.values()} != {AGAIN}:
        found |= {p: WITH_THEM for p, how in found.items() if p[0] == "_" and how == AGAIN}
    return found


def _remedy(project: Project, asked: Asked, done: Sequence[Table], place: str) -> str:
    if place.startswith(f"{DROPPED}/"):
        folder = f"{layout(project).root}/{place}"
        return f"`sluice maintain` deletes it when it is a week old; or delete {folder}"
    if place.startswith("_"):
        return AGAIN
    table = project.graph.tables.get(declared(place))
    if table is None:
        return f"no pipeline declares it: `sluice drop {declared(place)} --now`"
    delivered = (t for t in project.graph.tables.values() if t.is_delivered)
    sources = [t for t in delivered if t not in done and table in fed_by(project, t)]
    named = [t for t in sources if asked.where and asked.fits(t)]
    if named:
        return "; ".join(f'`sluice forget {t.id} --where "{asked.where}"`' for t in named)
    if sources:
        ids = ", ".join(t.id for t in sources)
        return f"forget it in {ids}, by the column that has it there"
    return AGAIN
