"""Copies beside a lake: which are left, which are abandoned, and who has claimed a folder."""

import os
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable

from sluice.delta.places import overlay
from sluice.delta.places.lake_layout import LakeLayout
from sluice.delta.places.overlay import BEGUN, list_left, remove_abandoned_copies

DAY_S = 86_400


def begin(folder: Path, **ages: float | None) -> None:
    """Begin copies so many days ago; None: one whose beginning is not noted."""
    for name, days in ages.items():
        (folder / name / "table").mkdir(parents=True)
        if days is not None:
            (folder / name / BEGUN).touch()
            then = time.time() - days * DAY_S
            os.utime(folder / name / BEGUN, (then, then))


def test_copies_that_were_begun_long_ago_are_abandoned_unless_they_are_kept(tmp_path: Path) -> None:
    begin(tmp_path, new=0, recent=0.9, old=1.1, older=30, nameless=None, kept=30, claimed=None)
    assert sorted(list_left(str(tmp_path))) == [
        *("claimed", "kept", "nameless", "new", "old", "older", "recent")
    ]
    remove_abandoned_copies(str(tmp_path), ["kept", "claimed"])
    assert sorted(list_left(str(tmp_path))) == ["claimed", "kept", "new", "recent"]
    remove_abandoned_copies(str(tmp_path))
    assert sorted(list_left(str(tmp_path))) == ["new", "recent"]
    assert list_left(str(tmp_path / "nowhere")) == []


def test_the_first_claim_of_a_folder_wins_and_is_safe_to_repeat(tmp_path: Path) -> None:
    first, other = (LakeLayout(f"{tmp_path}/{name}") for name in ("first", "other"))
    assert overlay._claim(str(tmp_path), first)
    assert not overlay._claim(str(tmp_path), other)
    assert overlay._claim(str(tmp_path), first)


def test_a_claim_that_fails_without_another_claimant_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space is left")

    monkeypatch.setattr(DeltaTable, "create", full)
    with pytest.raises(OSError, match="no space is left"):
        overlay._claim(str(tmp_path), LakeLayout(f"{tmp_path}/first"))
