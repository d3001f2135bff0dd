"""The report as a browser shows it: wide and narrow, light and dark, and on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.report.records import NOW, RECORD, record

from sluice.report import quality_pages

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = ("index.html", "retail.sales.html", "web.clicks.html")
BRIGHTNESS = """() => {
    const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)
    return (r + g + b) / 765
}"""
OVERFLOW = "() => document.documentElement.scrollWidth - window.innerWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    for name, html in quality_pages.render("lake", [RECORD, record("web", "clicks")], NOW).items():
        (folder / name).write_text(html, "utf-8")
    return folder


@pytest.fixture
def page(browser: "Browser") -> Iterator["Page"]:
    """A page that reports what it asked for, and complained of."""
    page = browser.new_page()
    noted: list[str] = []
    page.on("request", lambda request: noted.append(request.url))
    page.on("console", lambda message: noted.append(message.text))
    yield page
    page.close()
    assert all(told.startswith("file://") for told in noted), noted


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(page: "Page", folder: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for name in PAGES:
        page.goto((folder / name).as_uri())
        assert page.evaluate(OVERFLOW) <= 0, name


def test_it_follows_the_theme_and_is_white_on_paper(page: "Page", folder: Path) -> None:
    page.goto((folder / PAGES[1]).as_uri())
    page.emulate_media(color_scheme="light")
    assert page.evaluate(BRIGHTNESS) > 0.9
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(BRIGHTNESS) < 0.2
    page.emulate_media(media="print")
    assert page.evaluate(BRIGHTNESS) == 1
    assert page.pdf().startswith(b"%PDF")


def test_the_overview_leads_to_a_table_and_back(page: "Page", folder: Path) -> None:
    page.goto((folder / PAGES[0]).as_uri())
    page.get_by_role("link", name="sales").first.click()
    page.get_by_role("heading", name="sales").wait_for()
    page.get_by_role("link", name="Data quality").click()
    assert page.url.endswith("index.html")
