"""What may succeed is tried again, with a report; what can't is not."""

from pathlib import Path
from typing import Any

import pytest
from tests.dimensions.things import declared, landed
from tests.support.landed import NewLanded

from sluice.delta.reading.landing import list_files
from sluice.dimensions import load as loading
from sluice.engine import retries
from sluice.errors import QualityStop, Retryable
from sluice.files.filehead import head_of
from sluice.files.reading import read_files


def test_transient_faults_are_tried_again_and_reported(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0, 0.0))
    lake = new_landed(declared())
    faults = [OSError("Connection refused"), OSError("java.sql.SQLTransientException: busy")]

    def failing(*given: Any) -> Any:
        if faults:
            raise faults.pop()
        return read_files(*given)

    monkeypatch.setattr(loading, "read_files", failing)
    report = landed(lake, {"id": 1})
    assert [w.partition(": ")[0] for w in report.warnings] == ["tried again after 0 s"] * 2
    assert len(lake.rows("things")) == 1


@pytest.mark.parametrize(
    "said",
    [
        "FATAL: sorry, too many clients already",
        "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL: the database system is not yet accepting connections",
        "ERROR: canceling statement due to lock timeout",
        "ERROR: canceling statement due to conflict with recovery",
        "ERROR: could not serialize access due to concurrent update",
        "This connection has been closed.",
        "AWS Error NETWORK_CONNECTION during List: curlCode: 7, Couldn't connect to server",
        "Error reading bytes from file. Detail: [errno 5] Input/output error",
    ],
)
def test_what_a_store_says_while_it_is_busy_or_away_is_worth_a_retry(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Retryable), retries.naming_faults("shop.things"):
        raise ValueError(f"org.postgresql.util.PSQLException: {said}")
    (tmp_path / "a.parquet").write_bytes(b"")
    (file,) = list_files(str(tmp_path))

    def failing(*_: Any, **__: Any) -> None:
        raise OSError(said)

    monkeypatch.setattr("sluice.files.filehead.pq.ParquetFile", failing)
    with pytest.raises(Retryable, match="can't be read now"):
        head_of(file, "parquet", {})


def test_a_fault_that_has_its_name_keeps_it_whatever_words_it_repeats() -> None:
    lacking = QualityStop("shop.things: file a.csv lacks the declared column(s) deadlock")
    with pytest.raises(QualityStop), retries.naming_faults("shop.things"):
        raise lacking


def test_a_file_that_another_one_replaces_while_it_is_read_is_not_waited_for(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    lake, due = new_landed(declared()), loading.choose_files

    def replacing(*given: Any, **more: Any) -> Any:
        lake.land("things", b_json=[{"id": 2}])
        return due(*given, **more)

    monkeypatch.setattr(loading, "choose_files", replacing)
    report = landed(lake, {"id": 1})
    assert ["it disappeared before it was read" in warning for warning in report.warnings] == [True]
    assert [row["id"] for row in lake.rows("things")] == [2]


def test_a_fault_that_stays_is_worth_a_retry_of_the_task_and_a_lasting_one_is_not(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PAUSES", (0.0,))
    lake = new_landed(declared())
    raised: list[Exception] = [OSError("Connection refused")]

    def failing(*_: Any) -> Any:
        raise raised[0]

    monkeypatch.setattr(loading, "read_files", failing)
    with pytest.raises(Retryable, match="Connection refused"):
        landed(lake, {"id": 1})
    raised[0] = ValueError("no such table")
    with pytest.raises(ValueError, match="no such table"):
        landed(lake, {"id": 1})
