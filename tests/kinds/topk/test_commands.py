"""Commands that show a top-k: its rankings, and whole maps of what changed."""

import pytest
from deltalake import DeltaTable
from tests.cli.reading import asking, rows
from tests.kinds.topk.tables import LEADERS, ranked
from tests.read.tables import position, project_at, write_table


@pytest.fixture
def sluice(tmp_path):
    project = project_at(tmp_path)
    leaders = write_table(project, "leaders", ranked(LEADERS), position(1))
    DeltaTable(leaders).delete("department = 'MEAT'")
    write_table(project, "unranked", ranked(LEADERS, rank=False))
    return asking(tmp_path)


def test_top_shows_one_partition_or_all(sluice):
    out = sluice("top", "leaders", "--partition", "department=DELI").stdout
    assert out.index("9.50") < out.index("5.00")
    both = rows(sluice("top", "leaders", "--json"))
    assert [line["partition"]["department"] for line in both] == [None, "DELI"]
    assert list(both[1]["top"]) == ["1", "2"]
    assert sluice("top", "unranked", "--format", "csv").stdout.splitlines()[2] == "DELI,1,9.50,1"
    assert "write column=value" in sluice("top", "leaders", "--partition", "DELI").stderr


def test_changes_may_be_whole_maps(sluice):
    maps = rows(sluice("changes", "leaders", "--from-version", "1", "--as", "map", "--json"))
    assert maps == [{"_commit_version": 1, "partition": {"department": "MEAT"}, "top": {}}]
    as_csv = sluice("changes", "leaders", "--from-version", "1", "--as", "map", "--format", "csv")
    assert as_csv.stdout.splitlines()[1] == "1,MEAT,,,"
