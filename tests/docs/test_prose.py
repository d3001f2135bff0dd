"""The countable part of plain English: how docstrings begin, and words that pages do without."""

import re
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, shown

BEGINS_LATE = re.compile(r'^ *"""(What|Whether|How|Where|Of|As)\b.*', re.MULTILINE)
AVOIDED = re.compile(r"\b(told|tells|anew|aside)\b")


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    texts = ((path.name, path.read_text()) for path in (ROOT / "libs").rglob("*.py"))
    assert [(name, said[0]) for name, text in texts for said in BEGINS_LATE.finditer(text)] == []


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_a_page_uses_the_plain_word(page: Path) -> None:
    assert AVOIDED.findall(page.read_text()) == []
