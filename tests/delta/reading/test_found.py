"""Rows that a batch has found in a large table are not looked for again by its commit."""

import random
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.delta.tables import ID_AND_V, Change, Small, by_marking

from sluice.delta.log.opened import CommitCache
from sluice.delta.reading import searching, wanted
from sluice.delta.reading.searching import SearchedVersion
from sluice.limits import Limits

KEYS = 200


@pytest.fixture
def table(tmp_path: Path) -> Small:
    """Even keys in four files of neighbours."""
    small = Small.create(tmp_path, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    for first in range(0, KEYS, KEYS // 4):
        rows = ({"id": i, "v": f"v{i}"} for i in range(first, first + KEYS // 4, 2))
        small.commit(*[("insert", row) for row in rows])
    return small


def find(
    table: Small, ids: list[int | None], most: int = KEYS, limits: Limits | None = None
) -> None:
    searched = SearchedVersion(table.uri, table.head.version, limits or Limits())
    searched.find_at_most([{"id": pa.chunked_array([pa.array(ids, pa.int32())])}], most)


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was searched, one entry for each search."""
    rows, made = searching.FileSearch.rows, []

    def noted(self: searching.FileSearch, *arguments: Any) -> Any:
        made.append(arguments)
        return rows(self, *arguments)

    monkeypatch.setattr(searching.FileSearch, "rows", noted)
    return made


def some_changes(chance: random.Random, rows: dict[int, str], number: int) -> list[Change]:
    """Changes of random keys; `rows` follows them."""
    changes: list[Change] = []
    for i in chance.sample(range(KEYS), chance.randrange(1, 9)):
        row = {"id": i, "v": f"{number}"}
        if i not in rows:
            changes.append(("insert", row))
        elif chance.random() < 0.5:
            changes.append(("update", row))
        else:
            changes.append(("delete", {"id": i, "v": rows.pop(i)}))
            continue
        rows[i] = f"{number}"
    return changes


@pytest.mark.parametrize("seed", range(4))
def test_rows_and_feed_are_those_of_a_commit_that_looks_for_itself(
    table: Small, searches: list[Any], seed: int
) -> None:
    chance = random.Random(seed)
    rows, spared = {i: f"v{i}" for i in range(0, KEYS, 2)}, 0
    for number in range(25):
        before, changes = dict(rows), some_changes(chance, rows, number)
        keys = [row["id"] for _, row in changes]
        others = chance.sample(range(KEYS), 20)
        sought = chance.choice([keys, keys + others, others, keys[:1], [*keys, None]])
        find(table, sought, chance.choice([KEYS, 3]))
        searches.clear()
        done = table.commit(*changes)
        spared += not searches and done.updated + done.deleted > 0
        assert table.rows() == sorted(({"id": i, "v": v} for i, v in rows.items()), key=repr)
        fed = {(c, row["id"]): row["v"] for c, row in table.feed(done.version)}
        for change, row in changes:
            i, old = row["id"], before.get(row["id"])
            if change == "update":
                assert (fed.pop(("update_preimage", i)), fed.pop(("update_postimage", i))) == (
                    *(old, f"{number}"),
                )
            else:
                assert fed.pop((change, i)) == (old if change == "delete" else f"{number}")
        assert not fed
    assert spared > 3


def test_what_was_found_is_of_one_version_and_used_once(table: Small, searches: list[Any]) -> None:
    find(table, [0, 2])
    find(table, [0, 2])
    table.commit(("update", {"id": 0, "v": "a"}))
    assert len(searches) == 2
    table.commit(("update", {"id": 0, "v": "b"}), ("delete", {"id": 2, "v": "v2"}))
    assert len(searches) == 3
    assert table.rows()[:1] == [{"id": 0, "v": "b"}]


def test_rows_of_many_bytes_are_not_kept(
    table: Small, searches: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wanted, "_found", CommitCache(10, lambda rows: rows.bytes))
    find(table, [0])
    table.commit(("update", {"id": 0, "v": "a"}))
    assert len(searches) == 2


def test_keys_that_no_row_has_are_not_kept(table: Small) -> None:
    wanted._found.clear()
    find(table, list(range(KEYS, 2 * KEYS)))
    assert not wanted._found
    find(table, [0, KEYS])
    assert wanted._found.currsize > KEYS // 100


def test_a_commit_that_lost_a_race_looks_again(table: Small, searches: list[Any]) -> None:
    find(table, [0])
    before, write = table.head, table.write

    def overtaken(*arguments: Any) -> Any:
        table.write = write
        table.commit(("update", {"id": 0, "v": "first"}))
        return write(*arguments)

    table.write = partial(overtaken)
    with pytest.raises(Exception, match="committed"):
        table.commit(("update", {"id": 0, "v": "late"}), before=before)
    table.commit(("update", {"id": 0, "v": "last"}))
    assert table.rows()[0] == {"id": 0, "v": "last"}
    assert table.feed(table.head.version)[-1] == ("update_preimage", {"id": 0, "v": "first"})
