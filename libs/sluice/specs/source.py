"""A source: where rows arrive, by interval or as a stream, and what a row looks like."""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from sluice.specs.interval import Duration
from sluice.specs.model import Model
from sluice.specs.names import Name
from sluice.specs.path_pattern import check_path, check_pattern
from sluice.specs.quality import Expectation
from sluice.specs.settings import Options, as_option
from sluice.specs.types import read_columns


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
        if not self.insert and not self.update:
            raise ValueError("`insert` or `update` must name the words that bring rows")
        return self


class Declared(Model):
    """What sources and dimensions share: rows of a declared schema, in files or elsewhere."""

    LOADED: ClassVar[frozenset[str]] = frozenset({"name", "pipeline"})

    name: Name
    pipeline: str
    description: str = ""
    path: str = ""
    options: Options = Field(default_factory=dict)
    columns: Annotated[tuple[Column, ...], WithJsonSchema({"type": "string"})] = Field(
        alias="schema", min_length=1
    )
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    change: Change | None = None
    expect: tuple[Expectation, ...] = ()

    @field_validator("path")
    @classmethod
    def _path_is_one(cls, path: str) -> str:
        check_path(path)
        return path

    @field_validator("key")
    @classmethod
    def _has_columns(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        if not key:
            raise ValueError("at least one column is wanted; leave `key` out where there is none")
        return key

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
    format: Literal["json", "csv", "parquet", "delta", "kafka"] = "parquet"
    time: str | None = None
    max_ahead: Duration = Duration("1 day")
    missing: Literal["warn", "fail", "empty"] = "warn"
    on_conflict: Literal["last", "quarantine", "fail"] = "last"
    evolve: bool = False

    @field_validator("path")
    @classmethod
    def _placeholders_are_known(cls, path: str) -> str:
        check_pattern(path)
        return path

    @model_validator(mode="after")
    def _slices_can_be_told_apart(self) -> Self:
        if self.format != "kafka" and not self.path:
            raise ValueError(f"`path` is missing: a {self.format} source is read from one")
        if self.delivery == "stream" and self.has_pattern:
            raise ValueError("a stream is read as it arrives: its `path` takes no {interval_start}")
        if self.delivery == "interval" and not self.has_pattern and not self.time:
            raise ValueError(
                "an interval's rows can't be told: put {interval_start:%Y-%m-%d} into `path`, "
                "or name the event `time` column that selects them"
            )
        return self

    @model_validator(mode="after")
    def _columns_are_taken_from_files(self) -> Self:
        if self.evolve and self.format not in ("json", "csv", "parquet"):
            raise ValueError(f"`evolve` takes columns from files; a {self.format} source has none")
        return self

    @model_validator(mode="after")
    def _keyless_rows_have_no_order(self) -> Self:
        if self.key:
            return self
        if self.sequence:
            raise ValueError("`sequence` orders the rows of one key; this source has no `key`")
        if self.change and self.change.update and not self.change.update_before:
            raise ValueError(
                "without a `key` an update must bring the row as it was: "
                "give change.update_before its words, or the source a `key`"
            )
        return self

    @model_validator(mode="after")
    def _only_states_conflict(self) -> Self:
        if self.on_conflict != "last" and not self.key:
            raise ValueError("`on_conflict` is about rows of one key; this source has no `key`")
        if self.on_conflict != "last" and self.change:
            raise ValueError("`on_conflict` has no effect: rows that are changes follow each other")
        return self

    @property
    def has_pattern(self) -> bool:
        """Whether its path names the interval, so that no row has to be looked at to select it."""
        return "{" in self.path
