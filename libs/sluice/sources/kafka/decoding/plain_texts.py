"""Columns whose texts are all plain, converted by Arrow at once.

`language.typed.spellings` accepts more. A column with any other text is left to the slower rules in
SQL, which give a reason for each text that they reject.
"""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from sluice.interpreter.values.arrow_conversion import arrow_type

DAY = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
LOCAL = rf"{DAY}[ T][0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}(\.[0-9]{{1,6}})?"
NUMBER = "-?[0-9]{1,18}"
PATTERNS: dict[type[DataType], str] = {
    BooleanType: "true|false",
    DateType: DAY,
    DoubleType: r"-?[0-9]{1,15}(\.[0-9]{1,15})?",
    TimestampNTZType: LOCAL,
    TimestampType: f"{LOCAL}Z?",
}


def plain_values(texts: pa.Array, type_: DataType) -> pa.Array | None:
    """Return the values of texts; None unless all of them are plain and within the type."""
    if isinstance(type_, StringType):
        return texts
    pattern = _pattern(type_)
    if not pattern or not _is_all(texts, rf"\A(?:{pattern})\z"):
        return None
    try:
        return _values(texts, type_)
    except pa.ArrowInvalid:  # the 30th of February, or a number beyond the type
        return None


def _pattern(type_: DataType) -> str:
    """Return the pattern of plain texts; '' of a type that has none."""
    if isinstance(type_, DecimalType):
        whole, places = type_.precision - type_.scale, type_.scale
        rest = rf"(\.[0-9]{{1,{places}}})?" if places else ""
        return f"-?[0-9]{{1,{whole}}}{rest}" if whole else f"-?0{rest}"
    return NUMBER if isinstance(type_, IntegralType) else PATTERNS.get(type(type_), "")


def _is_all(texts: pa.Array, pattern: str) -> bool:
    fits = pc.all(pc.match_substring_regex(texts, pattern), min_count=0)
    return bool(fits.as_py())


def _values(texts: pa.Array, type_: DataType) -> pa.Array:
    wanted = arrow_type(type_)
    if isinstance(type_, TimestampType):
        local = pc.utf8_rtrim(texts, "Z").cast(pa.timestamp("us"))
        return local.view(wanted)
    return texts.cast(wanted)
