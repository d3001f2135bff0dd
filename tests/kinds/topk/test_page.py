"""A top-k's rankings on Airflow's page: the largest leaders, as bars that link to the reasons."""

from pathlib import Path

import pyarrow as pa
from tests.kinds.topk.tables import LEADERS, ranked
from tests.read.tables import project_at, write_table

from sluice.kinds.topk.page import SHOWN, chapters
from sluice.pages import Bars, Cards, Chapter, Page, html
from sluice.read.lake import Lake


def block(folder: Path, rows: pa.Table) -> list[Chapter]:
    """Return what the page of `leaders` shows of these rows."""
    project = project_at(folder)
    write_table(project, "leaders", rows)
    table = project.graph.table("leaders")
    return list(chapters(Lake(project), table, lambda names: "&".join(map("=".join, names))))


def shown(folder: Path, rows: pa.Table) -> list[Bars]:
    """Return the rankings among them."""
    parts = [part for chapter in block(folder, rows) for part in chapter.parts]
    return [bars for part in parts if isinstance(part, Cards) for bars in part.cards]


def test_a_bar_is_as_long_as_its_share_of_the_largest(tmp_path: Path) -> None:
    found = {bars.title: bars.bars for bars in shown(tmp_path, ranked(LEADERS))}
    assert [*found] == ["DELI", "MEAT", "–"]
    assert [(bar.rank, bar.value, bar.share) for bar in found["DELI"]] == [
        (1, "9.50", 1.0),
        (2, "5.00", 0.5263),
    ]


def test_a_leader_links_to_why_it_is_there_if_texts_can_name_it(tmp_path: Path) -> None:
    found = {bars.title: bars.bars[0].label.href for bars in shown(tmp_path, ranked(LEADERS))}
    assert found == {"DELI": "key=DELI&key=1", "MEAT": "key=MEAT&key=3", "–": ""}


def test_rankings_with_the_largest_leaders_are_shown(tmp_path: Path) -> None:
    many = [(f"d{n}", n, f"{n}.00", 1) for n in range(1, SHOWN + 3)]
    assert [bars.title for bars in shown(tmp_path, ranked(many))] == [
        f"d{n}" for n in range(3, SHOWN + 3)
    ]


def test_rankings_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    many = [(f"d{n:02}", n, f"{n}.00", 1) for n in range(1, 11)]
    said = html(Page("", "", (), block(tmp_path / "a", ranked(many)), ""))
    assert "6 of 10 groups, those with the largest leaders" in said
    assert "sluice top shop.leaders" in said
    few = html(Page("", "", (), block(tmp_path / "b", ranked(many[:SHOWN])), ""))
    assert "groups" not in few.partition("<body>")[2]


def test_a_table_without_rows_has_no_block(tmp_path: Path) -> None:
    assert shown(tmp_path, ranked(LEADERS).slice(0, 0)) == []
