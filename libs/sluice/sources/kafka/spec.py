"""Declaration of a topic, and of the form of its messages."""

import re
from typing import Literal

from pydantic import Field, field_validator

from sluice.language.interval import Duration
from sluice.language.model import Model

CONNECTION = re.compile("[A-Za-z_][A-Za-z0-9_]*")
Format = Literal["json", "debezium-json", "avro", "debezium-avro"]


def check_connection(name: str) -> str:
    """Return the name of a connection. Raises ValueError if it can't be one."""
    if not CONNECTION.fullmatch(name):
        raise ValueError(
            f"{name!r} is no connection's name (letters, digits, _): addresses and settings belong "
            "into the connection"
        )
    return name


class Topic(Model):
    """A topic, the connection to its brokers, and the bounds of one batch.

    `connection` names an Airflow connection, or the variable AIRFLOW_CONN_<ID>. `start`: where the
    first batch begins. `max_wait`: the longest silence of the brokers while messages are due.
    `max_message_bytes`: a message of more goes to quarantine without its bytes.
    """

    topic: str = Field(min_length=1)
    connection: str
    start: Literal["earliest", "latest"] = "earliest"
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed"
    max_rows: int = Field(default=100_000, ge=1)
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


class Value(Model):
    """Form of a topic's messages. `registry`: the connection to Avro's schema registry."""

    format: Format
    registry: str = ""

    @field_validator("registry")
    @classmethod
    def _is_name(cls, name: str) -> str:
        return check_connection(name) if name else name

    @property
    def is_debezium(self) -> bool:
        return self.format.startswith("debezium-")

    @property
    def is_avro(self) -> bool:
        return self.format.endswith("avro")
