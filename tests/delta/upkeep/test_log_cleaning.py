"""Old commits go from a log, but none that a consumer needs, and no row."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from tests.delta.tables import ID_AND_V, Small, by_delta_rs
from tests.support.ageing import age

from sluice.delta.log.position import head
from sluice.delta.places import failpoint
from sluice.delta.upkeep.maintenance import clean_log

NOW = datetime.now(UTC)


def old(folder: Path, commits: int, aged: int) -> Small:
    """A table of version `commits`; the first versions up to `aged` are forty days old.

    Versions 9, 19 and so on have a checkpoint.
    """
    table = Small.create(folder, ID_AND_V, ["id"], by_delta_rs(None))
    for number in range(commits):
        table.commit(("insert", {"id": number, "v": "x"}))
    for version in range(aged + 1):
        age(table.uri, version, 40)
    return table


def logged(table: Small) -> list[str]:
    return sorted(p.name for p in Path(table.uri, "_delta_log").iterdir() if p.name[:20].isdigit())


def versions(table: Small) -> list[int]:
    return [int(name[:20]) for name in logged(table) if name.endswith(".json")]


@pytest.mark.parametrize(
    ("aged", "oldest", "first"),
    [(34, 34, 29), (34, 29, 29), (34, 28, 19), (34, 19, 19), (34, 8, 0), (28, 34, 19), (8, 34, 0)],
)
def test_commits_before_the_checkpoint_of_what_is_needed_go(
    tmp_path: Path, aged: int, oldest: int, first: int
) -> None:
    table = old(tmp_path, 34, aged)
    stood, before = table.rows(), table.head
    gone = clean_log(table.uri, oldest, NOW)
    assert versions(table) == list(range(first, 35))
    assert gone == first + len(range(9, first, 10))
    assert head(table.uri) == before
    assert DeltaTable(table.uri).version() == 34
    assert table.rows() == stood
    assert clean_log(table.uri, oldest, NOW) == 0


def test_every_version_that_is_left_can_be_read_and_followed(tmp_path: Path) -> None:
    table = old(tmp_path, 25, 25)
    stood = {version: table.rows(version) for version in range(19, 26)}
    assert clean_log(table.uri, 19, NOW)
    assert {version: table.rows(version) for version in stood} == stood
    assert table.feed(20) == [("insert", {"id": 19, "v": "x"})]
    with pytest.raises(DeltaError):
        DeltaTable(table.uri, version=18)
    assert table.commit(("delete", {"id": 3, "v": "x"})).deleted == 1


def test_a_checkpoint_that_cannot_be_read_keeps_its_log(tmp_path: Path) -> None:
    table = old(tmp_path, 25, 25)
    Path(table.uri, "_delta_log", f"{19:020d}.checkpoint.parquet").write_bytes(b"PAR1 torn PAR1")
    before = logged(table)
    assert clean_log(table.uri, 25, NOW) == 0
    assert logged(table) == before


def test_a_kill_leaves_a_shorter_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = old(tmp_path, 34, 34)
    stood = table.rows()

    def killed(place: str, uri: str) -> None:
        if len(versions(table)) == 20:
            raise KeyboardInterrupt(f"{place} {uri}")

    monkeypatch.setattr("sluice.delta.upkeep.maintenance.passing", killed)
    with pytest.raises(KeyboardInterrupt):
        clean_log(table.uri, 34, NOW)
    monkeypatch.setattr("sluice.delta.upkeep.maintenance.passing", failpoint.passing)
    assert versions(table) == list(range(15, 35))
    assert table.rows() == stood
    assert clean_log(table.uri, 34, NOW)
    assert versions(table) == list(range(29, 35))
    assert table.rows() == stood
