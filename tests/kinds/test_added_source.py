"""A kind of source that nothing in the product knows is declared beside the product's own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.kinds.pushed.kind import PushedKind

from sluice.declare import registry
from sluice.declare.meaning import differences, meaning
from sluice.declare.project import load
from sluice.declare.registry import register
from sluice.declare.table import Table
from sluice.errors import ConfigError

PLAIN = 'path: "{interval_start:%Y-%m-%d}/", format: json, schema: "id INT", key: [id]'
DECLARED = """
pipeline: shop
schedule: "@daily"
start_date: 2024-01-01
sources:
  sales: {PLAIN}
  calls: {kind: pushed, by: {name: anna, text: once}, PLAIN}
"""
Declare = Callable[..., dict[str, Table]]


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    monkeypatch.setattr(registry, "_added", {})
    register(PushedKind)
    (tmp_path / "pipelines").mkdir()

    def declare(old: str = "", new: str = "") -> dict[str, Table]:
        text = DECLARED.replace("PLAIN", PLAIN).replace(old, new)
        (tmp_path / "pipelines" / "shop.yaml").write_text(text)
        return dict(load(tmp_path, environ={}).graph.tables)

    return declare


def test_it_is_meant_by_its_name(declare: Declare) -> None:
    kinds = {name: table.kind for name, table in declare().items()}
    assert kinds == {"shop.sales": "source", "shop.calls": "pushed"}


def test_another_kind_is_refused(declare: Declare) -> None:
    with pytest.raises(ConfigError, match=r"sources\.calls\.kind: unknown key 'kind'"):
        declare("pushed, by: {name: anna, text: once}", "topk")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("once", "twice", "by.text once -> twice"),
        ("{name: anna, text: once}", "all", "- by.name anna, - by.text once, + by all"),
    ],
)
def test_all_that_is_declared_counts_for_its_meaning(
    declare: Declare, old: str, new: str, said: str
) -> None:
    before, now = meaning(declare()["shop.calls"]), meaning(declare(old, new)["shop.calls"])
    assert differences(before, now) == said
