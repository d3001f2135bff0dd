"""The plan of a join says what it reads, and the batch reads no more."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.kinds.join.cases import DECLARED
from tests.support.in_duckdb import wrong
from tests.support.lake import Lake, NewLake, away

from sluice.delta.log.files import table_size
from sluice.operate.explain import explain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOWN = "select: {id: orders.id, pid: people.pid}"


def built(folder: Path, spark: "SparkSession", on: str) -> Lake:
    view = f"  both: {{kind: join, left: orders, right: people, on: {on}, {SHOWN}}}\n"
    lake = Lake(folder, DECLARED + view, spark)
    for k in (1, 2):
        lake.put("orders", {"id": k, "k": k, "g": str(k)})
        lake.put("people", {"pid": k, "k": k, "w": str(k)})
    assert planned(lake) == "the whole query: there are no earlier versions"
    lake.advance()
    return lake


def planned(lake: Lake, view: str = "both") -> str:
    (step,) = explain(lake.project, lake.table(view))
    return step.reason


def test_of_large_inputs_only_files_that_may_match_are_opened(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    lake = built(tmp_path, spark, "[k]").limit(read_here_bytes=-1)
    others = [file for n in ("orders", "people") for file in files_of(lake, n, k=1)]
    lake.put("people", {"pid": 3, "k": 2})
    assert planned(lake).endswith(
        "; of shop.orders (0.0 MB in 2 file(s)), only files that may contain touched k are read"
    )
    with away(others):
        (batch,) = lake.advance()
    assert batch.inserted == 1


@pytest.mark.parametrize(
    ("on", "why"),
    [
        ("upper(orders.g) = people.w", "no statistics for the columns of `on`"),
        ("double(orders.k) = double(people.n)", "no statistics for the columns of `on`"),
    ],
)
def test_an_expression_is_no_column_of_which_files_have_statistics(
    tmp_path: Path, spark: "SparkSession", on: str, why: str
) -> None:
    lake = built(tmp_path, spark, on)
    lake.put("people", {"pid": 3, "k": 2, "w": "2"})
    assert planned(lake).endswith("; shop.orders is read whole (0.0 MB in 2 file(s))")
    lake.limit(read_here_bytes=-1)
    assert f"shop.orders is read whole (0.0 MB in 2 file(s)): its files have {why}" in planned(lake)


@pytest.mark.parametrize("bytes_", [-1, 500_000])
def test_changes_of_one_side_read_no_stored_row_of_it(
    tmp_path: Path, spark: "SparkSession", bytes_: int
) -> None:
    lake = built(tmp_path, spark, "[k]").limit(read_here_bytes=bytes_)
    others = files_of(lake, "orders", k=1) + files_of(lake, "orders", k=2)
    lake.put("orders", {"id": 3, "k": 2})
    assert planned(lake).startswith("only shop.orders has changed: its rows are joined")
    with away(others):
        (batch,) = lake.advance()
    assert (batch.inserted, batch.strategy) == (1, "one side")
    lake.put("people", {"pid": 4, "k": 1})
    lake.put("orders", {"id": 4, "k": 1})
    (batch,) = lake.advance()
    assert (batch.inserted, batch.strategy) == (3, "recompute")


def test_of_a_large_and_a_small_input_the_small_one_may_be_a_join_itself(new_lake: NewLake) -> None:
    """Its hidden columns have the names of those that the join over it makes."""
    views = (
        f"  both: {{kind: join, left: orders, right: people, on: [k], {SHOWN}}}\n"
        "  again: {kind: join, left: both, right: orders, on: both.pid = orders.k, "
        "select: {pid: both.pid, other: orders.id}}\n"
    )
    lake = new_lake(DECLARED + views)
    lake.put("people", {"pid": 1, "k": 1})
    lake.put("orders", *({"id": k, "k": k % 5, "g": str(k) * 9} for k in range(300)))
    lake.advance()
    lake.put("orders", {"id": 300, "k": 1})
    lake.put("people", {"pid": 3, "k": 1})
    lake.advance("both")
    sizes = {n: table_size(lake.uri(n), lake.head(n).version).bytes for n in ("both", "orders")}
    lake.limit(read_here_bytes=min(sizes.values()))
    assert planned(lake, "again").startswith("touched groups")
    assert "only files that may contain" in planned(lake, "again")
    lake.advance("again")
    assert wrong(lake, "again") == {}


def files_of(lake: Lake, name: str, k: int) -> list[Path]:
    """The files whose only row has this `k`: each was a commit of its own."""
    found = sorted(Path(lake.uri(name)).glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    return [found[k - 1]]
