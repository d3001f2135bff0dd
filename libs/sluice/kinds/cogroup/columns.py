"""Columns that a cogroup's columns are made from."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from sluice.declare.meaning.column_lineage import InputColumns, MadeFrom, Seen, changed, of_input
from sluice.declare.table import Table
from sluice.engine.query import windows
from sluice.kinds.cogroup.spec import Cogroup, Stream
from sluice.language.expression import Aggregate, Expression


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of each stream that keys, windows and aggregates read."""
    spec = table.spec
    assert isinstance(spec, Cogroup)
    made = defaultdict[str, InputColumns](frozenset)
    for stream in spec.streams.values():
        source = inputs[table.reference(stream.from_)]
        for name, found in _of_stream(spec, stream, source):
            made[name] |= found
    sees = Seen(made=made)
    return {**made, **{name: sees.of(e) for name, e in (spec.select or {}).items()}}


def _of_stream(spec: Cogroup, stream: Stream, source: Table) -> Iterator[tuple[str, InputColumns]]:
    sees = Seen(source)
    for name, expression in zip(spec.key, stream.key, strict=True):
        yield name, sees.of(expression)
    if spec.window:
        time = changed(of_input(source, stream.time or spec.window.time))
        yield from ((name, time) for name in (windows.START, windows.END))
    for name, aggregate in stream.aggregates.items():
        yield name, changed(sees.of(*_read(stream.in_order(aggregate))))


def _read(aggregate: Aggregate) -> Iterator[Expression]:
    order = (key.expression for key in aggregate.order_by)
    yield from filter(None, (aggregate.argument, aggregate.filter, *order))
