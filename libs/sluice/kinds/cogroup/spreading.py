"""Spreading of a whole cogroup's rows: in ranges of its groups, if there are many.

Aggregating before a shuffle pays off if groups have many rows. If most groups have few, rows get
wider and hardly fewer. Such rows are better shuffled unaggregated and in ranges: this shuffle then
also distributes them to the table's files. A sample decides between the two.
"""

from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DataType, DoubleType, FloatType

from sluice.delta.writing.filing import files_for
from sluice.engine.query.operator import InputRows, names, union
from sluice.kinds.cogroup.operator import CogroupState
from sluice.limits import Limits


def ranges_for(state: CogroupState, prepared: InputRows, rows: int, limits: Limits) -> int:
    """Return the number of ranges for the prepared rows; 0 if they are aggregated first.

    One Spark job over the columns of the groups. Sessions need no ranges: their windows are columns
    of the group, and are found only when all rows of a key are together.
    """
    if state.is_session:
        return 0
    keys = union([one.select(*names(state.by)) for one in prepared.values()])
    if not all(_is_exact(f.dataType) for f in keys.schema.fields):
        return 0
    share = min(1.0, limits.spread_sample_rows / max(rows, 1))
    hashed = F.count_distinct(F.xxhash64(*names(state.by)))
    sampled, distinct = keys.sample(share, seed=1).agg(F.count(F.lit(1)), hashed).collect()[0]
    ranges = files_for(groups_behind(sampled, distinct, most=int(sampled / share)), limits)
    return ranges if ranges >= limits.least_ranges and distinct > sampled / 2 else 0


def groups_behind(sampled: int, distinct: int, most: int) -> int:
    """Estimate the number of groups from a sample's rows and distinct groups: at most `most`.

    A sample of n from N groups of equal size is expected to meet N (1 - (1 - 1/N)^n) of them.
    """
    low, high = distinct, max(distinct, most)
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        met = middle * (1 - (1 - 1 / middle) ** sampled)
        low, high = (middle, high) if met < distinct else (low, middle)
    return high


def _is_exact(type_: DataType) -> bool:
    """True if equal values are identical; Spark would shuffle others once more."""
    return isinstance(type_, AtomicType) and not isinstance(type_, (FloatType, DoubleType))
