"""Signatures of Spark's functions, as far as the type of an argument matters.

Each line starts with a kind (see `families`) for each argument; `any` is not checked. A function
has a line for each number of arguments that is described; calls with another number are accepted.
Measured with Spark 4.2; `tests/language/typed/test_type_rules.py` compares the table with it.
"""

_TABLE = """
amount: abs negative positive sign signum
array: array_compact array_distinct array_max array_min array_size array_sort
bytes: base64 crc32 md5 sha sha1
collection: cardinality size
date: unix_date
map: map_entries map_keys map_values
number: acos acosh asin asinh atan atanh bin cbrt ceil ceiling char chr cos cosh cot csc
number: date_from_unix_date degrees exp expm1 factorial floor isnan ln log log10 log1p log2
number: nullifzero radians rint round sec sin sinh space sqrt tan tanh timestamp_seconds zeroifnull
ordered: hash xxhash64
string: collation json_array_length json_object_keys mask parse_json schema_of_csv schema_of_json
string: soundex str_to_map try_parse_json
struct: to_csv
text: ascii bigint binary bit_count bit_length boolean btrim char_length character_length date
text: decimal double float hex initcap int is_valid_utf8 lcase len length lower ltrim luhn_check
text: make_valid_utf8 octet_length quote rtrim sentences smallint timestamp tinyint to_date
text: to_timestamp to_timestamp_ltz to_timestamp_ntz try_to_date try_to_timestamp try_url_decode
text: try_validate_utf8 ucase unbase64 unhex upper url_decode url_encode validate_utf8
time: day dayname dayofmonth dayofweek dayofyear hour last_day minute month monthname quarter second
time: to_unix_timestamp unix_timestamp weekday weekofyear year
timestamp: unix_micros unix_millis unix_seconds
variant: is_valid_variant is_variant_null schema_of_variant
whole: timestamp_micros timestamp_millis
amount amount: try_multiply
amount number: try_divide
any int: array_repeat
array any: array_append array_contains array_position array_prepend array_remove array_sort exists
array any: filter forall sort_array
array array: array_except array_intersect array_union arrays_overlap arrays_zip map_from_arrays
array number: get
array string: array_join
bytes number: sha2
collection any: element_at try_element_at
map any: map_contains_key map_filter transform_keys transform_values
map map: map_concat
number any: bround format_number round
number number: atan2 hypot log make_interval make_ym_interval mod nanvl pmod pow power shiftleft
number number: shiftright shiftrightunsigned try_make_interval try_mod
number text: from_unixtime
string any: collate from_csv from_json
string string: get_json_object parse_url try_parse_url
text any: printf to_binary to_number try_to_binary try_to_number
text number: left repeat right rpad substring
text text: contains encode endswith find_in_set ilike instr levenshtein like locate regexp
text text: regexp_count regexp_instr regexp_like regexp_substr rlike split startswith to_date
text text: to_timestamp try_add try_subtract
text time: date_trunc to_char to_varchar
time int: date_add date_sub dateadd
time number: add_months
time text: date_format from_utc_timestamp next_day to_utc_timestamp trunc
time time: date_diff datediff months_between
whole number: getbit
any number time: dateadd timestampadd
any time time: datediff timestampdiff
array any any: aggregate
array array any: zip_with
array int any: array_insert
array number number: slice
map map any: map_zip_with
number number number: make_date
number text text: elt
text any any: concat_ws format_string
text number number: conv substr substring
text number text: lpad
text text number: regexp_extract regexp_extract_all split_part substring_index
text text text: regexp_replace replace translate
text text time: convert_timezone
variant string any: try_variant_get variant_get
array any any any: reduce
number number number number: make_dt_interval width_bucket
number number number number number number: make_timestamp make_timestamp_ltz make_timestamp_ntz
number number number number number number: try_make_timestamp try_make_timestamp_ltz
number number number number number number: try_make_timestamp_ntz
"""


def _read(table: str) -> dict[tuple[str, int], tuple[str, ...]]:
    lines = [line.split(": ", 1) for line in table.strip().splitlines()]
    kinds = [(tuple(head.split()), names.split()) for head, names in lines]
    return {(name, len(head)): head for head, names in kinds for name in names}


SIGNATURES = _read(_TABLE)

# Functions whose arguments become one value, and those that compare two.
ONE_TYPE = frozenset({"array", "coalesce", "greatest", "ifnull", "least", "nvl"})
COMPARING = frozenset({"equal_null", "nullif"})
