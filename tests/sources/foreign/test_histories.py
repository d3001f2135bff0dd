"""Random histories of somebody else's table, cut into batches anywhere: the rows are always its."""

import random
from collections.abc import Callable

import pytest
from tests.sources.foreign.conftest import Crm, Following, Made

from sluice.errors import ExitCode, HistoryLost

Op = Callable[[Crm, random.Random], None]
KEYED = "key: [id]"


def _row(chance: random.Random, *, of: int = 12) -> dict[str, object]:
    v = chance.choice([None, *range(4)])
    return {"id": chance.randrange(of), "v": v, "part": chance.choice(["a b", "c/d", "é", None])}


def _append(crm: Crm, chance: random.Random) -> None:
    taken = {row[0] for row in crm.rows("id")}
    fresh = chance.sample([n for n in range(40) if n not in taken], 3)
    crm.append(*({**_row(chance), "id": n} for n in fresh))


def _merge(crm: Crm, chance: random.Random) -> None:
    rows = {n: {**_row(chance), "id": n} for n in chance.sample(range(40), 4)}
    crm.merge(*rows.values())


def _update(crm: Crm, chance: random.Random) -> None:
    crm.table.update(updates={"v": "v + 1"}, predicate=f"id % 3 = {chance.randrange(3)}")


def _delete(crm: Crm, chance: random.Random) -> None:
    crm.table.delete(f"id % 4 = {chance.randrange(4)}")


def _optimize(crm: Crm, _chance: random.Random) -> None:
    crm.table.optimize.compact()


def _overwrite(crm: Crm, chance: random.Random) -> None:
    rows = {n: {**_row(chance), "id": n} for n in chance.sample(range(40), 5)}
    crm.write(rows.values(), "overwrite")


def _restore(crm: Crm, chance: random.Random) -> None:
    if newest := crm.table.version():
        crm.table.restore(chance.randrange(newest))


def _widen(crm: Crm, chance: random.Random) -> None:
    table = crm.table
    name = f"more{table.version()}"
    table.alter.add_columns([_field(name)])


def _field(name: str) -> object:
    from deltalake.schema import Field, PrimitiveType

    return Field(name, PrimitiveType("string"), nullable=True)


OPS: tuple[Op, ...] = (
    *(_append, _append, _merge, _merge, _update, _delete),
    *(_optimize, _overwrite, _restore, _widen),
)


@pytest.mark.parametrize("seed", range(8))
def test_the_rows_are_the_tables_after_any_history(following: Made, seed: int) -> None:
    chance = random.Random(seed)
    extra = KEYED if seed % 2 else ""
    bounds = f", max_rows: {chance.choice([1, 5, 1000])}"
    lake = following("id BIGINT, part STRING, v BIGINT", extra=extra, bounds=bounds)
    by = ["part"] if seed % 3 == 0 else []
    lake.crm.create(*({**_row(chance), "id": n} for n in range(8)), feed=seed % 4 < 2, by=by)
    for _ in range(5):
        for op in chance.choices(OPS, k=chance.randrange(4)):
            op(lake.crm, chance)
        before = lake.crm.digest()
        lake.take()
        assert lake.crm.digest() == before
        lake.check()
        assert lake.place().upto == lake.crm.table.version()
        assert all(report.outcome == "unchanged" for report in lake.take())


@pytest.mark.parametrize("seed", range(6))
def test_a_vacuum_is_survived_or_named(following: Made, seed: int) -> None:
    """Its owner deletes every file that the newest version does not need."""
    chance = random.Random(100 + seed)
    lake = following("id BIGINT, part STRING, v BIGINT", extra=KEYED if seed % 2 else "")
    lake.crm.create(*({**_row(chance), "id": n} for n in range(8)), feed=seed % 3 == 0)
    lake.take()
    for op in chance.choices(OPS, k=2):
        op(lake.crm, chance)
    lake.crm.table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    before = lake.versions("events", "events__deliveries")
    try:
        lake.take()
    except HistoryLost as lost:
        said = lost
    else:
        said = None
    if said:
        assert (said.exit_code, "--as-landed" in said.hint) == (ExitCode.HISTORY, True)
        assert lake.versions("events", "events__deliveries") == before
        lake.rebuild(as_landed=True)
    lake.check()
    _append(lake.crm, chance)
    lake.take()
    lake.check()


