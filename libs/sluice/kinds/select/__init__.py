"""Declaration of `kind: select`: rows of a table that meet a condition, with chosen columns."""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from sluice.declare.table import Table, carried_name
from sluice.declare.table_spec import Reference, View
from sluice.language import Model
from sluice.language.expression import Expression, Select
from sluice.language.names import Name

PLACE = "_sluice_place"


class Exploded(Model):
    """An array whose elements become rows. `position`: column of its number, from 0.

    With `outer`, a row without elements stays, with nulls.
    """

    of: Expression
    as_: Name = Field(alias="as")
    position: Name | None = None
    outer: bool = False


class Selection(View):
    """One row per row of the input that meets `where`; with `distinct`, one of equal rows.

    With `explode`, one row per element of an array of the input's rows. `changes: refuse` ends a
    batch in which a row of the input was changed or deleted. `read_at`: file and line of a
    declaration that is no YAML.
    """

    LOADED: ClassVar[frozenset[str]] = View.LOADED | {"read_at"}
    SILENT: ClassVar[frozenset[str]] = frozenset({"changes", "read_at"})
    KIND: ClassVar[str] = "select"

    kind: Literal["select"] = "select"
    from_: str = Field(alias="from")
    explode: Exploded | None = None
    where: Expression | None = None
    select: Select | None = None
    distinct: bool = False
    changes: Literal["follow", "refuse"] = "follow"
    read_at: str = ""

    @model_validator(mode="after")
    def _keeps_its_inputs_rows(self) -> Self:
        if self.retention:
            raise ValueError("`retention` needs a window; a select keeps its input's rows")
        return self

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)


def place_of(source: Table) -> str:
    """Return the hidden column with the number of a row's element, -1 for no element."""
    taken = sum(column.startswith(PLACE) for column in source.key)
    return f"{PLACE}_{taken}" if taken else PLACE


def keys_of(spec: Selection, source: Table) -> dict[str, str]:
    """Return key column of the view -> key column of the input."""
    if spec.select is None:
        return {carried_name(column, source.columns): column for column in source.key}
    plain = {expression.plain_column: name for name, expression in spec.select.items()}
    plain |= {name: name for name in spec.select if spec.select[name].plain_column == name}
    return {plain.get(column) or carried_name(column, ()): column for column in source.key}
