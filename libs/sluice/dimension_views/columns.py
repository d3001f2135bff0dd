"""Columns that a dimension view's columns are made from."""

from collections.abc import Mapping

from sluice.declare.meaning.column_lineage import MadeFrom, Seen
from sluice.declare.table import Table
from sluice.dimension_views.spec import DimensionView


def columns(table: Table, inputs: Mapping[str, Table]) -> MadeFrom:
    """Return the columns of the dimensions that each column reads."""
    spec = table.spec
    assert isinstance(spec, DimensionView)
    named = {
        j.dimension.rpartition(".")[2]: inputs[table.reference(j.dimension)] for j in spec.join
    }
    return {name: Seen(qualified=named).of(e) for name, e in spec.select.items()}
