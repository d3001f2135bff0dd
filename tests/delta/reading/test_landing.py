"""Listings of landing folders: every name, each file once, nothing is passed over in silence."""

import os
from pathlib import Path

import pytest
from tests.support.places import ODD_NAMES, as_nobody, open_folder, put_socket

from sluice.delta.places.folders import LandedFile, local_path
from sluice.delta.reading.landing import (
    check_unchanged,
    fingerprint,
    list_delivered,
    list_files,
    stamps,
)
from sluice.errors import ExitCode, Retryable, UsageError


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def listed(folder: Path | str) -> list[str]:
    """Names below the folder."""
    return [_below(f, folder) for f in list_files(str(folder)) if not f.fault]


def faults(folder: Path) -> dict[str, str]:
    return {_below(f, folder): f.fault for f in list_files(str(folder)) if f.fault}


def _below(file: LandedFile, folder: Path | str) -> str:
    place = local_path(file.uri)
    assert place is not None
    return place.removeprefix(f"{folder}/")


# Names


def test_every_name_is_listed_and_leads_to_its_file(tmp_path: Path) -> None:
    for name in ODD_NAMES:
        put(tmp_path / name, name.encode("utf-8", "backslashreplace").decode())
    files = list_files(str(tmp_path))
    assert len(files) == len({f.uri for f in files}) == len(ODD_NAMES)
    assert set(listed(tmp_path)) == set(ODD_NAMES)
    for file in files:
        place = local_path(file.uri)
        assert place is not None
        assert os.stat(place).st_size == file.size  # noqa: PTH116
        file.uri.encode()


def test_a_name_that_is_no_utf8_is_written_as_a_uri_and_no_other_file_is(tmp_path: Path) -> None:
    put(tmp_path / os.fsdecode(b"caf\xe9"))
    put(tmp_path / "caf%E9")
    assert [f.uri for f in list_files(str(tmp_path))] == [
        f"{tmp_path}/caf%E9",
        f"file://{tmp_path}/caf%E9",
    ]


def test_a_name_with_line_breaks_is_one_line_of_a_message(tmp_path: Path) -> None:
    put(tmp_path / "a\n\u2028Ünd so b")
    assert [f.shown for f in list_files(str(tmp_path))] == [f"{tmp_path}/a\\n\\u2028Ünd so b"]


def test_in_a_path_the_star_alone_is_a_pattern(tmp_path: Path) -> None:
    for name in ("[in]/a.csv", "[in]/b.txt", "[in]/x/c.csv", "i/d.csv", "[in]/[*].csv"):
        put(tmp_path / name)
    found = [_below(f, tmp_path) for f in list_files(f"{tmp_path}/[in]/*.csv")]
    assert found == ["[in]/[*].csv", "[in]/a.csv", "[in]/x/c.csv"]
    assert [_below(f, tmp_path) for f in list_files(f"{tmp_path}/[in]/a.csv")] == ["[in]/a.csv"]
    assert [_below(f, tmp_path) for f in list_files(f"{tmp_path}/[in]/*/")] == ["[in]/x/c.csv"]
    assert [_below(f, tmp_path) for f in list_files(f"{tmp_path}/i*/")] == ["i/d.csv"]


def test_names_that_begin_with_an_underscore_or_a_dot_are_no_data(tmp_path: Path) -> None:
    for name in ("_a", ".b", "_c/d", ".e/f", "g_/h.", "i"):
        put(tmp_path / name)
    assert listed(tmp_path) == ["g_/h.", "i"]


def test_a_uri_of_a_local_folder_is_its_path(tmp_path: Path) -> None:
    put(tmp_path / "a")
    assert list_files(f"file://{tmp_path}") == list_files(str(tmp_path))


def test_what_is_not_there_has_no_files(tmp_path: Path) -> None:
    put(tmp_path / "a")
    assert list_files(str(tmp_path / "b")) == list_files(str(tmp_path / "a" / "b")) == []


# Links


def test_a_folder_that_links_to_itself_is_listed_once_and_the_link_is_reported(
    tmp_path: Path,
) -> None:
    put(tmp_path / "in" / "a")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "above").symlink_to("..")
    assert listed(tmp_path / "in") == ["a"]
    assert faults(tmp_path / "in") == {
        "above": "it is a link to a folder that contains it",
        "again": "it is a link to a folder that contains it",
    }


def test_folders_that_link_to_each_other_are_listed_once(tmp_path: Path) -> None:
    put(tmp_path / "a" / "x")
    put(tmp_path / "b" / "y")
    (tmp_path / "a" / "to_b").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "to_a").symlink_to(tmp_path / "a")
    assert listed(tmp_path) == ["a/x", "b/y"]
    assert sorted(faults(tmp_path)) == ["a/to_b", "b/to_a"]


def test_a_file_that_several_links_lead_to_is_delivered_once_by_its_real_path(
    tmp_path: Path,
) -> None:
    put(tmp_path / "in" / "a")
    for nth, target in enumerate(("in/a", "in", "share/b", "share")):
        put(tmp_path / "share" / "b")
        (tmp_path / "in" / f"link{nth}").symlink_to(tmp_path / target)
    (tmp_path / "in" / "link1").unlink()
    assert [f.uri for f in list_files(str(tmp_path / "in"))] == [
        f"{tmp_path}/in/a",
        f"{tmp_path}/share/b",
    ]


