"""Rows of a key that differ in one delivery are reported, quarantined, or stop the batch."""

from collections.abc import Callable

import pytest
from tests.support.landed import Landed, NewLanded, Row, day, folder_of

from sluice.errors import ConfigError, ExitCode, QualityStop

Lakes = Callable[..., Landed]
POSITIVE = "{type: expect_column_values_to_be_between, column: v, min_value: 0"


@pytest.fixture
def lakes(new_landed: NewLanded) -> Lakes:
    """A lake whose source has a key, and these settings beside it."""

    def lakes(more: str = "") -> Landed:
        common = "path: 'landing/{interval_start:%Y-%m-%d}/', format: json, key: [id, g]"
        schema = "schema: 'id INT, g STRING, v INT, m MAP<STRING, INT>'"
        return new_landed(f"sources:\n  events: {{{common}, {schema}, {more}}}\n")

    return lakes


def row(id_: int, v: int | None, g: str | None = "a", **m: int) -> Row:
    return {"id": id_, "g": g, "v": v, "m": m}


def warned(lake: Landed, *rows: Row, nth: int = 0) -> tuple[str, ...]:
    """What the delivery of these rows on the nth day warns of."""
    lake.land(folder_of(nth), a_json=list(rows))
    return lake.deliver(nth)[0].warnings


def values(lake: Landed) -> dict[int, int | None]:
    return {found["id"]: found["v"] for found in lake.rows("events")}


def test_the_last_stands_and_is_reported_with_the_count_and_a_key(lakes: Lakes) -> None:
    lake = lakes()
    rows = [row(1, 1), row(2, 5), row(1, 2), row(3, 7, q=1), row(1, 3), row(3, 7, q=2)]
    assert warned(lake, *rows) == (
        (
            "shop.events [2024-01-01, 2024-01-02): 5 rows of 2 keys differ within the delivery, "
            'e.g. of {"id":1,"g":"a"}; '
            "the last of each is taken (`on_conflict` can change this)"
        ),
    )
    assert values(lake) == {1: 3, 2: 5, 3: 7}
    assert lake.quarantine() == []
    assert lake.noted()[day(0)] == (6, 6, 0)


def test_rows_that_are_alike_are_repeats(lakes: Lakes) -> None:
    lake = lakes("on_conflict: fail")
    none = row(2, None)
    assert warned(lake, row(1, 1, q=1), row(1, 1, q=1), none, none, row(1, 9, g="b")) == ()
    assert len(lake.rows("events")) == 3


def test_rows_of_two_deliveries_do_not_conflict(lakes: Lakes) -> None:
    lake = lakes("on_conflict: fail")
    assert (warned(lake, row(1, 1)), warned(lake, row(1, 2), nth=1)) == ((), ())
    assert values(lake) == {1: 2}


def test_a_sequence_distinguishes_versions_but_not_rows_of_one_place_in_it(lakes: Lakes) -> None:
    lake = lakes("sequence: [v], on_conflict: quarantine")
    (said,) = warned(lake, row(1, 1), row(1, 2), row(2, 5, q=1), row(2, 5, q=2), row(2, 4))
    assert "2 rows of one key differ within the delivery" in said
    assert values(lake) == {1: 2, 2: 4}


def test_all_that_contradict_each_other_go_to_quarantine(lakes: Lakes) -> None:
    lake = lakes("on_conflict: quarantine")
    assert warned(lake, row(1, 1), row(2, 5)) == ()
    assert warned(lake, row(1, 2), row(1, 3), row(2, 6), nth=1) == (
        (
            "shop.events [2024-01-02, 2024-01-03): 2 rows of one key differ within the delivery: "
            '{"id":1,"g":"a"}; '
            "they are in quarantine"
        ),
    )
    assert values(lake) == {1: 1, 2: 6}, "what stood before stands"
    aside = lake.quarantine()
    assert {found["reason"] for found in aside} == {"rows with the same key (id, g) differ"}
    assert lake.noted()[day(1)] == (3, 1, 2)
    assert warned(lake, row(1, 3), row(2, 6), nth=1) == ()
    assert (values(lake), lake.quarantine()) == ({1: 3, 2: 6}, [])


def test_fail_stops_before_anything_is_committed(lakes: Lakes) -> None:
    lake = lakes("on_conflict: fail")
    warned(lake, row(1, 1))
    with pytest.raises(QualityStop, match="2 rows of one key differ") as stopped:
        warned(lake, row(1, 2), row(1, 3), nth=1)
    assert stopped.value.exit_code is ExitCode.QUALITY
    assert "`sequence`" in stopped.value.hint
    assert (values(lake), list(lake.noted())) == ({1: 1}, [day(0)])


@pytest.mark.parametrize("way", ["last", "quarantine", "fail"])
def test_a_row_that_is_quarantined_contradicts_nobody(lakes: Lakes, way: str) -> None:
    lake = lakes(f"expect: [{POSITIVE}, on_failure: quarantine}}], on_conflict: {way}")
    said = warned(lake, row(1, 1), row(1, -1), {"id": 1, "g": "a", "v": "x"}, row(2, 2))
    assert [what for what in said if "differ" in what] == []
    assert (values(lake), len(lake.quarantine())) == ({1: 1, 2: 2}, 2)


def test_a_key_that_is_null_is_no_conflict(lakes: Lakes) -> None:
    lake = lakes("on_conflict: fail")
    warned(lake, row(1, 1), row(1, 2, g=None), row(1, 3, g=None))
    assert (values(lake), len(lake.quarantine())) == ({1: 1}, 2)


def test_a_choice_among_the_rows_of_a_key_that_was_made_otherwise_is_refused(lakes: Lakes) -> None:
    lake = lakes("sequence: [v]")
    warned(lake, row(1, 1))
    file = lake.folder / "config" / "pipelines" / "shop.yaml"
    lake.declare(file.read_text().replace("sequence: [v]", "sequence: [v, id]"))
    before = lake.versions("events", "events__deliveries")
    with pytest.raises(ConfigError, match=r"built by a definition that differs .*sequence"):
        warned(lake, row(1, 2), nth=1)
    assert lake.versions("events", "events__deliveries") == before
