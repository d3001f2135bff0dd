"""Tables built by a definition other than the current one: the difference, and the repair.

A table that no batch has filled yet takes the current definition, because nobody has read it.
"""

from collections.abc import Callable
from typing import Any

from sluice.declare.meaning.definition import fingerprint, meaning, meaning_of_deliveries
from sluice.declare.meaning.differences import differences
from sluice.declare.table import Table
from sluice.delta.log.continuity import check_fit
from sluice.delta.log.position import Head
from sluice.delta.places.inventory import made_of
from sluice.errors import ConfigError


def check_definition(
    table: Table, before: Head | None, current: dict[str, Any] | None = None
) -> None:
    """Raise ConfigError if a definition other than the current one made the head of `table`.

    Raises TableAltered if somebody has set the table up differently.

    `current`: the meaning to compare with, if it isn't the table's own.
    """
    check_fit(table.id, before)
    if what := what_differs(before, current or meaning(table)):
        raise ConfigError(
            [f"{table.id} was built by a definition that differs from the configuration's: {what}"],
            hint=f"run `sluice rebuild {table.id}`, or `sluice rebuild --changed` for every such "
            "table; or revert the change",
        )


def meanings(table: Table) -> dict[str, dict[str, Any]]:
    """Return the meaning of each stored table behind a declared one, in order."""
    if table.is_delivered:
        is_apart = table.delivered_to != table.id
        visible = {table.id: meaning(table)} if is_apart else {}
        return {table.delivered_to: meaning_of_deliveries(table), **visible}
    return {name: meaning(part) for name, part in _kept_by(table).items()}


def redefinitions(table: Table, head_of: Callable[[str], Head | None]) -> dict[str, str]:
    """Return the differences by stored table: the table itself, and its internal tables.

    A view that no batch has filled has none: its first batch replaces its state.
    """
    parts = _kept_by(table)
    found = {
        name: what_differs(head_of(name), now)
        for name, now in meanings(table).items()
        if name not in parts or not is_unfilled(head_of(parts[name].id))
    }
    return {name: what for name, what in found.items() if what}


def _kept_by(table: Table) -> dict[str, Table]:
    return made_of(table) if table.is_view else {}


def what_differs(at: Head | None, current: dict[str, Any]) -> str:
    """Return the difference from the definition that built a table; nothing if there is none."""
    if at is None or at.position is None or is_unfilled(at):
        return ""
    is_other = is_of_another(at, fingerprint(current))
    return differences(at.position.meaning, current) if is_other else ""


def is_of_another(at: Head | None, current: str) -> bool:
    """True if the head of a table was built by a definition other than `current`."""
    made_by = at.position.definition if at and at.position else ""
    return bool(made_by) and made_by != current


def is_unfilled(at: Head | None) -> bool:
    """True if no batch has filled the table yet."""
    return at is None or not at.is_filled


def replaceable(at: Head | None, current: str) -> Head | None:
    """Return the head of an empty table of another definition, which the first batch replaces."""
    return at if at and not at.is_filled and is_of_another(at, current) else None
