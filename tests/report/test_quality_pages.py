"""The report: true to the results, escaped, and in need of nothing but a browser."""

import datetime as dt
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.report.records import EVIL, NOW, RECORD, aside, day, interval, record, result

from sluice.delta.failures import Failure
from sluice.language.interval import EPOCH, Interval, Span
from sluice.pages import Listing
from sluice.report import quality_pages
from sluice.report.quality_pages import LEAST_SEEN, bars, curve, strip
from sluice.report.summary import Check, ExpectationSummary, State, summary


class Page(HTMLParser):
    """What a browser would load or run, and whether every tag is closed."""

    VOID = frozenset({"meta", "rect", "path", "br"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.text += " "
        self.references += [value or "" for name, value in attrs if name in {"href", "src"}]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    other = record("web", "clicks")
    return quality_pages.render(f"lake {EVIL}", [RECORD, other], NOW)


def test_there_is_an_overview_and_a_page_per_table(pages: dict[str, str]) -> None:
    assert set(pages) == {"index.html", "retail.sales.html", "web.clicks.html"}


def test_pages_are_whole_and_link_only_to_each_other(pages: dict[str, str]) -> None:
    for html in pages.values():
        page = Page(html)
        assert page.open == []
        assert set(page.references) <= set(pages)
        assert not page.tags & {"script", "link", "img", "iframe", "object", "form"}
        assert not re.search(r"https?:|//|@import|url\(", html)
        assert "default-src 'none'" in html


def test_everything_from_the_data_is_escaped(pages: dict[str, str]) -> None:
    for html in pages.values():
        assert "<script" not in html
    assert EVIL in Page(pages["retail.sales.html"]).text


def test_the_overview_shows_the_newest_batch_of_each_table(pages: dict[str, str]) -> None:
    text = " ".join(Page(pages["index.html"]).text.split())
    for part in (
        "0 of 1 expectations met",
        "warned",
        "2017-03-09 10:00",
        "version 3",
        "1 quarantined",
    ):
        assert part in text
    assert "no expectations" in text


def test_a_failure_that_nobody_has_mended_stands_on_both_pages() -> None:
    failure = Failure("retail.sales", NOW, f"a text {EVIL}", "mend it", 4)
    pages = quality_pages.render(
        "lake", [record("retail", "sales", stands={"failure": failure})], NOW
    )
    for html in pages.values():
        text = " ".join(Page(html).text.split())
        for part in ("Failed, and not fixed since", f"a text {EVIL}", "exit code 4", "mend it"):
            assert part in text
    assert "1 tables stopped at their newest batch" in " ".join(
        Page(pages["index.html"]).text.split()
    )


def test_a_page_that_is_kept_says_nothing_that_time_makes_false(pages: dict[str, str]) -> None:
    for html in pages.values():
        assert not re.search(r"\bago\b|just now", html)


def test_a_failing_expectation_shows_its_rows_the_suspect_first(pages: dict[str, str]) -> None:
    html = pages["retail.sales.html"]
    assert "<details open>" in html
    (expectation,) = summary(RECORD).expectations
    assert expectation.sample_columns == ["quantity", "id", "note"]
    assert expectation.sample_when == "2017-03-02"


def test_the_last_check_of_an_interval_stands() -> None:
    earlier = result(2, success=False, checked_at=NOW - dt.timedelta(days=1))
    table = summary(record("retail", "sales", results=(result(2), result(1), earlier)))
    assert [check.state for check in table.expectations[0].checks] == [State.PASSED, State.PASSED]
    assert [batch.when for batch in table.batches] == ["2017-03-01", "2017-03-02"]


def test_a_batch_is_as_bad_as_its_worst_check() -> None:
    others = [result(1, success=False, on_failure=on, says=on) for on in ("quarantine", "stop")]
    table = summary(record("retail", "sales", results=(result(1), *others)))
    (batch,) = table.batches
    assert (batch.state, batch.observed) == (State.STOPPED, "2 of 3 expectations not met")


def test_the_share_that_is_drawn_is_that_of_the_message() -> None:
    table = summary(RECORD)
    assert [check.number for check in table.expectations[0].checks] == [0.0, 2.0]


def test_an_expectation_that_left_the_configuration_is_not_shown() -> None:
    old = result(1, says="quantity is at least 9", checked_at=NOW - dt.timedelta(days=1))
    table = summary(record("retail", "sales", results=(old, result(1))))
    assert [e.says for e in table.expectations] == ["quantity is at least 0"]


def test_a_single_quarantined_row_is_seen_among_a_million() -> None:
    drawn = bars([interval(1, 1_000_000, 1)], height=80)
    accepted, aside = drawn.boxes
    assert aside.height >= LEAST_SEEN
    assert accepted.height + aside.height <= 80


def test_an_interval_without_rows_draws_nothing() -> None:
    assert bars([interval(1, 0, 0)]).boxes == []


def test_a_strip_ends_with_the_newest_check_at_the_right() -> None:
    checks = [Check(str(n), State.PASSED, "fine") for n in range(5)]
    drawn = strip(checks, 3)
    assert [box.title for box in drawn.boxes] == ["2: fine", "3: fine", "4: fine"]
    assert drawn.boxes[-1].x + drawn.boxes[-1].width == drawn.width
    assert strip(checks[:1], 3).boxes[0].x == drawn.boxes[-1].x


def test_a_curve_has_its_points_below_the_cells_of_the_strip() -> None:
    checks = [Check(str(n), State.PASSED, "fine", n) for n in (3.0, None, 5.0, 4.0)]
    of = ExpectationSummary("rows", "rows", "warn", tuple(checks), (), "", frozenset(), "rows")
    drawn, cells = curve(of), strip(checks, 4).boxes
    middles = [f"{cell.x + cell.width / 2}" for cell in cells]
    assert [point.split()[0] for point in drawn.path.replace("L", "M").split("M")[1:]] == [
        middles[0],
        middles[2],
        middles[3],
    ]
    assert drawn.path.count("M") == 2  # a check that observed nothing interrupts the line
    assert (drawn.below, drawn.width) == (["3 to 5 rows"], strip(checks, 4).width)


def test_what_was_observed_is_drawn_only_where_it_varies() -> None:
    same = summary(record("retail", "sales", results=(result(1), result(2))))
    assert not same.expectations[0].varies
    assert summary(RECORD).expectations[0].varies
    assert summary(RECORD).expectations[0].checks[-1].number == 2.0


def test_unusual_batches_and_rows_in_quarantine_are_shown(pages: dict[str, str]) -> None:
    text = " ".join(Page(pages["retail.sales.html"]).text.split())
    assert "2017-03-02 3 rows arrived, usually 9" in text
    assert "unusual batch" in text
    assert f"does not parse Text Interval File {EVIL} 2017-03-02 part.json" in text
    assert "price is at least 0 id price Interval File 7 null 2017-03-02" in text
    assert "sluice replay sales" in text


def test_the_whole_table_has_a_state_of_its_own() -> None:
    whole = result(3, success=False, says="rows, over the whole table", interval_start=None)
    later = result(1, checked_at=NOW + dt.timedelta(hours=1))
    table = summary(record("retail", "sales", results=(later, whole)))
    assert [e.says for e in table.expectations] == [later["says"], whole["says"]]
    assert [batch.when for batch in table.batches] == ["2017-03-01"]
    assert table.state is State.WARNED


def test_only_what_is_still_expected_is_shown() -> None:
    table = summary(record("retail", "sales", results=(result(1),), expected=("others",)))
    assert table.expectations == ()


def test_writing_replaces_the_pages_and_leaves_no_draft(
    tmp_path: Path, pages: dict[str, str]
) -> None:
    for _ in range(2):
        index = quality_pages.write(tmp_path / "report", pages)
    assert index.read_text(encoding="utf-8") == pages["index.html"]
    assert {path.name for path in index.parent.iterdir()} == set(pages)


def test_half_of_a_surrogate_pair_is_shown_as_it_was_escaped(tmp_path: Path) -> None:
    row = aside("has half of a surrogate pair", '{"k":"\\ud800"}', None)
    sales = record("retail", "sales", quarantine=(row,))
    quality_pages.write(tmp_path, quality_pages.render("lake", [sales], NOW))
    assert ">\\ud800<" in (tmp_path / "retail.sales.html").read_text(encoding="utf-8")


def test_a_dimension_shows_the_rows_of_its_load() -> None:
    load = (interval(1, 41, 1),)
    kept = ({**aside("a", "{", "items/a.csv"), "_sluice_interval": EPOCH},)
    loaded = record("retail", "items", "dimension", intervals=load, quarantine=kept)
    assert (summary(loaded).intervals, summary(loaded).quarantined) == ((), 1)
    text = " ".join(
        Page(quality_pages.render("lake", [loaded], NOW)["retail.items.html"]).text.split()
    )
    assert "41 rows read = 40 accepted + 1 quarantined" in text
    assert "Text File { a.csv" in text  # a load has no interval
    assert "1970" not in text


def test_a_row_in_no_interval_is_listed_without_one() -> None:
    row = {**aside("column at is null", "4,", "all/a.csv"), "_sluice_interval": EPOCH}
    ((listing,),) = (reason.parts for reason in quality_pages.reasons([row]))
    assert isinstance(listing, Listing)
    assert listing.rows == [["4,", "", "a.csv"]]


def test_rows_in_quarantine_are_listed_by_their_reason() -> None:
    rows = (aside("a", '{"id": 1}', None), aside("b", "{", None), aside("a", '{"no": 2}', None))
    reasons = list(quality_pages.reasons(rows))
    assert [(r.title, bool(r.marks)) for r in reasons] == [("a", True), ("b", False)]
    parsed, broken = (part for r in reasons for part in r.parts if isinstance(part, Listing))
    ends = ["Interval", "File"]
    assert [name for name, _ in parsed.columns] == ["id", "no", *ends]
    assert [name for name, _ in broken.columns] == ["Text", *ends]
    assert (len(parsed.rows), len(broken.rows)) == (2, 1)


def test_intervals_without_files_stand_on_both_pages_and_mark_their_source() -> None:
    days = [Span(Interval(day(n), day(n + 1)), 1) for n in range(2, 12, 2)]
    stands = {"missing": (days[0],), "without_files": tuple(days)}
    shown = quality_pages.render("lake", [record("retail", "sales", stands=stands)], NOW)
    for page in (shown["index.html"], shown["retail.sales.html"]):
        assert "missing: [2017-03-02, 2017-03-03) (1 interval)" in page
        assert "no files: 2 earlier intervals, [2017-03-06, 2017-03-07) (1 interval), [" in page
        assert ">incomplete<" in page
    whole = quality_pages.render("lake", [record("retail", "sales")], NOW)
    assert "ncomplete" not in "".join(whole.values())


def test_a_view_of_a_failed_source_is_marked_as_blocked() -> None:
    stands = {"blocked_by": ("retail.sales",)}
    shown = quality_pages.render("lake", [record("retail", "sums", "topk", stands=stands)], NOW)
    assert ">blocked<" in shown["index.html"]


def test_what_is_not_met_stands_first_on_the_overview(pages: dict[str, str]) -> None:
    text = " ".join(Page(pages["index.html"]).text.split())
    assert "Not met sales retail quantity is at least 0 1 of 100 · 2017-03-02 warned" in text
    met = quality_pages.render("lake", [record("retail", "sales", results=(result(1),))], NOW)
    assert "Not met" not in Page(met["index.html"]).text
