"""Compilation of expressions: names are resolved, types found, and functions chosen.

All functions of rows that are known here are listed by name.

Nothing is computed yet, so unknown parts are reported before any result.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import itemgetter

import pyarrow.compute as pc
from pyspark.sql import types as T

from sluice.interpreter import DividedByZero, UnsupportedLocally
from sluice.interpreter import expressions as E
from sluice.interpreter.functions import Signature
from sluice.interpreter.functions.arithmetic import ARITHMETIC
from sluice.interpreter.functions.arrays import ARRAYS, HIGHER_ORDER, OTHERS, Deferred, element
from sluice.interpreter.functions.as_json import JSON
from sluice.interpreter.functions.comparing import COMPARING
from sluice.interpreter.functions.hashing import HASHING
from sluice.interpreter.functions.intervals import INTERVALS
from sluice.interpreter.functions.strings import PATTERNS, STRINGS
from sluice.interpreter.functions.times import TIME_PATTERNS, TIMES
from sluice.interpreter.values import BINARY, LONG, NTZ, SIMPLE, Values, as_nullable
from sluice.interpreter.values.casts import cast
from sluice.interpreter.values.column_batch import (
    ColumnBatch,
    Function,
    Value,
    column,
    constant,
    each,
    has_arrow,
    kernel,
    rows_of,
)


def children(node: E.ExpressionNode) -> tuple[E.ExpressionNode, ...]:
    """Return the direct parts of a node; those of a window function belong to itself."""
    match node:
        case E.Alias() | E.Convert() | E.SortItem():
            return (node.child,)
        case E.Extract():
            return (node.child, node.key)
        case E.FunctionCall():
            return (*node.arguments, *((node.where,) if node.where else ()))
        case E.Lambda():
            return (node.body,)
        case E.WindowFunction():
            return (*node.partition, *node.order, *getattr(node.function, "arguments", ()))
    return ()


def outermost(
    node: E.ExpressionNode, wanted: Callable[[E.ExpressionNode], bool]
) -> Iterator[E.ExpressionNode]:
    """Yield the parts, or the whole, that are wanted and not within another one."""
    if wanted(node):
        yield node
        return
    for child in children(node):
        yield from outermost(child, wanted)


def every(node: E.ExpressionNode) -> Iterator[E.ExpressionNode]:
    """Yield the node and all its parts."""
    yield node
    for child in children(node):
        yield from every(child)


@dataclass(frozen=True)
class RelationColumn:
    """One column of a relation. `alias`: of the relation, if it has one."""

    name: str
    type: T.DataType
    alias: str | None = None


@dataclass(frozen=True)
class Bindings:
    """Scope of names: columns of a relation by number, and variables of lambdas."""

    columns: Sequence[RelationColumn]
    variables: Mapping[str, Value] = field(default_factory=dict)
    computed: Mapping[int, Value] = field(default_factory=dict)  # nodes that are columns already

    def with_variables(self, more: Mapping[str, Value]) -> "Bindings":
        return replace(self, variables={**self.variables, **more})


def compile_node(node: E.ExpressionNode, bindings: Bindings) -> Value:  # noqa: PLR0911 - one per kind of node
    """Return the expression, ready to be computed. Raises UnsupportedLocally for unknown parts."""
    if id(node) in bindings.computed:
        return bindings.computed[id(node)]
    match node:
        case E.ColumnNumber():
            return column(node.number, bindings.columns[node.number].type)
        case E.Literal():
            return constant(node.value, node.type)
        case E.ColumnName():
            return _resolve(node.parts, bindings)
        case E.Variable():
            return reduce(field_of, node.parts[1:], bindings.variables[node.parts[0]])
        case E.Alias():
            return compile_node(node.child, bindings)
        case E.Convert():
            child = compile_node(node.child, bindings)
            return cast(child, as_nullable(node.type), is_try=node.is_try)
        case E.Extract():
            return _extract(compile_node(node.child, bindings), node.key, bindings)
        case E.FunctionCall():
            return _call(node, bindings)
    raise UnsupportedLocally(f"{type(node).__name__} within an expression")


def _call(node: E.FunctionCall, bindings: Bindings) -> Value:
    if node.is_distinct or node.where is not None:
        raise UnsupportedLocally(f"the aggregate {node.name} within an expression")
    if node.name in HIGHER_ORDER:
        first, *others = node.arguments
        if len(others) not in OTHERS.get(node.name, (1,)):
            raise UnsupportedLocally(f"{node.name} with {len(others)} lambdas")
        compiled = compile_node(first, bindings)
        return HIGHER_ORDER[node.name](compiled, [_defer(o, bindings) for o in others])
    if node.name in ("struct", "named_struct"):
        return _struct(node, bindings)
    if node.name == "monotonically_increasing_id":
        return Value(LONG, lambda batch: range(batch.count))
    if node.name not in FUNCTIONS:
        raise UnsupportedLocally(f"the function {node.name}")
    if len(node.arguments) not in COUNTS.get(node.name, (len(node.arguments),)):
        raise UnsupportedLocally(f"{node.name} with {len(node.arguments)} arguments")
    found = FUNCTIONS[node.name]([compile_node(a, bindings) for a in node.arguments])
    return _name_place(found, node.text) if node.text else found


def _name_place(value: Value, text: str) -> Value:
    """Return a value whose error names the part of the expression that divides by zero."""

    def run(batch: ColumnBatch) -> Values:
        try:
            return value.run(batch)
        except DividedByZero as fault:
            raise (fault if fault.place else DividedByZero(fault.what, text)) from None

    return replace(value, run=run)


def _struct(node: E.FunctionCall, bindings: Bindings) -> Value:
    if node.name == "named_struct":
        keys = [compile_node(a, bindings).literal for a in node.arguments[::2]]
        values = [compile_node(a, bindings) for a in node.arguments[1::2]]
        if not all(isinstance(key, str) for key in keys):
            raise UnsupportedLocally("a struct whose field names are not constants")
    else:
        given = enumerate(node.arguments, 1)
        keys = [E.name_of(a) if E.is_named(a) else f"col{nth}" for nth, a in given]
        values = [compile_node(a, bindings) for a in node.arguments]
    fields = [T.StructField(str(k), v.type) for k, v in zip(keys, values, strict=True)]
    return rows_of(T.StructType(fields), values)


def _defer(node: E.ExpressionNode, bindings: Bindings) -> Deferred:
    """Return an argument of a function over collections: a lambda or a plain expression."""
    if not isinstance(node, E.Lambda):
        return Deferred(0, lambda: compile_node(node, bindings))

    def compiled(*variables: Value) -> Value:
        bound = dict(zip(node.parameters, variables, strict=True))
        return compile_node(node.body, bindings.with_variables(bound))

    return Deferred(len(node.parameters), compiled)


def _resolve(parts: Sequence[str], bindings: Bindings) -> Value:
    first = parts[0].lower()
    for name, value in bindings.variables.items():
        if name.lower() == first:
            return reduce(field_of, parts[1:], value)
    found, rest = find(parts, bindings.columns)
    return reduce(field_of, rest, column(found, bindings.columns[found].type))


def find(parts: Sequence[str], columns: Sequence[RelationColumn]) -> tuple[int, Sequence[str]]:
    """Return the number of the column of that name, and the names of fields within it."""
    first = parts[0].lower()
    if len(parts) > 1:
        second = parts[1].lower()
        aliased = [
            i
            for i, c in enumerate(columns)
            if c.alias and c.alias.lower() == first and c.name.lower() == second
        ]
        if len(aliased) == 1:
            return aliased[0], parts[2:]
    plain_ = [i for i, c in enumerate(columns) if c.name.lower() == first]
    if len(plain_) != 1:
        shown = ", ".join(c.name for c in columns)
        raise UnsupportedLocally(f"{len(plain_)} columns named {'.'.join(parts)} among {shown}")
    return plain_[0], parts[1:]


def field_of(value: Value, name: str) -> Value:
    """Return a struct's field; of an array of structs, the array of their fields."""
    if isinstance(value.type, T.ArrayType):
        return _fields_of_items(value, value.type, name)
    if not isinstance(value.type, T.StructType):
        raise UnsupportedLocally(f"a field of a value of type {value.type.simpleString()}")
    lower = [n.lower() for n in value.type.names]
    if lower.count(name.lower()) != 1:
        raise UnsupportedLocally(f"{lower.count(name.lower())} fields named {name}")
    at = lower.index(name.lower())
    type_ = value.type.fields[at].dataType
    if not has_arrow(value.type):
        return each(type_, itemgetter(at), value)
    return kernel(type_, lambda c: pc.struct_field(c, [at]), value)


def _fields_of_items(value: Value, type_: T.ArrayType, name: str) -> Value:
    inner, run = type_.elementType, value.run
    if not isinstance(inner, T.StructType) or inner.names.count(name) != 1:
        raise UnsupportedLocally(f"the field {name} of {inner.simpleString()}")
    at = inner.names.index(name)
    return Value(
        T.ArrayType(inner.fields[at].dataType),
        lambda b: [
            None if v is None else tuple(None if x is None else x[at] for x in v) for v in run(b)
        ],
    )


def _extract(child: Value, key: E.ExpressionNode, bindings: Bindings) -> Value:
    is_key = isinstance(child.type, T.MapType)
    if isinstance(key, E.Literal) and isinstance(key.value, str) and not is_key:
        return field_of(child, key.value)
    return element(child, compile_node(key, bindings))


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
