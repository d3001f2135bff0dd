"""A source: where rows arrive, by interval or as a stream, and what a row looks like."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from sluice.specs.interval import Duration
from sluice.specs.model import Model
from sluice.specs.names import Name
from sluice.specs.quality import Expectation
from sluice.specs.settings import as_option
from sluice.specs.types import read_columns

Format = Literal["json", "csv", "parquet", "delta", "kafka"]


class Column(Model):
    """A declared column and its Spark SQL type, in upper case."""

    name: Name
    type: str


class Change(Model):
    """The column that says what a row does to its table, and the words that it says it with."""

    column: str
    insert: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    update_before: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _words_are_disjoint(self) -> Self:
        groups = (self.insert, self.update, self.delete, self.update_before, self.ignore)
        words = [word for group in groups for word in group]
        twice = sorted({word for word in words if words.count(word) > 1})
        if twice:
            raise ValueError(f"{', '.join(map(repr, twice))}: a word may mean one thing only")
        return self


class Declared(Model):
    """What sources and dimensions share: rows of a declared schema, in files or elsewhere."""

    name: Name
    pipeline: str
    description: str = ""
    path: str = ""
    options: dict[str, str] = Field(default_factory=dict)
    columns: tuple[Column, ...] = Field(alias="schema", min_length=1)
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    change: Change | None = None
    expect: tuple[Expectation, ...] = ()

    @field_validator("columns", mode="before")
    @classmethod
    def _read_ddl(cls, ddl: Any) -> Any:
        if not isinstance(ddl, str):
            return ddl
        return tuple(Column(name=name, type=type_) for name, type_ in read_columns(ddl))

    @field_validator("options", mode="before")
    @classmethod
    def _as_spark_options(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        return {key: as_option(value) for key, value in options.items()}

    @property
    def types(self) -> dict[str, str]:
        """The declared columns' types by name."""
        return {column.name: column.type for column in self.columns}


class Source(Declared):
    """Rows that arrive over time."""

    delivery: Literal["interval", "stream"] = "interval"
    format: Format = "parquet"
    time: str | None = None
    max_ahead: Duration = Duration("1 day")
    missing: Literal["warn", "fail"] = "warn"
    evolve: bool = False
