"""A table's changelog, and one run's part of it."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from tests.kinds.topk.tables import ranked
from tests.read.tables import position, project_at, write_table

from sluice.delta.places.lake_layout import layout
from sluice.errors import HistoryLost, UsageError
from sluice.read.changelog import Changelog
from sluice.read.lake import Lake


def committed(batch, run):
    metadata = {"userMetadata": position(batch, run=run).to_json()}
    return CommitProperties(custom_metadata=metadata)


def merge(uri, rows, batch, run):
    table = DeltaTable(uri)
    condition = "t.department = s.department and t.product_id = s.product_id"
    (
        table.merge(
            rows,
            condition,
            source_alias="s",
            target_alias="t",
            commit_properties=committed(batch, run),
        )
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )


@pytest.fixture
def project(tmp_path):
    """Three versions: two departments; then DELI changes; then MEAT ends."""
    project = project_at(tmp_path)
    first = ranked([("MEAT", 3, "7.00", 1), ("DELI", 2, "5.00", 2), ("DELI", 1, "9.50", 1)])
    uri = write_table(project, "leaders", first, position(1, run="monday"))
    merge(uri, ranked([("DELI", 2, "20.00", 1), ("DELI", 1, "9.50", 2)]), 2, "tuesday")
    DeltaTable(uri).delete("department = 'MEAT'", commit_properties=committed(3, "wednesday"))
    DeltaTable(uri).optimize.compact()
    return project


def changes_of(project, **how):
    to_version = how.pop("to_version", None)
    rows = Changelog.open(Lake(project), "leaders", to_version).rows(**how)
    return [
        (r["_commit_version"], r["_change_type"], r["department"], r["product_id"], r["rank"])
        for r in rows
    ]


UPDATES = [
    (1, "update_preimage", "DELI", 1, 1),
    (1, "update_postimage", "DELI", 1, 2),
    (1, "update_preimage", "DELI", 2, 2),
    (1, "update_postimage", "DELI", 2, 1),
]


def test_changes_come_by_version_then_key_the_old_row_first(project):
    inserts = [
        (0, "insert", "DELI", 1, 1),
        (0, "insert", "DELI", 2, 2),
        (0, "insert", "MEAT", 3, 1),
    ]
    assert changes_of(project) == [*inserts, *UPDATES, (2, "delete", "MEAT", 3, 1)]


def test_both_bounds_are_included(project):
    assert changes_of(project, from_version=1, to_version=1) == UPDATES
    assert changes_of(project, from_version=3) == []


def test_bounds_that_can_not_be_are_reported_with_the_newest_version(project):
    for bounds, told in (
        ({"from_version": 9}, "'leaders' has no version 9 yet"),
        ({"from_version": 2, "to_version": 0}, "the first version, 2, is after the last, 0"),
    ):
        with pytest.raises(UsageError, match=told) as refused:
            changes_of(project, **bounds)
        assert refused.value.hint == "the newest version is 2"


def test_one_run_shows_what_it_changed(project):
    assert changes_of(project, run="tuesday") == UPDATES


def test_a_kind_without_maps_is_refused_with_the_kinds_that_have_them(project):
    write_table(project, "totals", ranked([("DELI", 1, "9.50", 1)], rank=False), position(1))
    with pytest.raises(
        UsageError, match="'totals' is of kind cogroup: its changes can only"
    ) as refused:
        Changelog.open(Lake(project), "totals").maps()
    assert refused.value.hint == "leave out `--as map`, which is for tables of kind topk"


def test_a_quarantine_has_no_maps(project):
    write_table(project, "sales__quarantine", pa.table({"reason": ["key is null"]}))
    with pytest.raises(UsageError, match="'sales__quarantine' is an internal table: its changes"):
        Changelog.open(Lake(project), "sales__quarantine").maps()


def test_a_changelog_whose_first_files_are_deleted_says_where_the_rest_begins(project, tmp_path):
    folder = tmp_path / "lake" / "shop" / "leaders"
    kept = {Path(uri).name for uri in DeltaTable(folder).file_uris()}
    for file in folder.glob("*.parquet"):
        if file.name not in kept:
            file.unlink()
    with pytest.raises(HistoryLost) as lost:
        changes_of(project)
    assert lost.value.message == (
        "the changelog of 'leaders' is partly gone: the changes of version 0 can't be read: "
        "their files are deleted"
    )
    assert "--from-version 1;" in lost.value.hint
    assert changes_of(project, from_version=1)[:2] == UPDATES[:2]


def test_of_several_versions_whose_files_are_deleted_the_last_one_counts(tmp_path):
    project = project_at(tmp_path)
    uri = write_table(project, "leaders", ranked([("DELI", 1, "1.00", 1)]), position(1, run="1"))
    for batch in range(2, 8):
        merge(uri, ranked([("DELI", 1, f"{batch}.00", 1)]), batch, str(batch))
    for version in range(3):
        log = Path(uri) / "_delta_log" / f"{version:020d}.json"
        for name in re.findall(r'"path":"([^"]+)"', log.read_text()):
            (Path(uri) / name).unlink(missing_ok=True)
    with pytest.raises(HistoryLost, match="the changes of version 0 can't be read") as lost:
        changes_of(project)
    assert "--from-version 3;" in lost.value.hint
    assert {row[0] for row in changes_of(project, from_version=3)} == {3, 4, 5, 6}
    with pytest.raises(UsageError) as refused:
        changes_of(project, run="nope")
    assert refused.value.hint.endswith("are: 7, 6, 5, 4, 3")


def test_a_table_whose_feed_began_later_says_from_which_version_it_has_one(tmp_path):
    project = project_at(tmp_path)
    first = ranked([("DELI", 1, "9.50", 1)])
    uri = layout(project).uri("shop.leaders")
    write_deltalake(uri, first, commit_properties=committed(1, "monday"))
    DeltaTable(uri).alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    merge(uri, ranked([("DELI", 1, "7.00", 1)]), 2, "tuesday")
    with pytest.raises(HistoryLost) as lost:
        changes_of(project)
    assert lost.value.message == "'leaders' had no change feed at version 0"
    (first,) = re.findall(r"--from-version (\d+)$", lost.value.hint)
    assert [row[0] for row in changes_of(project, from_version=int(first))] == [2, 2]


def test_versions_that_the_log_has_lost_are_a_named_error(project, tmp_path):
    (tmp_path / "lake" / "shop" / "leaders" / "_delta_log" / f"{0:020d}.json").unlink()
    uri = str(tmp_path / "lake" / "shop" / "leaders")
    with pytest.raises(HistoryLost, match="the log begins at version 1"):
        _without_reading(project, uri)


def _without_reading(project, uri):
    from sluice.read.keyed import KeyedTable
    from sluice.read.snapshot import Snapshot

    snapshot = Snapshot("leaders", uri, 2, pa.schema([]), frozenset(), pa.table({}))
    Changelog(Lake(project), "leaders", KeyedTable(snapshot, ())).rows(from_version=0)


def test_a_dimension_view_has_no_changelog(project):
    from tests.dimension_views.tables import brands, products

    write_table(project, "products", products([(1, "a", 1)]))
    write_table(project, "brands", brands([(1, "b")]))
    with pytest.raises(UsageError, match="computed when it is read"):
        Changelog.open(Lake(project), "catalogue")


def test_a_run_that_no_table_knows_is_refused_with_those_that_changed_this_one(project):
    with pytest.raises(UsageError) as refused:
        changes_of(project, run="nope")
    assert refused.value.message == "no run 'nope' is recorded in this lake"
    assert "wednesday, tuesday, monday" in refused.value.hint


def test_a_run_that_changed_other_tables_only_changed_nothing_here(project):
    other = ranked([("DELI", 2, "5.00", 1)])
    write_table(project, "unranked", other, position(1, run="sunday"))
    assert changes_of(project, run="sunday") == []


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_parts_of_a_large_version_are_those_of_the_whole(tmp_path, size):
    """Keys have nulls, NaN and rows that are twice there."""
    project, half = project_at(tmp_path), [None, 2.0, float("nan"), -1.0, 0.5] * 4
    first = ranked([("MEAT", 3, "7.00", 1), ("DELI", 2, "5.00", 2)])
    uri = write_table(project, "leaders", first, position(1))
    names = f"{uri}__quarantine"
    rows = pa.table({"half": half, "text": [f"{n % 7}" for n in range(20)]})
    write_deltalake(names, rows, configuration={"delta.enableChangeDataFeed": "true"})
    log = Changelog.open(Lake(project), "leaders__quarantine")
    large = log.ordered(0, most=1)
    parts = [large.rows(n, size) for n in range(0, 20, size)]
    found = [(r["half"], r["text"]) for part in parts for r in part.to_pylist()]

    def order(row):
        kind = 0 if row[0] is None else 2 if row[0] != row[0] else 1
        return kind, row[0] if kind == 1 else 0, row[1]

    expected = sorted(zip(half, rows["text"].to_pylist(), strict=True), key=order)
    assert str(found) == str(expected)
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
