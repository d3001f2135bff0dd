"""Batches of messages beyond the limit of this process are Spark's, and give the same rows."""

from collections.abc import Callable

from tests.sources.kafka.conftest import Topical

from sluice.spark.engine import PROCESS, SPARK


def test_a_batch_gives_the_same_rows_by_either_engine(topical: Callable[..., Topical]) -> None:
    schema = "id INT, at TIMESTAMP, paid DECIMAL(12,2)"
    rows = [{"id": n, "at": f"2024-05-0{n}T10:00:00Z", "paid": f"{n}.5"} for n in range(1, 5)]
    found = []
    for most, engine in ((256_000_000, PROCESS), (-1, f"{SPARK}: 0.0 MB are read at once")):
        lake = topical(schema).limit(computed_here_bytes=most)
        lake.send(*rows, {"id": 9, "at": "1 May", "paid": "1e2"}, {"id": "x"})
        (report,) = lake.take()
        assert (report.engine, report.inserted, report.quarantined) == (engine, 4, 2)
        found.append((lake.values(), [bad["reason"] for bad in lake.quarantine()]))
    assert found[0] == found[1]
