"""A ranked row, named by its partition and its rank."""

from sluice.errors import UsageError
from sluice.kinds.topk.ranking import partition_columns
from sluice.kinds.topk.spec import TopK
from sluice.read.conditions.key_order import KeyRange, only
from sluice.read.naming import Given, NamingOption, not_so, values_of
from sluice.read.ordered.keyed import KeyedTable

OPTIONS = {"rank": NamingOption(int, "N", "Rank of the row in its --partition.")}


def ranges(table: KeyedTable, spec: TopK, given: Given) -> tuple[KeyRange, ...]:
    """Return the range of that rank. Raises UsageError unless the whole partition is given."""
    if not spec.rank:
        raise UsageError(f"{table.name!r} has no rank column", hint="name the row by its key")
    columns = partition_columns(spec)
    if given.has_key or {*given.others} != {*OPTIONS} or {*given.partition} != {*columns}:
        parts = "".join(f" --partition {column}=VALUE" for column in columns)
        raise not_so(table, f"its key, or by{parts} --rank N")
    names = (*columns, spec.rank)
    wanted = (*(given.partition[column] for column in columns), given.others["rank"])
    return (only(names, values_of(table, names, wanted)),)
