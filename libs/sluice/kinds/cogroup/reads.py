"""Reads of a small batch of a cogroup's state, made in this process and passed to Spark. The feeds
contain the touched keys, so only those keys' rows of a large state are passed on. If a stream's key
is computed, or its type is not exact, the state must be small.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from sluice.delta.reading.local import arrow_schema, handed_over, read_feed, read_few
from sluice.delta.reading.searched_version import SearchedVersion
from sluice.delta.reading.spark_reads import snapshot
from sluice.delta.reading.wanted import WantedValues, is_exact
from sluice.engine.computing.batch import Batch
from sluice.engine.query import windows
from sluice.engine.query.operator import names
from sluice.engine.query.windows import Horizon
from sluice.kinds.cogroup.operator import CogroupState

ReadCondition = tuple[pc.Expression, pc.Expression | None]  # a condition, its part with statistics

MONTHS_DIFFER = timedelta(days=4)  # more than a month forward and a month back can differ


@dataclass(frozen=True)
class GroupReads:
    """Rows of the inputs' feeds, and rows of the state that include those of the touched groups."""

    feeds: Mapping[str, DataFrame]
    state: DataFrame

    @classmethod
    def of(cls, batch: Batch[CogroupState]) -> "GroupReads | None":
        """Read the feeds and the state; None if there is too much to read."""
        plan, lake, limits = batch.plan, batch.context.lake, batch.context.limits
        assert plan.before is not None
        searched = SearchedVersion(plan.uri, plan.before.version, limits)
        if (
            plan.pins.keys() != plan.recorded.keys()
            or plan.size.bytes > limits.few_tasks_bytes
            or not searched.may_search
        ):
            return None
        feeds = {i: read_feed(lake.uri(i), *range_) for i, range_ in plan.ranges.items()}
        stored, state = arrow_schema(plan.uri, plan.before.version), batch.operator
        of_key = {n: _values(state, n, feeds, stored.field(n).type) for n in state.spec.key}
        wanted = {name: values for name, values in of_key.items() if values is not None} or None
        count = sum(feed.num_rows for feed in feeds.values())
        most = limits.handed_rows
        if count > most or (wanted is None and searched.is_large):
            return None
        rows = _rows(searched, most, wanted, batch.horizon)
        if rows is None:
            return None

        def given(uri: str, version: int, table: pa.Table) -> DataFrame:
            return handed_over(batch.session, uri, version, table).coalesce(1)

        handed = {i: given(lake.uri(i), plan.ranges[i][1], feed) for i, feed in feeds.items()}
        return cls(handed, given(plan.uri, plan.before.version, rows))


def few_rows(
    batch: Batch[CogroupState], part: CogroupState, groups: pa.Table
) -> dict[str, DataFrame] | None:
    """Read the input rows that make up those groups; None if they are not known to be few."""
    found, limits = {}, batch.context.limits
    for input_id in part.inputs:
        uri, version = batch.context.lake.uri(input_id), batch.plan.pins[input_id].version
        searched = SearchedVersion(uri, version, limits, part.columns(input_id))
        if not searched.is_large:
            rows = snapshot(batch.session, uri, version, limits)
            found[input_id] = rows.select(*names(tuple(searched.columns)))
            continue
        wanted = _made_of(part, input_id, groups, arrow_schema(uri, version))
        if wanted is None or not searched.may_search:
            return None
        few = searched.few(wanted, limits.handed_rows)
        if few is None:
            return None
        found[input_id] = handed_over(batch.session, uri, version, few).coalesce(1)
    return found


def _rows(
    searched: SearchedVersion, most: int, wanted: WantedValues | None, horizon: Horizon | None
) -> pa.Table | None:
    """Return rows that include those of touched and expiring groups; None if they are many."""
    now = horizon.now if horizon else None
    if wanted is None:
        return read_few(searched.uri, searched.version, most)
    if searched.is_large and now is None:
        return searched.few([wanted], most)
    if searched.bytes > searched.limits.searched_bytes:
        return None
    where, bounds = _among(wanted)
    if horizon and now is not None:
        keep = horizon.retention.keep
        slack = MONTHS_DIFFER if keep.months else timedelta(0)
        type_ = arrow_schema(searched.uri, searched.version).field(windows.END).type
        last = pa.scalar(keep.before(now) + slack, type_)
        expired = pc.field(windows.END) <= last
        where, bounds = where | expired, None if bounds is None else bounds | expired
    return read_few(searched.uri, searched.version, most, where=where, bounds=bounds)


def _made_of(
    part: CogroupState, input_id: str, groups: pa.Table, stored: pa.Schema
) -> list[WantedValues] | None:
    """Return the values that the groups' rows have in an input; None if not known."""
    streams: list[WantedValues] = []
    for _, stream in part.streams_of(input_id):
        columns = [e.plain_column for e in stream.key]
        named = zip(part.spec.key, columns, strict=True)
        plain = {k: c for k, c in named if c and c in stored.names}
        exact = {k: c for k, c in plain.items() if is_exact(stored.field(c).type)}
        if not exact:
            return None
        streams.append({c: _as(groups[k], stored.field(c).type) for k, c in exact.items()})
    return streams


def _as(values: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    """Return the distinct values, cast to the type, without those that it can't hold."""
    distinct = pc.unique(values)
    try:
        return distinct.cast(type_)
    except pa.ArrowInvalid:
        fitting = [v for v in distinct if _fits(v, type_)]
        return pa.array([v.as_py() for v in fitting], distinct.type).cast(type_)


def _fits(value: pa.Scalar, type_: pa.DataType) -> bool:
    try:
        value.cast(type_)
    except pa.ArrowInvalid:
        return False
    return True


def _among(values: WantedValues) -> ReadCondition:
    each = {c: pc.field(c).isin(pc.unique(v)) for c, v in values.items()}
    # The statistics of files are exact for these types, whoever wrote them.
    exact = (pa.types.is_integer, pa.types.is_date)
    bounded = [each[c] for c, v in values.items() if any(test(v.type) for test in exact)]
    return _all(each.values()), _all(bounded) if bounded else None


def _all(conditions: Iterable[pc.Expression]) -> pc.Expression:
    return reduce(lambda a, b: a & b, conditions)


def _values(
    state: CogroupState, name: str, feeds: Mapping[str, pa.Table], stored: pa.DataType
) -> pa.ChunkedArray | None:
    """Return a key column's values in the feeds; None if it is not a plain column of each."""
    place, found = state.spec.key.index(name), [pa.array([], stored)]
    for input_id, feed in feeds.items():
        for _, stream in state.streams_of(input_id):
            column = stream.key[place].plain_column
            if column not in feed.column_names or not is_exact(feed[column].type):
                return None
            found.append(_as(feed[column], stored))
    return pa.chunked_array(found)
