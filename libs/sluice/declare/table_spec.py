"""Declaration of a table: the properties that its kind gives all of its tables, its expectations.

Code that iterates over tables asks for these properties, never for the kind itself. Expectations
are written in Great Expectations' words, with the effect of a failure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from sluice.declare.document import Where
from sluice.language import Model
from sluice.language.interval import Duration, Schedule, ZoneName
from sluice.language.names import Name

OnFailure = Literal["quarantine", "stop", "warn"]
ExpectationScope = Literal["batch", "table"]
OWN_KEYS = ("type", "on_failure", "over", "kwargs")
COLUMN_ARGUMENTS = ("column", "column_A", "column_B")
COLUMN_LIST_ARGUMENTS = ("column_list", "column_set")
# Rules that a single row can be judged by, without others: those that `quarantine` accepts.
ROW_RULES = (
    "expect_column_values_to_not_be_null",
    "expect_column_values_to_be_null",
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
    "expect_column_value_lengths_to_be_between",
    "expect_column_value_lengths_to_equal",
    "expect_column_values_to_match_regex",
    "expect_column_values_to_not_match_regex",
    "expect_column_values_to_match_regex_list",
    "expect_column_values_to_not_match_regex_list",
    "expect_column_values_to_match_like_pattern",
    "expect_column_values_to_not_match_like_pattern",
    "expect_column_pair_values_a_to_be_greater_than_b",
    "expect_column_pair_values_to_be_equal",
    "expect_column_pair_values_to_be_in_set",
    "expect_multicolumn_sum_to_equal",
    "expect_multicolumn_values_to_be_equal",
    "expect_select_column_values_to_be_unique_within_record",
)


class Expectation(Model):
    """`{type: expect_column_values_to_not_be_null, column: x, on_failure: stop}`."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    type: str
    on_failure: OnFailure = "warn"
    over: ExpectationScope = "batch"
    kwargs: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _gather_arguments(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "kwargs" in data:
            return data
        own = {key: value for key, value in data.items() if key in OWN_KEYS}
        return {**own, "kwargs": {k: v for k, v in data.items() if k not in OWN_KEYS}}

    @field_validator("type")
    @classmethod
    def _looks_like_an_expectation(cls, name: str) -> str:
        if not name.startswith("expect_"):
            raise ValueError(
                f"{name!r} is not an expectation: names of Great Expectations begin with expect_"
            )
        return name

    @model_validator(mode="after")
    def _a_whole_table_only_warns(self) -> Self:
        if self.over == "table" and self.on_failure != "warn":
            raise ValueError(
                f"an expectation over the whole table can't {self.on_failure} a batch;"
                " use on_failure: warn, or over: batch"
            )
        return self

    @property
    def quarantine_problem(self) -> str:
        """Reason why it can't quarantine rows; '' if it can, or needn't."""
        if self.on_failure != "quarantine" or self.type in ROW_RULES:
            return ""
        return (
            f"{self.type} is not a rule for single rows, so it can't send rows to quarantine;"
            f" use stop or warn. accepted with quarantine: {', '.join(ROW_RULES)}"
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that its arguments name."""
        single = [self.kwargs[key] for key in COLUMN_ARGUMENTS if key in self.kwargs]
        several = [self.kwargs[key] for key in COLUMN_LIST_ARGUMENTS if key in self.kwargs]
        return tuple(map(str, [*single, *(column for many in several for column in many)]))

    @property
    def other_table(self) -> str:
        """Table that it compares with; '' if none."""
        return str(self.kwargs.get("other_table_name", ""))

    @property
    def label(self) -> str:
        """Short text for reports: `column values to not be null (household_id)`."""
        subject = ", ".join(self.columns)
        text = self.type.removeprefix("expect_").replace("_", " ")
        return f"{text} ({subject})" if subject else text


START, END = "window_start", "window_end"
WINDOW = {START: "TIMESTAMP", END: "TIMESTAMP"}  # columns, with their types
NEEDS = {"tumbling": ("size",), "hopping": ("size", "advance"), "session": ("gap",)}


class Window(Model):
    """Event time cut into windows, aligned to the epoch in the window's zone."""

    type: Literal["tumbling", "hopping", "session"]
    time: str
    size: Duration | None = None
    advance: Duration | None = None
    gap: Duration | None = None
    timezone: ZoneName = "UTC"

    @model_validator(mode="after")
    def _has_its_lengths(self) -> Self:
        given = {name for name in ("size", "advance", "gap") if getattr(self, name)}
        needed = set(NEEDS[self.type])
        if given != needed:
            raise ValueError(
                f"a {self.type} window takes {_and(needed)}, not {_and(given) or 'none'}"
            )
        if self.advance and self.size and self.advance.may_exceed(self.size):
            raise ValueError("`advance` is longer than `size`: rows between windows would be lost")
        if self.type == "session" and "timezone" in self.model_fields_set:
            raise ValueError("a session begins with its first row: `timezone` would have no effect")
        return self


def _and(names: set[str]) -> str:
    return " and ".join(f"`{name}`" for name in sorted(names, reverse=True))


Section = Literal["sources", "dimensions", "views"]
JobName = Literal["ingest", "load", "advance"]
SECTIONS: tuple[Section, ...] = ("sources", "dimensions", "views")


@dataclass(frozen=True)
class Reference:
    """Reference from one table to another, by name.

    `section`: the one that must declare the other table; else it must be stored. `place`: the line
    within a longer text. `explains`: the field whose mistakes follow from an unknown name, if any.
    """

    where: Where
    name: str
    section: Section | None = None
    place: str = ""
    explains: Where = ()


class TableSpec(Model):
    """A declared table.

    `KIND`: the name of its kind, `SECTION`: where in a pipeline's file it stands, `STEP`: the
    command that brings it up to date. `HAS_STATE`: a table `<table>__state` is kept behind it.
    `QUERY`: the field that declares the whole table as a query; '' if there is none.
    `SILENT`: fields that don't count for what the table means,
    `CHOOSING`: those that don't count for its rows as they are delivered.
    `PLACES`: fields with places outside the lake, and with options for reading there.
    `description`: every kind has this field, among its own.
    """

    LOADED: ClassVar[frozenset[str]] = frozenset({"name", "pipeline"})
    KIND: ClassVar[str]
    SECTION: ClassVar[Section]
    STEP: ClassVar[JobName] = "advance"
    IS_STORED: ClassVar[bool] = True
    IS_DELIVERED: ClassVar[bool] = False
    HAS_STATE: ClassVar[bool] = False
    QUERY: ClassVar[str] = ""
    SILENT: ClassVar[frozenset[str]] = frozenset()
    CHOOSING: ClassVar[frozenset[str]] = frozenset()
    PLACES: ClassVar[frozenset[str]] = frozenset()

    name: Name
    pipeline: str
    if TYPE_CHECKING:
        description: str

    @classmethod
    def is_meant_by(cls, data: Mapping[str, Any]) -> bool:
        """Return whether a mapping in its section declares a table of this kind."""
        return str(data.get("kind")) == cls.KIND

    @classmethod
    def written_references(cls, data: Mapping[str, Any]) -> Iterator[Reference]:  # noqa: ARG003
        """Yield the tables that a declaration with mistakes names, if they can be read."""
        return iter(())

    def as_written(self) -> dict[str, Any]:
        """Return what the table is as users write it, without defaults, as JSON."""
        apart = {*self.LOADED, "description", "expect"}
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude=apart)

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        """Expectations of its rows."""
        return ()

    @property
    def kept_for(self) -> Duration | None:
        """Time after which its rows expire; None if they don't."""
        return None

    @property
    def windows(self) -> Window | None:
        """Windows of its rows, by which a view over it can expire its rows."""
        return None

    @property
    def has_history(self) -> bool:
        """True if a key's past versions are stored beside the current one."""
        return False

    @property
    def caution(self) -> str:
        """Text for `plan` on batches that cost more than their changes; '' if there are none."""
        return ""

    @property
    def place(self) -> str:
        """Path of the files or of the table that it reads, if any; or ''."""
        return ""

    @property
    def names_in_files(self) -> Mapping[str, str]:
        """Names that its files give to columns, where they differ."""
        return {}

    @property
    def receives_messages(self) -> bool:
        """True if its quarantine has messages, whose key and value are encoded."""
        return False

    @property
    def only_by_spark(self) -> str:
        """Reason why only Spark can read its Delta table, and what to do; '' if others can, too."""
        return ""

    @property
    def connections(self) -> tuple[str, ...]:
        """Connections that its rows are read by."""
        return ()

    @property
    def announced(self) -> str:
        """Path of the foreign table that it reads, whose owner may announce changes; or ''."""
        return ""

    @property
    def is_by_interval(self) -> bool:
        """True if it is delivered interval by interval."""
        return False

    @property
    def shares_files(self) -> bool:
        """True if its intervals lie in the same files, whose rows are selected by their time."""
        return False

    @property
    def expects_files(self) -> bool:
        """True if it is delivered by interval, and each interval should have files."""
        return False

    @property
    def has_backfill(self) -> bool:
        """True if the rows of a time can be read again, though it has no intervals."""
        return False

    @property
    def is_followed(self) -> bool:
        """True if its commits contain its place in a topic or a foreign table."""
        return False

    @property
    def outside(self) -> str:
        """Place of its rows as text if that is not a path of files; or ''."""
        return ""

    @property
    def delivered_beside(self) -> Mapping[str, tuple[str, ...]]:
        """Internal tables that hold rows as they were delivered, each with their key."""
        return {}

    @property
    def rows_name_inputs(self) -> bool:
        """True if its rows hold names of the tables that it reads."""
        return False

    def references(self) -> Iterator[Reference]:
        """Yield every table that the declaration names."""
        return iter(())

    def own_code(self) -> Iterator[tuple[Where, str]]:
        """Yield the users' functions and classes that the declaration names, and where."""
        return iter(())

    def check_schedule(self, schedule: Schedule) -> Iterator[tuple[Where, str]]:  # noqa: ARG002
        """Yield what conflicts with the pipeline's schedule."""
        return iter(())


class View(TableSpec):
    """A table that is kept equal to a query over others."""

    SECTION: ClassVar[Section] = "views"

    kind: str
    description: str = ""
    expect: tuple[Expectation, ...] = ()
    retention: Duration | None = None

    @field_validator("expect")
    @classmethod
    def _nothing_is_quarantined(cls, expect: tuple[Expectation, ...]) -> tuple[Expectation, ...]:
        if any(expectation.on_failure == "quarantine" for expectation in expect):
            raise ValueError(
                "a view takes on_failure: stop or warn; "
                "quarantine would make it differ from its query"
            )
        return expect

    @property
    def expectations(self) -> tuple[Expectation, ...]:
        return self.expect

    @property
    def kept_for(self) -> Duration | None:
        return self.retention


def joined_dimensions(names: Iterable[str]) -> Iterator[Reference]:
    """Yield the dimensions that a list of joins names."""
    for i, name in enumerate(names):
        yield _reference(i, name)


def joined_dimensions_as_written(data: Mapping[str, Any]) -> Iterator[Reference]:
    """Yield the dimensions joined by a declaration with mistakes, if they can be read."""
    joins = data.get("join")
    for i, join in enumerate(joins if isinstance(joins, list) else ()):
        if isinstance(join, dict) and isinstance(join.get("dimension"), str):
            yield _reference(i, join["dimension"])


def _reference(nth: int, name: str) -> Reference:
    return Reference(("join", nth, "dimension"), name, "dimensions", explains=("join", nth, "on"))
