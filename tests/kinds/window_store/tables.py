"""Small window stores to read."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
from hypothesis import strategies as st
from tests.read.tables import day, keyed, write

from sluice.kinds.window_store.reader import ReadOnlyWindowStore

SCHEMA = pa.schema(
    [
        ("user", pa.int32()),
        ("window_start", pa.timestamp("us", "UTC")),
        ("what", pa.string()),
        ("_sluice_id", pa.string()),
        ("_sluice_day", pa.date32()),
    ]
)
START = datetime(1969, 12, 30, tzinfo=UTC)
times = st.integers(0, 4 * 86_400).flatmap(
    lambda s: st.sampled_from([0, 1, 999, 999_999]).map(
        lambda us: START + timedelta(seconds=s // 7_200 * 7_200, microseconds=us)
    )
)
rows_of_commits = st.lists(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(1, 4)), times, st.sampled_from("abc")),
        min_size=1,
        max_size=15,
    ),
    min_size=1,
    max_size=4,
)


def table_of(rows, start=0):
    return pa.Table.from_pylist(
        [
            {
                "user": user,
                "window_start": at,
                "what": what,
                "_sluice_id": f"{start + i:05}",
                "_sluice_day": at.date(),
            }
            for i, (user, at, what) in enumerate(rows)
        ],
        SCHEMA,
    )


def store_at(uri, **settings_):
    return ReadOnlyWindowStore(
        keyed(uri, "user", "window_start", "_sluice_id"), ("user",), **settings_
    )


def newest_first_layout(commits, folder):
    """As a sealed day lies: by key, newest first within a key, small row groups."""
    start = 0
    for rows in commits:
        part = table_of(rows, start).sort_by(
            [("user", "ascending"), ("window_start", "descending")]
        )
        write(f"{folder}/t", part, partition_by=["_sluice_day"], group_rows=3)
        start += len(rows)
    return store_at(f"{folder}/t")


def month(tmp_path, users=20, per_day=200):
    """Thirty days, each one sorted file of several row groups."""
    for number in range(1, 31):
        rows = [
            (i % users, day(number) + timedelta(seconds=i * 60), "rare" if i % 97 == 0 else "usual")
            for i in range(per_day)
        ]
        part = table_of(rows, number * per_day)
        part = part.sort_by([("user", "ascending"), ("window_start", "descending")])
        write(tmp_path / "t", part, partition_by=["_sluice_day"], group_rows=50)
    return store_at(tmp_path / "t")


def visits(days):
    return pa.table(
        {
            "user_id": pa.array([1] * len(days), pa.int32()),
            "window_start": pa.array([day(d) for d in days], pa.timestamp("us", "UTC")),
            "what": ["x"] * len(days),
            "_sluice_interval": pa.array([day(d) for d in days], pa.timestamp("us", "UTC")),
            "_sluice_id": [str(d) for d in days],
        }
    )
