"""What a configuration names in Python is called only if it was made to be called by Sluice."""

import sys
from pathlib import Path

import pytest

from sluice.errors import ConfigError
from sluice.kinds.cogroup.own import Own
from sluice.language.expression import Aggregate

MODULE = """
from pathlib import Path
state, type = "BIGINT", "BIGINT"

def touch(path):
    Path(path).touch()

class Touch:
    def __init__(self, path):
        Path(path).touch()

class Untyped(Touch):
    initialize = add = merge = result = None

class Whole(Untyped):
    state = type = "BIGINT"
"""


@pytest.fixture
def of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):  # type: ignore[no-untyped-def]
    """The aggregator of that name, which touches a file when it is called."""
    (tmp_path / "foreign_code.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "foreign_code", raising=False)

    def of(name: str) -> object:
        called = Aggregate.parse(f"foreign_code:{name}(price, '{tmp_path / 'touched'}')")
        return Own("s", "x", called, ("id",)).aggregator

    return of


@pytest.mark.parametrize(
    ("name", "why"), [("touch", "is not a class"), ("Touch", "lacks initialize")]
)
def test_what_is_no_aggregator_is_not_called(tmp_path: Path, of, name: str, why: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match=why):
        of(name)
    assert not (tmp_path / "touched").exists()


def test_an_aggregator_has_to_name_its_types(of) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConfigError, match="lacks state, type"):
        of("Untyped")


def test_an_aggregator_is_made_with_its_parameters(tmp_path: Path, of) -> None:  # type: ignore[no-untyped-def]
    assert of("Whole").state == "BIGINT"
    assert (tmp_path / "touched").exists()
