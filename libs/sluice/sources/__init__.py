"""Declaration of a source: files, a topic or a Delta table, and the form of their rows."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from sluice.declare.declared import Declared, check_path, check_pattern, contents, same_path
from sluice.declare.document import Where
from sluice.declare.table_spec import JobName, Section
from sluice.language import Model
from sluice.language.interval import Duration, Schedule
from sluice.language.names import DELIVERIES, ID, INTERVAL


class ForeignTable(Model):
    """A Delta table that somebody else writes.

    A batch takes whole commits. It ends before one that would pass `max_rows` or `max_bytes`.
    `changes`: what becomes of commits that change or delete rows. `refuse` ends the run, `skip`
    leaves them out, and the source has the rows that the others have appended.
    """

    path: str = Field(min_length=1)
    changes: Literal["follow", "refuse", "skip"] = "follow"
    max_rows: int = Field(default=500_000, ge=1)
    max_bytes: int = Field(default=256_000_000, ge=1)

    @field_validator("path")
    @classmethod
    def _is_one_folder(cls, path: str) -> str:
        check_path(path)
        if "{" in path or "*" in path:
            raise ValueError(f"{path!r} is not the folder of one table: leave out {{}} and *")
        return path.rstrip("/") or path


CONNECTION = re.compile("[A-Za-z_][A-Za-z0-9_]*")
MessageFormat = Literal["json", "debezium-json", "avro", "debezium-avro", "protobuf", "bytes"]
Encoding = Literal["binary", "single-object", "container"]
SETTINGS: Mapping[MessageFormat, frozenset[str]] = {  # that a format takes
    "json": frozenset(),
    "debezium-json": frozenset(),
    "avro": frozenset({"registry", "files", "encoding"}),
    "debezium-avro": frozenset({"registry"}),
    "protobuf": frozenset({"registry", "files", "message"}),
    "bytes": frozenset(),
}


def check_connection(name: str) -> str:
    """Return the name of a connection. Raises ValueError if it can't be one."""
    if not CONNECTION.fullmatch(name):
        raise ValueError(
            f"{name!r} is not the name of a connection (letters, digits, _): addresses and "
            "settings belong in the connection"
        )
    return name


ConnectionName = Annotated[str, AfterValidator(lambda name: name and check_connection(name))]


class Topic(Model):
    """A topic, the connection to its brokers, and the bounds of one batch.

    `connection` names an Airflow connection, or the variable AIRFLOW_CONN_<ID>. Brokers that need
    no other setting may be named by `servers` instead. `start`: where the first batch begins.
    `max_wait`: the longest time that a batch waits for messages that are due, and the longest
    silence of the brokers. `max_message_bytes`: a message of more goes to quarantine without its
    bytes.
    """

    topic: str = Field(min_length=1)
    connection: ConnectionName = ""
    servers: str = ""
    start: Literal["earliest", "latest"] = "earliest"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    max_rows: int = Field(default=50_000, ge=1)
    max_bytes: int = Field(default=32_000_000, ge=1)
    max_message_bytes: int = Field(default=10_000_000, ge=1)
    max_wait: Duration = Duration("30 seconds")

    @model_validator(mode="after")
    def _has_brokers(self) -> Self:
        if bool(self.connection) == bool(self.servers):
            raise ValueError("a topic has a `connection` to its brokers, or else their `servers`")
        return self

    @property
    def brokers(self) -> str:
        """The brokers in words."""
        return f"of the connection {self.connection!r}" if self.connection else self.servers

    @field_validator("max_wait")
    @classmethod
    def _is_fixed(cls, length: Duration) -> Duration:
        if length.months:
            raise ValueError(f"{length.text!r} has no fixed length; write e.g. '30 seconds'")
        return length


class ValueFormat(Model):
    """Form of a topic's messages, and where their schema is: in a registry, or in files.

    `registry`: the connection to the schema registry. `files` are in the folder of the pipeline's
    file: Avro schemas, or outputs of `protoc --descriptor_set_out`. `encoding`: how Avro's messages
    without a registry are written. `message`: the full name of protobuf's message in the files.
    """

    format: MessageFormat
    registry: ConnectionName = ""
    files: tuple[str, ...] = ()
    encoding: Encoding | None = None
    message: str = ""
    _contents: tuple[bytes, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _has_one_schema(self, info: ValidationInfo) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        if info.context:
            folder = info.context["folder"]
            self._contents = tuple(contents(folder, name) for name in self.files)
        return self

    @property
    def is_debezium(self) -> bool:
        return self.format.startswith("debezium-")

    @property
    def is_avro(self) -> bool:
        return self.format.endswith("avro")

    @property
    def schemas(self) -> tuple[tuple[str, bytes], ...]:
        """Names of its files with what was in them when the declaration was loaded."""
        return tuple(zip(self.files, self._contents, strict=True))

    def _problems(self) -> Iterator[str]:
        takes = SETTINGS[self.format]
        for name in sorted(self.model_fields_set - {"format"}):
            if name not in takes:
                others = ", ".join(each for each in SETTINGS if name in SETTINGS[each])
                yield f"`value.{name}` is for {others}, not for {self.format}"
        if not takes:
            return
        if self.encoding == "container":
            if self.registry or self.files:
                yield "a container contains its schema: leave `registry` and `files` out of `value`"
        elif not self.registry and not self.files:
            other = ", or `value.files`: the schemas themselves" if "files" in takes else ""
            yield f"`value.registry` is missing: the connection to the schema registry{other}"
        elif self.registry and (also := sorted(self.model_fields_set - {"format", "registry"})):
            yield f"the schemas are in the registry: leave `{also[0]}` out of `value`"
        elif self.format == "protobuf" and self.files and not self.message:
            yield "`value.message` is missing: the full name of the message, such as shop.Order"


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
    """Rows that arrive over time. `read_at`: file and line of a declaration that is no YAML."""

    KIND: ClassVar[str] = "source"
    SECTION: ClassVar[Section] = "sources"
    STEP: ClassVar[JobName] = "ingest"
    LOADED: ClassVar[frozenset[str]] = Declared.LOADED | {"read_at"}
    SILENT: ClassVar[frozenset[str]] = Declared.SILENT | {
        *("missing", "evolve", "max_ahead", "on_conflict", "kafka", "delta", "read_at")
    }
    CHOOSING: ClassVar[frozenset[str]] = frozenset({"sequence"})
    PLACES: ClassVar[frozenset[str]] = Declared.PLACES | {"kafka", "delta", "value"}

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
    read_at: str = ""

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
        if self.delta.changes != "follow" and self.key:
            raise ValueError("`delta.changes` is of rows that are only appended: leave `key` out")
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
        if self.shares_files and not self.time:
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
        is_of_changes = self.change or (self.value and self.value.is_debezium)
        is_changed = self.delta and self.delta.changes == "follow"
        return bool(self.key or is_of_changes or is_changed)

    @property
    def delivered_beside(self) -> Mapping[str, tuple[str, ...]]:
        return {DELIVERIES: (INTERVAL, ID)} if self.keeps_deliveries else {}

    @property
    def shares_files(self) -> bool:
        return self.is_by_interval and not self.has_pattern

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
            shown = (interval.format(schedule.timezone) for interval in same)
            yield ("path",), SAME_PATH.format(*shown)
