"""Envelopes of Debezium: what a change was before and after, as records.

With a key, snapshots (`r`), creates and updates write a row, and deletes delete it. Key columns
that the row lacks come from the message's key. Without one, an update and a delete need the row as
it was before. Tombstones, messages of the outbox (`m`) and transaction metadata are skipped.
"""

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from sluice.language.wall_clock import EPOCH
from sluice.sources.kafka.client.message import Message
from sluice.sources.kafka.formats.records import (
    DELETE,
    Fields,
    FormatReader,
    ReadWhole,
    Record,
    Unusable,
    as_mapping,
)

SHOWN = 80  # characters of a value in a reason
MOST_SCALE, MOST_BYTES = 1000, 420  # both are of numbers of some thousand digits
WRITES, TAKES = ("c", "r", "u"), ("u", "d")
NO_BEFORE = (
    "the row as it was before is missing: give the source {}, or have the connector send it "
    "(REPLICA IDENTITY FULL)"
)


@dataclass(frozen=True)
class ConnectType:
    """Connect's name of a column's type, and its parameters."""

    name: str
    parameters: Mapping[str, str]


class Envelope(NamedTuple):
    """A change as sent, and the meanings of its columns if a schema has them."""

    fields: Fields
    meanings: Mapping[str, ConnectType]


def debezium(
    value: Callable[[bytes], Envelope],
    of_key: Callable[[bytes], Envelope | Any],
    key: tuple[str, ...],
    whole: ReadWhole | None = None,
) -> FormatReader:
    """Return the reader of envelopes; `whole` reads many of them by columns."""

    def read(message: Message) -> Iterable[Record]:
        if message.value is None:
            return ()
        sent = message.key

        def own() -> Any:
            return None if sent is None else of_key(sent)

        return tuple(_records(value(message.value), key, own))

    return FormatReader(read, whole=whole)


def _key(found: Any, key: tuple[str, ...]) -> Fields:
    if isinstance(found, Envelope):
        return as_mapping(_read(found.fields, found.meanings), key)
    return as_mapping(found, key)


def _records(envelope: Envelope, key: tuple[str, ...], own: Callable[[], Any]) -> Iterable[Record]:
    """Yield the rows of a change; `own` reads the message's key, only if it is needed."""
    does = envelope.fields.get("op")
    if does == "m":
        return
    if does not in (*WRITES, "d"):
        raise Unusable(f"op {does} is none of c, r, u, d")
    is_taken_away = does in TAKES and not key
    if is_taken_away:
        yield Record(_taken(envelope, own), DELETE)
    elif does == "d":
        yield Record({**(_image(envelope, "before") or {}), **_key(own(), key)}, DELETE)
    if does in WRITES:
        row = _there(_image(envelope, "after"), f"op {does} without the row after it")
        lacks = any(name not in row for name in key)
        yield Record({**_key(own(), key), **row} if lacks else row, nth=1 if is_taken_away else 0)


def _taken(envelope: Envelope, own: Callable[[], Any]) -> Fields:
    """Return the row before. Raises Unusable without it, naming the key that might be declared."""
    before = _image(envelope, "before")
    if before is not None:
        return before
    try:
        found = own()
    except Unusable:
        found = None
    names = found.fields if isinstance(found, Envelope) else found
    is_named = isinstance(names, Mapping) and names
    raise Unusable(NO_BEFORE.format(f"`key: [{', '.join(names)}]`" if is_named else "a `key`"))


def _there(row: Fields | None, otherwise: str) -> Fields:
    if row is None:
        raise Unusable(otherwise)
    return row


def _image(envelope: Envelope, name: str) -> Fields | None:
    row = envelope.fields.get(name)
    if row is None:
        return None
    if not isinstance(row, dict):
        raise Unusable(f"`{name}` is not an object")
    return _read(row, envelope.meanings)


def _read(row: Fields, meanings: Mapping[str, ConnectType]) -> Fields:
    if not meanings:
        return row
    return {name: _value(name, value, meanings.get(name)) for name, value in row.items()}


def _value(name: str, value: Any, meaning: ConnectType | None) -> Any:
    if value is None or meaning is None or meaning.name not in VALUES:
        return value
    try:
        return VALUES[meaning.name](value, meaning.parameters)
    except (ValueError, TypeError, ArithmeticError, KeyError):
        raise Unusable(
            f"column {name}: {str(value)[:SHOWN]} is not a valid {meaning.name}"
        ) from None


def _after(unit: timedelta) -> Callable[[Any, Mapping[str, str]], str]:
    def moment(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ARG001
        return (EPOCH + int(value) * unit).replace(tzinfo=None).isoformat(" ")

    return moment


def _nanos(value: Any, parameters: Mapping[str, str]) -> str:
    seconds, nanos = divmod(int(value), 1_000_000_000)
    whole = (EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat(" ")
    return _after(timedelta(microseconds=1))(int(value) // 1000, parameters) if nanos else whole


def _day(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ARG001
    return (date(1970, 1, 1) + timedelta(days=int(value))).isoformat()


def _of_any_scale(value: Any, parameters: Mapping[str, str]) -> str:  # noqa: ARG001
    return _decimal(value["value"], {"scale": value["scale"]})


def _decimal(value: Any, parameters: Mapping[str, str]) -> str:
    raw = value if isinstance(value, bytes) else b64decode(value, validate=True)
    scale = int(parameters["scale"])
    if abs(scale) > MOST_SCALE or len(raw) > MOST_BYTES:  # its text would be as long
        raise ValueError
    sign, digits, _ = Decimal(int.from_bytes(raw, "big", signed=True)).as_tuple()
    return format(Decimal((sign, digits, -scale)), "f")


_MILLIS, _MICROS = _after(timedelta(milliseconds=1)), _after(timedelta(microseconds=1))
DECIMAL = "org.apache.kafka.connect.data.Decimal"
VALUES: Mapping[str, Callable[[Any, Mapping[str, str]], str]] = {
    "io.debezium.time.Date": _day,
    "io.debezium.time.Timestamp": _MILLIS,
    "io.debezium.time.MicroTimestamp": _MICROS,
    "io.debezium.time.NanoTimestamp": _nanos,
    "org.apache.kafka.connect.data.Date": _day,
    "org.apache.kafka.connect.data.Timestamp": _MILLIS,
    DECIMAL: _decimal,
    "io.debezium.data.VariableScaleDecimal": _of_any_scale,
}
