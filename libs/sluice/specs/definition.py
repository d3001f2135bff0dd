"""What a table means, as data and as a fingerprint that changes when its rows would.

Two spellings of one declaration have one fingerprint: the formatting of YAML and SQL, names of
files, columns taken from them, descriptions, expectations and how work is done don't count.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from sluice.specs.cogroup import Cogroup
from sluice.specs.expression import Expression
from sluice.specs.interval import Duration
from sluice.specs.table import Table

SILENT = frozenset(
    {
        *("name", "pipeline", "kind", "description", "expect", "sql"),
        *("path", "format", "options", "connection", "missing", "evolve", "max_ahead"),
        *("on_conflict", "strategy", "headroom", "backward_iteration"),
    }
)
AS_WRITTEN = frozenset({"text"})
SHAPE = ""  # of a cogroup: all but its streams


def definition(table: Table) -> str:
    """The fingerprint of what the table means: 16 hexadecimal digits."""
    return _fingerprint(meaning(table))


def definition_of_deliveries(table: Table) -> str:
    """As `definition`, of rows as they are delivered: a source chooses the last of a key later."""
    is_source = table.kind == "source"
    return _fingerprint(meaning(table, SILENT | {"sequence"} if is_source else SILENT))


def definition_by_part(
    table: Table, spec: Cogroup, keys: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Fingerprints of what a cogroup's state consists of: SHAPE, `stream`, `stream.aggregate`.

    Parts that are the same in two definitions hold the same in both. `keys`: of the inputs.
    """
    shape = {"key": list(spec.key), "types": [table.type_of(c) for c in table.key]}
    found = {SHAPE: {**shape, "declared": _told(spec, SILENT | {"streams", "select"})}}
    for name, stream in spec.streams.items():
        silent = frozenset({"aggregates", "initial", "sequence"})
        input_id = table.reference(stream.from_)
        input_ = {"input": input_id, "key": list(keys[input_id])}
        found[name] = {**input_, "declared": _told(stream, silent)}
        for column, aggregate in stream.aggregates.items():
            ordered = stream.in_order(aggregate)
            found[f"{name}.{column}"] = {"aggregate": _canonical(ordered)}
    return {name: _fingerprint(part) for name, part in found.items()}


def meaning(table: Table, silent: frozenset[str] = SILENT) -> dict[str, Any]:
    """What the fingerprint is of, as JSON: for telling what changed."""
    through = [meaning(view, silent) for view in table.through]
    return {
        "kind": table.kind,
        "columns": sorted(set(table.columns) - table.taken),
        "key": list(table.key),
        "hidden": sorted(table.hidden),
        "inputs": list(table.inputs),
        "declared": _told(table.spec, silent),
        **({"through": through} if through else {}),
    }


def _fingerprint(meaning: dict[str, Any]) -> str:
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _told(model: BaseModel, silent: frozenset[str]) -> dict[str, Any]:
    """The fields that count and are not as by default."""
    return {
        name: _canonical(getattr(model, name))
        for name, field in type(model).model_fields.items()
        if name not in silent
        and getattr(model, name) != field.get_default(call_default_factory=True)
    }


def _canonical(value: Any) -> Any:
    """The value as JSON; SQL as it was regenerated, not as it was written."""
    match value:
        case Expression() | Duration():
            return value.sql
        case BaseModel():
            return _told(value, AS_WRITTEN)
        case Mapping():
            return {str(key): _canonical(part) for key, part in value.items()}
        case frozenset():
            return sorted(map(_canonical, value))
        case list() | tuple():
            return [_canonical(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
