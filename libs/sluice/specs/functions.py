"""The functions that an expression may call: Spark SQL's scalar, deterministic and harmless ones.

An allow-list, so that a function which reads a file, calls Java, asks for the time or throws dice
is refused by not being here. Each line's head says what the functions on it return, where that
follows from their name: a type, `first` (the first argument's), `common` (of all arguments), or `?`.
"""

_TABLE = """
STRING: base64 bin btrim char chr concat_ws conv date_format dayname decode
STRING: elt format_number format_string printf from_unixtime get_json_object hex initcap lcase left
STRING: lower lpad ltrim mask md5 monthname overlay parse_url try_parse_url quote regexp_extract
STRING: regexp_replace regexp_substr repeat replace right rpad rtrim sha sha1 sha2 soundex space
STRING: split_part string substr substring substring_index to_json to_char to_varchar
STRING: translate trim typeof ucase upper url_decode url_encode try_url_decode
STRING: collation schema_of_json schema_of_csv to_csv validate_utf8 try_validate_utf8 make_valid_utf8
INT: ascii array_size bit_count bit_length cardinality char_length character_length
INT: day dayofmonth dayofweek dayofyear find_in_set hash hour instr length len
INT: levenshtein locate minute month octet_length position quarter regexp_count regexp_instr second
INT: size unix_date weekday weekofyear year int json_array_length
BIGINT: bigint crc32 factorial unix_micros unix_millis unix_seconds xxhash64
BIGINT: to_unix_timestamp unix_timestamp array_position
SMALLINT: smallint
TINYINT: getbit tinyint
FLOAT: float
DOUBLE: acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees double exp expm1 hypot
DOUBLE: ln log log10 log1p log2 pi pow power radians rint sec sin sinh sqrt tan tanh months_between
BOOLEAN: array_contains arrays_overlap boolean contains endswith equal_null exists forall ilike isnan
BOOLEAN: isnotnull isnull like luhn_check map_contains_key regexp regexp_like rlike startswith
BOOLEAN: is_valid_utf8 is_valid_variant is_variant_null
DATE: add_months date date_add date_from_unix_date date_sub last_day make_date next_day to_date
DATE: trunc try_to_date
TIMESTAMP: date_trunc from_utc_timestamp make_timestamp make_timestamp_ltz timestamp timestamp_micros
TIMESTAMP: timestamp_millis timestamp_seconds to_timestamp to_timestamp_ltz to_utc_timestamp
TIMESTAMP: try_to_timestamp try_make_timestamp try_make_timestamp_ltz
TIMESTAMP_NTZ: convert_timezone make_timestamp_ntz to_timestamp_ntz try_make_timestamp_ntz
BINARY: binary encode to_binary try_to_binary unbase64 unhex
ARRAY<STRING>: split regexp_extract_all json_object_keys
MAP<STRING, STRING>: str_to_map
first: array_compact array_distinct array_remove array_sort
first: filter map_filter negative nullif positive reverse slice sort_array
common: coalesce ifnull nvl greatest least
?: array_except array_intersect array_union nanvl zeroifnull nullifzero
?: array_append array_insert array_prepend collate date_diff dateadd datediff
?: shiftleft shiftright shiftrightunsigned
?: abs aggregate concat array array_join array_max array_min array_repeat arrays_zip bround ceil
?: ceiling decimal element_at flatten floor from_csv from_json get div map map_concat map_entries
?: map_from_arrays map_from_entries map_keys map_values map_zip_with mod named_struct nvl2 pmod reduce
?: round sequence sign signum struct timestampadd timestampdiff to_number transform transform_keys
?: transform_values try_add try_divide try_element_at try_mod try_multiply try_subtract try_to_number
?: try_variant_get variant_get parse_json try_parse_json to_variant_object width_bucket zip_with if
?: date_part datepart extract make_interval make_dt_interval make_ym_interval try_make_interval
?: sentences schema_of_variant
"""


def _read(table: str) -> dict[str, str]:
    lines = [line.split(": ", 1) for line in table.strip().splitlines()]
    return {name: returns.strip() for returns, names in lines for name in names.split()}


SCALAR = _read(_TABLE)

# Known, so that a refusal can say where they belong.
AGGREGATES = frozenset(
    "any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bool_and "
    "bool_or collect_list collect_set corr count count_distinct count_if every first first_value "
    "last last_value listagg max max_by mean median min min_by mode percentile percentile_approx "
    "some stddev string_agg sum variance".split()
)
