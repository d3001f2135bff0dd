"""Files that are no files, lie about what they are, or change while they are read."""

import gzip
import io
import os
import tarfile
from pathlib import Path
from random import SystemRandom
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.files.files import Files
from tests.support.lake import HEAD
from tests.support.landed import Landed, NewLanded, day, folder_of
from tests.support.places import as_nobody, open_folder, put_socket

from sluice.delta.places.folders import LandedFile
from sluice.delta.reading import landing
from sluice.dimensions import load
from sluice.errors import ExitCode, QualityStop, Retryable, UsageError
from sluice.sources import replacement
from sluice.sources.delivery import plan_delivery

PATH = "landing/{interval_start:%Y-%m-%d}/"
SOURCE = f"sources:\n  events: {{path: '{PATH}', format: csv, schema: 'id INT'}}\n"
DIMENSION = (
    "dimensions:\n  things: {path: landing/things/, format: csv, schema: 'id INT', key: [id]}\n"
)
ZIP = b"PK\x03\x04" + bytes(200)


@pytest.fixture
def lake(new_landed: NewLanded) -> Landed:
    return new_landed(SOURCE + DIMENSION)


def parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"id": [1]}), path)
    raw = path.read_bytes()
    path.unlink()
    return raw


def archive(row: str, mode: Literal["w", "w:gz"]) -> bytes:
    """An archive of tar with one file."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode=mode) as tar:
        member = tarfile.TarInfo("a")
        member.size = len(row)
        tar.addfile(member, io.BytesIO(row.encode()))
    return made.getvalue()


# No files


def test_what_is_no_file_is_in_quarantine_by_its_path_and_the_rest_arrives(lake: Landed) -> None:
    folder = lake.landing / folder_of(0)
    lake.land(folder_of(0), a_csv="id\n1\n", b_csv="id\n2\n")
    os.mkfifo(folder / "pipe.csv")
    put_socket(folder / "socket.csv")
    (folder / "link.csv").symlink_to("nowhere")
    (folder / "again").symlink_to(folder)
    (report,) = lake.deliver()
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 2]
    why = {
        "again": "it is a link to a folder that contains it",
        "link.csv": "it is a broken link (nowhere)",
        "pipe.csv": "it is a pipe",
        "socket.csv": "it is a socket",
    }
    assert {q["file"]: q["reason"] for q in lake.quarantine()} == {
        f"{folder}/{name}": f"the file can't be read: {what}" for name, what in why.items()
    }
    assert report.warnings == tuple(
        f"shop.events: {folder}/{name} can't be read: {what}" for name, what in why.items()
    )
    assert (report.rows_in, report.quarantined) == (6, 4)
    (folder / "link.csv").unlink()
    (folder / "link.csv").symlink_to("a.csv")
    assert lake.deliver()[0].quarantined == 3


def test_forbidden_files_are_in_quarantine(lake: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    original = landing.list_files

    def listed(path: str) -> list[LandedFile]:
        with as_nobody():
            return original(path)

    monkeypatch.setattr(landing, "list_files", listed)
    with open_folder() as shared:
        lake.declare(HEAD + SOURCE.replace("landing/{", f"{shared}/{{"))
        folder = shared / folder_of(0)
        folder.mkdir()
        (folder / "a.csv").write_text("id\n1\n")
        (folder / "b.csv").write_text("id\n2\n")
        (folder / "b.csv").chmod(0)
        (report,) = lake.deliver()
        assert report.warnings == (f"shop.events: {folder}/b.csv can't be read: permission denied",)
        assert [r["id"] for r in lake.rows("events")] == [1]
        (folder / "b.csv").chmod(0o644)
        lake.deliver()
        assert sorted(r["id"] for r in lake.rows("events")) == [1, 2]
        assert lake.quarantine() == []


def test_a_project_may_lie_in_a_folder_with_braces(spark: SparkSession, tmp_path: Path) -> None:
    lake = Landed(tmp_path / "{x} [y]", SOURCE, spark)
    lake.land(folder_of(0), a_csv="id\n1\n")
    (file,) = plan_delivery(lake.project, lake.table("events"), day(0)).files
    assert file.uri == f"{lake.landing}/{folder_of(0)}/a.csv"


# Lies


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_files_of_another_kind_are_quarantined_by_name(files: Files, format_: str) -> None:
    row = {"csv": "id\n7\n", "json": '{"id":7}\n'}[format_]
    lies = {
        f"a.{format_}": parquet(files.folder / "x"),
        f"b.{format_}.gz": ZIP,
        f"c.{format_}": gzip.compress(row.encode()),
        f"d.{format_}.gz": row.encode(),
        f"e.{format_}.bz2": gzip.compress(row.encode()),
        f"f.{format_}": bytes(5000),
        f"g.{format_}.gz": gzip.compress(bytes(5000)),
        f"h.{format_}": b"%PDF-1.7\n...",
        f"i.{format_}": archive(row, "w"),
        f"j.{format_}.gz": archive(row, "w:gz"),
        f"k.{format_}.gz": gzip.compress(gzip.compress(row.encode())),
        f"l.{format_}": b"PK\x05\x06" + bytes(18),
        f"m.{format_}": b"7z\xbc\xaf'\x1c\x00\x04" + bytes(300),
        f"n.{format_}": b"ORC\n" + bytes(range(256)) * 9,
        f"o.{format_}": row.encode("utf-16"),
    }
    for name, raw in lies.items():
        (files.folder / name).write_bytes(raw)
    (files.folder / f"z.{format_}").write_text(row)
    found = files.read(format_, "id INT").rows.toArrow().to_pylist()
    assert [r["id"] for r in found if r["_sluice_reason"] is None] == [7]
    why = {r["_sluice_file"]: r["_sluice_reason"] for r in found if r["_sluice_reason"]}
    reasons = [
        f"it is Parquet, though its source is {format_}",
        "it is a ZIP archive, though its name ends with .gz",
        f"it is gzip, though its source is {format_}",
        "zlib inflate failed: incorrect header check",
        "it is gzip, though its name ends with .bz2",
        "it holds nothing but zeros",
        "it holds nothing but zeros",
        f"it is PDF, though its source is {format_}",
        f"it is a tar archive, though its source is {format_}",
        f"it holds a tar archive within gzip, though its source is {format_}",
        f"it holds gzip within gzip, though its source is {format_}",
        f"it is a ZIP archive, though its source is {format_}",
        f"it is a 7z archive, though its source is {format_}",
        "it is not text",
        f"it is text in UTF-16, though its source is {format_}",
    ]
    assert why == {
        f"{files.folder}/{name}": f"the file can't be read: {what}"
        for name, what in zip(lies, reasons, strict=True)
    }


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_compressed_files_that_break_off_are_quarantined(files: Files, format_: str) -> None:
    row = {"csv": "id\n7\n", "json": '{"id":7}\n'}[format_]
    long = row + SystemRandom().randbytes(1_500_000).hex() + "\n"
    whole = gzip.compress(long.encode())
    for name, raw in {"cut": whole[:-100], "bits": whole[:-8] + bytes(8)}.items():
        (files.folder / f"{name}.{format_}.gz").write_bytes(raw)
    (files.folder / f"z.{format_}").write_text(row)
    found = files.read(format_, "id INT").rows.toArrow().to_pylist()
    assert [r["id"] for r in found if r["_sluice_reason"] is None] == [7]
    assert [r["_sluice_reason"] for r in found if r["_sluice_reason"]] == [
        "the file can't be read: zlib inflate failed: incorrect data check",
        "the file can't be read: Truncated compressed stream",
    ]


def test_a_file_that_is_no_parquet_is_quarantined_whole_by_its_name(files: Files) -> None:
    good = parquet(files.folder / "x")
    lies = {
        "a.parquet": b"id\n7\n",
        "b.parquet": b"PAR1",
        "c.parquet": bytes(5000),
        "d.parquet": gzip.compress(good),
        "e.parquet": good[:-9] + bytes(9),
        "f.parquet": b"",
    }
    for name, raw in lies.items():
        (files.folder / name).write_bytes(raw)
    (files.folder / "z.parquet").write_bytes(good)
    found = files.read("parquet", "id INT").rows.toArrow().to_pylist()
    assert [r["id"] for r in found if r["_sluice_reason"] is None] == [1]
    why = {r["_sluice_file"]: r["_sluice_reason"] for r in found if r["_sluice_reason"]}
    assert sorted(why) == [f"{files.folder}/{name}" for name in lies]
    assert all(reason.startswith("the file can't be read: ") for reason in why.values())


@pytest.mark.usefixtures("real_spark")
def test_text_with_zeros_is_text(files: Files) -> None:
    padded = "ab" + "\0" * 30
    files.put(a_csv=f"id,t\n1,{padded}\n2,é\n".encode("latin-1"), b_csv=f"id,t\n3,{padded}é\n")
    rows, bad = files.rows("csv", "id INT, t STRING")
    assert rows == [(1, padded), (3, f"{padded}é")]
    assert [reason for reason, _ in bad] == ["column t has bytes that are invalid in the encoding"]


def test_a_csv_without_a_header_is_looked_at_too(files: Files) -> None:
    files.put(a_csv=bytes(100), b_csv="7\n", c_csv=ZIP)
    rows, bad = files.rows("csv", "id INT", options={"header": "false"})
    assert rows == [(7,)]
    assert [reason for reason, _ in bad] == [
        "the file can't be read: it holds nothing but zeros",
        "the file can't be read: it is a ZIP archive, though its source is csv",
    ]


def test_a_page_of_the_web_refuses_the_delivery_by_name(files: Files) -> None:
    files.put(a_csv="<html>\n<body>no such report</body>\n", b_csv="id\n1\n")
    with pytest.raises(QualityStop, match=r"a\.csv lacks the declared column.* id; it has <html>"):
        files.read("csv", "id INT")


@pytest.mark.parametrize("what", ["pipe", "link", "lie"])
def test_a_dimension_is_not_loaded_without_one_of_its_files(lake: Landed, what: str) -> None:
    lake.land("things", a_csv="id\n1\n")
    bad = lake.landing / "things" / "b.csv"
    if what == "pipe":
        os.mkfifo(bad)
    if what == "link":
        bad.symlink_to("nowhere")
    if what == "lie":
        bad.write_bytes(ZIP)
    with pytest.raises(QualityStop, match=rf"shop\.things: {bad} can't be read: it is a "):
        lake.load()


# Changes


def test_changing_files_are_read_again(lake: Landed, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.land(folder_of(0), a_csv="id\n1\n", b_csv="id\n2\n")
    original, path = replacement.read_delivery, lake.landing / folder_of(0) / "a.csv"

    def changing(*given: Any) -> Any:
        found = original(*given)
        if path.read_text() == "id\n1\n":
            path.write_text("id\n1\n11\n")
        return found

    monkeypatch.setattr(replacement, "read_delivery", changing)
    monkeypatch.setattr("sluice.engine.retries.PAUSES", (0.0,))
    (report,) = lake.deliver()
    assert sorted(r["id"] for r in lake.rows("events")) == [1, 2, 11]
    assert report.warnings == (
        f"tried again after 0 s: shop.events: {path} changed while it was read",
    )
    assert lake.deliver()[0].outcome == "unchanged"


def test_a_file_that_goes_before_it_is_read_is_left_out_by_the_next_attempt(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.land(folder_of(0), a_csv="id\n1\n", b_csv="id\n2\n")
    original, path = replacement.read_delivery, lake.landing / folder_of(0) / "a.csv"

    def going(*given: Any) -> Any:
        path.unlink(missing_ok=True)
        return original(*given)

    monkeypatch.setattr(replacement, "read_delivery", going)
    monkeypatch.setattr("sluice.engine.retries.PAUSES", (0.0,))
    (report,) = lake.deliver()
    assert [r["id"] for r in lake.rows("events")] == [2]
    assert report.warnings == (
        f"tried again after 0 s: shop.events: {path}: it disappeared before it was read",
    )
    assert lake.noted() == {day(0): (1, 1, 0)}


@pytest.mark.parametrize("is_source", [True, False])
def test_a_file_that_never_rests_is_named_and_nothing_of_it_is_committed(
    lake: Landed, monkeypatch: pytest.MonkeyPatch, is_source: bool
) -> None:
    folder, module = (folder_of(0), replacement) if is_source else ("things", load)
    name = "read_delivery" if is_source else "_read"
    lake.land(folder, a_csv="id\n1\nbad\n")
    original, path = getattr(module, name), lake.landing / folder / "a.csv"

    def growing(*given: Any) -> Any:
        found = original(*given)
        path.write_text(path.read_text() + "1\n")
        return found

    monkeypatch.setattr(module, name, growing)
    monkeypatch.setattr("sluice.engine.retries.PAUSES", (0.0,))
    with pytest.raises(Retryable, match=rf"{path} changed while it was read") as told:
        lake.deliver() if is_source else lake.load()
    assert told.value.exit_code == ExitCode.RETRY
    assert "nothing was committed" in (told.value.hint or "")
    assert lake.noted() == {}
    assert not list(lake.landing.parent.rglob("*__quarantine"))


def test_a_folder_that_may_not_be_read_stops_the_interval_by_its_source(
    lake: Landed, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: str) -> list[LandedFile]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(landing, "list_files", refused)
    told = r"^shop\.events: there is no permission to read the folder .*2024-01-01/?,"
    with pytest.raises(UsageError, match=told) as stopped:
        lake.deliver()
    assert stopped.value.exit_code == ExitCode.CONFIGURATION
    with pytest.raises(
        UsageError, match=r"^shop\.things: there is no permission to read the folder .*things/?,"
    ):
        lake.load()
    assert lake.noted() == {}
