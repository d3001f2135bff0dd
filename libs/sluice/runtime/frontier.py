"""Which versions of several inputs belong together.

A view over two views of one source must not mix two states of that source. Each table's position
names the version of every ancestor source that it reflects, its frontier; a batch takes the
greatest versions of its inputs whose frontiers agree, found in the inputs' history.
"""

from collections.abc import Mapping

from sluice.storage.lake import LakeLayout
from sluice.storage.lineage import as_of, is_past
from sluice.storage.position import REBUILD, Head, Pin, Position, head, positions

Frontier = Mapping[str, int]


def frontier_of(lake: LakeLayout, table_id: str, at: Head) -> Frontier:
    """The version of each ancestor source that the table's head reflects.

    Inputs that moved on without changing data don't leave it behind: it reflects them as well.
    """
    position = at.position
    if position is None or not position.inputs:
        return {table_id: at.data_version}
    reflected: dict[str, int] = {}
    for input_id, pin in position.inputs.items():
        now = head(lake.uri(input_id))
        if now is None or now.table != pin.table or now.data_version > pin.version:
            return position.frontier
        merge(reflected, frontier_of(lake, input_id, now))
    return {source: reflected[source] for source in position.frontier if source in reflected}


def merge(into: dict[str, int], frontier: Frontier) -> None:
    """The older version of each source that both name."""
    for source, version in frontier.items():
        into[source] = min(version, into.get(source, version))


def consistent(
    lake: LakeLayout, heads: Mapping[str, Head], recorded: Mapping[str, Pin]
) -> dict[str, tuple[Pin, Frontier]] | None:
    """The greatest versions of the inputs that agree on shared ancestors, each with its frontier.

    None if there are none at or after the recorded ones: the batch has to wait. So it does where an
    input has first to be rebuilt: numbers of what was put back from a backup tell nothing.
    """
    if len(heads) > 1 and any(_has_lost_its_past(lake, h) for h in heads.values()):
        return None
    chosen = {i: (h.pin, frontier_of(lake, i, h)) for i, h in heads.items()}
    while (late := _disagreement(chosen)) is not None:
        input_id, source, version = late
        earlier = _reflecting(lake, input_id, heads[input_id], source, version)
        floor = recorded[input_id].version if input_id in recorded else 0
        if earlier is None or earlier[0].version < floor:
            return None
        chosen[input_id] = earlier
    return chosen


def _has_lost_its_past(lake: LakeLayout, at: Head) -> bool:
    """Whether the table, or one that it was made from, was made from what is not there now.

    What has been rebuilt since is looked at as it was when it was read.
    """
    for input_id, pin in (at.position.inputs if at.position else {}).items():
        now = head(lake.uri(input_id))
        if now is None or not is_past(now, pin):
            return True
        read = now if now.data_version <= pin.version else as_of(now, pin.version)
        if _has_lost_its_past(lake, read):
            return True
    return False


def _disagreement(chosen: Mapping[str, tuple[Pin, Frontier]]) -> tuple[str, str, int] | None:
    """An input that is ahead of another on some source, and the version to go back to."""
    least: dict[str, int] = {}
    for _, frontier in chosen.values():
        merge(least, frontier)
    for input_id, (_, frontier) in chosen.items():
        for source, version in frontier.items():
            if version > least[source]:
                return input_id, source, least[source]
    return None


def _reflecting(
    lake: LakeLayout, table_id: str, at: Head, source: str, version: int
) -> tuple[Pin, Frontier] | None:
    """The newest version of a table that reflects at most `version` of a source.

    None behind a rebuild: the numbers of before it may be those of another past.
    """
    if table_id == source:
        return as_of(at, version).pin, {source: version}
    for commit, position in positions(lake.uri(table_id)):
        if _is_within(position, source, version):
            return Pin(at.table, commit, position.attempt), position.frontier
        if position.kind == REBUILD:
            return None
    return None


def _is_within(position: Position, source: str, version: int) -> bool:
    """Not so where the source isn't named: there the table was empty, or had another definition."""
    return source in position.frontier and position.frontier[source] <= version
