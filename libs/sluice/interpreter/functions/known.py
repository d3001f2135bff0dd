"""All functions of rows that are known here, by name."""

from collections.abc import Mapping
from functools import partial

from pyspark.sql import types as T

from sluice.interpreter.functions.arithmetic import ARITHMETIC
from sluice.interpreter.functions.arrays import ARRAYS
from sluice.interpreter.functions.as_json import JSON
from sluice.interpreter.functions.comparing import COMPARING
from sluice.interpreter.functions.hashing import HASHING
from sluice.interpreter.functions.intervals import INTERVALS
from sluice.interpreter.functions.patterns import PATTERNS
from sluice.interpreter.functions.signatures import Signature
from sluice.interpreter.functions.strings import STRINGS
from sluice.interpreter.functions.times import TIME_PATTERNS, TIMES
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import Function, Value
from sluice.interpreter.values.value_types import BINARY, NTZ, SIMPLE

CASTS = {t.simpleString(): t for t in SIMPLE if t not in (BINARY, NTZ)}


def _cast(type_: T.DataType, arguments: list[Value]) -> Value:
    return cast(arguments[0], type_)


FUNCTIONS: Mapping[str, Function] = {
    **ARITHMETIC,
    **INTERVALS,
    **COMPARING,
    **ARRAYS,
    **STRINGS,
    **PATTERNS,
    **JSON,
    **TIMES,
    **TIME_PATTERNS,
    **HASHING,
    **{name: partial(_cast, type_) for name, type_ in CASTS.items()},
}

# Numbers of arguments of functions without a signature; Spark refuses other numbers.
_COUNTS = """
1: ! abs array_distinct array_max array_min bigint boolean ceil ceiling date date_from_unix_date day
1: dayofmonth dayofweek dayofyear double flatten float floor hour int isnan isnotnull isnull
1: map_from_entries minute month negative not nullifzero quarter raise_error second smallint string
1: timestamp tinyint typeof unix_date unix_micros unix_millis unix_seconds weekday weekofyear year
1: zeroifnull
1-2: + - from_unixtime ltrim round rtrim sort_array to_date to_json to_timestamp
1-2: to_timestamp_ntz trim try_to_timestamp
2: != % * / < <= <=> <> = == > >= and array_append array_contains array_except array_intersect
2: array_position array_prepend array_remove array_repeat array_union arrays_overlap date_add
2: date_diff date_format date_part date_sub date_trunc datediff datepart div element_at equal_null
2: get_json_object
2: ifnull ilike like map_contains_key map_from_arrays mod nanvl next_day nullif nvl or pmod regexp
2: regexp_count regexp_like regexp_substr rlike shiftleft shiftright shiftrightunsigned trunc
2: try_add try_divide try_element_at try_mod try_multiply try_subtract
2-3: array_join locate position regexp_extract regexp_extract_all sequence split
2-9999: greatest in least when
3: dateadd from_csv if nvl2 regexp_replace timestampadd timestampdiff
"""
COUNTS = {name: found.counts for name, found in FUNCTIONS.items() if isinstance(found, Signature)}
for _line in _COUNTS.strip().splitlines():
    _counts, _, _names = _line.partition(": ")
    _least, _, _most = _counts.partition("-")
    COUNTS |= dict.fromkeys(_names.split(), range(int(_least), int(_most or _least) + 1))
