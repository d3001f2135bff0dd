"""Columns of commands that show rows: which come first, which fit, and which are chosen."""

import csv
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from contextlib import suppress

import click
import click.testing
import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.read.tables import day, position, project_at, write_table

from sluice.cli.main import main

MEASURES = [f"measure_{i:02}" for i in range(12)]
CONFIG = f"""
pipeline: shop
schedule: "@daily"
start_date: 2017-01-01
sources:
  lines:
    path: "landing/lines/"
    format: parquet
    schema: >-
      note STRING, product_id INT, department STRING, at TIMESTAMP,
      {", ".join(f"{name} BIGINT" for name in MEASURES)}
    time: at
    key: [product_id]
views:
  best:
    kind: topk
    from: lines
    partition_by: [department]
    order_by: [measure_00 desc]
    limit: 3
  unranked: {{kind: topk, from: lines, partition_by: [department], order_by: [measure_00 desc],
    limit: 3, rank: false}}
  stays: {{kind: window_store, from: lines, key: [product_id], time: at}}
"""
ASKED = {
    "top": ("top", "best"),
    "top of a view without ranks": ("top", "unranked"),
    "get": ("get", "best", "DELI", "7"),
    "fetch": ("fetch", "stays"),
    "read": ("read", "best"),
    "range": ("range", "best"),
    "changes": ("changes", "best"),
    "changes as maps": ("changes", "best", "--as", "map"),
}
LEAD = {
    "top": ["rank", "department", "product_id"],
    "top of a view without ranks": ["rank", "department", "product_id"],
    "get": ["rank", "department", "product_id"],
    "fetch": ["product_id", "window_start"],
    "read": ["rank", "department", "product_id"],
    "range": ["rank", "department", "product_id"],
    "changes": ["_change_type", "_commit_version", "rank", "department", "product_id"],
    "changes as maps": ["_commit_version", "rank", "department", "product_id"],
}
commands = pytest.mark.parametrize("asked", ASKED)
listing = pytest.mark.parametrize("asked", [name for name in ASKED if name != "get"])


def lines(**more):
    measures = {name: pa.array([10**8, 10**7], pa.int64()) for name in MEASURES}
    base = {"note": ["dear", "cheap"], "product_id": pa.array([7, 8], pa.int32())}
    return pa.table({**base, **more, **measures})


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wide")
    project = project_at(folder, CONFIG)
    group = {"department": ["DELI", "DELI"]}
    ranked = lines(**group).append_column("rank", pa.array([1, 2], pa.int32()))
    write_table(project, "best", ranked, position(1))
    write_table(project, "unranked", lines(**group), position(1))
    starts = pa.array([day(2), day(3)], pa.timestamp("us", tz="UTC"))
    write_table(project, "stays", lines(window_start=starts), position(1, horizon=day(4)))
    return str(folder / "config")


@pytest.fixture
def sluice(shop):
    def run(*words):
        return CliRunner().invoke(main, [*words, "--config", shop])

    return run


@pytest.fixture
def terminal(shop, monkeypatch):
    """A command's output in a terminal of that width."""

    def run(width, *words):
        env = {"COLUMNS": str(width), "TERM": "xterm"}
        return CliRunner(env=env).invoke(main, [*words, "--config", shop])

    monkeypatch.setattr(click.testing._NamedTextIOWrapper, "isatty", lambda _: True)
    return run


def columns_of(text):
    """The columns that a table shows, side by side or one below the other."""
    shown = click.unstyle(text).splitlines()
    head = next((line for line in shown if line.startswith("┃")), None)
    if head:
        return head.replace("┃", " ").split()
    return [line.split("│")[1].strip() for line in shown if line.startswith("│")]


def rows_of(result):
    """The rows of a command's JSON lines."""
    assert result.exit_code == 0, result.stderr
    found = [json.loads(line) for line in result.stdout.splitlines()]
    if "top" not in found[0]:
        return found
    return [row for line in found for row in line["top"].values()]


@commands
def test_what_identifies_a_row_comes_first_and_the_rest_as_declared(sluice, asked):
    found = columns_of(sluice(*ASKED[asked]).stdout)
    assert found[: len(LEAD[asked])] == LEAD[asked]
    rest = found[len(LEAD[asked]) :]
    assert rest == ["note", *MEASURES]


@listing
def test_a_terminal_of_80_columns_shows_what_fits_and_names_the_rest(terminal, asked):
    text = click.unstyle(terminal(80, *ASKED[asked]).stdout)
    everything = [*LEAD[asked], "note", *MEASURES]
    shown = columns_of(text)
    hidden = everything[len(shown) :]
    assert shown == everything[: len(shown)]
    assert hidden
    said = " ".join(text.partition("┘")[2].split())
    assert said == (
        f"{len(hidden)} columns hidden: {', '.join(hidden)} "
        "--columns A,B chooses columns, --json shows all."
    )
    assert 60 < max(map(len, text.splitlines())) <= 80


