"""The text of an expression, parsed and checked against what may stand in one.

Spark's grammar is sqlglot's, but with functions kept verbatim: every call keeps the name that was written, is looked
up in an allow-list, and comes out under that name, so that nothing is translated behind the user's back. Kinds of
syntax are an allow-list as well: what is not named here (subqueries, windows, parameters, ...) is refused. SQL for
Spark is regenerated from the checked tree, never taken from the text.
"""

from collections.abc import Collection, Iterator
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokens import Token, TokenType

from sluice.specs.functions import SCALAR
from sluice.specs.names import unknown

LONGEST = 20_000
_KEPT = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "OVERLAY", "POSITION")


class Verbatim(Spark):
    """Spark SQL whose functions are taken by the name written."""

    class Parser(Spark.Parser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: Spark.Parser.FUNCTION_PARSERS[name] for name in _KEPT
        }


SYNTAX: frozenset[type[exp.Expression]] = frozenset(
    {
        *(exp.Column, exp.Identifier, exp.Literal, exp.RawString, exp.HexString, exp.Boolean, exp.Null),
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Paren, exp.DPipe),
        *(exp.And, exp.Or, exp.Not, exp.Xor, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE),
        *(exp.NullSafeEQ, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape),
        *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot),
        *(exp.Case, exp.If, exp.Cast, exp.TryCast, exp.DataType, exp.DataTypeParam, exp.Interval),
        *(exp.IntervalSpan, exp.Var, exp.Extract, exp.Trim, exp.Overlay, exp.StrPosition),
        *(exp.Bracket, exp.Dot, exp.Lambda, exp.Anonymous, exp.Collate, exp.ColumnDef),
    }
)
DATE_PARTS = frozenset("year quarter month week day hour minute second millisecond microsecond".split())
TAKES_A_PART = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_diff", "date_add"})

WHY_NOT: dict[type[exp.Expression], str] = {
    exp.Select: "a subquery is not allowed; join tables with a lookup or a cogroup",
    exp.Subquery: "a subquery is not allowed; join tables with a lookup or a cogroup",
    exp.Window: "a window function is not allowed; rank with a topk view",
    exp.Star: "'*' is not allowed; name the columns",
    exp.Alias: "an alias is not allowed here; the name is given by the key in the YAML",
    exp.Placeholder: "a parameter is not allowed; ${VAR} reads the environment",
    exp.Parameter: "a parameter is not allowed; ${VAR} reads the environment",
    exp.Filter: "FILTER belongs to an aggregate; an aggregate is not allowed here",
    exp.Distinct: "DISTINCT belongs to an aggregate; an aggregate is not allowed here",
    exp.Order: "ORDER BY belongs to an aggregate; an aggregate is not allowed here",
    exp.Array: "write element_at(array(...), 1) or get(array(...), 0)",
    exp.Block: "one expression is wanted: ';' is not allowed",
    exp.Tuple: "a list in parentheses is only allowed after IN",
}


def parse(text: str, functions: Collection[str] = SCALAR.keys()) -> exp.Expression:
    """The checked tree of one scalar expression; ValueError says what can't stand in it."""
    tree = parse_as(text, None)
    check(tree, functions)
    return tree


def parse_as(text: str, into: type[exp.Expression] | None) -> exp.Expression:
    """The tree of a text, not checked for what it contains beyond its tokens."""
    try:
        _check_tokens(text)
        dialect = Verbatim()
        trees = (
            dialect.parse_into(into, text) if into else dialect.parse(text)  # type: ignore[no-untyped-call]
        )
    except (SqlglotError, RecursionError) as error:
        raise ValueError(f"can't read {shorten(text)!r}: {_reason(error)}") from None
    if len(trees) != 1 or trees[0] is None:
        raise ValueError(f"one expression is wanted, not {shorten(text)!r}")
    tree: exp.Expression = trees[0]
    return tree


def _check_tokens(text: str) -> None:
    if not text.strip():
        raise ValueError("an expression is wanted, this is empty")
    if len(text) > LONGEST:
        raise ValueError(f"an expression of {len(text)} characters is longer than {LONGEST}")
    for token in Verbatim().tokenize(text):
        _check_token(token)


def _check_token(token: Token) -> None:
    if token.comments or token.token_type == TokenType.HINT:
        raise ValueError("a comment is not allowed inside an expression; write it as a YAML comment")
    if token.token_type == TokenType.SEMICOLON:
        raise ValueError("one expression is wanted: ';' is not allowed")
    if token.token_type == TokenType.IDENTIFIER and "`" in token.text:
        raise ValueError("a back-quote inside a name is not allowed")


def _reason(error: Exception) -> str:
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f"{first['description']} at column {first['col']}".replace("\n", " ")
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).splitlines()[0]


def check(tree: exp.Expression, functions: Collection[str]) -> None:
    """Refuse what may not stand in a scalar expression."""
    for node in tree.walk():
        _check_node(node, functions)


def _check_node(node: exp.Expression, functions: Collection[str]) -> None:
    if isinstance(node, exp.Anonymous):
        _check_call(node, functions)
    elif isinstance(node, exp.Dot):
        _check_field(node)
    elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        raise ValueError(WHY_NOT[exp.Star])
    elif isinstance(node, exp.Alias) and _names_a_field(node):
        return
    elif type(node) not in SYNTAX:
        raise ValueError(WHY_NOT.get(type(node)) or f"{render(node)!r} is not allowed in an expression")


def _check_call(node: exp.Anonymous, functions: Collection[str]) -> None:
    name = node.name.lower()
    if name not in functions:
        raise ValueError(refusal(name, functions))
    if isinstance(node.this, exp.Identifier):
        raise ValueError(f"write the function {name} without quotes")


def refusal(name: str, functions: Collection[str]) -> str:
    """Why that function can't be called here."""
    if name in AGGREGATES:
        return f"{name} is an aggregate; aggregates belong under a cogroup's `aggregates:`"
    near = unknown("function", name, functions).split(" functions are:")[0].rstrip(";")
    return f"{near.replace('unknown', 'not an allowed', 1)} (scalar, deterministic Spark SQL functions are)"


def _check_field(node: exp.Dot) -> None:
    if not isinstance(node.expression, exp.Identifier):
        raise ValueError(f"{render(node)!r}: a function with a catalog or a schema is not allowed")


def _names_a_field(node: exp.Alias) -> bool:
    parent = node.parent
    return isinstance(parent, exp.Anonymous) and parent.name.lower() == "struct"


def columns(tree: exp.Expression) -> Iterator[str]:
    """The columns that a tree reads, as `price` or `products.price`."""
    for column in tree.find_all(exp.Column):
        if not _is_date_part(column):
            yield ".".join(part.name for part in column.parts)


def _is_date_part(column: exp.Column) -> bool:
    call = column.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() in TAKES_A_PART
        and len(call.expressions) == 3
        and call.expressions[0] is column
        and column.name.lower() in DATE_PARTS
    )


def render(tree: exp.Expression) -> str:
    """Spark SQL of a tree, on one line and without comments."""
    return tree.sql(dialect=Verbatim, comments=False)


def shorten(text: str, most: int = 120) -> str:
    """The text on one line, cut for a message."""
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


AGGREGATES = frozenset(
    "count sum min max avg mean first last first_value last_value collect_list collect_set array_agg any any_value "
    "some every bool_or bool_and count_distinct count_if approx_count_distinct approx_percentile approx_top_k "
    "percentile percentile_approx median mode max_by min_by stddev variance corr listagg string_agg".split()
)
