"""A kind of view for one test: the rows of a table whose column is high enough."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from sluice.declare.table_spec import Reference, View
from sluice.language.names import Name


class Above(View):
    KIND: ClassVar[str] = "above"

    kind: Literal["above"] = "above"
    from_: str = Field(alias="from")
    column: Name
    least: int = 0

    def references(self) -> Iterator[Reference]:
        yield Reference(("from",), self.from_)

    @classmethod
    def written_references(cls, data: Mapping[str, Any]) -> Iterator[Reference]:
        if isinstance(data.get("from"), str):
            yield Reference(("from",), data["from"])
