"""`kind: above`: the rows of a table whose column is high enough."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from sluice.specs.names import Name
from sluice.specs.table_spec import Reference
from sluice.specs.view import View


class Above(View):
    KIND: ClassVar[str] = "above"

    kind: Literal["above"] = "above"
    from_: str = Field(alias="from")
    column: Name
    least: int = 0

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)


SPEC = Above
