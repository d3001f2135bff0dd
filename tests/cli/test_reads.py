"""The reading commands, run on a small lake."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from tests.cli.reading import asking, rows
from tests.dimension_views.tables import brands, products
from tests.kinds.topk.tables import LEADERS, ranked
from tests.kinds.window_store.tables import visits
from tests.read.tables import CONFIG, day, pin, position, project_at, write_table

import sluice as sluice_library
from sluice.cli.main import COMMANDS, main


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    project = project_at(folder)
    totals = write_table(project, "totals", ranked(LEADERS, rank=False), position(1))
    inputs = {"shop.totals": pin(totals)}
    leaders = write_table(project, "leaders", ranked(LEADERS), position(1, inputs, run="monday"))
    DeltaTable(leaders).delete("department = 'MEAT'")
    write_table(project, "visits", visits([2, 3, 30]), position(1, horizon=day(31)))
    write_table(project, "products", products([(1, "tea", 10), (2, "ham", None)]))
    write_table(project, "brands", brands([(10, "Acme")]))
    return folder


@pytest.fixture
def sluice(shop):
    return asking(shop)


def test_read_filters_and_limits(sluice):
    found = rows(sluice("read", "totals", "--where", "total >= 7", "--columns", "total", "--json"))
    assert sorted(row["total"] for row in found) == [7.0, 9.5]
    assert len(rows(sluice("read", "totals", "--limit", "2", "--json"))) == 2


def test_read_takes_an_older_version(sluice):
    assert len(rows(sluice("read", "leaders", "--json"))) == 3
    assert len(rows(sluice("read", "leaders", "--version", "0", "--json"))) == 4


def test_reads_need_only_their_own_pipeline_without_mistakes(tmp_path):
    write_table(project_at(tmp_path), "products", products([(1, "tea", 10)]))
    wrong = "pipeline: payroll\nschedule: '@daily'\nstart_date: 2024-01-01\nwages: {top: 1}\n"
    (tmp_path / "config" / "pipelines" / "payroll.yaml").write_text(wrong)
    sluice = asking(tmp_path)
    found = sluice("get", "products", "1", "--json")
    assert rows(found)[0]["product_id"] == 1
    assert found.stderr == (
        "warning: `sluice validate` finds mistakes; until this is fixed, these are left out: "
        "payroll.yaml\n"
    )
    refused = sluice("get", "payroll.wages", "1")
    assert refused.exit_code == 2
    assert re.search(r"payroll.yaml:4: .*unknown key 'wages'", refused.stderr)


def test_get_reads_key_values_by_their_types(sluice):
    (row,) = rows(sluice("get", "totals", "DELI", "2", "--json"))
    assert row == {"department": "DELI", "product_id": 2, "total": 5.0}
    wrong = sluice("get", "totals", "DELI", "two")
    assert wrong.exit_code == 2
    assert "'two' is not a value of column 'product_id' (INT)" in wrong.stderr


def test_a_float_has_the_fewest_digits_that_are_that_float(tmp_path):
    prices = pa.array([38.4, None], pa.float32())
    parts = pa.array([[{"p": 0.1}], None], pa.list_(pa.struct([("p", pa.float32())])))
    table = {"department": ["DELI", "MEAT"], "product_id": pa.array([1, 2], pa.int32())}
    table |= {"total": prices, "parts": parts, "rank": pa.array([1, 1], pa.int32())}
    project = project_at(tmp_path)
    write_table(project, "leaders", pa.table(table))
    write_table(project, "totals", pa.table(table))

    def shown(*asked):
        found = CliRunner().invoke(main, [*asked, "--config", str(tmp_path / "config")])
        assert found.exit_code == 0, found.stderr
        return found.stdout

    assert '"total": 38.4, "parts": [{"p": 0.1}]' in shown("get", "totals", "DELI", "1", "--json")
    assert "38.4 " in shown("read", "totals")
    assert 'DELI,1,38.4,"[{""p"": 0.1}]",1' in shown("top", "leaders", "--format", "csv")
    assert '"total": 38.4,' in shown("top", "leaders", "--json")


def test_get_of_a_key_that_is_not_there_exits_with_1(sluice):
    result = sluice("get", "totals", "DELI", "99")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "no row with the key DELI 99" in result.stderr


@pytest.mark.parametrize("key", [("1",), ("1", "1"), ("1", "2", "3")])
def test_get_of_rows_without_a_key_says_so_whatever_is_asked(sluice, key):
    for command in ("get", "why"):
        result = sluice(command, "visits", *key)
        assert result.exit_code == 2
        assert "error: the rows of 'visits' have no key to identify one by" in result.stderr


SESSIONS = """
  sessions:
    kind: cogroup
    key: [user_id, what]
    window: {type: session, time: at, gap: 1 hour}
    streams: {events: {from: events, aggregates: {n: count(*)}}}
