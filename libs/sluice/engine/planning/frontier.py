"""Versions of several inputs that belong together.

A view over two views of one source must not mix two states of that source. Each table's position
names its frontier: the version of every ancestor source that it reflects. A batch takes the
greatest versions of its inputs whose frontiers agree, found in the inputs' history.
"""

from collections.abc import Mapping

from sluice.delta.log.continuity import as_of, is_past, last_with_rows_of
from sluice.delta.log.position import (
    REBUILD,
    Frontier,
    Head,
    Pin,
    Pins,
    Position,
    head,
    oldest,
    positions,
)
from sluice.delta.places.lake_layout import LakeLayout


def frontier_of(lake: LakeLayout, table_id: str, at: Head) -> Frontier:
    """Return the version of each ancestor source that the table's head reflects.

    It also reflects newer versions of inputs that changed no data.
    """
    position = at.position
    if position is None or not position.inputs:
        return {table_id: at.data_version}
    reflected = []
    for input_id, pin in position.inputs.items():
        now = head(lake.uri(input_id))
        if now is None or now.table != pin.table or now.data_version > pin.version:
            return position.frontier
        reflected.append(frontier_of(lake, input_id, now))
    known = oldest(reflected)
    return {source: known[source] for source in position.frontier if source in known}


def consistent(
    lake: LakeLayout, heads: Mapping[str, Head], recorded: Pins
) -> dict[str, tuple[Pin, Frontier]] | None:
    """Return the greatest input versions that agree on shared ancestors, and their frontiers.

    None if there are none at or after the recorded ones: the batch must wait. It also waits if an
    input must first be rebuilt, because version numbers of a restored backup prove nothing.
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
    """True if the table, or one of its inputs, was computed from rows that are missing now.

    An input that has been rebuilt since is checked as it was when it was read. If its rows stayed
    the same, it counts as rebuilt, but then all inputs must reflect one state.
    """
    reads, renewed = {}, False
    for input_id, pin in (at.position.inputs if at.position else {}).items():
        now = head(lake.uri(input_id))
        if now is None or not is_past(now, pin):
            return True
        is_same = now.data_version <= pin.version
        read = now if is_same else as_of(now, pin.version)
        if _has_lost_its_past(lake, read):
            return True
        renewed = renewed or (is_same and _is_rebuilt_since(now, pin))
        reads[input_id] = pin, frontier_of(lake, input_id, read)
    return renewed and _disagreement(reads) is not None


def _is_rebuilt_since(now: Head, pin: Pin) -> bool:
    later = now.version - pin.version
    return later > 0 and any(p.kind == REBUILD for _, p in positions(now.uri, later))


def _disagreement(chosen: Mapping[str, tuple[Pin, Frontier]]) -> tuple[str, str, int] | None:
    """Return an input that is ahead of another for some source, and the version to use instead."""
    least = oldest(frontier for _, frontier in chosen.values())
    for input_id, (_, frontier) in chosen.items():
        for source, version in frontier.items():
            if version > least[source]:
                return input_id, source, least[source]
    return None


def _reflecting(
    lake: LakeLayout, table_id: str, at: Head, source: str, version: int
) -> tuple[Pin, Frontier] | None:
    """Return the newest version of a table whose rows reflect at most `version` of a source.

    None if a rebuild comes first: version numbers from before it may belong to another past.
    """
    if table_id == source:
        return last_with_rows_of(at, version).pin, {source: version}
    for commit, position in positions(lake.uri(table_id)):
        if _is_within(position, source, version):
            return last_with_rows_of(at, commit).pin, position.frontier
        if position.kind == REBUILD:
            return None
    return None


def _is_within(position: Position, source: str, version: int) -> bool:
    """True if the position names the source, at `version` or before.

    If it does not name the source, the table was empty there or had another definition.
    """
    return source in position.frontier and position.frontier[source] <= version
