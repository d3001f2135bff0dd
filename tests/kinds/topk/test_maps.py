"""Whole rankings of the partitions that each version touched."""

from decimal import Decimal

from deltalake import DeltaTable
from tests.kinds.topk.tables import ranked
from tests.read.tables import project_at, write_table

from sluice.read.changelog import Changelog
from sluice.read.lake import Lake


def test_whole_maps_of_the_touched_partitions_by_version(tmp_path):
    project = project_at(tmp_path)
    first = [("MEAT", 3, "7.00", 1), ("DELI", 2, "5.00", 2), ("DELI", 1, "9.50", 1)]
    uri = write_table(project, "leaders", ranked(first))
    DeltaTable(uri).update({"total": "20"}, predicate="product_id = 1")
    DeltaTable(uri).delete("department = 'MEAT'")
    maps = list(Changelog.open(Lake(project), "leaders").maps(from_version=1))
    assert [(m.version, m.partition["department"]) for m in maps] == [(1, "DELI"), (2, "MEAT")]
    assert {r: row["total"] for r, row in maps[0].ranks.items()} == {
        1: Decimal("20.00"),
        2: Decimal("5.00"),
    }
    assert maps[1].ranks == {}
