"""Where no terminal watches, a long run reports its tenths."""

from dataclasses import replace

import pytest

from sluice.cli.progress import LONG, Steps, not_done, summary
from sluice.engine import BatchReport
from sluice.terminal.output import Format


def told(count: int, capsys: pytest.CaptureFixture[str], *, visible: bool = True) -> list[str]:
    with Steps(count, visible) as steps:
        for _ in range(count):
            steps.add(BatchReport("shop.best", "topk", "committed"))
    return capsys.readouterr().err.splitlines()


def test_long_runs_report_each_tenth(capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(LONG, capsys)
    assert len(lines) == 10
    assert (lines[0], lines[-1]) == (
        f"{LONG // 10} of {LONG} steps: shop.best",
        f"{LONG} of {LONG} steps: shop.best",
    )


def test_short_runs_and_programs_report_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(LONG - 1, capsys) == []
    assert told(LONG, capsys, visible=False) == []


def test_rows_that_came_too_late_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    late = BatchReport("shop.visits__state", "cogroup", "committed", expired=37)
    summary([late, BatchReport("shop.visits", "cogroup", "committed", inserted=5)], Format.TABLE)
    told = capsys.readouterr().out
    assert "expired" in told
    assert "37" in told


def test_what_spark_has_computed_is_named_with_the_first_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = BatchReport(
        "shop.best", "topk", "committed", engine="spark: 300.0 MB are read at once"
    )
    by_settings = BatchReport("shop.seen", "select", "committed", engine="spark")
    summary([report, replace(report, engine="spark: a value"), by_settings], Format.TABLE)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "left to Spark: shop.best (300.0 MB are read at once)"
    )


def test_intervals_without_files_are_one_warning(capsys: pytest.CaptureFixture[str]) -> None:
    report = BatchReport("shop.sales", "source", "position", is_absent=True, warnings=("none",))
    days = [(f"2024-01-0{n}T00:00:00+00:00", f"2024-01-0{n + 1}T00:00:00+00:00") for n in (1, 2, 5)]
    summary([replace(report, interval=day) for day in days], Format.TABLE)
    assert capsys.readouterr().err.splitlines() == [
        (
            "warning: shop.sales: nothing was delivered for [2024-01-01, 2024-01-03) "
            "(2 intervals), [2024-01-05, 2024-01-06) (1 interval); these intervals have no rows"
        )
    ]
    summary([replace(report, interval=days[0])], Format.TABLE)
    assert capsys.readouterr().err == "warning: none\n"


def test_what_was_not_delivered_is_named_in_the_pipelines_own_time() -> None:
    bounds = (("2024-01-01T23:00:00+00:00", "2024-01-02T23:00:00+00:00"),)
    report = BatchReport("shop.sales", "source", "failed", undelivered=bounds)
    assert not_done(report).endswith(
        "[2024-01-01T23:00:00+00:00, 2024-01-02T23:00:00+00:00) (1 interval)"
    )
    local = not_done(replace(report, timezone="Europe/Berlin"))
    assert local.endswith("[2024-01-02T00:00:00+01:00, 2024-01-03T00:00:00+01:00) (1 interval)")
