"""Check of the types in an expression, by the rules of Spark in ANSI mode.

A part that Spark would refuse is reported with the types found and those accepted. Unknown types
are never reported, so nothing that Spark accepts is refused.

Signatures of Spark's functions, as far as the type of an argument matters.

Each line starts with a kind (see `families`) for each argument; `any` is not checked. A function
has a line for each number of arguments that is described; calls with another number are accepted.
Measured with Spark 4.2; `tests/language/typed/test_type_rules.py` compares the table with it.

Texts such as 'now' or 'today UTC', for which Spark reads the clock when cast to a time.

The same rows must always give the same result, so such a text is refused there. Elsewhere it is an
ordinary text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from sqlglot import exp

from sluice.language import syntax
from sluice.language.expression import Aggregate, Expression
from sluice.language.inference import (
    AGGREGATES,
    CASTS,
    OPERANDS,
    OPERATORS,
    ORDERED_AGGREGATES,
    ColumnTypes,
    TreeTypes,
    branches,
    list_operands,
    whole_type,
)
from sluice.language.types import (
    KINDS,
    MOMENTS,
    NOTHING,
    UNKNOWN,
    are_comparable,
    family,
    fits,
    have_common_type,
    inner_types,
    is_orderable,
)

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

SIGNATURES = {
    (name, len(kinds.split())): tuple(kinds.split())
    for kinds, names in (line.split(": ", 1) for line in _TABLE.strip().splitlines())
    for name in names.split()
}

# Functions whose arguments become one value, and those that compare two.
ONE_TYPE = frozenset({"array", "coalesce", "greatest", "ifnull", "least", "nvl"})
COMPARING = frozenset({"equal_null", "nullif"})

TypeOf = Callable[[syntax.Tree], str]
TIMES = frozenset({"time", "part", "date", "timestamp"})  # kinds of arguments
OF_TEXTS = frozenset(
    {
        *("date", "timestamp", "to_date", "to_timestamp", "to_timestamp_ltz", "to_timestamp_ntz"),
        *("try_to_date", "try_to_timestamp"),
    }
)
OF_PARTS = frozenset({"date_part", "datepart"})
ALIKE = ONE_TYPE | COMPARING | {"if", "nvl2", "sequence"}


def reads_clock(node: syntax.Tree, of: TypeOf) -> bool:
    """Return whether a text that the node takes as a time changes with the clock."""
    groups = [parts for parts in _alike(node) if any(_is_moment(part, of) for part in parts)]
    return any(_is_moment(part, of) for part in _times(node, of)) or any(
        _is_time(part, of) for parts in groups for part in parts
    )


def _times(node: syntax.Tree, of: TypeOf) -> Sequence[syntax.Tree]:
    """Return the parts of a node that become times, regardless of the other parts."""
    match node:
        case exp.Cast():
            return [node.this] if family(of(node)) in MOMENTS else []
        case exp.Extract():
            return [node.expression]
        case exp.Anonymous():
            return _arguments(node.name.lower(), node.expressions)
    return []


def _arguments(name: str, given: Sequence[syntax.Tree]) -> Sequence[syntax.Tree]:
    if name in OF_TEXTS:
        return given[:1]
    if name in OF_PARTS:
        return given[1:]
    kinds = SIGNATURES.get((name, len(given)), ())
    return [part for kind, part in zip(kinds, given, strict=False) if kind in TIMES]


def _alike(node: syntax.Tree) -> Iterator[Sequence[syntax.Tree]]:
    """Yield parts of a node that take one common type: times, if one of them is."""
    yield list_operands(node)
    match node:
        case exp.Sub():
            yield [node.this, node.expression]
        case exp.Anonymous() if node.name.lower() in ALIKE:
            yield node.expressions
        case exp.Case():
            yield branches(node)
        case exp.If() if not isinstance(node.parent, exp.Case):
            yield branches(node)


def _is_time(part: syntax.Tree, of: TypeOf) -> bool:
    """Return whether the part is or may be a time: a column in it is, or its lambda's argument."""
    type_ = of(part)
    if type_ != UNKNOWN:
        return _is_of_times(type_)
    if any(_is_of_times(of(column)) for column in part.find_all(exp.Column)):
        return True
    within = part.find_ancestor(exp.Lambda)
    through = within.parent.iter_expressions() if within and within.parent else ()
    return any(_is_time(given, of) for given in through if given is not within)


def _is_of_times(type_: str) -> bool:
    return family(type_) in MOMENTS or any(map(_is_of_times, inner_types(type_)))


def _is_moment(part: syntax.Tree, of: TypeOf) -> bool:
    """Return whether the part is such a text, or may be one.

    An expression of constants may be one, because only its value would show.
    """
    type_, part = of(part), part.unnest()
    if isinstance(part, exp.Literal):
        return bool(part.is_string and syntax.MOMENT.match(part.name))
    if type_ not in ("STRING", UNKNOWN) or part.find(exp.Column):
        return False
    texts = [text for text in part.find_all(exp.Literal) if text.is_string]
    return any(type_ == "STRING" or syntax.MOMENT.match(text.name) for text in texts)


class RefusedBySpark(str):
    """A problem that Spark has as well, so it can't compute the whole query either."""

    __slots__ = ()


def problems(
    expression: Expression, columns: ColumnTypes, joined: Mapping[str, ColumnTypes]
) -> Iterator[str]:
    """Yield each problem of a checked expression over these columns once."""
    tree = syntax.parse(expression.sql)
    for problem in dict.fromkeys(_Rules(TreeTypes(tree, columns, joined)).of(tree)):
        yield problem if problem.endswith(syntax.CLOCK) else RefusedBySpark(problem)


