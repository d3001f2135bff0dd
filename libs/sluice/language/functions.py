"""Functions that an expression may call: scalar, deterministic, harmless ones of Spark SQL.

This is an allow-list: functions that read files, call Java, ask for the time or return random
values are refused because they are not listed. Each line starts with the type that its functions
return, where it follows from their name: a type, `first` (the first argument's), `number`
(likewise, DOUBLE for a STRING), `common` (all arguments'), `either` (all but the first one's),
`element` (that of a collection), `list` (an array of all arguments), `series` (an array between the
first two), `keys`, `values` and `entries` (of a map), `whole` (rounded), `places` (rounded to
places), `together` (put one behind the other), or `?`.
"""

_TABLE = """
STRING: array_join base64 bin btrim char chr collation concat_ws conv date_format dayname decode elt
STRING: format_number format_string from_unixtime get_json_object hex initcap lcase left lower lpad
STRING: ltrim make_valid_utf8 mask md5 monthname overlay parse_url printf quote regexp_extract
STRING: regexp_replace regexp_substr repeat replace right rpad rtrim schema_of_csv schema_of_json
STRING: sha sha1 sha2 soundex space split_part string substr substring substring_index to_char
STRING: to_csv to_json to_varchar translate trim try_parse_url try_url_decode try_validate_utf8
STRING: typeof ucase upper url_decode url_encode validate_utf8
INT: array_size ascii bit_count bit_length cardinality char_length character_length date_diff
INT: datediff day dayofmonth dayofweek dayofyear find_in_set hash hour instr int json_array_length
INT: len length levenshtein locate minute month octet_length position quarter regexp_count
INT: regexp_instr second size unix_date weekday weekofyear year
BIGINT: array_position bigint crc32 factorial to_unix_timestamp unix_micros unix_millis unix_seconds
BIGINT: unix_timestamp xxhash64
SMALLINT: smallint
TINYINT: getbit tinyint
FLOAT: float
DOUBLE: acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees double exp expm1 hypot
DOUBLE: ln log log10 log1p log2 months_between nanvl pi pow power radians rint sec sign signum sin
DOUBLE: sinh sqrt tan tanh
BOOLEAN: array_contains arrays_overlap boolean contains endswith equal_null exists forall ilike
BOOLEAN: is_valid_utf8 is_valid_variant is_variant_null isnan isnotnull isnull like luhn_check
BOOLEAN: map_contains_key regexp regexp_like rlike startswith
DATE: add_months date date_add date_from_unix_date date_sub last_day make_date next_day to_date
DATE: trunc try_to_date
TIMESTAMP: date_trunc from_utc_timestamp make_timestamp make_timestamp_ltz timestamp
TIMESTAMP: timestamp_micros timestamp_millis timestamp_seconds to_timestamp to_timestamp_ltz
TIMESTAMP: to_utc_timestamp try_make_timestamp try_make_timestamp_ltz try_to_timestamp
TIMESTAMP_NTZ: convert_timezone make_timestamp_ntz to_timestamp_ntz try_make_timestamp_ntz
BINARY: binary encode to_binary try_to_binary unbase64 unhex
ARRAY<STRING>: json_object_keys regexp_extract_all split
MAP<STRING, STRING>: str_to_map
VARIANT: parse_json to_variant_object try_parse_json
first: array_compact array_distinct array_remove array_sort filter map_filter nullif reverse slice
first: sort_array
number: abs negative positive
element: array_max array_min element_at get try_element_at
list: array
series: sequence
keys: map_keys
values: map_values
entries: map_entries
whole: ceil ceiling floor
either: if nvl2
places: bround round
together: concat
common: coalesce greatest ifnull least nvl
?: aggregate array_append array_except array_insert array_intersect array_prepend array_repeat
?: array_union arrays_zip collate date_part dateadd datepart decimal extract flatten
?: from_csv from_json make_dt_interval make_interval make_ym_interval map map_concat
?: map_from_arrays map_from_entries map_zip_with mod named_struct nullifzero
?: pmod reduce schema_of_variant sentences shiftleft shiftright
?: shiftrightunsigned struct timestampadd timestampdiff to_number transform
?: transform_keys transform_values try_add try_divide try_make_interval try_mod try_multiply
?: try_subtract try_to_number try_variant_get variant_get width_bucket zeroifnull
?: zip_with
"""


def _read(table: str) -> dict[str, str]:
    lines = [line.split(": ", 1) for line in table.strip().splitlines()]
    return {name: returns.strip() for returns, names in lines for name in names.split()}


SCALAR = _read(_TABLE)

# Known, so that a refusal can say where they belong.
_AGGREGATES = """
any any_value approx_count_distinct approx_percentile approx_top_k array_agg avg bit_and bit_or
bit_xor bool_and bool_or collect_list collect_set corr count count_distinct count_if covar_pop
covar_samp every first first_value kurtosis last last_value listagg max max_by mean median min
min_by mode percentile percentile_approx regr_avgx regr_avgy regr_count regr_intercept regr_r2
regr_slope regr_sxx regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg
sum try_avg try_sum var_pop var_samp variance
"""
AGGREGATES = frozenset(_AGGREGATES.split())
