"""Pages lead somewhere, and leave nothing out that users can set or call."""

from pathlib import Path

import pytest
from click import Context, Option
from pydantic import BaseModel
from tests.docs.pages import INLINE, PAGES, ROOT, anchors, links, prose, shown

from sluice.cli.main import main
from sluice.declare.declared import Change
from sluice.declare.project import Pipeline, Project
from sluice.declare.settings import AirflowSettings, QualitySettings, SparkSettings
from sluice.declare.window import Window
from sluice.dimension_views.spec import DimensionView
from sluice.dimensions.spec import Dimension
from sluice.errors import ExitCode
from sluice.kinds.cogroup.spec import Cogroup, Stream
from sluice.kinds.lookup.spec import Join, Lookup
from sluice.kinds.topk.spec import TopK
from sluice.kinds.window_store.spec import WindowStore
from sluice.sources.spec import Source

DOCS = ROOT / "docs"
SHARED = frozenset({"help", "config", "debug", "format_", "version", "as_of"})
DECLARED: tuple[type[BaseModel], ...] = (
    *(Project, SparkSettings, QualitySettings, AirflowSettings, Pipeline),
    *(Source, Change, Dimension, DimensionView),
    *(TopK, Cogroup, Stream, Lookup, Join, WindowStore, Window),
)
LOADED = frozenset(
    {"name", "pipelines", "root", "graph", "limits", "environment"}
)  # set by the loader


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{shown(page)}: {link}"
        assert not anchor or anchor in anchors(target), f"{shown(page)}: {link}"


@pytest.mark.parametrize("page", [p for p in PAGES if p.is_relative_to(DOCS)], ids=shown)
def test_every_page_can_be_found(page: Path) -> None:
    index = DOCS / "README.md"
    if page.parent.name == "decisions" and page.name != "README.md":
        index = page.parent / "README.md"
    found = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert page == index or page in found, f"{shown(index)} lacks {page.name}"


@pytest.mark.parametrize("model", DECLARED, ids=lambda model: model.__name__)
def test_every_setting_is_described(model: type[BaseModel]) -> None:
    words = " ".join(INLINE.findall(prose(DOCS / "configuration.md")))
    known = set(words.replace(".", " ").replace(":", " ").replace(",", " ").split())
    names = {field.alias or name for name, field in model.model_fields.items()}
    assert names - known - LOADED == set()


@pytest.mark.parametrize("name", main.list_commands(Context(main)))
def test_every_command_is_described_with_its_options(name: str) -> None:
    told = prose(DOCS / "commands.md").partition(f"\n### {name}\n")[2].partition("\n#")[0]
    assert f"`sluice {name}" in told
    for option in _options(name):
        assert option in told, f"{name}: {option}"


@pytest.mark.parametrize("option", ["--config", "--debug", "--format", "--version", "--as-of"])
def test_options_of_many_commands_are_described_before_them(option: str) -> None:
    assert option in prose(DOCS / "commands.md").partition("\n### status\n")[0]


def test_every_exit_code_is_described() -> None:
    told = prose(DOCS / "commands.md")
    assert all(f"\n| {int(code)} | " in told for code in ExitCode)


def _options(name: str) -> list[str]:
    command = main.get_command(Context(main), name)
    assert command is not None
    options = (p for p in command.params if isinstance(p, Option) and p.name not in SHARED)
    return [option.opts[0] for option in options]
