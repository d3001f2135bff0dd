"""Functions of rows, by their names in Spark; here are their signatures.

A signature says what a function takes and returns, beside what computes it. A function is a Python
function of values that are not null. A kernel of Arrow's may stand before it, for the columns of
which the two are certainly the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.values import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    is_integer,
    is_moment,
    is_number,
)
from sluice.interpreter.values.casts import as_int, cast, length, number
from sluice.interpreter.values.column_batch import Function, Kernel, Value, each

Parameter = Callable[[Value], Value]  # from an argument to what the function takes
Returns = T.DataType | Callable[..., T.DataType]  # of the types of what it takes


def text(value: Value) -> Value:
    """Return a value as text, where Spark casts implicitly; other types are left to Spark."""
    type_ = value.type
    if is_number(type_) or is_moment(type_) or isinstance(type_, T.BooleanType):
        return cast(value, STRING)
    return only_text(value)


def only_text(value: Value) -> Value:
    """Return a text; other types, which Spark casts to something else, are left to it."""
    return cast(_of(T.StringType, T.NullType)(value), STRING)


def _of(*types: type[T.DataType]) -> Parameter:
    """Return the parameter that takes values of these types alone."""

    def check(value: Value) -> Value:
        if not isinstance(value.type, types):
            raise UnsupportedLocally(f"a function of a value of type {value.type.simpleString()}")
        return value

    return check


def day(value: Value) -> Value:
    """Return a DATE; of a text, it is left to Spark."""
    if isinstance(value.type, T.StringType):
        raise UnsupportedLocally("a date function of a string")
    return cast(value, DATE)


def of_bytes(value: Value) -> Value:
    """Return BINARY, also of a text."""
    return value if isinstance(value.type, T.BinaryType) else cast(only_text(value), BINARY)


_of_time = _of(T.DateType, T.TimestampType, T.TimestampNTZType)
PARAMETERS: Mapping[str, Parameter] = {
    "text": text,
    "only_text": only_text,
    "text_or_bytes": lambda v: v if isinstance(v.type, T.BinaryType) else text(v),
    "integer_or_bytes": lambda v: v if is_integer(v.type) else of_bytes(v),
    "bytes": of_bytes,
    "int": as_int,
    "length": length,
    "integer": _of(T.IntegralType),
    "long_or_int": _of(T.IntegerType, T.LongType),
    "number": number,
    # As microseconds: the unscaled values of this type.
    "seconds": lambda v: cast(_of(T.IntegralType, T.DecimalType)(v), T.DecimalType(18, 6)),
    "numeric": _of(T.NumericType),
    "date": day,
    "only_date": _of(T.DateType),
    "moment": _of(T.TimestampType, T.TimestampNTZType),
    "timestamp": _of(T.TimestampType),
    "date_or_timestamp": lambda v: cast(_of(T.DateType, T.TimestampType)(v), TIMESTAMP),
    # A time, also of a DATE: as a TIMESTAMP, or in its own type.
    "as_timestamp": lambda v: cast(_of_time(v), TIMESTAMP),
    "as_moment": lambda v: cast(v, TIMESTAMP) if v.type == DATE else _of_time(v),
    "array": _of(T.ArrayType),
    "map": _of(T.MapType),
    "array_or_map": _of(T.ArrayType, T.MapType),
    "array_or_text": _of(T.ArrayType, T.StringType),
}


@dataclass(frozen=True)
class Signature:
    """A function's parameters, type and computation; the last parameters may be optional (`?`)."""

    takes: str
    type: Returns
    function: Callable[..., Any]
    kernel: Kernel | None = None

    @property
    def counts(self) -> range:
        names = self.takes.split()
        return range(sum(not name.endswith("?") for name in names), len(names) + 1)

    def given(self, arguments: list[Value]) -> list[Value]:
        """Return the arguments as the function takes them."""
        names = self.takes.replace("?", "").split()
        return [PARAMETERS[n](a) for n, a in zip(names, arguments, strict=False)]

    def __call__(self, arguments: list[Value]) -> Value:
        given, type_ = self.given(arguments), self.type
        if not isinstance(type_, T.DataType):
            type_ = type_(*(value.type for value in given))
        return each(type_, self.function, *given, kernel=self.kernel)


def name_each(functions: Mapping[str, Function | tuple[Any, ...]]) -> dict[str, Function]:
    """Return functions by name, from those by their names with blanks between.

    A tuple is a signature: parameters, type, function, and perhaps a kernel.
    """
    return {
        name: Signature(*found) if isinstance(found, tuple) else found
        for names, found in functions.items()
        for name in names.split()
    }


def same(first: T.DataType, *_: T.DataType) -> T.DataType:
    """Return the type of the first argument."""
    return first


def inner(first: T.DataType, *_: T.DataType) -> T.DataType:
    """Return the type of the elements of the first argument, an array."""
    assert isinstance(first, T.ArrayType)
    return first.elementType


def of_column(compute: Callable[..., pa.Array]) -> Kernel:
    """Return the kernel of one column, whose other arguments are constants."""

    def run(column: Any, *constants: Any) -> pa.Array | None:
        is_apart = isinstance(column, pa.Array) and not any(
            c is None or isinstance(c, pa.Array) for c in constants
        )
        return compute(column, *constants) if is_apart else None

    return run


def of_ascii(compute: Callable[..., pa.Array]) -> Kernel:
    """Return the kernel of texts that have no other letters."""
    return of_column(
        lambda c, *more: compute(c, *more) if pc.all(pc.string_is_ascii(c)).as_py() else None
    )
