"""Unusual batches are reported without configuration, by counts that are kept."""

import random

from tests.gate.outcomes.days import kept

from sluice.gate.anomalies import around, unusual
from sluice.gate.counts import BatchCounts


def days(*rows: int, **nulls: int) -> list[BatchCounts]:
    return [BatchCounts(n, n, nulls) for n in rows]


def test_a_batch_far_below_the_others_is_reported_with_the_numbers() -> None:
    assert unusual(BatchCounts(12), days(*range(90, 110, 2))) == [
        "12 rows arrived, usually 99 (median of 10 batches; from 39 to 159 is not unusual)"
    ]


def test_a_batch_within_the_usual_range_is_not_reported() -> None:
    past = days(*range(90, 110, 2))
    assert [n for n in range(200) if unusual(BatchCounts(n), past) == []] == list(range(40, 159))


def test_few_batches_say_nothing() -> None:
    assert unusual(BatchCounts(0), days(*[1000] * 7)) == []
    assert unusual(BatchCounts(0), days(*[1000] * 8)) != []


def test_weekends_and_one_wild_day_widen_nothing_and_are_not_reported() -> None:
    weeks = days(*[1000, 1050, 980, 1010, 1020, 1900, 2100] * 4)
    assert unusual(BatchCounts(2000), weeks) == []
    assert unusual(BatchCounts(2000), [*weeks[1:], BatchCounts(90_000)]) == []
    assert unusual(BatchCounts(9000), [*weeks[1:], BatchCounts(90_000)]) != []


def test_small_counts_vary_by_chance() -> None:
    assert unusual(BatchCounts(0), days(*[4, 3, 5, 4, 4, 2, 6, 4])) == []
    rng = random.Random(7)
    for _ in range(200):
        poisson = [sum(rng.random() < 0.02 for _ in range(1000)) for _ in range(21)]
        assert unusual(BatchCounts(poisson[0]), days(*poisson[1:])) == []


def test_a_burst_of_a_few_rows_is_not_reported_and_a_flood_is() -> None:
    redeemed = days(*[2, 0, 3, 1, 5, 0, 2, 1, 3])
    assert [n for n in range(1000) if unusual(BatchCounts(n), redeemed) == []] == list(range(101))


def test_batches_that_are_mostly_empty_have_no_usual_count() -> None:
    campaigns = days(*[0] * 8, 1100)
    assert unusual(BatchCounts(1077), campaigns) == []
    assert unusual(BatchCounts(0), campaigns) == []


def test_a_day_without_rows_is_reported_where_each_had_some() -> None:
    (told,) = unusual(BatchCounts(0), days(*[60] * 9))
    assert told.startswith("0 rows arrived, usually 60")


def test_nulls_where_there_were_none_are_reported() -> None:
    past = [BatchCounts(1000, None, {"item": 0, "price": 500})] * 9
    assert unusual(BatchCounts(1000, None, {"item": 300, "price": 510}), past) == [
        (
            "item is null in 30 % of 1,000 rows, usually in 0 % (median of 9 batches;"
            " from 0 % to 6 % is not unusual)"
        )
    ]


def test_a_column_that_vanished_is_reported_at_once() -> None:
    past = [BatchCounts(30, None, {"item": 2, "rare": 30})]
    assert unusual(BatchCounts(20, None, {"item": 20, "rare": 20}), past) == [
        "item is null in all of 20 rows, and had values in every batch before"
    ]
    assert unusual(BatchCounts(19, None, {"item": 19}), past) == []
    assert unusual(BatchCounts(20, None, {"item": 19}), past) == []
    assert unusual(BatchCounts(20, None, {"item": 20}), []) == []


def test_a_null_in_a_batch_of_a_few_rows_is_not_reported() -> None:
    past = [BatchCounts(1000, None, {"item": 0})] * 9
    assert (
        unusual(BatchCounts(4, None, {"item": 1}), [*past, *days(4, 4, 4, 4, 4, 4, 4, 4, 4, 4)])
        == []
    )


def test_a_column_that_is_new_has_no_history() -> None:
    assert unusual(BatchCounts(100, None, {"added": 100}), days(*[100] * 9)) == []


def test_repeated_keys_among_as_many_rows_are_reported() -> None:
    (told,) = unusual(BatchCounts(1000, 100), days(*[1000] * 9))
    assert told.startswith("100 different keys arrived, usually 1,000")


def test_fewer_rows_have_fewer_keys_which_is_reported_once() -> None:
    (told,) = unusual(BatchCounts(100, 100), days(*[1000] * 9))
    assert told.startswith("100 rows arrived")


def test_an_old_interval_is_compared_with_its_neighbours() -> None:
    past = [kept(nth, rows=nth) for nth in range(100)]
    near = [f.rows for f in around(kept(20), past)]
    assert sorted(near) == [*range(6, 20), *range(21, 35)]
