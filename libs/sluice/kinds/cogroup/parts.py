"""The parts that a cogroup's state consists of, each with a fingerprint of its own."""

from collections.abc import Mapping, Sequence

from sluice.kinds.cogroup.spec import Cogroup
from sluice.specs.definition import SILENT, canonical, fingerprint, meant
from sluice.specs.table import Table

SHAPE = ""  # all but its streams


def definition_by_part(
    table: Table, spec: Cogroup, keys: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Fingerprints of what a cogroup's state consists of: SHAPE, `stream`, `stream.aggregate`.

    Parts that are the same in two definitions hold the same in both. `keys`: of the inputs.
    """
    shape = {"key": list(spec.key), "types": [table.type_of(c) for c in table.key]}
    found = {
        SHAPE: {**shape, "declared": meant(spec, SILENT | spec.SILENT | {"streams", "select"})}
    }
    for name, stream in spec.streams.items():
        silent = frozenset({"aggregates", "initial", "sequence"})
        input_id = table.reference(stream.from_)
        input_ = {"input": input_id, "key": list(keys[input_id])}
        found[name] = {**input_, "declared": meant(stream, silent)}
        for column, aggregate in stream.aggregates.items():
            ordered = stream.in_order(aggregate)
            found[f"{name}.{column}"] = {"aggregate": canonical(ordered)}
    return {name: fingerprint(part) for name, part in found.items()}
