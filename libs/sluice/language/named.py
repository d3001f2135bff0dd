"""Expressions with the names of their columns: partitions and projections."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, WithJsonSchema, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import WRITTEN, Expression
from sluice.language.model import Model
from sluice.language.names import WRITTEN_NAME, Name

NAMED: JsonSchemaValue = {"type": ["string", "object"], "pattern": r"\S"}


class Named(Model):
    """An expression and the column that it becomes: `upper(department) as department`."""

    name: Name
    expression: Expression

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return NAMED

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and len(data) == 1:
            ((name, text),) = data.items()
            return {"name": name, "expression": text}
        return cls._split(data) if isinstance(data, str) else data

    @classmethod
    def _split(cls, text: str) -> dict[str, Any]:
        tree = syntax.parse_as(text, None)
        name = tree.alias if isinstance(tree, exp.Alias) else ""
        inner = tree.this if isinstance(tree, exp.Alias) else tree
        syntax.check(inner)
        if not name and not isinstance(inner, exp.Column):
            raise ValueError(f"{text!r} needs a name; write '{text} as <name>'")
        return {
            "name": name or inner.name,
            "expression": Expression.of(inner, syntax.render(inner)),
        }

    @property
    def is_plain(self) -> bool:
        """True if it is the column of that name, unchanged."""
        return self.expression.plain_column == self.name


def named_expressions(data: Any) -> Any:
    """Read a `select:`, which is a mapping or a list of `column` and `expression as name`."""
    if not isinstance(data, list | tuple):
        return data
    names = [Named.model_validate(item) for item in data]
    if len({item.name for item in names}) < len(names):
        raise ValueError("one name is given twice")
    return {item.name: item.expression for item in names}


SELECT_SCHEMA = {
    "anyOf": [
        {"type": "object", "patternProperties": {WRITTEN_NAME["pattern"]: WRITTEN}},
        {"type": "array", "items": NAMED},
    ]
}
Select = Annotated[
    dict[Name, Expression],
    BeforeValidator(named_expressions),
    Field(min_length=1),
    WithJsonSchema(SELECT_SCHEMA),
]
