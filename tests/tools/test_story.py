"""What the demo shows of changes and of progress."""

import pytest

import story
from board import Told
from sluice.read.changes import CHANGE_TYPE


def change(kind: str, rank: int | None, name: str) -> dict[str, object]:
    return {CHANGE_TYPE: kind, "name": name, "rank": rank}


def test_the_best_ranks_are_shown_first_and_an_update_stays_together() -> None:
    rows = [
        change("insert", 3, "a"),
        change("update_preimage", 1, "b"),
        change("update_postimage", 7, "b"),
        change("delete", 9, "c"),
        change("update_preimage", 5, "d"),
        change("update_postimage", 2, "d"),
    ]
    assert [row["name"] for row in story.by_rank(rows)] == ["d", "d", "a", "b", "b", "c"]


def test_no_update_is_shown_without_its_new_row() -> None:
    rows = [change("insert", 1, "a"), change("update_preimage", 2, "b")]
    assert [story._whole(rows, most) for most in (0, 1, 2, 5)] == [0, 1, 1, 1]


def test_changes_without_ranks_stay_as_they_come() -> None:
    rows = [{CHANGE_TYPE: "insert", "name": name} for name in "cab"]
    assert [row["name"] for row in story.by_rank(rows)] == ["c", "a", "b"]


def test_what_takes_time_is_a_plain_line_where_there_is_no_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(story, "console", story.Console(force_terminal=False))
    with story.doing("starting Airflow"):
        assert capsys.readouterr().out == "starting Airflow ...\n"


def test_a_line_is_due_at_once_then_every_ten_tasks_or_seconds() -> None:
    told = Told()
    due = [told.is_due(done, now) for done, now in [(0, 5), (3, 6), (10, 7), (12, 16), (12, 17)]]
    assert due == [True, False, True, False, True]
