"""Text of an expression, parsed and checked against an allow-list.

The grammar is sqlglot's for Spark, but functions are kept verbatim: every call keeps its written
name, which is looked up in an allow-list. Nothing is translated silently. Kinds of syntax are an
allow-list as well: anything not named here (subqueries, windows, parameters, ...) is refused. SQL
for Spark is regenerated from the checked tree, never taken from the text.

Functions that an expression may call: scalar, deterministic, harmless ones of Spark SQL.

This is an allow-list: functions that read files, call Java, ask for the time or return random
values are refused because they are not listed. Each line starts with the type that its functions
return, where it follows from their name: a type, `first` (the first argument's), `number`
(likewise, DOUBLE for a STRING), `common` (all arguments'), `either` (all but the first one's),
`element` (that of a collection), `list` (an array of all arguments), `series` (an array between the
first two), `keys`, `values` and `entries` (of a map), `whole` (rounded), `places` (rounded to
places), `together` (put one behind the other), or `?`.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from sluice.language.names import near

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

SCALAR = {
    name: returns
    for returns, names in (line.split(": ", 1) for line in _TABLE.strip().splitlines())
    for name in names.split()
}

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

# An error is complete; sqlglot's warning about a statement that it parses as a command would only
# duplicate it.
logging.getLogger("sqlglot").setLevel(logging.ERROR)

Tree = exp.Expr
KEPT = 2_000  # parsed texts; several checks of a declaration use each
LONGEST = 20_000
_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "OVERLAY", "POSITION")
_TAKE_ONE = ("first", "first_value", "last", "last_value", "any_value")


def _taking_one(name: str) -> Callable[[list[Tree]], Tree]:
    """Return a reader of `last(x, true)` as `last(x) IGNORE NULLS`, which means the same."""

    def read(arguments: list[Tree]) -> Tree:
        if len(arguments) != 2 or not isinstance(arguments[1], exp.Boolean):
            return exp.Anonymous(this=name, expressions=arguments)
        call = exp.Anonymous(this=name, expressions=arguments[:1])
        return exp.IgnoreNulls(this=call) if arguments[1].this else call

    return read


_BITWISE = {
    TokenType.AMP: exp.BitwiseAnd,
    TokenType.CARET: exp.BitwiseXor,
    TokenType.PIPE: exp.BitwiseOr,
}


class SparkSQLParser(SparkParser):
    """Parser that takes `&` before `^` before `|`, and `||` as `+`, as Spark does.

    `array(…)[0]` is an element of that array.
    """

    ARRAY_CONSTRUCTORS: ClassVar[dict[str, Any]] = {}
    BITWISE: ClassVar[dict[Any, Any]] = {}
    TERM: ClassVar[dict[Any, Any]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}

    def _parse_bitwise(self) -> Any:
        read: Callable[[], Any] = super()._parse_bitwise
        for sign, kind in _BITWISE.items():
            read = partial(self._parse_chain, read, sign, kind)
        return read()

    def _parse_chain(self, read: Callable[[], Any], sign: Any, kind: type[exp.Binary]) -> Any:
        found = read()
        while self._match(sign):
            found = self.expression(kind(this=found, expression=read()))
        return found


class SparkSQL(Spark):
    """Spark's SQL as Spark reads it."""

    if not TYPE_CHECKING:
        Parser = SparkSQLParser

        class Tokenizer(Spark.Tokenizer):
            """A quote that is written twice is one of the text."""

            STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


