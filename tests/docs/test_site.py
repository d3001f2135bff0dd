"""The site of the documentation: built without a warning, and complete without anything else."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.docs.pages import PAGES, ROOT, shown

FOREIGN = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
UNPARSED = re.compile(r"<p>(?:- |\| |\d\. |```)[^<]*")  # a list or a table that became prose


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def test_every_page_is_in_the_site(site: Path) -> None:
    assert len(pages(site)) == len(PAGES) + 1, "and a page for what is not found"


def test_no_page_names_a_file_from_elsewhere_and_browsers_may_load_none(site: Path) -> None:
    for page in pages(site):
        text = page.read_text("utf-8")
        assert FOREIGN.findall(text) == [], page
        assert "default-src 'self'" in text


def test_lists_and_tables_are_such(site: Path) -> None:
    assert [(p.name, said) for p in pages(site) for said in UNPARSED.findall(p.read_text())] == []


def test_pages_are_found_by_their_words(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"] if said(entry)}
    assert {"topk/", "glossary/"} <= found


def said(entry: dict[str, str]) -> bool:
    return "headroom" in entry["text"].lower()


def test_the_pages_of_the_readme_and_the_changelog_have_their_pictures(site: Path) -> None:
    overview = (site / "overview" / "index.html").read_text()
    assert 'src="../images/correction.svg"' in overview
    assert (site / "images" / "correction.svg").is_file()
    assert (site / "changelog" / "index.html").is_file(), shown(ROOT / "CHANGELOG.md")
