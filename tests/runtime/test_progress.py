"""What a long computation says of itself."""

from types import SimpleNamespace

import pytest

from sluice.runtime import progress
from sluice.runtime.progress import Progress


def stage(done: int) -> SimpleNamespace:
    return SimpleNamespace(num_tasks=8, num_completed_tasks=done, num_bytes_read=5_000_000)


def test_only_an_operation_that_lasts_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter((0.0, 29.0, 31.0, 60.0, 62.0, 63.0))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    hear = Progress()
    for operation in "aabb":
        hear([stage(1)], 2, operation, False)
    assert capsys.readouterr().out == ""
    hear([stage(3), stage(2)], 2, "b", False)
    hear([stage(4), stage(2)], 2, "b", False)
    told = "so far 5 of 16 Spark tasks done, 2 running, 10 MB read\n"
    assert capsys.readouterr().out == told
