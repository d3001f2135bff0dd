"""Declaration of a source: where its rows arrive, by interval or as a stream, and their form."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

from pydantic import field_validator, model_validator

from sluice.declare.declared import Declared
from sluice.declare.table import Table
from sluice.declare.table_spec import JobName, Section
from sluice.declare.text.document import Where
from sluice.language.hidden_columns import ID, INTERVAL
from sluice.language.internal import DELIVERIES
from sluice.language.interval import Duration, Schedule
from sluice.language.path_pattern import check_pattern
from sluice.sources.followed_table import ForeignTable
from sluice.sources.own_paths import same_path
from sluice.sources.topic import Topic, ValueFormat

NO_INTERVALS = "a pipeline with the schedule 'assets' has no intervals; use delivery: stream"
AS_FOLLOWED = (
    "a Delta table is followed by its log: write `delta: {{path: {}}}` in place of `path`, "
    "`format`, `options` and `delivery`; rows that its owner changes or deletes follow. "
    "A table that has rows is then rebuilt once: `sluice rebuild NAME --as-landed`"
)
SAME_PATH = (
    "{} and {} have the same path, so their rows would count twice; "
    "distinguish them, by %H, or by %z where clocks are set back; or give the source a `key`"
)
READ_BY_SPARK = "which has no access there: a source follows it by `delta: {path: ...}`"
OF_FILES = frozenset({"path", "format", "options", "evolve", "missing"})
NOT_OF_TOPICS = OF_FILES | {"names", "on_conflict"}
NOT_OF_TABLES = OF_FILES | {"kafka", "value", "change", "sequence"}


class Source(Declared):
    """Rows that arrive over time."""

    KIND: ClassVar[str] = "source"
    SECTION: ClassVar[Section] = "sources"
    STEP: ClassVar[JobName] = "ingest"
    SILENT: ClassVar[frozenset[str]] = Declared.SILENT | {
        *("missing", "evolve", "max_ahead", "on_conflict", "kafka", "delta")
    }
    CHOOSING: ClassVar[frozenset[str]] = frozenset({"sequence"})

    delivery: Literal["interval", "stream"] = "interval"
    format: Literal["json", "csv", "parquet", "delta"] = "parquet"
    kafka: Topic | None = None
    delta: ForeignTable | None = None
    value: ValueFormat | None = None
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

    @model_validator(mode="before")
    @classmethod
    def _followed_are_streams(cls, data: Any) -> Any:
        followed = (data.get(name) for name in ("kafka", "delta")) if isinstance(data, dict) else ()
        if any(place is not None for place in followed):
            return {"delivery": "stream", **data}
        return data

    @model_validator(mode="after")
    def _topic_and_value_belong_together(self) -> Self:
        if self.kafka is None:
            if self.value:
                raise ValueError("`value` describes messages: name their topic in `kafka`")
            return self
        if self.value is None:
            raise ValueError("`value` is missing: give the form of the messages, {format: json}")
        if self.delivery == "interval":
            raise ValueError("a topic is read as messages arrive: leave `delivery` out")
        if taken := sorted(NOT_OF_TOPICS & self.model_fields_set):
            raise ValueError(f"a topic takes no {', '.join(f'`{name}`' for name in taken)}")
        if self.value.is_debezium and self.change:
            raise ValueError("`change` is for messages with such a column; Debezium's have `op`")
        return self

    @model_validator(mode="after")
    def _tables_say_what_stands(self) -> Self:
        if self.delta is None:
            return self
        if self.delivery == "interval":
            raise ValueError("a Delta table is followed by its versions: leave `delivery` out")
        if taken := sorted(NOT_OF_TABLES & self.model_fields_set):
            shown = ", ".join(f"`{name}`" for name in taken)
            raise ValueError(f"a source with `delta` follows that table: leave {shown} out")
        if maps := [column.name for column in self.columns if "MAP<" in column.type]:
            raise ValueError(f"column {maps[0]} is a MAP, so changed rows can't be compared")
        return self

    @model_validator(mode="after")
    def _slices_are_distinct(self) -> Self:
        if self.is_followed:
            return self
        if not self.path:
            raise ValueError(f"`path` is missing: a {self.format} source is read from one")
        if self.delivery == "stream" and self.format == "delta":
            raise ValueError(AS_FOLLOWED.format(self.path))
        if self.delivery == "stream" and self.has_pattern:
            raise ValueError("a stream is read as it arrives: its `path` takes no {interval_start}")
        if self.delivery == "interval" and not self.has_pattern and not self.time:
            raise ValueError(
                "Sluice can't find an interval's rows: put {interval_start:%Y-%m-%d} into "
                "`path`, or name the event `time` column that selects them"
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
                "without a `key` an update must contain the row as it was: "
                "give change.update_before its words, or the source a `key`"
            )
        return self

    @model_validator(mode="after")
    def _only_states_conflict(self) -> Self:
        if self.on_conflict != "last" and not self.key:
            raise ValueError("`on_conflict` is about rows of one key; this source has no `key`")
        if self.on_conflict != "last" and self.change:
            raise ValueError("`on_conflict` has no effect, because changes are applied in order")
        return self

    @property
    def has_pattern(self) -> bool:
        """True if its path names the interval, which selects rows without reading them."""
        return "{" in self.path

    @property
    def keeps_deliveries(self) -> bool:
        """True if an internal table keeps its delivered rows, and the table is computed from it."""
        is_of_changes = self.change or self.delta or (self.value and self.value.is_debezium)
        return bool(self.key or is_of_changes)

    @property
    def delivered_beside(self) -> Mapping[str, tuple[str, ...]]:
        return {DELIVERIES: (INTERVAL, ID)} if self.keeps_deliveries else {}

    @property
    def expects_files(self) -> bool:
        return self.is_by_interval and self.missing != "empty"

    @property
    def has_backfill(self) -> bool:
        return self.kafka is not None

    @property
    def is_followed(self) -> bool:
        return bool(self.kafka or self.delta)

    @property
    def outside(self) -> str:
        if self.kafka:
            return f"the topic {self.kafka.topic}"
        return f"the Delta table {self.delta.path}" if self.delta else ""

    @property
    def place(self) -> str:
        return self.path or self.announced

    @property
    def only_by_spark(self) -> str:
        return READ_BY_SPARK if self.format == "delta" else ""

    @property
    def takes_new_columns(self) -> bool:
        return self.evolve

    @property
    def announced(self) -> str:
        return self.delta.path if self.delta else ""

    @property
    def connections(self) -> tuple[str, ...]:
        named = (
            self.kafka.connection if self.kafka else "",
            self.value.registry if self.value else "",
        )
        return tuple(name for name in named if name)

    @property
    def receives_messages(self) -> bool:
        return self.kafka is not None

    @property
    def is_by_interval(self) -> bool:
        return self.delivery == "interval"

    @classmethod
    def is_meant_by(cls, data: Mapping[str, Any]) -> bool:  # noqa: ARG003
        return True

    def check_schedule(self, schedule: Schedule) -> Iterator[tuple[Where, str]]:
        if not schedule.has_intervals:
            if self.is_by_interval:
                yield (), NO_INTERVALS
        elif not self.key and self.has_pattern and (same := same_path(self.path, schedule)):
            shown = (interval.shown(schedule.timezone) for interval in same)
            yield ("path",), SAME_PATH.format(*shown)


def is_topic(table: Table) -> bool:
    """True if it is a source of Kafka's messages."""
    return isinstance(table.spec, Source) and table.spec.kafka is not None


def is_foreign(table: Table) -> bool:
    """True if it is a source that follows somebody else's Delta table."""
    return isinstance(table.spec, Source) and table.spec.delta is not None
