"""Changes of rows in this process, against a comparison row by row."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from sluice.changes.diff import CHANGE, CHANGE_TYPE, WEIGHT
from sluice.kinds.lookup.few import arrow_diff, arrow_net

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("x", pa.float64()),
        ("d", pa.decimal128(6, 2)),
        ("on", pa.bool_()),
    ]
)
NAN = float("nan")
VALUES = st.fixed_dictionaries(
    {
        "x": st.sampled_from([None, 0.0, 1.0, NAN]),
        "d": st.sampled_from([None, Decimal("1.00"), Decimal("2.00")]),
        "on": st.sampled_from([None, True]),
    }
)
ROWS = st.dictionaries(st.tuples(st.integers(1, 3), st.sampled_from("ab")), VALUES)


def table(rows: dict[Any, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"id": i, "part": p, **v} for (i, p), v in rows.items()], SCHEMA)


@given(old=ROWS, new=ROWS)
def test_it_is_what_a_look_at_each_row_shows(old: Any, new: Any) -> None:
    found = arrow_diff(table(old), table(new), ["id", "part"])
    assert found is not None
    came = {("insert", key, text(new[key])) for key in new.keys() - old.keys()}
    went = {("delete", key, text(old[key])) for key in old.keys() - new.keys()}
    same = new.keys() & old.keys()
    changed = {("update", key, text(new[key])) for key in same if text(new[key]) != text(old[key])}
    assert Counter(came | went | changed) == Counter(
        (row[CHANGE], (row["id"], row["part"]), text(row)) for row in found.to_pylist()
    )


def text(row: dict[str, Any]) -> str:
    """Of its values: NaN is the same as NaN."""
    return str([row[name] for name in ("x", "d", "on")])


def test_keys_that_may_be_equal_otherwise_in_spark_are_left_to_it() -> None:
    for column in (pa.array([0.0]), pa.array([None], pa.int64()), pa.array([[1]])):
        rows = pa.table({"id": column})
        assert arrow_diff(rows, rows, ["id"]) is None
    nested = pa.table({"id": [1], "v": [[1]]})
    assert arrow_diff(nested, nested, ["id"]) is None


CHANGES = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from([None, 1, 2]),
            "v": st.sampled_from([None, "x"]),
            CHANGE_TYPE: st.sampled_from(
                ["insert", "delete", "update_preimage", "update_postimage"]
            ),
        }
    )
)
FEED = pa.schema([("id", pa.int64()), ("v", pa.string()), (CHANGE_TYPE, pa.string())])


@given(changes=CHANGES)
def test_what_came_and_went_in_between_cancels_out(changes: list[dict[str, Any]]) -> None:
    found = arrow_net(pa.Table.from_pylist(changes, FEED), ["id", "v"])
    assert found is not None
    expected: Counter[Any] = Counter()
    for change in changes:
        comes = change[CHANGE_TYPE] in ("insert", "update_postimage")
        expected[change["id"], change["v"]] += 1 if comes else -1
    weights = {(r["id"], r["v"]): r[WEIGHT] for r in found.to_pylist()}
    assert weights == {row: n for row, n in expected.items() if n}
