"""A kind is known in its folder and in the registry; code elsewhere asks for what it needs.

A name that only a kind has may not occur outside at all. A name that is also a word of SQL, or of
the sections of a file, may, but not as the name of a kind: as the value of something called kind
or section, in a comparison with it or an argument of it, in a test of classes, in the name of a
hidden column, or after `is_`.
Nor may code ask whether a declaration has a field, because only some kinds have it. The folder of
a kind names no other, except in three cases: a view in SQL becomes views of other kinds, a lookup
and a view of dimensions refer to each other, and a message may suggest a kind that is a word of
SQL.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot.dialects import Spark

import sluice
from sluice.declare.registry import BUILT_IN, Kind, kinds
from sluice.declare.table_spec import SECTIONS

ROOT = Path(str(sluice.__file__)).parent
ROOMS = {
    name: path.removeprefix("sluice.").partition(".kind.")[0].replace(".", "/")
    for name, path in BUILT_IN.items()
}
KINDS = kinds()
WORDS = {"sql", *(s.removesuffix("s") for s in SECTIONS), *map(str.lower, Spark.Tokenizer.KEYWORDS)}
OWN = [kind.name for kind in KINDS if kind.name not in WORDS]
CLASSES = {kind.model.__name__ for kind in KINDS}
NAMED = {kind.name for kind in KINDS} | {f"{kind.name}s" for kind in KINDS}
REFERRING = {
    "sql": {kind.name for kind in KINDS},
    "lookup": {"dimension_view"},
    "dimension_view": {"lookup"},
}


def _spelled(name: str) -> str:
    """Return the pattern of a kind's name in code and in text."""
    return name.replace("_", "[ _]?").replace("topk", "top-?k")


TEXT = re.compile(
    "|".join(map(_spelled, OWN))
    + rf"|(kind: |_sluice_)({'|'.join(kind.name for kind in KINDS)})(\b|_)",
    re.IGNORECASE,
)
ALIKE = re.compile(r"FileLookup|LookupError")
TEMPLATES = "starter/"  # the files of a first project


def test_no_file_outside_names_a_kind() -> None:
    naming = {_name(file): found for file in _outside() if (found := [*_names(_read(file))])}
    assert not naming
    assert not [_name(file) for file in _outside() if TEXT.search(file.stem)]


def test_no_code_outside_asks_for_a_kind() -> None:
    code = (file for file in _outside() if file.suffix == ".py")
    asking = {_name(file): found for file in code if (found := [*_questions(_read(file))])}
    assert not asking


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_kind_names_another(kind: Kind) -> None:
    code = "\n".join(map(_read, (ROOT / ROOMS[kind.name]).rglob("*.py")))
    text, asked = ALIKE.sub("", code), "\n".join(_questions(code))
    others = {other.name for other in KINDS} - {kind.name} - REFERRING.get(kind.name, set())
    assert not [n for n in others if n in OWN and re.search(_spelled(n), text, re.IGNORECASE)]
    assert not [n for n in others if f"'{n}'" in asked]


def test_no_code_outside_guesses_the_fields_of_a_kind() -> None:
    code = (file for file in _outside() if file.suffix == ".py")
    guessing = {_name(file): found for file in code if (found := [*_guesses(_read(file))])}
    assert not guessing