class VerbatimParser(SparkSQLParser):
    """Parser that takes functions by the name written."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {name.upper(): _taking_one(name) for name in _TAKE_ONE}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _KEPT
    }

    def _parse_interval(self, *args: Any, **named: Any) -> Any:
        """Keep an interval of several units together: `t - INTERVAL 1 DAY 2 HOURS`."""
        found = super()._parse_interval(*args, **named)
        return exp.Paren(this=found) if isinstance(found, exp.Add) else found


# Names that are read as something else, in one place or another, unless they are in backquotes.
_KEYWORDS = """
all alter analyze and any as begin between cache call case comment commit copy create cross cube
current_date current_timestamp current_user declare delete desc describe distinct drop else except
execute explain false fetch for from glob grant having ilike inner insert intersect into join kill
lateral like limit load lock merge minus not notnull null offset on optimize or outer
partitioned_by pivot pragma prepare qualify refresh regexp rename returning revoke rlike rollback
rollup select serdeproperties session_user set show tablesample then true truncate uncache union
unpivot update use using vacuum values when where window with xor
"""
KEYWORDS = frozenset(_KEYWORDS.split())


class Verbatim(SparkSQL):
    """Spark SQL that takes and renders functions by the name written."""

    if not TYPE_CHECKING:
        Parser = VerbatimParser


class QuotingGenerator(SparkGenerator):
    """Generator that renders keywords as names of columns and tables in backquotes."""

    def identifier_sql(self, expression: exp.Identifier) -> str:
        text: str = super().identifier_sql(expression)
        of = expression.parent
        is_bare = isinstance(of, (exp.Alias, exp.TableAlias, exp.Table)) or (
            isinstance(of, exp.Column) and not of.table
        )
        return f"`{text}`" if is_bare and text.lower() in KEYWORDS else text


class Quoting(Verbatim):
    """Such SQL with keywords in backquotes."""

    if not TYPE_CHECKING:
        Generator = QuotingGenerator


SYNTAX: frozenset[type[Tree]] = frozenset(
    {
        *(exp.Column, exp.Identifier, exp.Literal, exp.RawString, exp.HexString),
        *(exp.Boolean, exp.Null, exp.Paren, exp.Anonymous, exp.Transform),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe),
        *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
        *(exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Escape),
        *(exp.Like, exp.ILike, exp.RegexpLike, exp.Collate),
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
        *(exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam),
        *(exp.Interval, exp.IntervalSpan, exp.Var, exp.Extract, exp.Trim, exp.Overlay),
        *(exp.StrPosition, exp.Bracket, exp.Dot, exp.Lambda, exp.ColumnDef),
    }
)
_DATE_PARTS = "year quarter month week day hour minute second millisecond microsecond"
DATE_PARTS = frozenset(_DATE_PARTS.split())
INTERVAL_UNITS = DATE_PARTS - {"quarter"}
TAKES_A_PART = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_diff"})
HIGHER_ORDER = frozenset(
    {
        *("aggregate", "array_sort", "exists", "filter", "forall", "map_filter", "map_zip_with"),
        *("reduce", "transform", "transform_keys", "transform_values", "zip_with"),
    }
)
CLOCKS = frozenset(
    {"curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now"}
)
# Spark reads the clock for such a text, with or without a zone, when casting it to a time.
MOMENT = re.compile(r"\s*(now|today|yesterday|tomorrow)(?![a-z])", re.IGNORECASE)

_SUBQUERY = "a subquery is not allowed here; write the view as a query, or join the table"
_OF_AGGREGATES = "belongs to an aggregate, and an aggregate is not allowed here"
_PARAMETER = "a parameter is not allowed; ${VAR} reads the environment"
CLOCK = "the time of running is not allowed: the same rows must always give the same result"
WHY_NOT: dict[type[Tree], str] = {
    exp.Select: _SUBQUERY,
    exp.Subquery: _SUBQUERY,
    exp.Union: _SUBQUERY,
    exp.Window: "a window function is not allowed here; write the view as a query",
    exp.Star: "'*' is not allowed; name the columns",
    exp.Alias: "an alias is not allowed here; the name is the key in the YAML",
    exp.Placeholder: _PARAMETER,
    exp.Parameter: _PARAMETER,
    exp.Filter: f"FILTER {_OF_AGGREGATES}",
    exp.Distinct: f"DISTINCT {_OF_AGGREGATES}",
    exp.Order: f"ORDER BY {_OF_AGGREGATES}",
    exp.Any: f"ANY {_OF_AGGREGATES}",
    exp.CurrentDate: CLOCK,
    exp.CurrentTimestamp: CLOCK,
    exp.Concat: "write one text; a quote inside it as \\'",
    exp.Block: "one expression is expected: ';' is not allowed",
    exp.Tuple: "a list in parentheses is only allowed after IN",
}


def parse(text: str) -> Tree:
    """Parse one scalar expression into a checked tree; ValueError names what is not allowed."""
    return _checked(text).copy()


@lru_cache(maxsize=KEPT)
def _checked(text: str) -> Tree:
    tree = parse_as(text, None)
    check(tree)
    return tree


def parse_as(text: str, into: type[Tree] | None) -> Tree:
    """Parse a text, checking only its tokens."""
    return _parsed(text, into).copy()  # type: ignore[arg-type] # classes are hashable


@lru_cache(maxsize=KEPT)
def _parsed(text: str, into: type[Tree] | None) -> Tree:
    dialect = Verbatim()
    try:
        _check_tokens(text)
        trees = dialect.parse_into(into, text) if into else dialect.parse(text)
    except (SqlglotError, RecursionError) as error:
        raise ValueError(f"can't read {shorten(text)!r}: {reason_of(error)}") from None
    if len(trees) != 1 or trees[0] is None:
        raise ValueError(f"one expression is expected, not {shorten(text)!r}")
    return _lower_columns(trees[0])


def _lower_columns(tree: Tree) -> Tree:
    """Lower-case column names as declared; Spark ignores their case."""
    for column in tree.find_all(exp.Column):
        for part in column.parts:
            if isinstance(part, exp.Identifier) and not part.quoted:
                part.set("this", part.name.lower())
    return tree


def _check_tokens(text: str) -> None:
    if any(ord(character) < 32 and not character.isspace() for character in text):
        raise ValueError("a control character is not allowed in an expression")
    if not text.strip():
        raise ValueError("an expression is expected, but this is empty")
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} characters is longer than {LONGEST}")
    for token in Verbatim().tokenize(text):
        if token.comments or token.token_type == TokenType.HINT:
            what = "a comment is not allowed in an expression"
            raise ValueError(f"{what}; write it as a YAML comment")
        if token.token_type == TokenType.SEMICOLON:
            raise ValueError(WHY_NOT[exp.Block])


def reason_of(error: Exception) -> str:
    """Return what sqlglot found wrong with a text, without its names for things."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        what = (
            "something is missing"
            if "missing for" in first["description"]
            else first["description"]
        )
        return f"{without_tokens(what)} at column {first['col']}".replace("\n", " ")
    return str(error).splitlines()[0]


