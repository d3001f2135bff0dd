"""Declaration of a dimension: a whole table of reference data, from snapshots or changes."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from sluice.declare.declared import Declared
from sluice.declare.resolution import Scope, TableMistakes, check_columns
from sluice.declare.table import Table
from sluice.declare.table_spec import JobName, Section
from sluice.language.names import STATE

HISTORY_COLUMNS = {"valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP", "is_current": "BOOLEAN"}

READ_BY_SPARK = "because it has `options`, and Spark has no access there: leave them out"


class Dimension(Declared):
    """A table that facts are looked up in."""

    KIND: ClassVar[str] = "dimension"
    SECTION: ClassVar[Section] = "dimensions"
    STEP: ClassVar[JobName] = "load"
    IS_WHOLE: ClassVar[bool] = True
    SILENT: ClassVar[frozenset[str]] = Declared.SILENT | {"connection"}
    PLACES: ClassVar[frozenset[str]] = Declared.PLACES | {"connection"}

    format: Literal["json", "csv", "parquet", "delta", "kafka", "jdbc"] = "parquet"
    connection: str | None = None
    key: tuple[str, ...] = Field(min_length=1)
    history: bool = False
    valid_from: str | None = None
    delivery: Literal["snapshot", "changes"] = "snapshot"

    @model_validator(mode="after")
    def _keys_fit_the_kind(self) -> Self:
        if self.format not in ("kafka", "jdbc") and not self.path:
            raise ValueError(f"`path` is missing: a {self.format} dimension is read from one")
        if self.connection and self.format != "jdbc":
            raise ValueError(f"`connection` is for format: jdbc, not for {self.format}")
        if self.valid_from and not self.history:
            raise ValueError(
                "`valid_from` is the time from which a version is valid: it needs history: true"
            )
        if self.change and self.delivery == "snapshot":
            raise ValueError(
                "`change` needs delivery: changes, because a snapshot holds whole rows"
            )
        return self

    @property
    def is_log(self) -> bool:
        """True if its files are a log of changes, each read once."""
        return self.delivery == "changes" and self.format in ("json", "csv", "parquet")

    @property
    def identity(self) -> tuple[str, ...]:
        """Columns that distinguish its rows; a key may have several versions."""
        return (*self.key, self.valid_from) if self.valid_from else self.key

    @property
    def delivered_beside(self) -> Mapping[str, tuple[str, ...]]:
        return {STATE: self.identity} if self.is_log else {}

    @property
    def outside(self) -> str:
        asked = self.options.get("dbtable") or self.options.get("query")
        return f"the database's {asked}" if asked else ""

    @property
    def place(self) -> str:
        return self.path

    @property
    def only_by_spark(self) -> str:
        return READ_BY_SPARK if self.format == "delta" and self.options else ""

    @property
    def announced(self) -> str:
        return self.path if self.format == "delta" else ""

    @property
    def connections(self) -> tuple[str, ...]:
        return (self.connection,) if self.connection else ()

    @property
    def has_history(self) -> bool:
        return self.history

    @classmethod
    def is_meant_by(cls, data: Mapping[str, Any]) -> bool:
        return "join" not in data


INSTEAD = (
    "use json, csv, parquet, delta, jdbc; or read the topic as a source with a `key`, and join it "
    "by a view of kind join"
)


def resolve(spec: Dimension, mistakes: TableMistakes) -> Table:
    """Return a dimension's table; with history, it has a row per version."""
    if spec.format == "kafka":
        what = f"a dimension is loaded whole, and a topic has no end: {INSTEAD}"
        mistakes.add(("format",), what)
    elif spec.format == "jdbc" and spec.path:
        what = "a database has no path: name its table in `options` (dbtable or query)"
        mistakes.add(("path",), what)
    check_columns(spec, mistakes)
    if spec.valid_from:
        Scope(spec.types).check_time(spec.valid_from, mistakes, "valid_from")
    if not spec.history:
        return Table(spec.name, spec.pipeline, spec.KIND, spec.row_types, spec.key, spec)
    taken = [name for name in HISTORY_COLUMNS if name in spec.types and name != spec.valid_from]
    if taken:
        mistakes.add(("schema",), f"history: true adds the columns {', '.join(taken)} itself")
    columns = {**spec.row_types, **HISTORY_COLUMNS}
    return Table(spec.name, spec.pipeline, spec.KIND, columns, (*spec.key, "valid_from"), spec)
