"""A small change to a large table in a store writes marks, and every reader sees them."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import QueryBuilder
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.delta.tables import ID_AND_V, LARGE, WITH_P, Change, Small, by_marking
from tests.stores.stored_shop import TABLES, StoredShop
from tests.support.proxy import COMMIT, Harm, Proxy, Rule
from tests.support.stores import Store, using

from sluice.changes import Direction
from sluice.delta.log import Log
from sluice.delta.log.files import has_vectors
from sluice.delta.log.position import Head
from sluice.delta.places.delta_rs import open_table
from sluice.delta.reading.live import live_rows
from sluice.delta.reading.local import read_where
from sluice.delta.upkeep.maintenance import Filing
from sluice.delta.upkeep.rewriting import merge, rewrite_marked
from sluice.delta.writing.commit import should_mark
from sluice.errors import LostRace
from sluice.limits import Limits
from sluice.read.keyed import KeyedTable
from sluice.read.snapshot import Snapshot

ROOT = Path(__file__).parents[2]
FILES, EACH = 4, 25
CHANGES: list[Change] = [
    ("update", {"id": 3, "v": "new"}),
    ("update", {"id": 97, "v": "new"}),
    ("delete", {"id": 50, "v": "v50"}),
    ("insert", {"id": 200, "v": "new"}),
]
Row = dict[str, Any]
Read = Callable[[Head], list[Row]]


def expected(*changes: Change) -> list[Row]:
    rows = {i: {"id": i, "v": f"v{i}"} for i in range(FILES * EACH)}
    for change, values in changes:
        rows.pop(values["id"], None)
        if change != "delete":
            rows[values["id"]] = values
    return [rows[i] for i in sorted(rows)]


@pytest.fixture
def table(store: Store) -> Small:
    """Keys 0 to 99 in four files of neighbours."""
    lake = store.uri(f"{store.place()}/lake/shop")
    table = Small.create(lake, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    for first in range(0, FILES * EACH, EACH):
        table.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in range(first, first + EACH)])
    return table


def by_arrow(head: Head) -> list[Row]:
    return read_where(head.uri, head.version).to_pylist()


def by_dataset(head: Head) -> list[Row]:
    return live_rows(open_table(head.uri, head.version), head.uri).to_table().to_pylist()


def by_key(head: Head) -> list[Row]:
    read = KeyedTable(Snapshot.open("t", head.uri, head.version), ("id",))
    return [row for n in range(300) if (row := read.get(n)) is not None]


def by_delta_rs(head: Head) -> list[Row]:
    stored = open_table(head.uri, head.version)
    found = QueryBuilder().register("t", stored).execute("SELECT * FROM t")
    return pa.table(found.read_all()).to_pylist()


def by_duckdb(head: Head) -> list[Row]:
    stored = open_table(head.uri, head.version)
    with duckdb.connect() as connection:
        connection.register("t", QueryBuilder().register("t", stored).execute("SELECT * FROM t"))
        return connection.sql("SELECT id, v FROM t").to_arrow_table().to_pylist()


READS = [by_arrow, by_dataset, by_key, by_delta_rs, by_duckdb]


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_marks_and_new_rows_are_all_that_is_written(table: Small) -> None:
    done = table.commit(*CHANGES)
    assert (done.inserted, done.updated, done.deleted) == (1, 2, 1)
    actions = Log(table.uri).actions(done.version)
    added, removed = ([a[k] for a in actions if k in a] for k in ("add", "remove"))
    assert len(removed) == 3
    assert len([a for a in added if "deletionVector" in a]) == 3
    assert len({a["path"] for a in added} - {r["path"] for r in removed}) == 1


@pytest.mark.parametrize("read", READS)
def test_marked_rows_are_left_out_today_and_were_there_before(table: Small, read: Read) -> None:
    before = table.head
    table.commit(*CHANGES)
    table.commit(("delete", {"id": 4, "v": "v4"}), ("update", {"id": 3, "v": "newer"}))
    now = expected(*CHANGES, ("delete", {"id": 4}), ("update", {"id": 3, "v": "newer"}))
    assert in_order(read(before)) == expected()
    assert in_order(read(table.head)) == now


def test_polars_leaves_marked_rows_out(table: Small) -> None:
    table.commit(*CHANGES)
    rows = pl.scan_delta(table.uri, storage_options={"allow_http": "true"}).sort("id").collect()
    assert rows.to_dicts() == expected(*CHANGES)


def test_the_feed_has_both_images_of_marked_rows(table: Small) -> None:
    done = table.commit(*CHANGES)
    stored = open_table(table.uri)
    feed = pa.table(stored.load_cdf(done.version, done.version).read_all()).to_pylist()
    assert sorted((row["_change_type"], row["id"], row["v"]) for row in feed) == [
        ("delete", 50, "v50"),
        ("insert", 200, "new"),
        ("update_postimage", 3, "new"),
        ("update_postimage", 97, "new"),
        ("update_preimage", 3, "v3"),
        ("update_preimage", 97, "v97"),
    ]


def test_a_partitions_rows_are_marked_in_their_folder(store: Store) -> None:
    lake = store.uri(f"{store.place()}/lake/shop")
    by_p = {"partition_by": ["p"]}
    table = Small.create(lake, WITH_P, ["p", "id"], by_marking(None), **by_p)  # type: ignore[arg-type]
    table.commit(*[("insert", {"id": i, "v": f"v{i}", "p": i % 3}) for i in range(30)])
    done = table.commit(
        ("update", {"id": 4, "v": "new", "p": 1}), ("delete", {"id": 5, "v": "v5", "p": 2})
    )
    assert has_vectors(open_table(table.uri))
    marked = [a["add"]["path"] for a in Log(table.uri).actions(done.version) if "add" in a]
    assert {path.partition("/")[0] for path in marked} == {"p=1", "p=2"}
    rows = {row["id"]: row["v"] for row in by_arrow(table.head)}
    assert rows == {**{i: f"v{i}" for i in range(30) if i != 5}, 4: "new"}


def test_of_two_commits_of_one_version_one_is_lost(table: Small) -> None:
    before = table.head
    table.commit(("delete", {"id": 4, "v": "v4"}), before=before)
    with pytest.raises(LostRace):
        table.commit(("delete", {"id": 5, "v": "v5"}), before=before)
    assert in_order(by_arrow(table.head)) == expected(("delete", {"id": 4}))


@pytest.mark.parametrize("harm", [Harm.LOST, Harm.DROPPED, Harm.BUSY])
def test_a_marking_commit_without_an_answer_happens_once(
    table: Small, store: Store, proxied: Proxy, harm: Harm
) -> None:
    rule = Rule(harm, "PUT", COMMIT, times=1)
    with using(store.environ(proxied.endpoint)), proxied.harming(rule):
        done = table.commit(*CHANGES)
        assert proxied.done[harm] == 1
    assert (table.head.version, done.updated) == (done.version, 2)
    assert in_order(by_arrow(table.head)) == expected(*CHANGES)


def test_files_without_the_keys_are_not_opened(table: Small, store: Store, proxied: Proxy) -> None:
    """Two of four files may hold the keys; each is asked for its size, and read at once."""
    with using(store.environ(proxied.endpoint)):
        head = table.head
        proxied.clear()
        table.commit(CHANGES[0], CHANGES[2], before=head)
        asked = [r for r in proxied.requests if "/part-" in r.name and r.method != "PUT"]
    assert Counter(r.method for r in asked) == {"HEAD": 2, "GET": 2}
    assert len({r.name for r in asked}) == 2


def test_upkeep_and_rebuilds_leave_no_marks(table: Small) -> None:
    table.commit(*CHANGES)
    head = rewrite_marked(table.head, Limits())
    assert in_order(by_arrow(head)) == expected(*CHANGES)
    assert not any(
        "deletionVector" in a.get("add", ()) for a in Log(head.uri).actions(head.version)
    )
    table.commit(("update", {"id": 3, "v": "newer"}), ("delete", {"id": 60, "v": "v60"}))
    filing = Filing(table.head, Limits(file_rows=30), order=[Direction("id")])
    done, left = merge(filing, filing.slices, "compact")
    assert done
    assert not left
    changes = [*CHANGES, ("update", {"id": 3, "v": "newer"}), ("delete", {"id": 60})]
    assert in_order(by_arrow(table.head)) == expected(*changes)


def test_a_small_table_is_rewritten_there_too(table: Small) -> None:
    rows = table.changelog(CHANGES)
    assert should_mark(table.head, rows, ["id"], LARGE)
    assert not should_mark(table.head, rows, ["id"], Limits())


KILLED = """
import sys
from tests.crash.shop import CORRECTED, FIRST, Shop, day
from tests.delta.tables import ID_AND_V, Small, by_marking
table = Small(sys.argv[1], ["id"], by_marking(None))
table.commit(("delete", {"id": 4, "v": "v4"}), ("insert", {"id": 300, "v": "new"}))
"""


@pytest.mark.parametrize("place", ["marked", "committing"])
def test_a_kill_before_a_marking_commit_changes_nothing(table: Small, place: str) -> None:
    command = [sys.executable, "-c", KILLED, table.uri]
    armed = {**os.environ, "SLUICE_FAILPOINT": f"{place}:{table.uri.rpartition('/')[2]}"}
    ended = subprocess.run(command, check=False, cwd=ROOT, env=armed)
    assert ended.returncode == -signal.SIGKILL
    assert in_order(by_arrow(table.head)) == expected()
    subprocess.run(command, check=True, cwd=ROOT)
    changes: list[Change] = [("delete", {"id": 4}), ("insert", {"id": 300, "v": "new"})]
    assert in_order(by_arrow(table.head)) == expected(*changes)


def test_a_lake_that_marks_is_that_of_a_disk(corrected: StoredShop, tmp_path: Path) -> None:
    corrected.limits = LARGE
    disk = Shop.create(tmp_path / "disk")
    corrected.run(day(1))
    corrected.check()
    for rows in (FIRST, CORRECTED):
        disk.land(1, *rows)
        disk.run(day(1))
    assert corrected.state()["rows"] == disk.state()["rows"]
    assert any(has_vectors(open_table(corrected.uri(name))) for name in TABLES)