def without_tokens(message: str) -> str:
    """Return sqlglot's message with words of the text instead of its own tokens."""
    return re.sub(r"<Token .*?text: (.*?), line: .*?>", r"'\1'", message)


def check(tree: Tree) -> None:
    """Refuse what is not allowed in a scalar expression."""
    for node in tree.walk():
        problem = _problem(node)
        if problem:
            raise ValueError(problem)


def _problem(node: Tree) -> str:  # noqa: PLR0911 - one per kind of node
    if type(node) in WHY_NOT and not _names_a_field(node):
        return WHY_NOT[type(node)]
    match node:
        case exp.Anonymous():
            return _call_problem(node)
        case exp.Dot() if not isinstance(node.expression, exp.Identifier):
            return f"{render(node)!r}: a function with a catalog or a schema is not allowed"
        case exp.Cast() if node.this.is_string and MOMENT.match(node.this.name):
            return CLOCK
        case exp.Lambda() if not _takes_functions(node.parent):
            return f"{render(node)!r}: -> belongs to a function over arrays or maps"
        case exp.Interval():
            return _interval_problem(node)
        case exp.Identifier() if not node.name or "`" in node.name:
            return f"{node.name!r} is not the name of a column"
    known = type(node) in SYNTAX or _names_a_field(node)
    return "" if known else f"{shorten(render(node))!r} is not allowed in an expression"


