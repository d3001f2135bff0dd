"""Declaration of tables whose rows are delivered, in files or elsewhere: sources and dimensions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, WithJsonSchema, field_validator, model_validator

from sluice.declare.expectation import Expectation
from sluice.declare.reading_options import canonical, problems
from sluice.declare.settings import Options, as_option
from sluice.declare.table_spec import TableSpec
from sluice.language.model import Model
from sluice.language.names import Name, check_name
from sluice.language.path_pattern import check_path
from sluice.language.typed.types import read_columns

FILES = ("csv", "json", "parquet")  # formats that are read from files
NO_VARIANT = (
    "column {0} is {1}, which can be neither compared nor read without Spark; declare STRING, "
    "which keeps JSON as it was written, and read a part in a view: get_json_object({0}, '$.part')"
)


class Column(Model):
    """A declared column and its Spark SQL type, in upper case."""

    name: Name
    type: str


class Change(Model):
    """The column with each row's operation, and the words for the operations."""

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
            raise ValueError(f"{', '.join(map(repr, twice))}: a word can have only one meaning")
        if not self.insert and not self.update:
            raise ValueError("`insert` or `update` must name the words that insert or update rows")
        return self


class Declared(TableSpec):
    """A table whose rows are delivered. `IS_WHOLE`: all of its files are read, or none."""

    IS_DELIVERED: ClassVar[bool] = True
    IS_WHOLE: ClassVar[bool] = False
    SILENT: ClassVar[frozenset[str]] = frozenset({"path", "format", "options", "names"})

    description: str = ""
    path: str = ""
    options: Options = Field(default_factory=dict)
    columns: Annotated[tuple[Column, ...], WithJsonSchema({"type": "string", "pattern": r"\S"})] = (
        Field(alias="schema", min_length=1)
    )
    names: dict[str, str] = Field(default_factory=dict)
    key: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    change: Change | None = None
    expect: tuple[Expectation, ...] = ()
    if TYPE_CHECKING:
        format: str
        delivery: str

    @field_validator("path")
    @classmethod
    def _path_is_one(cls, path: str) -> str:
        check_path(path)
        return path

    @field_validator("key")
    @classmethod
    def _has_columns(cls, key: tuple[str, ...]) -> tuple[str, ...]:
        if not key:
            raise ValueError("at least one column is expected; without a key, leave `key` out")
        return key

    @field_validator("columns", mode="before")
    @classmethod
    def _read_ddl(cls, ddl: Any) -> Any:
        if not isinstance(ddl, str):
            return ddl
        columns = tuple(_column(name, type_) for name, type_ in read_columns(ddl))
        for column in columns:
            if "VARIANT" in column.type:
                raise ValueError(NO_VARIANT.format(column.name, column.type))
        return columns

    @model_validator(mode="before")
    @classmethod
    def _options_have_one_spelling(cls, data: Any) -> Any:
        options = data.get("options") if isinstance(data, dict) else None
        if not isinstance(options, dict) or data.get("format") not in ("csv", "json"):
            return data
        return {**data, "options": canonical({k: as_option(v) for k, v in options.items()})}

    @field_validator("options", mode="before")
    @classmethod
    def _as_spark_options(cls, options: Any) -> Any:
        if not isinstance(options, dict):
            return options
        return {key: as_option(value) for key, value in options.items()}

    @model_validator(mode="after")
    def _files_can_be_read(self) -> Self:
        for problem in problems(self.format, self.options):
            raise ValueError(f"`options`: {problem}")
        return self

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        return self.expect

    @property
    def names_in_files(self) -> Mapping[str, str]:
        return self.names

    @property
    def takes_new_columns(self) -> bool:
        """True if it takes columns of its files that are not declared."""
        return False

    @property
    def types(self) -> dict[str, str]:
        """Types of the declared columns, by name."""
        return {column.name: column.type for column in self.columns}

    @property
    def of_files(self) -> dict[str, str]:
        """Declared columns by the names that their files give them."""
        own = {name: name for name in self.types if name not in self.names}
        return {**own, **{theirs: name for name, theirs in self.names.items()}}

    @property
    def row_types(self) -> dict[str, str]:
        """Types of the table's columns, without the column of a change."""
        change = self.change.column if self.change else None
        return {name: type_ for name, type_ in self.types.items() if name != change}


def _column(name: str, type_: str) -> Column:
    try:
        check_name(name)
    except ValueError as error:
        raise ValueError(
            f"{error}; if the files use this name, declare another one, and list {name!r} under "
            "`names`"
        ) from None
    return Column(name=name, type=type_)
