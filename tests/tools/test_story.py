"""What the demo shows of changes and of progress."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

import landing
import story
from board import Told
from sluice.read.changelog import CHANGE_TYPE

TOOLS = Path(story.__file__).parent


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
    unranked = [{CHANGE_TYPE: "insert", "name": name} for name in "cab"]
    assert story.by_rank(unranked) == unranked


def test_no_update_is_shown_without_its_new_row() -> None:
    rows = [change("insert", 1, "a"), change("update_preimage", 2, "b")]
    assert [story._whole(rows, most) for most in (0, 1, 2, 5)] == [0, 1, 1, 1]


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


GATE = """
import landing, story
from pathlib import Path
from sluice.declare.project import load
from sluice.read.lake import Lake

project, landed, day = load("config"), Path("landing"), landing.SPOILED_DAY
lake = Lake(project)
story.quarantined(lake, "coupon_redemptions")
landing.split(landed, day, day + landing.timedelta(days=1))
story.committed(story.replayed(project, "coupon_redemptions"))
print("still:", len(list(lake.table("coupon_redemptions__quarantine").read())))
"""


def test_quarantined_rows_come_in_once_mended(tmp_path: Path, remote: str) -> None:
    def python(*arguments: str) -> str:
        more = {"PYTHONPATH": str(TOOLS), "SPARK_REMOTE": remote, "COLUMNS": "160"}
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    day = landing.SPOILED_DAY
    bounds = ("--start", str(day), "--end", str(day + timedelta(days=1)))
    python("-m", "sluice.cli.main", "init", "--example", "retail")
    python("tools/landing.py", *bounds)
    python("tools/landing.py", "--spoil", str(day))
    python("-m", "sluice.cli.main", "run", "retail", *bounds)
    said = python("-c", GATE)
    reasons = [cells(line)[0] for line in said.splitlines() if '"campaign_id"' in line]
    assert reasons[:2] == [
        "column campaign_id: n/a is not a valid INT",
        "column redemption_date: 2017-02-30 is not a valid DATE",
    ]
    assert reasons[2].endswith("household_id is not null")
    came = {cells(line)[0]: cells(line)[1] for line in said.splitlines() if line.count("│") == 5}
    assert came["retail.coupon_redemptions"] == came["retail.campaign_events"] == "3"
    assert "still: 0" in said


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("│").split("│")]
