"""Text of an expression, parsed and checked against an allow-list.

The grammar is sqlglot's for Spark, but functions are kept verbatim: every call keeps its written
name, which is looked up in an allow-list. Nothing is translated silently. Kinds of syntax are an
allow-list as well: anything not named here (subqueries, windows, parameters, ...) is refused. SQL
for Spark is regenerated from the checked tree, never taken from the text.
"""

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sluice.language.functions import AGGREGATES, SCALAR
from sluice.language.names import near

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


class VerbatimParser(SparkParser):
    """Parser that takes functions by the name written."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {name.upper(): _taking_one(name) for name in _TAKE_ONE}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: SparkParser.FUNCTION_PARSERS[name] for name in _KEPT
    }

    def _parse_interval(self, *args: Any, **named: Any) -> Any:
        """Keep an interval of several units together: `t - INTERVAL 1 DAY 2 HOURS`."""
        found = super()._parse_interval(*args, **named)
        return exp.Paren(this=found) if isinstance(found, exp.Add) else found


class Verbatim(Spark):
    """Spark SQL that takes and renders functions by the name written."""

    if not TYPE_CHECKING:
        Parser = VerbatimParser


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
    exp.Array: "write get(array(...), 0) for an element of a new array",
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
        _check_token(token)


def _check_token(token: Token) -> None:
    if token.comments or token.token_type == TokenType.HINT:
        raise ValueError("a comment is not allowed in an expression; write it as a YAML comment")
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


def requalified(sql: str, names: Mapping[str, str]) -> str:
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
    """Return Spark SQL of a tree, on one line and without comments."""
    return tree.sql(dialect=Verbatim, comments=False)


def shorten(text: str, most: int = 120) -> str:
    """Return the text on one line, shortened for a message."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."
