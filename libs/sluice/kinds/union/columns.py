"""Columns that a union's columns are made from."""

from collections import defaultdict
from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import InputColumns, MadeFrom, Seen, of_input
from sluice.declare.table import Table
from sluice.kinds.union.resolve import keys_of
from sluice.kinds.union.spec import Union


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of every input; the tag is made from none."""
    spec = table.spec
    assert isinstance(spec, Union)
    sources = [inputs[table.reference(part.table)] for part in spec.from_]
    found = defaultdict[str, InputColumns](frozenset)
    for part, source, keys in zip(spec.from_, sources, keys_of(spec, sources), strict=True):
        sees = Seen(source)
        for name in (c for c in table.columns if c != spec.tag):
            found[name] |= sees.of(part.select[name]) if part.select else sees.named(name)
        for out in keys.keys() - table.columns.keys():
            found[out] |= of_input(source, keys[out])
    return {**dict.fromkeys(filter(None, [spec.tag]), frozenset()), **found}
