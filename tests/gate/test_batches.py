"""Unusual batches of a delivery are reported and kept."""

from tests.gate.conftest import DAY, Shop

from sluice.delta.places.lake_layout import layout
from sluice.gate import counts

GOOD = [{"id": n, "item": "tea", "price": n} for n in range(5)]


def test_an_unusual_batch_is_named_in_its_report_and_kept(shop: Shop) -> None:
    past = [counts.KeptCounts(counts.BatchCounts(5000, 5000), nth, "r", DAY) for nth in range(8)]
    for nth in range(8):
        counts.keep(layout(shop.project), "shop.sales", past[nth], past[:nth])
    shop.land(1, GOOD)
    warnings = shop.deliver(1).warnings
    interval = "[2017-03-02, 2017-03-03)"
    said = f"shop.sales {interval}: 5 rows arrived, usually 5,000"
    assert [w.partition(" (")[0] for w in warnings] == [said]
    kept = counts.read_counts(layout(shop.project), "shop.sales")[-1]
    assert [f"shop.sales {interval}: {text[12:]}" for text in kept.unusual] == [*warnings]
    assert kept.counts == counts.BatchCounts(5, 5, {"id": 0, "item": 0, "price": 0})