def test_links_that_lead_out_of_the_landing_folder_are_followed(tmp_path: Path) -> None:
    put(tmp_path / "share" / "x" / "a")
    put(tmp_path / "share" / "_x" / "b")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x").symlink_to(tmp_path / "share" / "x")
    (tmp_path / "in" / "y").symlink_to("../share/_x/b")
    (tmp_path / "in" / "_z").symlink_to(tmp_path / "share")
    assert [f.uri for f in list_files(str(tmp_path / "in"))] == [
        f"{tmp_path}/share/_x/b",
        f"{tmp_path}/share/x/a",
    ]


def test_a_pattern_is_about_the_links_name_also_where_the_file_has_another(tmp_path: Path) -> None:
    put(tmp_path / "in" / "old" / "a.txt")
    (tmp_path / "in" / "new").mkdir()
    (tmp_path / "in" / "new" / "a.csv").symlink_to("../old/a.txt")
    (tmp_path / "in" / "new" / "more.csv").symlink_to("../old")
    found = list_files(f"{tmp_path}/in/new/*.csv*")
    assert [f.uri for f in found] == [f"{tmp_path}/in/old/a.txt"]


def test_a_landing_folder_that_is_a_link_itself_keeps_its_name(tmp_path: Path) -> None:
    put(tmp_path / "real" / "a")
    (tmp_path / "real" / "b").symlink_to("a")
    (tmp_path / "in").symlink_to("real")
    assert [f.uri for f in list_files(str(tmp_path / "in"))] == [f"{tmp_path}/in/a"]


def test_links_to_nothing_and_to_themselves_are_reported(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "self").symlink_to("self")
    assert faults(tmp_path) == {
        "gone": "it is a broken link (nowhere)",
        "self": "it can't be examined: Too many levels of symbolic links",
    }
    (file,) = list_files(str(tmp_path / "gone"))
    assert file == LandedFile(f"{tmp_path}/gone", 0, 0, "it is a broken link (nowhere)")


# What is no file, or may not be read


def test_pipes_sockets_and_devices_are_reported_and_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    put_socket(tmp_path / "socket.csv")
    (tmp_path / "device.csv").symlink_to("/dev/null")
    put(tmp_path / "a.csv")
    assert listed(tmp_path) == ["a.csv"]
    found = {Path(f.uri).name: f.fault for f in list_files(str(tmp_path)) if f.fault}
    assert found == {
        "null": "it is a device",
        "pipe.csv": "it is a pipe",
        "socket.csv": "it is a socket",
    }


def test_a_file_that_may_not_be_read_is_reported_and_is_another_once_it_may() -> None:
    with open_folder() as folder:
        put(folder / "a").chmod(0)
        put(folder / "b")
        with as_nobody():
            before = list_files(str(folder))
        assert [f.fault for f in before] == ["permission denied", ""]
        (folder / "a").chmod(0o644)
        with as_nobody():
            after = list_files(str(folder))
        assert [f.fault for f in after] == ["", ""]
        assert fingerprint(before, "x") != fingerprint(after, "x")


def test_files_of_a_folder_that_shows_but_their_names_are_reported() -> None:
    with open_folder() as folder:
        put(folder / "names" / "a")
        (folder / "names").chmod(0o744)
        with as_nobody():
            assert faults(folder) == {"names/a": "permission denied"}
        (folder / "names").chmod(0o755)


@pytest.mark.parametrize("path", ["shut", "shut/below", "link", "shut*"])
def test_a_folder_that_may_not_be_read_stops_by_its_table(path: str) -> None:
    with open_folder() as folder:
        put(folder / "in" / "shut" / "below" / "a")
        (folder / "in" / "link").symlink_to("shut")
        (folder / "in" / "shut").chmod(0)
        told = pytest.raises(UsageError, match=rf"^shop\.events: .* the folder {folder}/in/shut")
        with as_nobody(), told as stopped:
            list_delivered(f"{folder}/in/{path}", "shop.events")
        assert stopped.value.exit_code == ExitCode.CONFIGURATION
        with as_nobody(), pytest.raises(UsageError, match="no permission to read"):
            list_delivered(f"{folder}/in", "shop.events")
        (folder / "in" / "shut").chmod(0o755)


def test_a_store_that_can_not_be_listed_now_is_worth_a_retry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("sluice.delta.places.folders.os.scandir", broken)
    with pytest.raises(Retryable, match=r"shop\.events: .* can't be listed now: .*Input/output"):
        list_delivered(str(tmp_path), "shop.events")


def test_a_folder_that_goes_while_it_is_listed_has_no_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path / "a")
    put(tmp_path / "folder" / "b")
    original = os.scandir

    def going(path: str) -> object:
        if path.endswith("folder"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return original(path)

    monkeypatch.setattr("sluice.delta.places.folders.os.scandir", going)
    assert listed(tmp_path) == ["a"]


# Changes while files are read


def test_a_file_that_is_written_replaced_or_removed_meanwhile_is_named(tmp_path: Path) -> None:
    for change in ("written", "replaced", "removed", "left"):
        a, b = put(tmp_path / change / "a"), put(tmp_path / change / "b")
        files = list_files(str(tmp_path / change))
        before = stamps(files)
        if change == "written":
            a.write_text("xy")
        if change == "replaced":
            os.utime(b, ns=(a.stat().st_atime_ns, a.stat().st_mtime_ns))
            b.rename(a)
        if change == "removed":
            a.unlink()
        if change == "left":
            check_unchanged(files, before, "shop.events")
            continue
        with pytest.raises(Retryable, match=rf"shop\.events: {a}.* changed while it was read"):
            check_unchanged(files, before, "shop.events")
