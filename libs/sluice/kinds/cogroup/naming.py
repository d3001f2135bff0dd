"""A row of a windowed cogroup, named by its key and a time in its window."""

from sluice.kinds.cogroup.spec import Cogroup
from sluice.read.conditions.key_order import KeyRange, only, places
from sluice.read.naming import TIME, Given, key_values, not_so, values_of
from sluice.read.ordered.keyed import KeyedTable

OPTIONS = {"time": TIME}
START, END = "window_start", "window_end"


def ranges(table: KeyedTable, spec: Cogroup, given: Given) -> tuple[KeyRange, ...]:
    """Return the ranges of the key and of windows with that time. Raises UsageError for half."""
    if spec.window is None:
        raise not_so(table, "its key")
    if given.partition or {*given.others} != {*OPTIONS} or not given.has_key:
        raise not_so(table, f"{' '.join(f'--key {name}=VALUE' for name in spec.key)} --time TIME")
    time = places(values_of(table, (START,), (given.others["time"],)))
    begun, not_over = KeyRange((START,), high=time), KeyRange((END,), low=time, is_open=True)
    return only(spec.key, key_values(table, table.key.first(len(spec.key)), given)), begun, not_over
