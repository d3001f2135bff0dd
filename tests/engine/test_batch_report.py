"""What a batch reports of its inputs: the versions of their feeds that it read, or the whole."""

from tests.support.lake import NewLake

DECLARED = """
sources:
  sales: {path: "s/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, v INT"}
  people: {path: "p/{interval_start:%Y-%m-%d}/", key: [id], schema: "id INT, w STRING"}
views:
  named:
    {kind: join, left: sales, right: people, on: id, select: {id: sales.id, w: people.w}}
"""


def test_a_build_reads_its_inputs_whole_and_a_batch_what_has_changed_since(
    new_lake: NewLake,
) -> None:
    lake = new_lake(DECLARED)
    lake.put("sales", {"id": 1, "v": 1})
    lake.put("people", {"id": 1, "w": "x"})
    lake.put("people", {"id": 2, "w": "y"})
    (built,) = lake.advance()
    assert dict(built.inputs) == {"shop.sales": (0, 1), "shop.people": (0, 2)}
    lake.put("sales", {"id": 2, "v": 2})
    (followed,) = lake.advance()
    assert dict(followed.inputs) == {"shop.sales": (1, 2)}
