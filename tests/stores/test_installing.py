"""A server that can't be installed is named, and ends the tests that need it."""

import sys
from pathlib import Path

import pytest
from tests.support.installing import install

ENDED = pytest.exit.Exception


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        ENDED, match=r"could not install it, .* there is no `no-such-go` on the path"
    ):
        install(["no-such-go", "install", "it"], tmp_path)


def test_silent_registries_are_named(tmp_path: Path) -> None:
    fails = [sys.executable, "-c", "raise SystemExit('no route to host')", "it"]
    with pytest.raises(ENDED, match=r"could not install it, .*: no route to host"):
        install(fails, tmp_path / "new")
