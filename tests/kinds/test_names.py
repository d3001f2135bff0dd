"""A kind is known in its folder and in the registry; code elsewhere asks for what it needs."""

import re
from pathlib import Path

import sluice
from sluice.declare.registry import BUILT_IN

ROOT = Path(str(sluice.__file__)).parent
ROOMS = tuple(name.replace("sluice.", "", 1).replace(".", "/") for name in BUILT_IN)
NAMES = re.compile(
    r"top-?k|cogroup|(?<!File)(?<![a-z])lookup(?!error)|window[ _]?store|dimension[ _]?view",
    re.IGNORECASE,
)
# Messages that send a user to a kind of view, and the view that `sluice init` proposes.
ADVICE = {
    "airflow/request.py",
    "declare/building.py",
    "language/join_syntax.py",
    "language/syntax.py",
    "starter/new_project.py",
}


def test_no_file_outside_knows_a_kind_by_name() -> None:
    files = [f for f in ROOT.rglob("*") if f.suffix in (".py", ".j2") and not _is_at_home(f)]
    naming = {_name(file) for file in files if NAMES.search(file.read_text("utf-8"))}
    naming |= {_name(file) for file in files if NAMES.search(file.stem)}
    assert naming == ADVICE


def _is_at_home(file: Path) -> bool:
    return _name(file).startswith((*(f"{room}/" for room in ROOMS), "declare/registry.py"))


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


ASKING = re.compile(
    r"(isinstance\([^\n]*|case )\b(Source|Dimension)\b"
    r"|(kind|section|SECTION)\)? (==|!=|in) [^\n]*\"(source|dimension)s?\""
    r"|(def |\.)is_(source|dimension)\b"
)
# What the key `dimension:` of a join may name, and the sections that `sluice init` writes.
DECLARING = {"declare/building.py", "starter/guess.py", "starter/new_project.py"}


def test_no_file_outside_asks_whether_a_table_is_a_source_or_a_dimension() -> None:
    files = [f for f in ROOT.rglob("*") if f.suffix in (".py", ".j2") and not _is_at_home(f)]
    asking = {_name(file) for file in files if ASKING.search(file.read_text("utf-8"))}
    assert asking == DECLARING


def test_such_a_question_is_seen() -> None:
    seen = ("isinstance(a.spec, (View, Source))", "case Dimension() as spec:", "if t.is_source:")
    assert all(map(ASKING.search, (*seen, 'record.kind in ("source", "dimension")')))
    assert all(map(ASKING.search, ('table.section == "sources"', "def is_dimension(self)")))
    assert not ASKING.search("isinstance(view, DimensionView)")
    assert not ASKING.search("table.is_loaded and table.spec.is_by_interval")
