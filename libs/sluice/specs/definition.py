"""What a table means, as a short fingerprint: another definition builds other rows.

Descriptions, expectations and where files lie don't count, and neither does how the YAML is laid
out.
"""

import hashlib

from sluice.specs.table import Table

_MEANINGLESS = {
    "description",
    "expect",
    "path",
    "options",
    "missing",
    "strategy",
    "headroom",
    "sql",
}


def definition(table: Table) -> str:
    """16 hexadecimal digits that change when the table's rows would."""
    declared = table.spec.model_dump_json(exclude=_MEANINGLESS)
    columns = ",".join([*table.columns, "|", *table.key])
    return hashlib.sha256(f"{table.kind} {declared} {columns}".encode()).hexdigest()[:16]
