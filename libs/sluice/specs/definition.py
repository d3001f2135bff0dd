"""What a table means, as data and as a fingerprint that changes when its rows would.

Two spellings of one declaration have one fingerprint: the formatting of YAML and SQL, names of
files, columns taken from them, descriptions, expectations and how work is done don't count.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from sluice.specs.expression import Expression
from sluice.specs.interval import Duration
from sluice.specs.table import Table

SILENT = frozenset({"name", "pipeline", "kind", "description", "expect"})  # of every kind
AS_WRITTEN = frozenset({"text"})


def definition(table: Table) -> str:
    """The fingerprint of what the table means: 16 hexadecimal digits."""
    return fingerprint(meaning(table))


def definition_of_deliveries(table: Table) -> str:
    """As `definition`, of rows as they are delivered: a source chooses the last of a key later."""
    return fingerprint(meaning(table, table.spec.CHOOSING))


def meaning(table: Table, silent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Meaning of the table as JSON; fields in `silent` are left out."""
    through = [meaning(view) for view in table.through]
    return {
        "kind": table.kind,
        "columns": sorted(set(table.columns) - table.taken),
        "key": list(table.key),
        "hidden": sorted(table.hidden),
        "inputs": list(table.inputs),
        "declared": meant(table.spec, SILENT | table.spec.SILENT | silent),
        **({"through": through} if through else {}),
    }


def fingerprint(meaning: dict[str, Any]) -> str:
    """The fingerprint of a meaning."""
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def meant(model: BaseModel, silent: frozenset[str]) -> dict[str, Any]:
    """The fields that count and are not as by default."""
    return {
        name: canonical(getattr(model, name))
        for name, field in type(model).model_fields.items()
        if name not in silent
        and getattr(model, name) != field.get_default(call_default_factory=True)
    }


def canonical(value: Any) -> Any:
    """The value as JSON; SQL as it was regenerated, not as it was written."""
    match value:
        case Expression() | Duration():
            return value.sql
        case BaseModel():
            return meant(value, AS_WRITTEN)
        case Mapping():
            return {str(key): canonical(part) for key, part in value.items()}
        case frozenset():
            return sorted(map(canonical, value))
        case list() | tuple():
            return [canonical(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
