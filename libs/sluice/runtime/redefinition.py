"""A table that was filled by another definition than today's is refused, with the repair."""

from sluice.errors import ConfigError
from sluice.specs.definition import definition
from sluice.specs.table import Table
from sluice.storage.lineage import check_fit
from sluice.storage.position import Head


def check_definition(table: Table, before: Head | None, current: str = "") -> None:
    """Raise ConfigError if the head of `table` was made by another definition than today's.

    And TableAltered if somebody has set it up otherwise.

    `current`: the fingerprint to compare with, if it isn't the table's own.
    """
    check_fit(table.id, before)
    made_by = before.position.definition if before and before.position else ""
    if made_by and made_by != (current or definition(table)):
        raise ConfigError(
            [f"{table.id} was filled by another definition than the configuration has now"],
            hint=f"run `sluice rebuild {table.id}`, or take the change back",
        )
