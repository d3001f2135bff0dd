"""Where the cache is: named, a checkout's own, or the user's."""

from pathlib import Path

import pytest

from sluice import cache
from sluice.cache import cache_folder


def test_a_folder_that_the_user_names_comes_first():
    assert cache_folder({"SLUICE_CACHE": "/var/cache/sluice"}) == Path("/var/cache/sluice")


def test_a_checkout_keeps_its_own():
    checkout = Path(cache.__file__).resolve().parents[2]
    assert cache_folder({}) == checkout / ".cache"


def test_an_installed_package_uses_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(cache, "CHECKOUT", tmp_path)
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/sluice")
    assert cache_folder({}) == Path.home() / ".cache" / "sluice"
