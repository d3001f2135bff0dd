"""Which slices of a table are worth writing again."""

from sluice.delta.writing.filing import Slice
from sluice.limits import Limits


def test_a_slice_is_worn_where_a_file_of_a_usual_size_has_many_marked_rows() -> None:
    limits = Limits(file_rows=100)
    assert Slice(0, ("a", "b"), (50, 900), (11, 0)).has_worn_file(limits)
    assert not Slice(0, ("a", "b"), (50, 900), (10, 0)).has_worn_file(limits), "a fifth"
    assert not Slice(0, ("a", "b"), (49, 900), (40, 0)).has_worn_file(limits), "a small file"
