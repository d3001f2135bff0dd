"""Any name that a file can have means that one file, in every format and way of delivery."""

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.files.files import Files
from tests.support.landed import RUN, NewLanded, folder_of
from tests.support.places import ODD_NAMES

from sluice.delta.places.folders import local_path
from sluice.delta.reading.landing import list_files
from sluice.engine.retries import naming_faults
from sluice.errors import QualityStop
from sluice.operate.run import deliver
from sluice.spark.paths import spark_path, with_real_paths

SCHEMA = "id INT, n INT"
ENDINGS = ("", ".{format}", ".txt", ".GZ", ".{format}.gz", "._COPYING_", ".", ".bz2x")


def land(folder: Path, format_: str) -> Mapping[str, int]:
    """A file of each name, with endings and without, and the number in its rows."""
    found = {}
    for nth, name in enumerate(ODD_NAMES):
        ending = ENDINGS[nth % len(ENDINGS)].replace("{format}", format_)
        path = folder / (name + ending)
        raw = content(format_, nth)
        path.parent.mkdir(parents=True, exist_ok=True)
        is_packed = ending.lower().endswith(".gz") and format_ != "parquet"
        path.write_bytes(gzip.compress(raw) if is_packed else raw)
        found[str(path)] = nth
    return found


def content(format_: str, nth: int) -> bytes:
    """A good row, and one without a key."""
    rows = [{"id": nth, "n": nth}, {"id": None, "n": nth}]
    if format_ == "parquet":
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), buffer)
        return buffer.getvalue()
    if format_ == "csv":
        return f"id,n\n{nth},{nth}\n,{nth}\n".encode()
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_names_are_read_as_that_one_file(files: Files, format_: str) -> None:
    numbers = land(files.folder, format_)
    reading = files.read(format_, SCHEMA, key=("id",))
    found = reading.rows.toArrow().to_pylist()
    places = {f.uri: str(local_path(f.uri)) for f in list_files(str(files.folder))}
    told = [(r["id"], r["n"], numbers[places[r["_sluice_file"]]]) for r in found]
    expected = [(id_, nth, nth) for nth in range(len(ODD_NAMES)) for id_ in (nth, None)]
    assert sorted(told, key=repr) == sorted(expected, key=repr)
    assert reading.warnings == ()


def test_a_stream_takes_files_of_every_name_once(new_landed: NewLanded) -> None:
    declared = (
        "sources:\n  events: {delivery: stream, path: landing/in, format: json, key: [id], "
        f"schema: '{SCHEMA}'}}\n"
    )
    lake = new_landed(declared)
    land(lake.landing / "in", "json")
    (lake.landing / "in" / "again").symlink_to(".")
    for outcomes in (["committed", "committed"], ["unchanged", "unchanged"]):
        reports = list(deliver(lake.spark, lake.project, lake.table("events"), RUN, ()))
        assert [r.outcome for r in reports] == outcomes
        assert f"{lake.landing}/in/again can't be read: it is a link" in reports[0].warnings[0]
    assert sorted(r["id"] for r in lake.rows("events")) == list(range(len(ODD_NAMES)))
    uris = {f.uri for f in list_files(str(lake.landing / "in")) if not f.fault}
    assert {r["file"] for r in lake.quarantine()} == uris


def test_a_log_of_changes_is_in_the_order_of_the_names_themselves(new_landed: NewLanded) -> None:
    declared = (
        "dimensions:\n  things: {path: 'landing/[things]/', format: json, key: [id], "
        "schema: 'id INT, v INT, op STRING', delivery: changes, "
        "change: {column: op, insert: [c], delete: [d]}}\n"
    )
    lake = new_landed(declared)
    in_order = ["\x01", "a #", "a!", "a[", "a\\", "ä"]
    for nth in (2, 0, 1, 5, 3, 4):
        lake.land_beside("[things]", {in_order[nth]: [{"id": 1, "v": nth, "op": "c"}]})
        lake.load()
        if nth == 1:
            assert [r["v"] for r in lake.rows("things")] == [2]
    assert [r["v"] for r in lake.rows("things")] == [5]


@pytest.mark.usefixtures("real_spark")
def test_columns_are_taken_of_files_of_odd_names(new_landed: NewLanded) -> None:
    path = "landing/{interval_start:%Y-%m-%d}/*.json"
    declared = (
        f"sources:\n  events: {{path: '{path}', format: json, schema: 'id INT', evolve: true}}\n"
    )
    lake = new_landed(declared)
    lake.land_beside(
        folder_of(0), {"k\\l.json": [{"id": 1, "more": "x"}], "[1]:.json": [{"id": 2}]}
    )
    lake.land_beside(folder_of(0), {"no.txt": [{"id": 3}]})
    lake.deliver()
    assert sorted((r["id"], r["more"]) for r in lake.stored("events")) == [(1, "x"), (2, None)]


@pytest.mark.usefixtures("real_spark")
def test_a_fault_that_spark_meets_names_the_file_itself(files: Files) -> None:
    (files.folder / "a: [1].csv").write_text("id,n\n1,1\n2" + ",x" * 30_000 + "\n")
    told = pytest.raises(QualityStop, match=r"shop\.events: .* file /\S+/a: \[1\]\.csv\.")
    with told, naming_faults("shop.events"):
        files.read("csv", SCHEMA).rows.collect()


def test_words_of_spark_name_the_files_that_it_was_given(tmp_path: Path) -> None:
    for name in ODD_NAMES:
        uri = str(tmp_path / name)
        try:
            uri.encode()
        except UnicodeEncodeError:
            continue
        path = spark_path(uri)
        assert path.isascii()
        assert path.isprintable()
        words = f"Can't read file:{quote(path)}. It is broken."
        assert with_real_paths(words) == f"Can't read {uri}. It is broken."
    assert with_real_paths("no file:///x/a%20b%C3%A4.csv, file:/y.") == "no /x/a bä.csv, /y."


def test_in_an_object_store_a_name_is_no_pattern_either() -> None:
    written = "s3://shop/in/a\\[1\\]\\{b\\}\\*\\?\\\\ c:d.csv"
    assert spark_path("s3://shop/in/a[1]{b}*?\\ c:d.csv") == written
