"""Pages lead somewhere, and leave nothing out that users can set or call."""

import json
import re
from pathlib import Path
from typing import Literal

import pytest
from click import Context, Option
from tests.docs.pages import INLINE, PAGES, ROOT, anchors, links, prose, shown

from sluice.cli.main import main
from sluice.declare.registry import Kind, kinds
from sluice.declare.schema import JsonSchema, json_schema
from sluice.errors import ExitCode

DOCS = ROOT / "docs"
SHARED = frozenset({"help", "config", "debug", "format_", "version", "as_of"})
VIEWS = kinds("views")
OF_EVERY_VIEW = frozenset({"kind", "description", "expect", "retention"})
SHARED_PARTS = frozenset({"Expectation", "Window"})  # described once for all kinds of views


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


@pytest.mark.parametrize("of", ["pipeline", "project"])
def test_every_key_is_described(of: Literal["pipeline", "project"]) -> None:
    schema = json_schema(of)
    parts = [schema, *schema["$defs"].values()]
    written = {key for part in parts for key in part.get("properties", {})}
    assert written - _words(prose(DOCS / "configuration.md")) == set()


@pytest.mark.parametrize("of", VIEWS, ids=lambda of: of.name)
def test_every_key_of_a_view_is_in_the_row_of_its_kind(of: Kind) -> None:
    lines = prose(DOCS / "configuration.md").splitlines()
    (row,) = [line for line in lines if line.startswith(f"| [`{of.name}`]({of.name}.md) |")]
    assert _keys(of.model.__name__, json_schema()["$defs"]) - OF_EVERY_VIEW - _words(row) == set()


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


def _words(text: str) -> set[str]:
    """Return the words that a text shows as code."""
    return {*re.split(r"[\s.:,]+", " ".join(INLINE.findall(text)))}


def _keys(name: str, parts: JsonSchema) -> set[str]:
    """Return the keys of a part of a declaration, and of the parts that it refers to."""
    below = {*re.findall(r"#/\$defs/(\w+)", json.dumps(parts[name]))} - SHARED_PARTS
    return {*parts[name].get("properties", {})}.union(*(_keys(part, parts) for part in below))


def _options(name: str) -> list[str]:
    command = main.get_command(Context(main), name)
    assert command is not None
    options = (p for p in command.params if isinstance(p, Option) and p.name not in SHARED)
    return [option.opts[0] for option in options]
