"""The pages that users read, taken apart: code blocks, links, headings, commands."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md")))
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`]+)`")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
SHELL = ("sh", "console")


@dataclass(frozen=True)
class Block:
    """A fenced block, and the line at which its text begins."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{shown(self.page)}:{self.line}"


def shown(page: Path) -> str:
    """The page's path from the project's root."""
    return page.relative_to(ROOT).as_posix()


@cache
def blocks() -> tuple[Block, ...]:
    """Every fenced block of every page."""
    return tuple(block for page in PAGES for block in _blocks(page))


def of_language(*languages: str) -> list[Block]:
    """The blocks in one of these languages."""
    return [block for block in blocks() if block.language in languages]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return FENCE.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[str]:
    """What the page links to, pictures included."""
    return LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """The page's headings as GitHub makes anchors of them."""
    return {_anchor(heading) for heading in HEADING.findall(prose(page))}


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Every call of a program that is shown, with the place where it is."""
    lines = [(str(b), line) for b in of_language(*SHELL) for line in b.text.splitlines()]
    lines += [(shown(page), text) for page in PAGES for text in INLINE.findall(prose(page))]
    called = ((place, _words(line)) for place, line in lines)
    return [(place, words[1:]) for place, words in called if words[:1] == [program]]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        line = text.count("\n", 0, found.start(2)) + 1
        yield Block(page, line, found[1], found[2])


def _anchor(heading: str) -> str:
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def _words(line: str) -> list[str]:
    """The line as a shell splits it: without comments and variables set in front."""
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return []
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words = words[1:]
    return words