def _takes_functions(call: Tree | None) -> bool:
    is_named = isinstance(call, exp.Anonymous) and call.name.lower() in HIGHER_ORDER
    return is_named or isinstance(call, exp.Transform)


def _interval_problem(node: exp.Interval) -> str:
    unit = node.args.get("unit")
    units = [unit.this, unit.expression] if isinstance(unit, exp.IntervalSpan) else [unit]
    known = all(part and part.name.lower().removesuffix("s") in INTERVAL_UNITS for part in units)
    if known and isinstance(node.this, exp.Literal):
        return ""
    return (
        f"can't read {render(node)!r}; write e.g. interval 1 day, or make_interval(...) of columns"
    )


def _names_a_field(node: Tree) -> bool:
    parent = node.parent
    is_struct = isinstance(parent, exp.Anonymous) and parent.name.lower() == "struct"
    return is_struct and isinstance(node, exp.Alias)


def _call_problem(node: exp.Anonymous) -> str:
    name = node.name.lower()
    if name in CLOCKS:
        return CLOCK
    if name not in SCALAR:
        return refusal(name)
    if isinstance(node.this, exp.Identifier):
        return f"write the function {name} without quotes"
    return CLOCK if name == "unix_timestamp" and not node.expressions else ""


def refusal(name: str) -> str:
    """Return why that function can't be called in a scalar expression."""
    if name in AGGREGATES:
        return f"{name} is an aggregate; aggregates belong under `aggregates:`"
    match = near(name, SCALAR)
    guess = f"; did you mean {match!r}?" if match else ""
    return f"the function {name!r} is not allowed{guess} (scalar, deterministic ones of Spark are)"


def columns(tree: Tree) -> Iterator[str]:
    """Yield the columns that a tree reads, as `price` or `products.price`."""
    for column in tree.find_all(exp.Column):
        if not _is_date_part(column):
            yield ".".join(part.name.lower() for part in column.parts)


def requalify(sql: str, names: Mapping[str, str]) -> str:
    """Return an expression whose columns have other qualifiers; `names`: old name -> new name.

    Raises ValueError for what is not an expression.
    """
    tree = parse(sql)
    for column in list(tree.find_all(exp.Column)):
        first, *others = column.parts
        if others and (name := names.get(first.name.lower())):
            first.replace(exp.to_identifier(name, quoted=bool(first.args.get("quoted"))))
    return render(tree)


def _is_date_part(column: exp.Column) -> bool:
    call = column.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() in TAKES_A_PART
        and len(call.expressions) == 3
        and call.expressions[0] is column
        and column.name.lower() in DATE_PARTS
    )


def render(tree: Tree) -> str:
    """Return Spark SQL of a tree, on one line and without comments.

    Names that are keywords are in backquotes if the text could not be read as this tree otherwise.
    """
    text = tree.sql(dialect=Verbatim, comments=False)
    names = (name.name.lower() for name in tree.find_all(exp.Identifier) if not name.quoted)
    if KEYWORDS.isdisjoint(names) or _reads_as(text, tree):
        return text
    return tree.sql(dialect=Quoting, comments=False)


def _reads_as(text: str, tree: Tree) -> bool:
    try:
        (again,) = Verbatim().parse(text)
    except (SqlglotError, RecursionError, ValueError):
        return False
    if again is None or again.sql(dialect=Verbatim, comments=False) != text:
        return False
    ours, theirs = ([c.name for c in one.find_all(exp.Column)] for one in (tree, again))
    return ours == theirs


def shorten(text: str, most: int = 120) -> str:
    """Return the text on one line, shortened for a message."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."
