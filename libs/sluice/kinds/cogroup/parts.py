"""Parts of a cogroup's state, each with its own fingerprint."""

from collections.abc import Mapping, Sequence

from sluice.declare.meaning.definition import SILENT, canonical, fingerprint, meant
from sluice.declare.table import Table
from sluice.kinds.cogroup.spec import Cogroup

SHAPE = ""  # everything but its streams
OF_VIEW = frozenset({"streams", "having", "select"})  # the state does not depend on these


def definition_by_part(
    table: Table, spec: Cogroup, keys: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return the fingerprints of a state's parts: SHAPE, `stream`, `stream.aggregate`.

    A part that is the same in two definitions holds the same data in both. `keys`: keys of the
    inputs.
    """
    shape = {"key": list(spec.key), "types": [table.type_of(c) for c in table.key]}
    found = {SHAPE: {**shape, "declared": meant(spec, SILENT | spec.SILENT | OF_VIEW)}}
    for name, stream in spec.streams.items():
        silent = frozenset({"aggregates", "initial", "sequence"})
        input_id = table.reference(stream.from_)
        input_ = {"input": input_id, "key": list(keys[input_id])}
        found[name] = {**input_, "declared": meant(stream, silent)}
        for column, aggregate in stream.aggregates.items():
            ordered = stream.in_order(aggregate)
            found[f"{name}.{column}"] = {"aggregate": canonical(ordered)}
    return {name: fingerprint(part) for name, part in found.items()}