"""


def test_a_key_with_a_window_is_named_by_its_columns_and_then_the_window(tmp_path):
    project, sluice = project_at(tmp_path, CONFIG + SESSIONS), asking(tmp_path)
    found = [
        {"window_start": day(d), "window_end": day(d, 1), "user_id": u, "what": w, "n": d * u}
        for d in (1, 2)
        for u in (3, 4)
        for w in ("buy", "view")
    ]
    write_table(project, "sessions", pa.Table.from_pylist(found), position(1))
    sessions = sluice_library.open(tmp_path / "config").table("sessions")
    assert sessions.get(4, "buy", day(2)) == found[6]
    assert sessions.get(window_start=day(2), what="buy", user_id=4) == found[6]
    assert [(r["user_id"], r["n"]) for r in sessions.range(key_from=(4, "view"))] == [
        (4, 4),
        (4, 8),
    ]
    named = ("--key", "what=buy", "--key", "window_start=2017-01-02", "--key", "user_id=4")
    for key in (named, ("4", "buy", "2017-01-02")):
        shown = [line.split() for line in sluice("get", "sessions", *key).stdout.splitlines()]
        columns = ["user_id", "what", "window_start", "window_end", "n"]
        assert [line[1] for line in shown if line[1:] and line[1] in columns] == columns
        assert rows(sluice("get", "sessions", *key, "--json"))[0]["n"] == 8
    for wrong, why in (
        (named[:4], "each by its column's name"),
        ((*named, "4"), "each by its column's name"),
        ((), "each by its column's name"),
        (("--key", "user=4"), "unknown key column 'user'; did you mean 'user_id'?"),
        (("--key", "4"), "--key '4': write column=value"),
    ):
        refused = sluice("get", "sessions", *wrong)
        assert (refused.exit_code, why in refused.stderr) == (2, True), refused.stderr
    assert "(user_id, what, window_start)" in sluice("get", "sessions").stderr


def test_get_resolves_a_dimension_view(sluice):
    assert rows(sluice("get", "catalogue", "2", "--json")) == [
        {"product_id": 2, "name": "HAM", "brand": "none"}
    ]


def test_range_takes_one_option_for_each_key_column(sluice):
    found = rows(
        sluice(
            "range", "totals", "--key-from", "DELI", "--key-from", "2", "--key-to", "MEAT", "--json"
        )
    )
    assert [row["product_id"] for row in found] == [2, 3]
    reverse = rows(sluice("range", "totals", "--reverse", "--limit", "1", "--json"))
    assert reverse[0]["department"] == "MEAT"


def test_a_page_ends_with_the_cursor_of_the_next(sluice):
    asked = ("fetch", "visits", "--reverse", "--limit", "2", "--json")
    first = sluice(*asked)
    assert [row["window_start"][8:10] for row in rows(first)] == ["30", "03"]
    label, cursor = first.stderr.strip().rsplit(" ", 1)
    assert label == "next page: --after"
    second = sluice(*asked, "--after", cursor)
    assert [row["window_start"][8:10] for row in rows(second)] == ["02"]
    assert second.stderr == ""
    low = sluice("range", "totals", "--limit", "1", "--json")
    after = low.stderr.rsplit(" ", 1)[1].strip()
    rest = rows(sluice("range", "totals", "--after", after, "--json"))
    assert [*rows(low), *rest] == rows(sluice("range", "totals", "--json"))


def test_changes_as_rows_and_by_run(sluice):
    found = rows(sluice("changes", "leaders", "--from-version", "1", "--json"))
    assert [(r["_change_type"], r["product_id"]) for r in found] == [("delete", 3)]
    assert len(rows(sluice("changes", "leaders", "--run", "monday", "--json"))) == 4


def test_status_shows_every_table(sluice):
    out = sluice("status").stdout
    assert "shop.totals" in out
    assert "not built" in out
    found = {row["table"]: row for row in rows(sluice("status", "--json"))}
    assert found["shop.totals"]["last"]["number"] == 1
    assert found["shop.totals"]["rows"] == 4


def test_a_table_that_is_not_built_names_the_command_that_builds_it(sluice):
    result = sluice("read", "latest")
    assert result.exit_code == 2
    assert "hint: run `sluice run shop`" in result.stderr


def test_errors_have_no_trace_unless_it_is_asked_for(sluice, monkeypatch):
    result = sluice("read", "totls")
    assert (result.exit_code, "Traceback" in result.output) == (2, False)
    assert "did you mean" in result.stderr
    monkeypatch.setitem(COMMANDS, "read", ("sluice.cli.nowhere:read", ""))
    unexpected = sluice("read", "totals")
    assert unexpected.exit_code == 2
    assert unexpected.stderr.startswith("error: ModuleNotFoundError: ")
    assert CliRunner().invoke(main, ["--debug", "read", "totals"]).exception is not None


READ = "from sluice.cli.main import main; main({}, standalone_mode=False)"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import sluice.cli.main, sluice.cli.reads", "pyspark airflow great_expectations pandas"),
        ("import sluice.cli.main, sluice.operate.run, sluice.sources.origins", "pandas"),
        *(
            (READ.format(asked), "pyspark airflow great_expectations pandas")
            for asked in (
                ["status"],
                ["get", "totals", "D", "1"],
                ["read", "totals"],
                ["changes", "totals"],
            )
        ),
    ],
)
def test_reading_imports_no_engine(tmp_path, code, heavy):
    many = pa.table({"department": ["D"] * 3, "product_id": pa.array(range(3), pa.int32())})
    write_table(project_at(tmp_path), "totals", many)
    code += f"\nimport sys\nprint([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_pandas_is_there_for_whoever_converts_rows_to_it():
    code = (
        "import sys\n"
        "from sluice.cli.main import without_pandas\n"
        "without_pandas()\n"
        "import pyarrow as pa, pyarrow.dataset\n"
        "assert 'pandas' not in sys.modules\n"
        "frame = pa.table({'a': [1.5, None]}).to_pandas()\n"
        "assert pa.array(frame.a).null_count == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pipe_that_is_closed_early_is_no_error(tmp_path):
    project = project_at(tmp_path)
    many = pa.table(
        {"department": ["D"] * 50_000, "product_id": pa.array(range(50_000), pa.int32())}
    )
    write_table(project, "totals", many)
    command = [sys.executable, "-m", "sluice.cli.main", "read", "totals", "--json"]
    with subprocess.Popen(
        [*command, "--config", str(Path(tmp_path) / "config")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        assert json.loads(reading.stdout.readline())["department"] == "D"
        reading.stdout.close()
        assert reading.stderr.read() == b""
        assert reading.wait() == 0


def test_every_command_has_a_line_of_help():
    out = CliRunner().invoke(main, ["--help"]).stdout
    assert all(f"  {name} " in out and about in out for name, (_, about) in COMMANDS.items())
    assert "  top  " in out
    assert "Show the rankings of a top-k." in out