@pytest.mark.parametrize(
    "code",
    [
        "getattr(table.spec, 'retention', None)",
        "getattr(spec, 'key')",
        "getattr(one.declaration.spec, name, ())",
        "hasattr(spec, 'path')",
    ],
)
def test_a_guess_is_seen(code: str) -> None:
    assert [*_guesses(f"found = {code} or table.key")]
    assert not [*_guesses("getattr(error, 'spec', None), getattr(model, name), spec.kept_for")]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_is_searched_for(kind: Kind) -> None:
    name, model = kind.name, kind.model.__name__
    assert [*_names(f"# declare `kind: {name}`")]
    assert [*_names(f"HIDDEN = '_sluice_{name}_of_a_row'")]
    assert (kind.name in OWN) == bool([*_names(f"MESSAGE = 'declare a {name}'")])
    for code in (
        f"fields = {{'kind': '{name}', 'from': 'a'}}",
        f"resolved(kind='{name}')",
        f"kind('{name}').verbs()",
        f"kind = '{name}' if is_joined else 'table'",
        f"if table.kind == '{name}': ...",
        f"if record.kind not in ('topk', '{name}'): ...",
        f"table.section != '{name}s'",
        f"match table.kind:\n  case '{name}': ...",
        f"match table.spec:\n  case {model}() as spec: ...",
        f"isinstance(table.spec, (View, {model}))",
        f"def is_{name}(self): ...",
        f"if table.is_{name}: ...",
    ):
        assert [*_questions(code)], code


@pytest.mark.parametrize("name", ["join", "source", "sql"])
def test_a_word_of_sql_or_of_a_file_is_no_question(name: str) -> None:
    assert not [*_names(f"# the {name} of a row")]
    assert not [*_questions(f"row = {{'{name}': {name}}}; isinstance(tree, exp.{name.title()})")]
    assert not [*_questions(f"declared.get('{name}'), node.language == '{name}'")]


def _outside() -> Iterator[Path]:
    apart = (*(f"{room}/" for room in ROOMS.values()), "declare/registry.py", TEMPLATES)
    for file in ROOT.rglob("*"):
        if file.suffix in (".py", ".j2") and not _name(file).startswith(apart):
            yield file


def _name(file: Path) -> str:
    return file.relative_to(ROOT).as_posix()


def _read(file: Path) -> str:
    return file.read_text("utf-8")


def _names(text: str) -> Iterator[str]:
    """Yield the lines that have a kind's own name, or any kind's after `kind:`."""
    return (line for line in text.splitlines() if TEXT.search(ALIKE.sub("", line)))


def _questions(code: str) -> Iterator[str]:
    """Yield the parts of code in which a kind's name or class acts as one."""
    for node in ast.walk(ast.parse(code)):
        if any(map(_is_a_kind, (*_given(node), *_tested(node)))):
            yield ast.unparse(node)


def _guesses(code: str) -> Iterator[str]:
    """Yield the parts of code that ask a declaration for a field by its name."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(
                func=ast.Name("getattr" | "hasattr"),
                args=[ast.Name("spec") | ast.Attribute(attr="spec"), *_],
            ):
                yield ast.unparse(node)


def _given(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands where kinds may be named."""
    match node:
        case ast.keyword(arg=str(name), value=value) if _is_about(name):
            yield from ast.walk(value)
        case ast.Assign(targets=[target], value=value) if _is_about(target):
            yield from ast.walk(value)
        case ast.Dict():
            found = (v for k, v in zip(node.keys, node.values, strict=True) if k and _is_about(k))
            for value in found:
                yield from ast.walk(value)
        case ast.Compare() if any(map(_is_about, ast.walk(node))):
            yield from ast.walk(node)
        case ast.Match() if _is_about(node.subject):
            yield from (part for case in node.cases for part in ast.walk(case.pattern))
        case ast.Call() if _is_about(node.func):
            yield from node.args


def _tested(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the classes and the words of a test of what a table is."""
    match node:
        case ast.MatchClass():
            yield node.cls
        case ast.Call(func=ast.Name("isinstance" | "issubclass")):
            yield from ast.walk(node.args[1])
        case ast.Attribute(attr=name) | ast.FunctionDef(name=name) if name.startswith("is_"):
            yield ast.Constant(name.removeprefix("is_"))


def _is_about(said: ast.AST | str) -> bool:
    match said:
        case ast.Name(id=str(name)) | ast.Attribute(attr=str(name)) | ast.Constant(value=str(name)):
            return name in ("kind", "section", "KIND", "SECTION")
        case _:
            return said in ("kind", "section")


def _is_a_kind(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=str(name)):
            return name in NAMED
        case ast.Name(id=name):
            return name in CLASSES
        case _:
            return False
