"""Marked rows leave their files in pieces: before slices expire, a rebuild, or to be forgotten."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.delta.worn import FILE, LIMITS, Table, added, bytes_read, data, paths
from tests.support.forked import forked

from sluice.delta.log import Log
from sluice.delta.log.position import head
from sluice.delta.places.failpoint import VARIABLE
from sluice.delta.upkeep import pieces, rewriting
from sluice.delta.upkeep.rewriting import rewrite_marked, unmark
from sluice.delta.upkeep.table_invariants import feed_faults, position_faults
from sluice.delta.writing.own_commits import rows_of
from sluice.errors import LostRace

pytestmark = pytest.mark.usefixtures("small_row_groups")


@pytest.fixture(scope="module", params=[1, 3], ids=["whole", "partitions"])
def made(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Table:
    """Rows of about 600 KB, of which a tenth have changed and one file has none that did."""
    made = Table(tmp_path_factory.mktemp("made"), replace(LIMITS, small_files=100), request.param)
    made.fill(6 * FILE)
    made.change(range(0, 10 * FILE, 20), gone=range(2, 10 * FILE, 200))
    return made


@pytest.fixture
def table(made: Table, tmp_path: Path) -> Table:
    return made.copied(tmp_path)


@pytest.fixture(scope="module")
def without_ends(made: Table, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """That table without the last rows of every file."""
    cut = made.copied(tmp_path_factory.mktemp("cut"))
    for nth in range(6):
        end = 2 * FILE * (nth + 1)
        upper = range(end - 2_500 * (1 + nth % 3), end, 2)
        cut.change([], gone=[key for key in upper if key in cut.rows])
    return cut


def gone(table: Table) -> int:
    return sum(s.gone for s in table.filing.slices)


def test_only_marked_files_are_written_again_and_nobody_notices(table: Table) -> None:
    before = table.stored.head
    marked = {
        Path(path).name
        for s in table.filing.slices
        for path, lost in zip(s.paths, s.lost, strict=True)
        if lost
    }
    others = paths(table) - marked
    assert marked
    assert others
    after = unmark(table.filing, table.filing.slices)
    table.check()
    assert gone(table) == 0
    assert others < paths(table)
    assert not marked & paths(table)
    assert after == table.stored.head
    assert (after.next_batch, after.data_version) == (before.next_batch, before.data_version)
    for version in table.versions_since(before.version):
        assert table.stored.feed(version) == []
        assert not Log(table.uri).changes_data(version)
    assert not list(position_faults(table.uri))


@pytest.mark.parametrize("piece_bytes", range(15_000, 175_000, 20_000))
def test_row_groups_that_are_all_marked_may_be_left_for_another_piece(
    without_ends: Table, tmp_path: Path, piece_bytes: int
) -> None:
    """An earlier piece takes the file's last rows, and the file with them."""
    table = without_ends.copied(tmp_path)
    table.limits = replace(table.limits, piece_bytes=piece_bytes)
    unmark(table.filing, table.filing.slices)
    table.check()
    assert gone(table) == 0
    assert not list(position_faults(table.uri))


def test_no_piece_reads_or_writes_more_than_the_limit(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, version = bytes_read(monkeypatch), table.stored.head.version
    unmark(table.filing, table.filing.slices)
    assert len(read) > 1
    assert 0 < max(read) <= table.limits.piece_bytes
    for at in table.versions_since(version):
        written = sum(data(table, file["path"]) for file in added(table, at))
        assert 0 < written <= table.limits.piece_bytes


def test_rows_that_are_wide_in_memory_are_cut_by_that(tmp_path: Path) -> None:
    """Texts that repeat take a hundredth of their room on the disk."""
    table, text = Table(tmp_path), "all the same " * 10
    ids = pa.array(range(0, 8 * FILE, 2), pa.int32())
    table.append(pa.table({"id": ids, "v": pa.repeat(text, len(ids))}))
    table.rows = dict.fromkeys(ids.to_pylist(), text)
    table.change(range(0, 8 * FILE, 40))
    version = table.stored.head.version
    unmark(table.filing, table.filing.slices)
    table.check()
    written = [sum(map(rows_of, added(table, v))) for v in table.versions_since(version)]
    assert len(written) > 1
    assert max(written) * len(text) <= 1.5 * pieces.IN_MEMORY * table.limits.piece_bytes


@pytest.mark.parametrize("place", ["merging", "committing", "committed"])
def test_a_batch_between_two_pieces_is_noticed_and_loses_nothing(
    table: Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A rebuild that went on would replace the batch's rows by older ones."""
    pieces, at = list[str](), table.stored.head

    def late(here: str, _: str) -> None:
        pieces.append(here)
        if here == place and pieces.count(place) == 1 + (place != "committed"):
            table.change([0, 7, 10 * FILE], gone=[4])

    monkeypatch.setattr(rewriting, "passing", late)
    with pytest.raises(LostRace):
        rewrite_marked(at, table.limits)
    monkeypatch.undo()
    table.check()
    assert not list(feed_faults(table.uri))
    assert not list(position_faults(table.uri))
    done = rewrite_marked(table.stored.head, table.limits)
    assert gone(table) == 0
    assert rewrite_marked(done, table.limits) == done
    table.check()


def go(table: Table, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, stop)
    unmark(table.filing, table.filing.slices)


@pytest.mark.parametrize("place", ["merging", "committing", "committed"])
def test_a_kill_between_two_pieces_leaves_a_whole_table(
    table: Table, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    process = forked(go, table, f"{place}:{Path(table.uri).name}#2", monkeypatch)
    process.join()
    assert process.exitcode == -9
    table.check()
    assert gone(table) > 0
    unmark(table.filing, table.filing.slices)
    assert gone(table) == 0
    table.check()
    found = head(table.uri)
    assert found
    assert found.version == table.stored.head.version
    assert not list(feed_faults(table.uri))
    assert not list(position_faults(table.uri))
