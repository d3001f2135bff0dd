"""A table that was filled by another definition than today's is refused, with the repair."""

from sluice.errors import ConfigError
from sluice.specs.definition import definition
from sluice.specs.table import Table
from sluice.storage.position import Head


def check_definition(table: Table, before: Head | None) -> None:
    """Raise ConfigError if the head of `table` was made by another definition than today's."""
    made_by = before.position.definition if before and before.position else ""
    if made_by and made_by != definition(table):
        raise ConfigError(
            [f"{table.id} was filled by another definition than the configuration has now"],
            hint=_repair(table, before),
        )


def _repair(table: Table, before: Head | None) -> str:
    if table.is_view:
        return f"run `sluice rebuild {table.id}`, or take the change back"
    place = before.uri.split("__", maxsplit=1)[0] if before else table.id
    again = "deliver its intervals" if table.kind == "source" else "load it"
    return (
        f"take the change back; or move {place} and the folders {table.name}__* beside it away, "
        f"{again} again, and run `sluice rebuild` on the views that read it"
    )
