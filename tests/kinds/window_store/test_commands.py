"""The command that reads a window store, and its errors."""

import pytest
from tests.cli.reading import asking, rows
from tests.kinds.window_store.tables import visits
from tests.read.tables import day, position, project_at, write_table


@pytest.fixture
def sluice(tmp_path):
    visited = visits([2, 3, 30])
    write_table(project_at(tmp_path), "visits", visited, position(1, horizon=day(31)))
    return asking(tmp_path)


def test_fetch_reads_newest_first(sluice):
    found = rows(sluice("fetch", "visits", "--key", "1", "--reverse", "--json"))
    assert [row["window_start"] for row in found] == [
        "2017-01-30T00:00:00Z",
        "2017-01-03T00:00:00Z",
        "2017-01-02T00:00:00Z",
    ]
    some = sluice(
        "fetch", "visits", "--time-from", "2017-01-02", "--time-to", "2017-01-03", "--json"
    )
    assert len(rows(some)) == 2
    refused = sluice("fetch", "visits", "--time-from", "soon").stderr
    assert "'soon' is not a value of column 'window_start' (TIMESTAMP)" in refused


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--key", "anna"), "'anna' is not a value of column 'user_id' (INT)"),
        (("--key", "1", "--key", "2"), "the key of 'visits' is (user_id): 2 values don't fit it"),
        (("--key", "99999999999"), "99999999999 does not fit column 'user_id' (INT)"),
        (("--time-to", "31-01-2017"), "'31-01-2017' is not a value of column 'window_start'"),
        (("--limit", "-1"), "limit must be 0 or more, not -1"),
        (("--where", "nobody = 1"), "unknown column 'nobody'"),
        (("--where", "upper(what) = 'X'"), "where does not support"),
        (("--columns", "whta"), "did you mean 'what'?"),
        (("--after", "here"), "'here' is not a cursor of this read"),
        (("--overlapping", "--time-from", "2017-01-01"), "the windows of 'visits' have no end"),
    ],
)
def test_what_can_not_be_read_is_one_clear_error(sluice, asked, said):
    result = sluice("fetch", "visits", *asked)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert said in result.stderr
    assert "Traceback" not in result.stderr
