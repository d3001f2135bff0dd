"""Declaration of a topic, and of the form of its messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Literal, Self

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from sluice.language.beside import contents
from sluice.language.interval import Duration
from sluice.language.model import Model

CONNECTION = re.compile("[A-Za-z_][A-Za-z0-9_]*")
MessageFormat = Literal["json", "debezium-json", "avro", "debezium-avro", "protobuf"]
Encoding = Literal["binary", "single-object", "container"]
SETTINGS: Mapping[MessageFormat, frozenset[str]] = {  # that a format takes
    "json": frozenset(),
    "debezium-json": frozenset(),
    "avro": frozenset({"registry", "files", "encoding"}),
    "debezium-avro": frozenset({"registry"}),
    "protobuf": frozenset({"registry", "files", "message"}),
}


def check_connection(name: str) -> str:
    """Return the name of a connection. Raises ValueError if it can't be one."""
    if not CONNECTION.fullmatch(name):
        raise ValueError(
            f"{name!r} is not the name of a connection (letters, digits, _): addresses and "
            "settings belong in the connection"
        )
    return name


class Topic(Model):
    """A topic, the connection to its brokers, and the bounds of one batch.

    `connection` names an Airflow connection, or the variable AIRFLOW_CONN_<ID>. `start`: where the
    first batch begins. `max_wait`: the longest time that a batch waits for messages that are due,
    and the longest silence of the brokers.
    `max_message_bytes`: a message of more goes to quarantine without its bytes.
    """

    topic: str = Field(min_length=1)
    connection: str
    start: Literal["earliest", "latest"] = "earliest"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    max_rows: int = Field(default=50_000, ge=1)
    max_bytes: int = Field(default=32_000_000, ge=1)
    max_message_bytes: int = Field(default=10_000_000, ge=1)
    max_wait: Duration = Duration("30 seconds")

    @field_validator("connection")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return check_connection(name)

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
    registry: str = ""
    files: tuple[str, ...] = ()
    encoding: Encoding | None = None
    message: str = ""
    _contents: tuple[bytes, ...] = PrivateAttr(())

    @field_validator("registry")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return check_connection(name) if name else name

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
