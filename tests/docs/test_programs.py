"""Programs in tests start by the commands that are shown, and test files stand for themselves."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, shown

PROGRAM = re.compile(
    r"(?<![\w.])(?P<path>PYTHONPATH=tools )?(?:python|\$\(PY\)) -m (?P<name>tests\.[\w.]+)"
)
TOOLS = frozenset(file.stem for file in (ROOT / "tools").glob("*.py"))
PLACES = (ROOT / "Makefile", *PAGES, *sorted((ROOT / "tests").rglob("*.py")))
COMMANDS = [
    (place, command) for place in PLACES for command in PROGRAM.finditer(place.read_text("utf-8"))
]


@pytest.mark.parametrize(("place", "command"), COMMANDS, ids=lambda of: getattr(of, "stem", ""))
def test_a_program_that_uses_the_tools_is_shown_with_their_path(
    place: Path, command: re.Match[str]
) -> None:
    uses_tools = bool(_imported(command["name"]) & TOOLS)
    assert bool(command["path"]) == uses_tools, f"{shown(place)}: {command[0]}"


def test_programs_of_both_sorts_are_shown() -> None:
    names = {command["name"] for _, command in COMMANDS}
    assert {"tests.crash.soak", "tests.benchmarks.retail", "tests.benchmarks.topk"} <= names


def test_no_test_file_imports_another() -> None:
    named = re.compile(
        r"^ *(?:from|import) tests\.(?:[\w.]+\.)?test_\w+|import test_\w+", re.MULTILINE
    )
    files = sorted((ROOT / "tests").rglob("*.py"))
    assert [(shown(p), found) for p in files for found in named.findall(p.read_text("utf-8"))] == []


def test_kept_messages_belong_to_a_test_file() -> None:
    kept = (ROOT / "tests").rglob("test_*.txt")
    assert [shown(path) for path in kept if not path.with_suffix(".py").exists()] == []


@cache
def _imported(module: str) -> frozenset[str]:
    """Return the names of the modules that one of the tests' imports, also by others of them."""
    found, todo = {module}, [module]
    while todo:
        new = _imports(todo.pop()) - found
        found |= new
        todo += new
    return frozenset(found)


def _imports(module: str) -> set[str]:
    file = (ROOT / module.replace(".", "/")).with_suffix(".py")
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8")))) if file.exists() else []
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
    return names
