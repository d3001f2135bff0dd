"""Meaning of a table, as data and as a fingerprint that changes when its rows would.

Two spellings of one declaration have one fingerprint. These don't count: formatting of YAML and
SQL, file names, columns taken from files, descriptions, expectations, and how work is done.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from sluice.declare.table import Table
from sluice.language.expression import Expression, Written
from sluice.language.interval import Duration

SILENT = frozenset({"name", "pipeline", "kind", "description", "expect"})  # of every kind
AS_WRITTEN = frozenset({"text"})


def definition(table: Table) -> str:
    """Return the fingerprint of the table's meaning: 16 hexadecimal digits."""
    return fingerprint(meaning(table))


def definition_of_deliveries(table: Table) -> str:
    """Return the fingerprint for rows as delivered; a source chooses the last of a key later."""
    return fingerprint(meaning_of_deliveries(table))


def meaning_of_deliveries(table: Table) -> dict[str, Any]:
    """Return the meaning of a table's rows as delivered."""
    return meaning(table, table.spec.CHOOSING)


def meaning(table: Table, silent: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the table's meaning as JSON, without the fields in `silent`."""
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
    """Return the fingerprint of a meaning."""
    text = json.dumps(meaning, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def meant(model: BaseModel, silent: frozenset[str]) -> dict[str, Any]:
    """Return the fields that count and differ from their defaults."""
    return {
        name: canonical(getattr(model, name))
        for name, field in type(model).model_fields.items()
        if name not in silent
        and getattr(model, name) != field.get_default(call_default_factory=True)
    }


def canonical(value: Any) -> Any:
    """Return the value as JSON; SQL as regenerated, not as written."""
    match value:
        case Expression() | Duration():
            return value.sql
        case BaseModel():
            return meant(value, AS_WRITTEN if isinstance(value, Written) else frozenset())
        case Mapping():
            return {str(key): canonical(part) for key, part in value.items()}
        case frozenset():
            return sorted(map(canonical, value))
        case list() | tuple():
            return [canonical(part) for part in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
