"""Top-k read as partition -> {rank: row}."""

from decimal import Decimal

import pytest
from tests.kinds.topk.tables import LEADERS, ranked
from tests.read.tables import project_at, write_table

import sluice
from sluice.errors import UsageError
from sluice.read.lake import Lake


@pytest.fixture
def lake(tmp_path):
    project = project_at(tmp_path)
    write_table(project, "leaders", ranked(LEADERS))
    return Lake(project)


def test_one_partition_is_a_map_from_rank_to_row(lake):
    top = lake.top("leaders", partition={"department": "DELI"})
    assert [(rank, row["product_id"]) for rank, row in top.items()] == [(1, 1), (2, 2)]
    assert top[1] == {"department": "DELI", "product_id": 1, "total": Decimal("9.50"), "rank": 1}


def test_without_a_partition_every_partition_has_its_map(lake):
    top = lake.top("leaders")
    assert list(top) == [None, "DELI", "MEAT"]
    assert top["MEAT"][1]["product_id"] == 3


def test_the_null_partition_is_one_like_any_other(lake):
    assert lake.top("leaders", partition={"department": None})[1]["product_id"] == 4


def test_a_partition_that_is_not_there_is_empty(lake):
    assert lake.top("leaders", partition={"department": "NONE"}) == {}


def test_an_unknown_partition_column_is_named(lake):
    with pytest.raises(UsageError, match="unknown partition column 'departmnt'; did you mean"):
        lake.top("leaders", partition={"departmnt": "DELI"})
    with pytest.raises(UsageError, match="7 is not a value of column 'department'"):
        lake.top("leaders", partition={"department": 7})


def test_ranks_with_ties_have_lists_of_rows(tmp_path):
    project = project_at(tmp_path)
    rows = [("DELI", 1, "9.00", 1), ("DELI", 2, "9.00", 1), ("DELI", 3, "1.00", 3)]
    write_table(project, "tied", ranked(rows))
    top = Lake(project).top("tied", partition={"department": "DELI"})
    assert {r: [row["product_id"] for row in found] for r, found in top.items()} == {
        1: [1, 2],
        3: [3],
    }


def test_without_a_rank_column_the_order_ranks(tmp_path):
    project = project_at(tmp_path)
    rows = [
        ("DELI", 3, "1.00", 0),
        ("DELI", 2, "9.00", 0),
        ("DELI", 1, "9.00", 0),
        ("DELI", 4, None, 0),
    ]
    write_table(project, "unranked", ranked(rows, rank=False))
    top = Lake(project).top("unranked", partition={"department": "DELI"})
    assert [(rank, row["product_id"]) for rank, row in top.items()] == [
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
    ]


def test_a_row_without_a_rank_is_not_named_by_one(tmp_path):
    project = project_at(tmp_path)
    write_table(project, "unranked", ranked([("DELI", 1, "9.00", 0)], rank=False))
    with pytest.raises(UsageError, match="has no rank column"):
        sluice.open(tmp_path / "config").why_not(
            "unranked", partition={"department": "DELI"}, rank=7
        )


def test_another_kind_of_table_has_no_ranking(lake):
    with pytest.raises(
        UsageError, match="top reads tables of kind topk; 'totals' is of kind cogroup"
    ):
        lake.top("totals")


def test_only_some_columns_of_ranks_keep_their_shape(tmp_path):
    project = project_at(tmp_path)
    write_table(project, "tied", ranked([("DELI", 1, "9.00", 1), ("DELI", 2, "9.00", 1)]))
    ranking = Lake(project).ranking("tied")
    ((_, ranks),) = ranking.partitions({})
    found = ranking.only(ranks, ["rank", "product_id"])
    assert found == {1: [{"rank": 1, "product_id": 1}, {"rank": 1, "product_id": 2}]}
    assert ranking.only(ranks, None) == ranks
