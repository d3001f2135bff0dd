"""Inputs advance together: never two states of one source, never backwards, never stuck.

The tables are real, the views are not: a batch of a view commits what it is told, or nothing, as a
real one does, and nothing here starts Spark.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.delta.tables import ID_AND_V, Small, a_position

from sluice.changes.diff import CHANGE
from sluice.delta.log.position import REBUILD, Head, Pin, Position, head
from sluice.delta.places.lake import LakeLayout
from sluice.delta.reading.table import create
from sluice.delta.writing.commit import commit_arrow, commit_position
from sluice.engine.planning.frontier import consistent, frontier_of, merge


@dataclass
class Lake:
    """Sources and views of one pipeline; `views`: name -> its inputs, in topological order."""

    folder: Path
    views: Mapping[str, Sequence[str]]
    layout: LakeLayout = field(init=False)
    written: int = 0

    def __post_init__(self) -> None:
        self.layout = LakeLayout(str(self.folder))
        for inputs in self.views.values():
            for name in inputs:
                if name not in self.views and head(self.uri(name)) is None:
                    create(self.uri(name), ID_AND_V, a_position(0, kind="ingest"))

    def uri(self, name: str) -> str:
        return self.layout.uri(f"p.{name}")

    def head(self, name: str) -> Head:
        found = head(self.uri(name))
        assert found is not None
        return found

    def deliver(self, source: str, *, changes: bool = True) -> int:
        """One commit to a source, with or without rows."""
        return self._commit(source, a_position(0, kind="ingest"), changes=changes)

    def advance(self, view: str, *, changes: bool = True) -> str:
        """One batch; `changes`: whether what it consumed alters its rows."""
        chosen = self.chosen(view)
        if chosen is None:
            return "waiting"
        before, heads = head(self.uri(view)), self.heads(view)
        recorded = self.recorded(view)
        for name, pin in recorded.items():
            assert chosen[name][0].version >= pin.version, "a position went back"
        pins = {name: pin for name, (pin, _) in chosen.items()}
        if before and not self._is_pending(recorded, pins, heads):
            return "unchanged"
        frontier: dict[str, int] = {}
        for _, part in chosen.values():
            merge(frontier, part)
        position = a_position(0, inputs=pins, frontier=frontier)
        if before is None:
            create(self.uri(view), ID_AND_V, a_position(0, kind="create"))
        self._commit(view, position, changes=changes)
        return "committed"

    def rebuild(self, view: str, *, changes: bool = True) -> None:
        """From the source as it is now."""
        pin = self.head("s").pin
        inputs, frontier = {"p.s": pin}, {"p.s": pin.version}
        position = a_position(0, kind=REBUILD, inputs=inputs, frontier=frontier)
        self._commit(view, position, changes=changes)

    def backed_up(self) -> Path:
        """A copy of the source."""
        return Path(shutil.copytree(self.uri("s"), self.folder / "backup"))

    def put_back(self, backup: Path) -> None:
        shutil.rmtree(self.uri("s"))
        shutil.copytree(backup, self.uri("s"))

    def chosen(self, view: str) -> dict[str, tuple[Pin, Mapping[str, int]]] | None:
        return consistent(self.layout, self.heads(view), self.recorded(view))

    def heads(self, view: str) -> dict[str, Head]:
        return {f"p.{name}": self.head(name) for name in self.views[view]}

    def recorded(self, view: str) -> Mapping[str, Pin]:
        at = head(self.uri(view))
        return at.position.inputs if at and at.position else {}

    def frontier(self, view: str) -> Mapping[str, int]:
        return frontier_of(self.layout, f"p.{view}", self.head(view))

    def optimise(self, name: str) -> None:
        """A commit by somebody else that changes no row."""
        DeltaTable(self.uri(name)).optimize.compact()

    def _is_pending(
        self, recorded: Mapping[str, Pin], pins: Mapping[str, Pin], heads: Mapping[str, Head]
    ) -> bool:
        return any(
            name not in recorded
            or recorded[name].version < min(pin.version, heads[name].data_version)
            for name, pin in pins.items()
        )

    def _commit(self, name: str, position: Position, *, changes: bool) -> int:
        before = self.head(name)
        numbered = Position(**{**vars(position), "batch": before.next_batch})
        if not changes:
            return commit_position(before, numbered).version
        self.written += 1
        schema = pa.schema(DeltaTable(self.uri(name)).schema().to_arrow())
        row = {"id": self.written, "v": name, CHANGE: "insert"}
        rows = pa.Table.from_pylist([row], schema.append(pa.field(CHANGE, pa.string())))
        return commit_arrow(before, rows, ["id"], numbered).version


DIAMOND = {"left": ["s"], "right": ["s"], "bottom": ["left", "right"]}


def test_a_source_reflects_its_last_change_of_data(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"view": ["s"]})
    lake.deliver("s")
    lake.deliver("s", changes=False)
    assert lake.frontier("s") == {"p.s": 1}


def test_a_diamond_waits_at_the_state_that_both_sides_have_seen(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    for view in DIAMOND:
        assert lake.advance(view) == "committed"
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == "unchanged"
    lake.advance("right")
    assert lake.advance("bottom") == "committed"
    assert {p.version for p in lake.recorded("bottom").values()} == {2}


def test_a_diamond_takes_the_newest_state_that_both_sides_once_had(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == "committed"
    assert {n: p.version for n, p in lake.recorded("bottom").items()} == {"p.left": 2, "p.right": 2}


def test_nobody_goes_back_behind_a_rebuild(tmp_path: Path) -> None:
    """Before it, numbers may be those of what was put back from a backup since."""
    lake = Lake(tmp_path, DIAMOND)
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    assert lake.advance("bottom") == "committed"
    lake.deliver("s")
    lake.advance("left")
    lake.rebuild("right")
    assert lake.advance("bottom") == "committed"
    lake.deliver("s")
    lake.rebuild("right")
    assert lake.advance("bottom") == "waiting"
    lake.advance("left")
    assert lake.advance("bottom") == "committed"


def test_a_view_of_several_inputs_waits_for_one_that_has_to_be_rebuilt(tmp_path: Path) -> None:
    """The source was put back from a backup and written again: its numbers say nothing."""
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    backup = lake.backed_up()
    lake.deliver("s")
    for view in DIAMOND:
        assert lake.advance(view) == "committed"
    lake.put_back(backup)
    lake.deliver("s")
    lake.rebuild("left")
    assert lake.advance("bottom") == "waiting"
    lake.rebuild("right")
    assert lake.advance("bottom") == "committed"


def test_a_view_waits_for_one_that_has_yet_to_follow_a_rebuild(tmp_path: Path) -> None:
    """Its input was rebuilt from the source of today, it was made from that of before."""
    lake = Lake(tmp_path, {"left": ["s"], "below": ["left"], "bottom": ["below", "s"]})
    backup = lake.backed_up()
    lake.deliver("s")
    for view in ("left", "below"):
        lake.advance(view)
    lake.put_back(backup)
    for _ in range(2):
        lake.deliver("s")
    lake.rebuild("left")
    assert lake.advance("bottom") == "waiting"
    lake.advance("below")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2


def test_rebuilds_that_changed_nothing_must_agree_before_a_view_over_them_counts(
    tmp_path: Path,
) -> None:
    """What `both` was made from is gone; its rows are of two states of the source of today."""
    views = {"left": ["s"], "right": ["s"], "both": ["left", "right"], "bottom": ["both", "s"]}
    lake = Lake(tmp_path, views)
    backup = lake.backed_up()
    lake.deliver("s")
    for view in ("left", "right", "both"):
        lake.advance(view)
    lake.put_back(backup)
    lake.deliver("s")
    lake.rebuild("left", changes=False)
    lake.deliver("s")
    lake.rebuild("right", changes=False)
    assert lake.advance("bottom") == "waiting"
    lake.rebuild("left", changes=False)
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2


def test_a_first_batch_waits_if_no_state_was_ever_common(tmp_path: Path) -> None:
    lake = Lake(tmp_path, DIAMOND)
    lake.deliver("s")
    lake.advance("left")
    lake.deliver("s")
    lake.advance("right")
    assert lake.advance("bottom") == "waiting"
    lake.advance("left")
    assert lake.advance("bottom") == "committed"


def test_a_view_of_a_source_and_of_a_view_of_it_takes_the_older_source(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle"]})
    lake.deliver("s")
    lake.advance("middle")
    lake.deliver("s")
    assert lake.advance("bottom") == "committed"
    assert {n: p.version for n, p in lake.recorded("bottom").items()} == {"p.s": 1, "p.middle": 1}


def test_a_middle_view_with_nothing_to_do_does_not_hold_up_the_bottom(tmp_path: Path) -> None:
    """`top` consumes a change that alters no row of its own: `middle` never hears of it."""
    lake = Lake(tmp_path, {"top": ["s"], "middle": ["top"], "bottom": ["middle", "s"]})
    lake.deliver("s")
    for view in ("top", "middle", "bottom"):
        lake.advance(view)
    lake.deliver("s")
    assert lake.advance("bottom") == "unchanged"
    lake.advance("top", changes=False)
    assert lake.advance("middle") == "unchanged"
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 2
    assert lake.frontier("bottom") == {"p.s": 2}


def test_commits_of_others_that_change_no_row_hold_up_nothing(tmp_path: Path) -> None:
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle"]})
    for _ in range(2):
        lake.deliver("s")
        lake.advance("middle")
        lake.advance("bottom")
    for name in ("s", "middle", "bottom"):
        lake.optimise(name)
    assert lake.advance("middle") == "unchanged"
    assert lake.advance("bottom") == "unchanged"
    lake.deliver("s")
    assert [lake.advance(view) for view in ("middle", "bottom")] == ["committed", "committed"]


def test_an_input_never_goes_back_behind_what_was_read(tmp_path: Path) -> None:
    """Not even for another input's sake: what agrees with `middle` is read as it was before."""
    lake = Lake(tmp_path, {"middle": ["s"], "bottom": ["s", "middle", "t"]})
    lake.deliver("s")
    lake.advance("middle")
    lake.deliver("s", changes=False)
    lake.advance("bottom")
    before = lake.recorded("bottom")
    assert before["p.s"].version == 2
    lake.deliver("s")
    lake.deliver("t")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom") == {**before, "p.t": lake.head("t").pin}
    lake.advance("middle")
    assert lake.advance("bottom") == "committed"
    assert lake.recorded("bottom")["p.s"].version == 3


def test_of_states_with_the_same_rows_the_last_is_read(tmp_path: Path) -> None:
    """It was compacted, so a vacuum that leaves it may take the files of the one before."""
    lake = Lake(tmp_path, {**DIAMOND, "beside": ["s", "right"]})
    for _ in range(2):
        lake.deliver("s")
        lake.advance("left")
        lake.advance("right")
    lake.optimise("s")
    lake.optimise("left")
    lake.deliver("s")
    lake.advance("left")
    assert lake.advance("bottom") == lake.advance("beside") == "committed"
    assert lake.recorded("bottom")["p.left"].version == 3
    assert lake.recorded("beside")["p.s"].version == 3


@pytest.mark.parametrize("replaced", ["left", "s"])
def test_a_replaced_input_does_not_count_as_seen(tmp_path: Path, replaced: str) -> None:
    lake = Lake(tmp_path, {"left": ["s"], "below": ["left"]})
    lake.deliver("s")
    lake.advance("left")
    lake.advance("below")
    known = lake.frontier("below")
    folder = Path(lake.uri(replaced))
    folder.rename(folder.with_name("gone"))
    create(lake.uri(replaced), ID_AND_V, a_position(0, kind="ingest"))
    assert lake.frontier("below") == known


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