def test_a_terminal_of_200_columns_shows_more(terminal):
    some, more = (columns_of(terminal(width, *ASKED["top"]).stdout) for width in (80, 200))
    assert more[: len(some)] == some
    assert len(more) > 2 * len(some)
    assert "hidden" not in terminal(300, *ASKED["top"]).stdout


def test_one_row_stands_upright_with_all_columns(terminal):
    text = terminal(40, *ASKED["get"]).stdout
    assert columns_of(text) == [*LEAD["get"], "note", *MEASURES]
    assert "hidden" not in text


def test_a_real_terminal_gives_its_width(shop):
    command = [sys.executable, "-m", "sluice.cli.main", "top", "best", "--config", shop]
    env = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    subprocess.run(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs, check=True)
    os.close(theirs)
    text = click.unstyle(read_to_the_end(ours))
    os.close(ours)
    assert columns_of(text.replace("\r", ""))[:3] == LEAD["top"]
    assert "columns hidden: " in text
    assert max(map(len, text.splitlines())) <= 80


def read_to_the_end(terminal):
    parts = []
    with suppress(OSError):  # Linux refuses the read after the last one
        while part := os.read(terminal, 65_536):
            parts.append(part)
    return b"".join(parts).decode()


@commands
def test_columns_are_chosen_in_their_order(sluice, asked):
    chosen = ["measure_03", "department", "note"] if asked != "fetch" else ["measure_03", "note"]
    some = sluice(*ASKED[asked], "--columns", ",".join(chosen))
    assert columns_of(some.stdout) == chosen
    for row in rows_of(sluice(*ASKED[asked], "--columns", ",".join(chosen), "--json")):
        assert list(row) == chosen
        assert row["measure_03"] in (10**8, 10**7)
        assert row["note"] in ("dear", "cheap")
    out = sluice(*ASKED[asked], "--columns", ",".join(chosen), "--format", "csv").stdout
    assert next(csv.reader(out.splitlines())) == chosen


@commands
def test_columns_may_be_repeated_and_are_shown_once(sluice, asked):
    words = ("--columns", "note, measure_01", "--columns", "product_id,note")
    found = columns_of(sluice(*ASKED[asked], *words).stdout)
    assert found == ["note", "measure_01", "product_id"]


@commands
@pytest.mark.parametrize("format_", ["table", "json"])
def test_an_unknown_column_is_one_clear_error(sluice, asked, format_):
    words = ("--columns", "note,mesure_01", "--format", format_)
    result = sluice(*ASKED[asked], *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "unknown column 'mesure_01'; did you mean 'measure_01'? columns are: " in result.stderr
    for name in (*LEAD[asked], "note", *MEASURES):
        assert name in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_rank_of_a_view_without_ranks_can_be_chosen(sluice):
    words = (*ASKED["top of a view without ranks"], "--columns", "rank,note")
    assert rows_of(sluice(*words, "--json")) == [
        {"rank": 1, "note": "dear"},
        {"rank": 2, "note": "cheap"},
    ]
    assert sluice(*words, "--format", "csv").stdout.split() == ["rank,note", "1,dear", "2,cheap"]


def test_json_and_csv_keep_the_declared_order(sluice):
    declared = ["note", "product_id", "department", *MEASURES, "rank"]
    assert [list(row) for row in rows_of(sluice(*ASKED["read"], "--json"))] == [declared] * 2
    out = sluice(*ASKED["top"], "--format", "csv").stdout
    assert next(csv.reader(out.splitlines())) == declared


def test_a_version_that_lacks_a_key_column_is_still_shown(tmp_path):
    project = project_at(tmp_path, CONFIG)
    write_table(project, "stays", lines().drop_columns(["product_id"]), position(1))
    words = ("read", "stays", "--config", str(tmp_path / "config"))
    assert columns_of(CliRunner().invoke(main, words).stdout) == ["note", *MEASURES]


def test_columns_of_a_change_can_be_chosen(sluice):
    words = (*ASKED["changes"], "--columns", "product_id,_change_type", "--json")
    assert rows_of(sluice(*words)) == [
        {"product_id": 7, "_change_type": "insert"},
        {"product_id": 8, "_change_type": "insert"},
    ]


def test_maps_with_chosen_columns_keep_version_and_partition(sluice):
    out = sluice(*ASKED["changes as maps"], "--columns", "_commit_version,note", "--json").stdout
    assert json.loads(out) == {
        "_commit_version": 0,
        "partition": {"department": "DELI"},
        "top": {"1": {"note": "dear"}, "2": {"note": "cheap"}},
    }
