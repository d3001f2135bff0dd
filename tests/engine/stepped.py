"""A lake of real tables whose views commit what they are told, or nothing. No Spark starts."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from tests.delta.tables import ID_AND_V, a_position

from sluice.changes import CHANGE
from sluice.delta.log.position import REBUILD, Head, Pin, Position, head, oldest
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.writing.commit import commit_arrow, commit_position, create
from sluice.engine.plan import consistent, frontier_of


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
        frontier = oldest(part for _, part in chosen.values())
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
