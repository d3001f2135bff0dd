"""Refusal of a table filled by a definition other than the current one, with the repair.

A table that no batch has filled yet takes the current definition, because nobody has read it.
"""

from sluice.declare.definition import definition
from sluice.declare.table import Table
from sluice.delta.lineage import check_fit
from sluice.delta.position import Head
from sluice.errors import ConfigError


def check_definition(table: Table, before: Head | None, current: str = "") -> None:
    """Raise ConfigError if a definition other than the current one made the head of `table`.

    Raises TableAltered if somebody has set the table up differently.

    `current`: the fingerprint to compare with, if it isn't the table's own.
    """
    check_fit(table.id, before)
    if is_of_another(before, current or definition(table)) and not is_unfilled(before):
        raise ConfigError(
            [f"{table.id} was filled by another definition than the configuration has now"],
            hint=f"run `sluice rebuild {table.id}`, or take the change back",
        )


def is_of_another(at: Head | None, current: str) -> bool:
    """True if the head of a table was made by another definition than `current`."""
    made_by = at.position.definition if at and at.position else ""
    return bool(made_by) and made_by != current


def is_unfilled(at: Head | None) -> bool:
    """True if no batch has filled the table yet."""
    return at is None or not at.is_filled


def replaceable(at: Head | None, current: str) -> Head | None:
    """Return the head of an empty table of another definition, which the first batch replaces."""
    return at if at and not at.is_filled and is_of_another(at, current) else None
