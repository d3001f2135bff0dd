"""A project that the tests of a file build once, and each of them changes."""

import shutil
from pathlib import Path

import pytest
from tests.cli.trips import Here


@pytest.fixture
def project(built: Path, tmp_path: Path) -> Here:
    """A copy of what the file's `built` has made."""
    shutil.copytree(built, tmp_path / "trips")
    return Here(tmp_path / "trips")
