"""HTML of every part: whole, escaped, self-contained; and as a browser shows it."""

import inspect
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sluice import pages
from sluice.pages import (
    Action,
    Bar,
    Bars,
    Box,
    Card,
    Cards,
    Chapter,
    Content,
    Details,
    Edge,
    Element,
    Entry,
    Field,
    Form,
    Graph,
    Listing,
    Node,
    Page,
    Picture,
    Properties,
    Text,
    html,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser

EVIL = '"><script>alert("x")</script>&'
LONG = "a-name-without-any-place-to-break-it-" * 5
COLUMNS = [("Name", "mono"), ("State", ""), ("Count", "number")]
ROWS: list[list[Content]] = [
    [LONG, Text(EVIL, "chip stopped", title=EVIL), 1_234],
    [EVIL, "", None],
]
BARS = Bars(EVIL, [Bar(nth, Text(LONG, "", "#", EVIL), "1,234,567.89", 1 / nth) for nth in (1, 2)])
LINE = Picture(EVIL, 30, 10, [Box(1, 1, 6, 6, "warned", EVIL)], "M0 0L9 9", [EVIL])
ACTION = Action(EVIL, EVIL, EVIL, EVIL, EVIL)
FIELDS = [
    Field(EVIL, EVIL, EVIL, EVIL),
    Field(EVIL, "", EVIL, is_hidden=True),
    Field(EVIL, EVIL, EVIL, EVIL, choices=("", EVIL, LONG)),
]
FORM = Form("/a?b", EVIL, FIELDS)
NODES = [
    Node(EVIL, x, 0, 90, 80, EVIL, EVIL, "passed", EVIL, link, (EVIL, LONG))
    for x, link in ((0, "#"), (190, ""))
]
GRAPH = Graph(EVIL, 280, 80, NODES, [Edge("M90 20L190 20", EVIL, EVIL)])
DETAILS = Details(EVIL, BARS, is_open=True)
SHOWN = Page(
    EVIL,
    [EVIL, Text(EVIL, "chip passed")],
    [Properties([(EVIL, EVIL)]), Cards([Card([Entry(Text(1, "big"), detail=EVIL)])])],
    [
        Chapter(EVIL, [Listing(COLUMNS, ROWS), Listing(COLUMNS, ROWS, "stacked")]),
        Chapter("", [Card([Entry(LONG, EVIL, EVIL, EVIL, [LINE, DETAILS, ACTION])])]),
        Cards([BARS, BARS, BARS]),
        [FORM, GRAPH],
    ],
    EVIL,
    EVIL,
)
NARROWER = """() => [...document.querySelectorAll(".card :is(rect, .entry, td, .label, .number)")]
    .filter(part => !part.closest(".scroll:not(:has(.stacked))"))
    .filter(part => {
        const card = part.closest(".card").getBoundingClientRect()
        return part.getBoundingClientRect().right > card.right + 0.5
    }).map(part => part.outerHTML)"""
OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"
COLOR = "() => getComputedStyle(document.body).backgroundColor"


class Tags(HTMLParser):
    """Tags that are open at the end, and all that there were."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.met: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.met.add(tag)
        if tag not in {"meta", "rect", "path", "input"}:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in {"rect", "path"}:
            assert self.open.pop() == tag


def test_every_part_is_shown_and_escaped() -> None:
    tags = Tags(html(SHOWN))
    assert tags.open == []
    assert "script" not in tags.met
    assert {"table", "svg", "dl", "details", "a", "h2", "h3"} <= tags.met
    classes = [one for _, one in inspect.getmembers(pages, inspect.isclass)]
    parts = {one.__name__ for one in classes if issubclass(one, Element)} - {"Element", "Page"}
    assert parts == {type(one).__name__ for one in walk([SHOWN.head, SHOWN.sections])}


def walk(content: object) -> list[Element]:
    """Every part below."""
    if isinstance(content, list | tuple):
        return [part for one in content for part in walk(one)]
    if isinstance(content, Element):
        return [content, *walk(list(vars(content).values()))]
    return walk(list(vars(content).values())) if isinstance(content, Bar) else []


def test_a_page_for_a_file_forbids_scripts_and_one_with_a_nonce_has_its_own() -> None:
    assert "default-src 'none'" in html(SHOWN)
    assert '<script nonce="n1">' in html(SHOWN, "n1")


@pytest.mark.parametrize("width", [380, 1280])
def test_nothing_is_wider_than_its_card_or_the_screen(
    browser: "Browser", tmp_path: Path, width: int
) -> None:
    (tmp_path / "page.html").write_text(html(SHOWN), "utf-8")
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto((tmp_path / "page.html").as_uri())
    assert page.evaluate(OVERFLOW) <= 0
    assert page.evaluate(NARROWER) == []
    page.close()


@pytest.mark.parametrize(("chosen", "system"), [("dark", "light"), ("light", "dark")])
def test_the_theme_of_airflow_counts_more_than_that_of_the_system(
    browser: "Browser", tmp_path: Path, chosen: str, system: str
) -> None:
    (tmp_path / "page.html").write_text(html(SHOWN, "n"), "utf-8")
    page = browser.new_page(color_scheme=system)  # type: ignore[arg-type]
    page.add_init_script(f"localStorage.setItem('theme', '{chosen}')")
    page.goto((tmp_path / "page.html").as_uri())
    is_dark = page.evaluate(COLOR) == "rgb(16, 19, 22)"
    assert is_dark == (chosen == "dark")
    page.close()
