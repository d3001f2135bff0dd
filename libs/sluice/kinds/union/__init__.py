"""Declaration of `kind: union`: the rows of several tables in one, each as often as it occurs."""

from collections.abc import Iterator
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sluice.declare.resolution import plain_columns
from sluice.declare.table import Table, carried_name
from sluice.declare.table_spec import Reference, View
from sluice.language import Model
from sluice.language.expression import Expression, Select
from sluice.language.names import Name

NUMBER = "_sluice_from"  # which of the inputs a row comes from


class Input(Model):
    """One input, the rows of it that count, and what they become. `as`: its name in the tag."""

    table: str
    as_: str | None = Field(default=None, alias="as", min_length=1)
    where: Expression | None = None
    select: Select | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, data: Any) -> Any:
        return {"table": data} if isinstance(data, str) else data

    @property
    def name(self) -> str:
        """Its name in the tag."""
        return self.as_ or self.table


class Union(View):
    """All rows of all inputs, by common columns; `tag` is the column that names the input."""

    KIND: ClassVar[str] = "union"

    kind: Literal["union"] = "union"
    from_: tuple[Input, ...] = Field(alias="from", min_length=1)
    tag: Name | None = None

    @model_validator(mode="after")
    def _keeps_its_inputs_rows(self) -> Self:
        if len(self.from_) < 2:
            raise ValueError("a union has at least two inputs; for one, declare a select")
        names = [part.name for part in self.from_]
        if self.tag and (twice := next((n for n in names if names.count(n) > 1), None)):
            raise ValueError(
                f"two inputs are named {twice!r} in the tag; give one another name: "
                f"`{{table: {twice}, as: another_name}}`"
            )
        if self.retention:
            raise ValueError("`retention` needs a window; a union keeps its inputs' rows")
        return self

    @property
    def rows_name_inputs(self) -> bool:
        return self.tag is not None

    def references(self) -> Iterator[Reference]:
        for i, part in enumerate(self.from_):
            yield Reference(("from", i), part.table)


def keys_of(spec: Union, sources: list[Table]) -> list[dict[str, str]]:
    """Return output column -> key column of each input.

    Keys of the same names and types share columns; all others have separate columns.
    """
    keys = [{name: source.type_of(name) for name in source.key} for source in sources]
    if any(key != keys[0] for key in keys) or NUMBER in keys[0]:
        return [{f"{NUMBER}_{i}_{name}": name for name in key} for i, key in enumerate(keys)]
    pairs = zip(spec.from_, sources, strict=True)
    unchanged = ({*s.columns} if p.select is None else plain_columns(p.select) for p, s in pairs)
    everywhere = set.intersection(*unchanged)
    return [{carried_name(name, everywhere - {spec.tag}): name for name in key} for key in keys]