def aggregate_problem(aggregate: Aggregate, columns: ColumnTypes) -> str:
    """Return why an aggregate can't take its argument; '' if it can."""
    if aggregate.argument is None:
        return ""
    type_ = whole_type(aggregate.argument, columns, {})
    accepted, words = AGGREGATES.get(aggregate.function, (frozenset[str](), ""))
    if aggregate.function in ORDERED_AGGREGATES:
        accepted, words = KINDS["ordered"]
        is_fit = is_orderable(type_)
    else:
        is_fit = not accepted or family(type_) in ("", *accepted)
    if is_fit:
        return ""
    return _refusal(aggregate.text, aggregate.function, words, type_)


def _refusal(text: str, what: str, accepted: str, *found: str) -> str:
    return f"{syntax.shorten(text)!r}: {what} takes {accepted}, not {' and '.join(found)}"


class _Rules:
    def __init__(self, types: TreeTypes) -> None:
        self.types = types

    def of(self, tree: syntax.Tree) -> Iterator[str]:
        for node in tree.walk():
            yield from self._node(node)

    def _node(self, node: syntax.Tree) -> Iterator[str]:
        if reads_clock(node, self.types.of):
            yield f"{syntax.shorten(syntax.render(node))!r}: {syntax.CLOCK}"
        if type(node) in OPERATORS:
            yield from self._operator(node)
        elif type(node) in OPERANDS:
            name, kind, what = OPERANDS[type(node)]
            yield from self._argument(node, node.args[name], kind, what)
        elif isinstance(node, exp.And | exp.Or):
            for side in (node.this, node.expression):
                yield from self._argument(node, side, "boolean", type(node).__name__.upper())
        elif isinstance(node, exp.Anonymous):
            yield from self._call(node)
        else:
            yield from self._comparison(node)

    def _operator(self, node: syntax.Tree) -> Iterator[str]:
        sign, accepted, pairs = OPERATORS[type(node)]
        left, right = self.types.of(node.this), self.types.of(node.expression)
        a, b = family(left), family(right)
        if a and b and not any(a in lefts and b in rights for lefts, rights in pairs):
            yield _refusal(syntax.render(node), sign, accepted, left, right)

    def _argument(
        self, node: syntax.Tree, argument: syntax.Tree, kind: str, what: str
    ) -> Iterator[str]:
        type_ = self.types.of(argument)
        if not fits(type_, kind):
            several = len(list(node.iter_expressions())) > 1
            where = f" ({syntax.render(argument)})" if several else ""
            yield _refusal(syntax.render(node), what, KINDS[kind][1], type_ + where)

    def _call(self, node: exp.Anonymous) -> Iterator[str]:
        name, arguments = node.name.lower(), node.expressions
        for kind, argument in zip(
            SIGNATURES.get((name, len(arguments)), ()), arguments, strict=False
        ):
            yield from self._argument(node, argument, kind, name)
        if name in ONE_TYPE:
            yield from self._one_type(node, arguments)
        elif name in COMPARING:
            yield from self._check_compared(node, *arguments)
        elif name == "concat":
            yield from self._check_joined(node, arguments)

    def _comparison(self, node: syntax.Tree) -> Iterator[str]:
        if parts := list_operands(node):
            yield from self._check_compared(node, *parts)
        match node:
            case exp.Is() if isinstance(node.expression, exp.Boolean):
                yield from self._argument(node, node.this, "boolean", "IS")
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                for side in (node.this, node.expression):
                    yield from self._argument(node, side, "text", "a pattern")
            case exp.DPipe():
                yield from self._check_joined(node, [node.this, node.expression])
            case exp.Case():
                yield from self._case(node)
            case exp.If() if not isinstance(node.parent, exp.Case):
                yield from self._argument(node, node.this, "condition", "IF")
                yield from self._one_type(node, branches(node))
            case exp.Cast():
                yield from self._cast(node)

    def _check_compared(
        self, node: syntax.Tree, first: syntax.Tree, *others: syntax.Tree
    ) -> Iterator[str]:
        left = self.types.of(first)
        for other in others:
            right = self.types.of(other)
            if not are_comparable(left, right):
                text = syntax.shorten(syntax.render(node))
                why = "can't be compared with" if is_orderable(left) else "has no order, unlike"
                yield f"{text!r}: {left} {why} {right}"

    def _one_type(self, node: syntax.Tree, parts: list[syntax.Tree]) -> Iterator[str]:
        found = [type_ for type_ in map(self.types.of, parts) if type_ not in (UNKNOWN, NOTHING)]
        for left, right in pairwise(dict.fromkeys(found)):
            if not have_common_type(left, right):
                text = syntax.shorten(syntax.render(node))
                yield f"{text!r}: its results must be of one type, not {left} and {right}"

    def _check_joined(self, node: syntax.Tree, parts: list[syntax.Tree]) -> Iterator[str]:
        types = [type_ for type_ in map(self.types.of, parts) if family(type_)]
        families = {family(type_) for type_ in types}
        is_mixed = "array" in families and len(families) > 1
        if is_mixed or families & {"map", "struct"}:
            yield _refusal(
                syntax.render(node), "joining", "texts, or arrays", *dict.fromkeys(types)
            )

    def _case(self, node: exp.Case) -> Iterator[str]:
        for branch in [] if node.this else node.args["ifs"]:
            yield from self._argument(node, branch.this, "condition", "WHEN")
        yield from self._one_type(node, branches(node))

    def _cast(self, node: exp.Cast) -> Iterator[str]:
        found, wanted = self.types.of(node.this), syntax.render(node.args["to"])
        accepted = CASTS.get(family(wanted))
        if accepted and family(found) not in ("", *accepted):
            yield f"{syntax.shorten(syntax.render(node))!r}: {found} can't be cast to {wanted}"
