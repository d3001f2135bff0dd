"""Its table: the input's columns."""

from collections.abc import Mapping

from tests.kinds.throwaway.spec import Above

from sluice.declare.resolution.scope import Scope, TableMistakes
from sluice.declare.table import Table
from sluice.declare.text.document import Where


def resolve(spec: Above, inputs: Mapping[Where, Table], mistakes: TableMistakes) -> Table:
    source = inputs["from",]
    Scope(source.columns).check_names([spec.column], mistakes, "column")
    columns, key = source.columns, source.key
    return Table(spec.name, spec.pipeline, spec.KIND, columns, key, spec, (source.id,))
