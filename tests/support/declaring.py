"""A small shop to declare views over, and what the loader says about it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import indent

import pytest

from sluice.declare.project import Project, load
from sluice.declare.table import Table
from sluice.errors import ConfigError

SHOP = """\
pipeline: shop
schedule: "@daily"
start_date: 2017-01-01
sources:
  sales: {path: "s/{interval_start:%Y-%m-%d}/", schema: "${SALES:-}", key: [id]}
  clicks: {path: "c/{interval_start:%Y-%m-%d}/", schema: "${CLICKS:-}"}
dimensions:
  items: {path: i/, schema: "item STRING, department STRING, price DECIMAL(12,2)", key: [item]}
  prices: {path: p/, schema: "item STRING, price DECIMAL(12,2)", key: [item], history: true}
views:
"""
SCHEMAS = {
    "SALES": "id INT, item STRING, price DECIMAL(12,2), at TIMESTAMP, tags MAP<STRING, STRING>",
    "CLICKS": "item STRING, at TIMESTAMP, where_from STRUCT<page: STRING>",
}

Load = Callable[..., Project]
Mistakes = Callable[..., list[str]]
OfViews = Callable[[str], Table]
Write = Callable[[Mapping[str, str]], Path]


@pytest.fixture
def refusal() -> Callable[..., str]:
    """What a call that is refused says."""

    def refusal(call: Callable[..., object], *arguments: object) -> str:
        with pytest.raises(ValueError, match=r".+") as caught:
            call(*arguments)
        return str(caught.value)

    return refusal


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a configuration of whole files by their names."""

    def write(files: Mapping[str, str]) -> Path:
        folder = tmp_path / "config"
        (folder / "pipelines").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def shop(write: Write) -> Load:
    """Load the shop with these views; the first one's line is 11."""

    def shop(views: str, **environ: str) -> Project:
        text = SHOP + indent(views.strip("\n"), "  ")
        for name, schema in SCHEMAS.items():
            text = text.replace(f"${{{name}:-}}", schema)
        return load(write({"pipelines/shop.yaml": text}), environ=environ)

    return shop


@pytest.fixture
def table(shop: Load) -> OfViews:
    """The last view of the shop with these views."""

    def table(views: str) -> Table:
        project = shop(views)
        return project.graph.table(list(project.pipelines["shop"].views)[-1])

    return table


@pytest.fixture
def mistakes(shop: Load) -> Mistakes:
    """What is wrong with the shop's views, as `line: what`."""

    def mistakes(views: str, **environ: str) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            shop(views, **environ)
        return [mistake.partition("shop.yaml:")[2] for mistake in caught.value.mistakes]

    return mistakes


@pytest.fixture
def wrong(write: Write) -> Mistakes:
    """What is wrong with whole files, as `file:line: what`."""

    def wrong(files: Mapping[str, str], **environ: str) -> list[str]:
        folder = write(files)
        with pytest.raises(ConfigError) as caught:
            load(folder, environ=environ)
        return [m.replace(f"{folder.as_posix()}/", "") for m in caught.value.mistakes]

    return wrong
