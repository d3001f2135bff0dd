"""All functions of rows that are known here, by name."""

from collections.abc import Callable, Mapping
from functools import partial

from pyspark.sql import types as T

from sluice.interpreter.functions.arithmetic import ARITHMETIC, BITS
from sluice.interpreter.functions.arrays import ARRAYS
from sluice.interpreter.functions.as_json import JSON
from sluice.interpreter.functions.comparing import COMPARING
from sluice.interpreter.functions.hashing import HASHING
from sluice.interpreter.functions.intervals import INTERVALS
from sluice.interpreter.functions.patterns import PATTERNS
from sluice.interpreter.functions.strings import TEXTS, WORDS
from sluice.interpreter.functions.times import TIME_PATTERNS, TIMES
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Value

_CASTS: Mapping[str, T.DataType] = {
    "tinyint": T.ByteType(),
    "smallint": T.ShortType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "boolean": T.BooleanType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
}


def _cast(type_: T.DataType, arguments: list[Value]) -> Value:
    return cast(arguments[0], type_)


FUNCTIONS: Mapping[str, Callable[[list[Value]], Value]] = {
    **ARITHMETIC,
    **INTERVALS,
    **BITS,
    **COMPARING,
    **ARRAYS,
    **TEXTS,
    **WORDS,
    **PATTERNS,
    **JSON,
    **TIMES,
    **TIME_PATTERNS,
    **HASHING,
    **{name: partial(_cast, type_) for name, type_ in _CASTS.items()},
}


# Numbers of arguments; Spark refuses other numbers.
_COUNTS = """
1: ! ~ abs array_compact array_distinct array_max array_min array_size base64 bigint boolean
1: cardinality ceil ceiling char_length character_length date date_from_unix_date day dayofmonth
1: dayofweek double flatten floor hex hour int is_valid_utf8 isnan isnotnull isnull last_day lcase
1: len length lower make_valid_utf8 map_entries map_from_entries map_keys map_values md5 minute
1: month negative not octet_length positive quarter raise_error reverse second sign signum size
1: smallint sqrt string timestamp_micros timestamp_millis tinyint ucase unix_date unix_micros
1: unix_millis unix_seconds unbase64 upper weekday weekofyear year dayofyear
2: != % & * / ^ | < <= <=> <> = == > >= and array_contains array_except array_position array_repeat
2: contains date_add date_format date_sub date_trunc div element_at endswith equal_null
2: from_utc_timestamp get ifnull instr left like map_from_arrays mod nullif nvl or pmod regexp
2: regexp_like repeat right rlike startswith to_utc_timestamp trunc try_element_at add_months
2: datediff date_diff sha2 try_divide
1: ascii bin bit_count bit_length char chr crc32 dayname degrees float initcap monthname radians
1: sha sha1 space timestamp_seconds to_unix_timestamp unix_timestamp typeof zeroifnull nullifzero
2: array_append array_intersect array_prepend array_remove array_union arrays_overlap date_part
2: datepart find_in_set ilike map_contains_key nanvl next_day regexp_count regexp_substr shiftleft
2: shiftright shiftrightunsigned try_add try_mod try_multiply try_subtract
3: split_part
1-2: btrim from_unixtime
2-3: position regexp_extract_all
3: from_csv if make_date nvl2 regexp_replace slice substring_index translate
1: timestamp
1-2: + - round sort_array to_date to_json to_timestamp to_timestamp_ntz trim ltrim rtrim
1-2: make_ym_interval try_to_timestamp
1-4: make_dt_interval
1-7: make_interval
3: dateadd timestampadd timestampdiff
2-3: array_join lpad rpad locate regexp_extract replace sequence split substr substring
2-9999: greatest in least when
"""


def _counts(table: str) -> dict[str, range]:
    found: dict[str, range] = {}
    for line in table.strip().splitlines():
        counts, _, names = line.partition(": ")
        least, _, most = counts.partition("-")
        found |= dict.fromkeys(names.split(), range(int(least), int(most or least) + 1))
    return found


COUNTS = _counts(_COUNTS)
