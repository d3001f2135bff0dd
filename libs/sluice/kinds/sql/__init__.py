"""Declaration of `kind: sql`: a view written as a query."""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, ValidationInfo, WithJsonSchema, field_validator, model_validator

from sluice.declare.declared import beside
from sluice.declare.table_spec import Reference, View
from sluice.kinds.sql.query import Query
from sluice.language import Mistaken, is_draft
from sluice.language.names import Name

NTH = "_sluice_nth"  # number of a row among equal ones

TEXT_OR_FILE = {
    "anyOf": [
        {"type": "string", "pattern": r"\S"},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}


class Sql(View):
    """The result of a SELECT over other tables.

    `key`: columns by which its rows must be unique, as the query itself shows.
    `incremental`: whether a query may be computed whole if parts of it are not supported.
    `refusal`: why this one is; empty if it is kept.
    """

    LOADED: ClassVar[frozenset[str]] = View.LOADED | {"refusal"}
    KIND: ClassVar[str] = "sql"
    QUERY: ClassVar[str] = "sql"
    SILENT: ClassVar[frozenset[str]] = frozenset({"incremental", "refusal", "key"})

    kind: Literal["sql"] = "sql"
    sql: Annotated[str, WithJsonSchema(TEXT_OR_FILE)]
    key: Annotated[tuple[Name, ...], Field(min_length=1)] | None = None
    incremental: Literal["required", "preferred"] = "required"
    refusal: str = ""

    @field_validator("sql", mode="before")
    @classmethod
    def _from_file(cls, data: Any, info: ValidationInfo) -> Any:
        """Return the text of `{file: PATH}`, relative to the folder of the pipeline's file."""
        if not isinstance(data, dict) or [*data] != ["file"]:
            return data
        path = beside(info.context["folder"] if info.context else Path(), str(data["file"]))
        try:
            return path.read_text("utf-8") if info.context else ""
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
            raise ValueError(f"can't read {data['file']!r}: {reason}") from None

    @field_validator("sql")
    @classmethod
    def _can_be_read(cls, sql: str, info: ValidationInfo) -> str:
        problems = Query.read(sql, str(info.data.get("pipeline", ""))).problems
        if problems and not is_draft(info):
            raise Mistaken(problems)
        return sql

    @model_validator(mode="after")
    def _keeps_its_inputs_rows(self) -> Self:
        if self.retention:
            raise ValueError("`retention` needs a window; a query keeps what its inputs have")
        return self

    @property
    def caution(self) -> str:
        return (
            f"every batch computes the whole query, because of {self.refusal}"
            if self.refusal
            else ""
        )

    @cached_property
    def query(self) -> Query:
        return Query.read(self.sql, self.pipeline)

    def references(self) -> Iterator[Reference]:
        for nth, name in enumerate(self.query.tables):
            own = name.removeprefix(f"{self.pipeline}.")
            yield Reference(("sql", nth), own, place=self.query.place_of(name))
