"""What pages show is true: YAML validates, commands take these options, code compiles."""

import json
import re
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest
from ruamel.yaml import YAML
from tests.docs.pages import ROOT, Block, commands, of_language

import landing
from sluice.cli.main import main
from sluice.declare.project import load

RETAIL = ROOT / "config/pipelines/retail.yaml"
COOKBOOK = ROOT / "docs/cookbook.md"  # its first block is the pipeline of its own
SECTIONS = ("sources", "dimensions", "views")
PLACEHOLDERS = {"COMMAND", "TABLE", "VIEW", "PIPELINE", "SOURCE", "DIMENSION"}


@pytest.mark.parametrize("block", of_language("yaml"), ids=str)
def test_a_yaml_block_validates(block: Block, tmp_path: Path) -> None:
    config = tmp_path / "config"
    (config / "pipelines").mkdir(parents=True)
    for name, text in _files(block).items():
        (config / name).write_text(text, "utf-8")
    assert load(config, environ={}).pipelines


def _files(block: Block) -> dict[str, str]:
    """The configuration that the block stands for: a whole file, or a part added to retail."""
    if block.text.startswith("pipeline:"):
        return {"pipelines/example.yaml": block.text}
    retail = RETAIL.read_text("utf-8")
    if block.text.startswith("lake:"):
        return {"sluice.yaml": block.text, "pipelines/retail.yaml": retail}
    own = (b.text for b in of_language("yaml") if b.page == block.page == COOKBOOK)
    whole, part = _plain(next(own, retail)), _plain(block.text)
    assert set(part) <= set(SECTIONS), f"{block}: a part consists of {SECTIONS}"
    for section, tables in part.items():
        whole[section] = whole.get(section, {}) | tables
    return {"pipelines/retail.yaml": _text(whole)}


def _plain(text: str) -> dict[str, Any]:
    data: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return data


def _text(data: dict[str, Any]) -> str:
    stream = StringIO()
    YAML(typ="safe", pure=True).dump(data, stream)
    return stream.getvalue()


def test_the_readmes_pipeline_is_the_one_that_runs() -> None:
    readme = next(b for b in of_language("yaml") if b.page.name == "README.md")
    declared = _plain(RETAIL.read_text("utf-8"))
    for section, tables in _plain(readme.text).items():
        for name, table in tables.items():
            told = {k: v for k, v in declared[section][name].items() if k != "description"}
            assert told == table


@pytest.mark.parametrize(("place", "words"), commands("sluice"))
def test_a_command_exists_with_its_options(place: str, words: list[str]) -> None:
    if words[:1] == ["--env"]:
        words = words[2:]
    if not words or words[0] in PLACEHOLDERS:
        return
    name, *arguments = words
    assert main.get_command(click.Context(main), name), f"{place}: sluice {' '.join(words)}"
    if len(arguments) == 0 or PLACEHOLDERS & set(arguments):
        return
    command = main.get_command(click.Context(main), name)
    assert command is not None
    command.make_context(name, [a for a in arguments if a != "--help"])


@pytest.mark.parametrize(("place", "words"), commands("make"))
def test_a_make_target_exists(place: str, words: list[str]) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert words[0] in targets, f"{place}: make {words[0]}"


@pytest.mark.parametrize(("place", "words"), commands("python"))
def test_a_script_exists(place: str, words: list[str]) -> None:
    script = Path(*words[1].split(".")).with_suffix(".py") if words[0] == "-m" else words[0]
    homes = (ROOT, ROOT / "libs")
    assert words[0].startswith(("-X", "-c")) or any((home / script).is_file() for home in homes), (
        place
    )


def test_the_corrected_day_is_the_one_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = (landing.CORRECTED_DAY, landing.DEMO_HOUSEHOLD, landing.CORRECTED_DEPARTMENT)
    assert all(str(word) in readme for word in shown)
    assert landing.RAISED_LINES == 3
    assert landing.RAISED_BY == 10


@pytest.mark.parametrize("block", of_language("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


def test_json_parses() -> None:
    for block in of_language("json"):
        json.loads(block.text)
