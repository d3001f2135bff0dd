"""Bad input is quarantined or refused with its reason; no row that was read is in neither table."""

from pathlib import Path

import pytest
from tests.support.landed import ALLOWED, NewLanded, day, folder_of

from sluice.delta.note_tables import read_rows
from sluice.delta.places.lake_layout import layout
from sluice.errors import ExitCode, QualityStop
from sluice.sources import replacement

NOT_NULL = "{type: expect_column_values_to_not_be_null, column: v, on_failure: %s}"


def declared(extra: str = "", format_: str = "json", schema: str = "id INT, v INT") -> str:
    path = "landing/{interval_start:%Y-%m-%d}/"
    return (
        f"sources:\n  events: {{path: '{path}', format: {format_}, schema: '{schema}', "
        f"key: [id]{', ' + extra if extra else ''}}}\n"
    )


def expecting(*on_failure: str) -> str:
    return f"expect: [{', '.join(NOT_NULL % how for how in on_failure)}]"


def test_a_missing_folder_is_an_interval_without_rows_and_a_warning(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    report = lake.deliver()[0]
    assert report.warnings == (
        "shop.events: nothing was delivered for 2024-01-01; the interval has no rows",
    )
    assert lake.noted() == {day(0): (0, 0, 0)}
    assert lake.rows("events") == []
    lake.land(folder_of(0), a_json=[{"id": 1}])
    lake.deliver()
    lake.land(folder_of(0))
    lake.deliver(run=ALLOWED)
    assert lake.rows("events") == []


def test_rows_read_are_accepted_or_in_quarantine_with_their_reason(new_landed: NewLanded) -> None:
    lake = new_landed(declared(expecting("quarantine")))
    lake.land(
        folder_of(0),
        a_json='{"id":1,"v":1}\n{"id":"x"}\n{"v":3}\n{"id":4}\nnonsense\n',
        b_json='{"id":5,"v":"é"}\n'.encode("latin-1"),
    )
    report = lake.deliver()[0]
    assert report.quarantined == 5
    assert lake.rows("events") == [{"id": 1, "v": 1}]
    assert lake.noted() == {day(0): (6, 1, 5)}
    assert [(q["reason"], q["raw"]) for q in lake.quarantine()] == [
        ("column id: x is not a valid INT", '{"id":"x"}'),
        ("does not parse as the declared schema", "nonsense"),
        ("expected that v is not null", '{"id":4,"v":null}'),
        ("has bytes that are invalid in the encoding", '{"id":5,"v":"\ufffd"}'),
        ("key column id is null", '{"id":null,"v":3}'),
    ]
    assert {q["_sluice_interval"] for q in lake.quarantine()} == {day(0).start}
    assert all(q["file"].endswith(".json") for q in lake.quarantine())


def test_quarantine_of_an_interval_is_emptied_by_a_good_delivery(new_landed: NewLanded) -> None:
    lake = new_landed(declared())
    for nth in range(2):
        lake.land(folder_of(nth), a_json='{"id":"x"}\n')
        lake.deliver(nth)
    assert len(lake.quarantine()) == 2
    lake.land(folder_of(0), a_json=[{"id": 1}])
    lake.deliver(0)
    assert [q["_sluice_interval"] for q in lake.quarantine()] == [day(1).start]
    lake.land(folder_of(1))
    lake.deliver(1)
    assert lake.quarantine() == []


def test_quarantine_is_committed_first(
    new_landed: NewLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = new_landed(declared())
    lake.land(folder_of(0), a_json='{"id":1}\n{"id":"x"}\n')

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError("power cut")

    with monkeypatch.context() as patched:
        patched.setattr(replacement, "write", crash)
        with pytest.raises(RuntimeError, match="power cut"):
            lake.deliver()
    assert len(lake.quarantine()) == 1
    assert lake.noted() == {}
    lake.deliver()
    assert (len(lake.quarantine()), len(lake.rows("events"))) == (1, 1)


def test_a_stop_commits_nothing_and_keeps_its_result(new_landed: NewLanded) -> None:
    lake = new_landed(declared(expecting("stop")))
    lake.land(folder_of(0), a_json='{"id":1}\n{"id":"x"}\n')
    with pytest.raises(QualityStop, match="v is not null") as stopped:
        lake.deliver()
    assert stopped.value.exit_code == ExitCode.QUALITY
    assert lake.quarantine() == []
    assert lake.noted() == {}
    assert not Path(lake.uri("events__deliveries")).exists()
    (result,) = read_rows(f"{layout(lake.project).root}/__quality/results")
    assert not result["success"]
