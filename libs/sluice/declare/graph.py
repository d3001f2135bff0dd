"""The graph of tables: inputs before the views over them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import InstanceOf
from pydantic.json_schema import SkipJsonSchema

from sluice.declare.table import Table
from sluice.errors import ConfigError, UsageError
from sluice.language.names import listing, near

__all__ = ["Graph", "Table", "UnknownTable"]


class UnknownTable(UsageError):
    """A name that no table of the configuration has."""


@dataclass(frozen=True)
class Graph:
    """Every table by its id, inputs before the views over them.

    `left_out`: the mistakes of pipelines that are not in it.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    left_out: SkipJsonSchema[InstanceOf[ConfigError] | None] = None

    def table(self, name: str) -> Table:
        """Return the table of that id, or of that name if only one pipeline has it.

        Raises the mistakes of pipelines that were left out if no other has the table.
        """
        if name in self.tables:
            return self.tables[name]
        named = [table for table in self.tables.values() if table.name == name]
        if len(named) == 1:
            return named[0]
        raise self._ambiguous(name, named) if named else self.left_out or self._unknown(name)

    def pipeline(self, name: str) -> tuple[Table, ...]:
        """Return the tables of one pipeline, in order."""
        return tuple(table for table in self.tables.values() if table.pipeline == name)

    def inputs(self, table_id: str) -> tuple[Table, ...]:
        """Return the inputs of that table."""
        return tuple(self.tables[input_] for input_ in self.tables[table_id].inputs)

    def stored(self, ids: Iterable[str]) -> tuple[str, ...]:
        """Return the stored tables behind these: of one that is not stored, its inputs."""
        found: list[str] = []
        for table_id in ids:
            table = self.tables[table_id]
            found += [table_id] if table.is_stored else self.stored(table.inputs)
        return tuple(dict.fromkeys(found))

    def consumers(self, table_id: str) -> tuple[Table, ...]:
        """Return the views that read that table."""
        return tuple(table for table in self.tables.values() if table_id in table.inputs)

    def ancestors(self, table_id: str) -> tuple[Table, ...]:
        """Return the direct and indirect inputs of that table, in order."""
        found: set[str] = set()
        waiting = list(self.tables[table_id].inputs)
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self.tables[current].inputs
        return tuple(table for table in self.tables.values() if table.id in found)

    def _unknown(self, name: str) -> UnknownTable:
        known = [*self.tables, *(table.name for table in self.tables.values())]
        match = near(name, known)
        guess = f"did you mean {match!r}? " if match else ""
        return UnknownTable(
            f"unknown table {name!r}", hint=f"{guess}tables are: {listing(self.tables)}"
        )

    def _ambiguous(self, name: str, named: list[Table]) -> UnknownTable:
        ids = ", ".join(sorted(table.id for table in named))
        return UnknownTable(
            f"{name!r} names several tables: {ids}", hint="write <pipeline>.<table>"
        )
