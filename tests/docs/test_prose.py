"""The countable part of plain English: how docstrings begin, and words that pages do without."""

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, shown

BEGINS_LATE = re.compile(r'^ *"""(What|Whether|How|Where|Of|As)\b.*', re.MULTILINE)
AVOIDED = re.compile(r"\b(told|tells?|anew|aside)\b", re.IGNORECASE)
CODE = re.compile(r"`[^`]*`|\{[^{}]*\}")
TEXTS = {
    tokenize.COMMENT,
    tokenize.STRING,
    getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING),  # of Python 3.12 and newer
}


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    modules = (
        path
        for folder in ("libs", "jobs", "dags", "tools")
        for path in (ROOT / folder).rglob("*.py")
    )
    texts = ((path.name, path.read_text()) for path in modules)
    assert [(name, said[0]) for name, text in texts for said in BEGINS_LATE.finditer(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_page_uses_the_plain_word(page: Path) -> None:
    assert AVOIDED.findall(page.read_text()) == []


def test_docstrings_comments_and_messages_use_the_plain_word() -> None:
    modules = sorted((ROOT / "libs").rglob("*.py"))
    assert [f"{path.name}: {text}" for path in modules for text in avoided(path)] == []


def test_templates_use_the_plain_word() -> None:
    templates = [p for p in (ROOT / "libs").rglob("*.j2") if AVOIDED.search(p.read_text())]
    assert templates == []


def avoided(module: Path) -> Iterator[str]:
    """Texts of a module with a word that pages do without; names in code may have it."""
    with tokenize.open(module) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type in TEXTS and AVOIDED.search(CODE.sub("", token.string)):
                yield token.string


def test_names_of_tests_use_the_plain_word() -> None:
    named = re.compile(r"def (test_\w+)")
    found = [n for p in (ROOT / "tests").rglob("*.py") for n in named.findall(p.read_text())]
    assert [name for name in found if AVOIDED.search(name.replace("_", " "))] == []
