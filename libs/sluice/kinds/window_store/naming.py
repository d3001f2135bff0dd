"""A row of a store, named by its key and its event time."""

from sluice.kinds.window_store.reader import TIME as EVENT_TIME
from sluice.kinds.window_store.spec import WindowStore
from sluice.read.conditions.key_order import KeyRange, only
from sluice.read.naming import TIME, Given, key_values, not_so, values_of
from sluice.read.ordered.keyed import KeyedTable

OPTIONS = {"time": TIME}


def ranges(table: KeyedTable, spec: WindowStore, given: Given) -> tuple[KeyRange, ...]:
    """Return the range of that key and time. Raises UsageError unless both are given."""
    if given.partition or {*given.others} != {*OPTIONS} or not given.has_key:
        raise not_so(table, f"{' '.join(f'--key {name}=VALUE' for name in spec.key)} --time TIME")
    key = key_values(table, table.key.first(len(spec.key)), given)
    time = values_of(table, (EVENT_TIME,), (given.others["time"],))
    return (only((*spec.key, EVENT_TIME), (*key, *time)),)
