"""Commits written here survive a power cut: what a visible entry names is on the disk before it.

The order of calls is recorded. A disk may keep any name that was linked or renamed, and is sure to
keep only what was synced before.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from pyarrow.fs import FileSystem, LocalFileSystem
from tests.delta.tables import ID_AND_V, Small, by_marking

from sluice.delta.places import folders
from sluice.delta.places.folders import replace_file

Call = tuple[str, str]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every sync of a file or folder, and every link, in order."""
    found, sync, link = list[Call](), os.fsync, os.link

    def syncing(descriptor: int) -> None:
        found.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        sync(descriptor)

    def linking(source: Any, target: Any) -> None:
        found.append(("link", str(target)))
        link(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "link", linking)
    return found


def test_an_entry_is_linked_once_all_that_it_names_is_synced(
    tmp_path: Path, calls: list[Call]
) -> None:
    small = Small.create(tmp_path, ID_AND_V, ["id"], by_marking(None))  # type: ignore[arg-type]
    for first in range(0, 100, 25):
        small.commit(*[("insert", {"id": i, "v": f"v{i}"}) for i in range(first, first + 25)])
    calls.clear()
    done = small.commit(("update", {"id": 3, "v": "new"}), ("insert", {"id": 200, "v": "new"}))
    log = Path(small.uri, "_delta_log")
    entry = log / f"{done.version:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    removed = {a["remove"]["path"] for a in actions if "remove" in a}
    added = {a[kind]["path"] for a in actions for kind in ("add", "cdc") if kind in a} - removed
    files = {Path(small.uri, unquote(path)) for path in added}
    at = calls.index(("link", str(entry)))
    before = [path for call, path in calls[:at] if call == "sync"]
    drafts = [path for path in before if path.endswith(".tmp")]
    assert {str(f) for f in files} | {str(f.parent) for f in files} <= {*before}
    assert len(drafts) == 1
    assert ("sync", str(log)) in calls[at:]
    assert (len(files), len(calls)) == (2, 7)  # two files, two folders, the draft; link; the log


def test_a_replaced_file_is_synced_before_it_takes_its_name(
    tmp_path: Path, calls: list[Call], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, put = tmp_path / "00.json", folders.put

    def putting(filesystem: FileSystem, name: str, content: bytes) -> None:
        calls.append(("put", name))
        put(filesystem, name, content)

    monkeypatch.setattr(folders, "put", putting)
    replace_file(LocalFileSystem(), str(path), b"{}", is_lasting=True)
    (_, draft), *synced = calls
    assert synced == [("sync", draft), ("sync", str(tmp_path))]
    assert path.read_bytes() == b"{}"


def test_two_processes_that_replace_a_file_at_once_use_two_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts, put = list[str](), folders.put
    path = str(tmp_path / "a.json")

    def beside(filesystem: FileSystem, name: str, content: bytes) -> None:
        drafts.append(name)
        put(filesystem, name, content)
        if len(drafts) == 1:
            replace_file(filesystem, path, b"other")

    class Frozen:
        now: Callable[..., Any] = staticmethod(lambda _zone: Frozen)
        timestamp: Callable[..., Any] = staticmethod(lambda: 5.0)

    monkeypatch.setattr(folders, "datetime", Frozen, raising=False)
    monkeypatch.setattr(folders, "put", beside)
    replace_file(LocalFileSystem(), path, b"mine")
    assert len({*drafts}) == 2
    assert (tmp_path / "a.json").read_bytes() == b"mine"