def test_only_the_difference_goes_on(following: Made) -> None:
    """A commit that rewrites a file brings the rows that differ, with a key and without one."""
    lake = following(extra=KEYED)
    lake.crm.create(*({"id": n, "v": n} for n in range(100)))
    lake.take()
    lake.crm.table.update(updates={"v": "v + 1"}, predicate="id = 7")
    deliveries, source = lake.take()
    assert (deliveries.inserted, source.updated) == (1, 1)
    lake.crm.table.optimize.compact()
    deliveries, source = lake.take()
    assert (deliveries.inserted, source.outcome) == (0, "unchanged")


def test_equal_rows_are_counted(following: Made) -> None:
    lake = following()
    lake.crm.create({"id": 1, "v": 1}, {"id": 1, "v": 1}, {"id": 2, "v": 2})
    lake.take()
    lake.crm.append({"id": 1, "v": 1})
    lake.take()
    assert lake.values() == {(1, 1): 3, (2, 2): 1}
    lake.crm.write([{"id": 1, "v": 1}], "overwrite")
    lake.take()
    assert lake.values() == {(1, 1): 1}


def test_batches_are_bounded_by_whole_commits(following: Made) -> None:
    lake = following(bounds=", max_rows: 4")
    lake.crm.create({"id": 0, "v": 0})
    lake.take()
    for n in (2, 2, 3, 9, 1):
        lake.crm.append(*({"id": n, "v": n} for _ in range(n)))
    reports = [r for r in lake.take() if r.table.endswith("__deliveries")]
    assert [r.rows_in for r in reports] == [4, 3, 9, 1]
    lake.check()


def _spoil(lake: Following) -> None:
    lake.crm.append({"id": 5, "v": None}, {"id": 6, "v": 6})


def test_bad_rows_wait_in_quarantine_until_they_are_mended(following: Made) -> None:
    rule = (
        "expect: [{type: expect_column_values_to_not_be_null, column: v, on_failure: quarantine}]"
    )
    lake = following(extra=f"{KEYED}\n{rule}")
    lake.crm.create({"id": 1, "v": 1}, {"id": None, "v": 1})
    lake.take()
    _spoil(lake)
    lake.take()
    assert lake.values() == {(1, 1): 1, (6, 6): 1}
    reasons = {q["reason"]: q["file"] for q in lake.quarantine()}
    assert reasons == {
        "expected that v is not null": f"{lake.crm.path} at version 1",
        "key column id is null": f"{lake.crm.path} at version 0",
    }
    lake.crm.table.update(updates={"v": "50"}, predicate="id = 5")
    lake.crm.table.delete("id = 1")
    lake.take()
    assert lake.values() == {(5, 50): 1, (6, 6): 1}
    lake.declare(lake.declared_without(rule))
    lake.replay()
    assert lake.values() == {(5, 50): 1, (6, 6): 1}
    assert [q["reason"] for q in lake.quarantine()] == ["key column id is null"]


def test_rows_without_a_key_leave_nothing_when_they_go(following: Made) -> None:
    lake = following(extra=KEYED)
    lake.crm.create({"id": 1, "v": 1}, {"id": None, "v": 1})
    lake.take()
    lake.crm.table.update(updates={"v": "2"}, predicate="id is null")
    lake.take()
    assert [row["file"][-9:] for row in lake.quarantine()] == ["version 0", "version 1"]
    lake.crm.table.delete("id is null")
    lake.crm.append({"id": 2, "v": 2})
    deliveries, _ = lake.take()
    assert (deliveries.rows_in, deliveries.quarantined) == (1, 0)
    assert lake.values() == {(1, 1): 1, (2, 2): 1}
    assert len(lake.quarantine()) == 2
