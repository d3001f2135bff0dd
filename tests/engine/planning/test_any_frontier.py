"""Any history of deliveries and batches mixes no states, and ends up to date."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.delta.tables import Small, a_position
from tests.engine.stepped import DIAMOND, Lake

from sluice.delta.log.position import Position, head
from sluice.delta.writing.commit import commit_arrow

SHAPES: Sequence[Mapping[str, Sequence[str]]] = [
    DIAMOND,
    {"a": ["s"], "b": ["a"], "c": ["s", "b"]},
    {"a": ["s", "t"], "b": ["t"], "c": ["a", "b"], "d": ["c", "s"]},
    {"a": ["s"], "b": ["s"], "c": ["a", "b"], "d": ["a", "c"], "e": ["d", "b", "t"]},
]
ACTS = st.lists(st.sampled_from(["deliver", "advance", "advance", "optimise"]), max_size=12)
QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}
SETTINGS = {
    "default": settings(max_examples=8, derandomize=True, **QUIET),
    "deep": settings(max_examples=200, **QUIET),
}[os.environ.get("HYPOTHESIS_PROFILE", "default")]


class Sums(Lake):
    """Each table is one number. A view is the sum of its inputs, divided and rounded down.

    So some changes of its inputs don't alter it, and whether a table is what its query says for
    given versions of the sources can be told from its number.
    """

    def __init__(self, folder: Path, views: Mapping[str, Sequence[str]], parts: Mapping[str, int]):
        super().__init__(folder, views)
        self.parts = parts

    def add(self, source: str, number: int) -> None:
        self._put(source, self.number(source) + number, a_position(0, kind="ingest"))

    def number(self, name: str, version: int | None = None) -> int:
        rows = DeltaTable(self.uri(name), version=version).to_pyarrow_table().to_pylist()
        return int(rows[0]["v"]) if rows else 0

    def query(self, name: str, sources: Mapping[str, int]) -> int:
        """What a table is when the sources are at those versions."""
        if name not in self.views:
            return self.number(name, sources[f"p.{name}"])
        return sum(self.query(i, sources) for i in self.views[name]) // self.parts[name]

    def step(self, view: str) -> str:
        if any(head(self.uri(name)) is None for name in self.views[view]):
            return "waiting"
        return self.advance(view)

    def _commit(self, name: str, position: Position, *, changes: bool) -> int:
        read = {i.removeprefix("p."): pin.version for i, pin in position.inputs.items()}
        number = sum(self.number(i, v) for i, v in read.items()) // self.parts[name]
        return self._put(name, number, position)

    def _put(self, name: str, number: int, position: Position) -> int:
        is_new = not DeltaTable(self.uri(name)).to_pyarrow_table().num_rows
        if not is_new and number == self.number(name):
            return super()._commit(name, position, changes=False)
        before = self.head(name)
        table = Small(self.uri(name), ["id"], commit_arrow)
        change = ("insert" if is_new else "update", {"id": 1, "v": str(number)})
        numbered = replace(position, batch=before.next_batch)
        return commit_arrow(before, table.changelog([change]), ["id"], numbered).version


@SETTINGS
@given(st.data())
def test_any_history_mixes_no_states_and_ends_with_every_view_up_to_date(
    data: st.DataObject,
) -> None:
    views = data.draw(st.sampled_from(SHAPES))
    parts = {view: data.draw(st.sampled_from([1, 2]), label=view) for view in views}
    sources = sorted({i for inputs in views.values() for i in inputs} - views.keys())
    with TemporaryDirectory() as folder:
        lake = Sums(Path(folder), views, parts)
        for act in data.draw(ACTS):
            built = [view for view in views if head(lake.uri(view))]
            if act == "deliver":
                lake.add(data.draw(st.sampled_from(sources)), data.draw(st.integers(0, 2)))
            elif act == "optimise":
                lake.optimise(data.draw(st.sampled_from(sources + built)))
            else:
                lake.step(data.draw(st.sampled_from(list(views))))
            check_states(lake)
        for view in views:
            lake.step(view)
        assert {lake.step(view) for view in views} == {"unchanged"}
        newest = {f"p.{source}": lake.head(source).data_version for source in sources}
        for view in views:
            assert lake.number(view) == lake.query(view, newest), view


def check_states(lake: Sums) -> None:
    """Every view is what its query says at the versions that it is said to reflect."""
    for view in lake.views:
        at = head(lake.uri(view))
        if at and at.position:
            for frontier in (at.position.frontier, lake.frontier(view)):
                assert lake.number(view) == lake.query(view, frontier), (view, frontier)
