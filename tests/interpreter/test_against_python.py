"""Groups, windows, joins, orders and comparisons by chance are those that plain Python finds.

Tables come whole, in chunks, as a slice, empty, and with nothing but nulls.
"""

import datetime as dt
import math
import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from operator import add
from random import Random
from struct import pack
from typing import Any

import pyarrow as pa
import pytest
import xxhash
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DecimalType

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Session, interpreting

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NAN, INF = float("nan"), float("inf")
TYPES: dict[str, tuple[pa.DataType, tuple[Any, ...]]] = {
    "g": (pa.int32(), (1, 2, 3)),
    "i": (pa.int64(), (0, 5, -5, 2**40, -(2**40), 7)),
    "y": (pa.int8(), (0, 127, -128, 3)),
    "b": (pa.bool_(), (True, False)),
    "d": (pa.float64(), (0.0, -0.0, 0.1, -2.5, 1e300, NAN, INF, -INF, 0.7)),
    "f": (pa.float32(), (0.0, -0.0, 1.5, NAN)),
    "s": (pa.string(), ("", "a", "A", "é", "zz", "\U0001f600", "\uffff", "ab")),
    "x": (pa.binary(), (b"", b"\xff", b"a", b"\x00")),
    "m": (pa.decimal128(10, 2), tuple(map(Decimal, ("0.00", "-1.50", "12.34", "99999999.99")))),
    "n": (pa.decimal128(38, 18), tuple(map(Decimal, ("0", "-1.5", "12345678901234567890.123")))),
    "u": (pa.date32(), (dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(2024, 2, 29))),
    "p": (
        pa.timestamp("us", "UTC"),
        tuple(dt.datetime(y, 1, 1, 0, 0, 0, 5, dt.UTC) for y in (1969, 2024, 9999)),
    ),
    "z": (
        pa.struct({"a": pa.int32(), "d": pa.float64()}),
        ({"a": 1, "d": NAN}, {"a": 1, "d": None}, {"a": None, "d": -0.0}, {"a": None, "d": 0.0}),
    ),
    "r": (pa.list_(pa.int32()), ([], [1], [1, None], [None], [1, 2])),
}
SCHEMA = pa.schema([pa.field("id", pa.int64()), *(pa.field(n, t) for n, (t, _) in TYPES.items())])
Row = dict[str, Any]


def _rows(seed: int, count: int, nulls: float = 0.2) -> list[Row]:
    chance = Random(seed)
    return [
        {"id": i}
        | {n: None if chance.random() < nulls else chance.choice(v) for n, (_, v) in TYPES.items()}
        for i in range(count)
    ]


def _whole(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def _in_chunks(rows: list[Row]) -> pa.Table:
    parts = [rows[:3], [], rows[3:4], rows[4:]]
    return pa.concat_tables([_whole(part) for part in parts])


def _sliced(rows: list[Row]) -> pa.Table:
    return _whole([*_rows(99, 5), *rows, *_rows(98, 3)]).slice(5, len(rows))


SHAPES: list[tuple[list[Row], Callable[[list[Row]], pa.Table]]] = [
    (_rows(1, 25), _whole),
    (_rows(2, 25), _in_chunks),
    (_rows(3, 25), _sliced),
    ([], _whole),
    (_rows(4, 9, nulls=1.0), _whole),
]
shapes = pytest.mark.parametrize(
    ("rows", "make"), SHAPES, ids=["whole", "chunks", "slice", "empty", "nulls"]
)


def _key(value: Any) -> Any:  # noqa: PLR0911 - one per type
    """The value as Spark orders and groups it: null first, NaN last, -0.0 as 0.0."""
    match value:
        case None:
            return (0,)
        case float() if math.isnan(value):
            return (1, 1, 0.0)
        case float():
            return (1, 0, value)
        case str():
            return (1, value.encode())
        case dict():
            return (1, *map(_key, value.values()))
        case list():
            return (1, *map(_key, value))
    return (1, value)


def _shown(value: Any) -> Any:
    """The value, equal to its like alone."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items()}
    return list(map(_shown, value)) if isinstance(value, list) else value


def _extreme(values: list[Any], choose: Callable[..., Any]) -> Any:
    return choose((v for v in values if v is not None), key=_key, default=None)


def _total(values: list[Any]) -> Any:
    given = [v for v in values if v is not None]
    zero: Any = 0.0 if given and isinstance(given[0], float) else 0
    return reduce(add, given, zero) if given else None


def _by(rows: list[Row], choose: Callable[..., Any], name: str) -> Any:
    known = [row for row in rows if row[name] is not None]
    best = choose((_key(row[name]) for row in known), default=None)
    return next((row["id"] for row in reversed(known) if _key(row[name]) == best), None)


def _folds(name: str) -> dict[str, Callable[[list[Row]], Any]]:
    """Aggregates of a column, and what they are of these rows in their order."""

    def known(rows: list[Row]) -> list[Any]:
        return [row[name] for row in rows if row[name] is not None]

    folds: dict[str, Callable[[list[Row]], Any]] = {
        f"count({name})": lambda rows: len(known(rows)),
        f"min({name})": lambda rows: _extreme(known(rows), min),
        f"max({name})": lambda rows: _extreme(known(rows), max),
        f"first({name})": lambda rows: rows[0][name] if rows else None,
        f"last({name}, true)": lambda rows: known(rows)[-1] if known(rows) else None,
        f"min_by(id, {name})": lambda rows: _by(rows, min, name),
        f"max_by(id, {name})": lambda rows: _by(rows, max, name),
        f"collect_list({name})": known,
    }
    if name in "iydmn":
        folds[f"sum({name})"] = lambda rows: _total(known(rows))
    if name in "iyd":
        folds[f"avg({name})"] = lambda rows: (
            _total([float(v) for v in known(rows)]) / len(known(rows)) if known(rows) else None
        )
    if name == "b":
        folds["count_if(b)"] = lambda rows: sum(known(rows))
        folds["bool_and(b)"] = lambda rows: all(known(rows)) if known(rows) else None
        folds["bool_or(b)"] = lambda rows: any(known(rows)) if known(rows) else None
    return folds


def _ask(table: pa.Table, query: Callable[[Any], Any]) -> list[tuple[Any, ...]]:
    session = Session()
    with interpreting(session):
        found = query(session.createDataFrame(table, from_arrow_schema(table.schema))).toArrow()
    columns = [column.to_pylist() for column in found.columns]
    return [tuple(map(_shown, row)) for row in zip(*columns, strict=True)]


@shapes
@pytest.mark.parametrize("by", [["g"], ["d", "b"], ["z"], ["s", "m"], []])
def test_groups(rows: list[Row], make: Callable[[list[Row]], pa.Table], by: list[str]) -> None:
    folds = {sql: fold for name in TYPES for sql, fold in _folds(name).items()}
    folds |= {
        f"count(DISTINCT {name})": lambda rows, name=name: len(
            {_key(r[name]) for r in rows} - {(0,)}
        )
        for name in TYPES
    }
    told = _ask(
        make(rows),
        lambda table: table.groupBy(*by).agg(*map(F.expr, folds)),
    )
    told = [row[len(by) :] for row in told]
    groups: dict[Any, list[Row]] = {} if by else {(): []}
    for row in rows:
        groups.setdefault(tuple(_key(row[name]) for name in by), []).append(row)
    assert told == [tuple(_shown(f(group)) for f in folds.values()) for group in groups.values()]


FRAMES: dict[str, Callable[[int, int], range]] = {
    "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW": lambda i, n: range(max(i - 2, 0), i + 1),
    "ROWS UNBOUNDED PRECEDING": lambda i, n: range(i + 1),
    "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING": lambda i, n: range(i + 1, n),
    "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING": lambda i, n: range(max(i - 4, 0), max(i - 1, 0)),
}


@shapes
@pytest.mark.parametrize("frame", FRAMES)
def test_windows(rows: list[Row], make: Callable[[list[Row]], pa.Table], frame: str) -> None:
    folds = {sql: fold for name in TYPES for sql, fold in _folds(name).items()}
    over = f"OVER (PARTITION BY d ORDER BY s DESC, id {frame})"
    told = _ask(make(rows), lambda t: t.selectExpr("id", *(f"{sql} {over}" for sql in folds)))
    expected = []
    for partition in {_key(row["d"]) for row in rows}:
        part = [row for row in rows if _key(row["d"]) == partition]
        part.sort(key=lambda row: _key(row["s"]), reverse=True)
        for i, row in enumerate(part):
            near = [part[at] for at in FRAMES[frame](i, len(part))]
            expected.append((row["id"], *(_shown(fold(near)) for fold in folds.values())))
    assert told == sorted(expected, key=lambda row: row[0])


@shapes
@pytest.mark.parametrize("descending", [False, True])
def test_windows_by_value_and_ranks(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], descending: bool
) -> None:
    order = f"OVER (PARTITION BY b ORDER BY g{' DESC' if descending else ''}"
    near, on = (
        f"{order} RANGE BETWEEN {b} AND 1 FOLLOWING)" for b in ("1 PRECEDING", "CURRENT ROW")
    )
    columns = [
        "id",
        *(f"{f}() {order})" for f in ("rank", "dense_rank", "percent_rank", "cume_dist")),
    ]
    sums = [f"count(*) {near}", f"sum(id) {near}", f"count(*) {on}"]
    told = _ask(make(rows), lambda t: t.selectExpr(*columns, *sums))
    expected, g_of = [], {row["id"]: row["g"] for row in rows}
    for row in rows:
        part = [other["g"] for other in rows if other["b"] == row["b"]]
        before = [
            g
            for g in part
            if (_key(g) > _key(row["g"]) if descending else _key(g) < _key(row["g"]))
        ]
        ties = part.count(row["g"])
        close = [
            other["id"]
            for other in rows
            if other["b"] == row["b"]
            and (
                other["g"] == row["g"]
                or (None not in (other["g"], row["g"]) and abs(other["g"] - row["g"]) <= 1)
            )
        ]
        ranks = (len(before) + 1, len(set(before)) + 1, len(before) / max(len(part) - 1, 1))
        onward = len(close) - sum(g in before for g in map(g_of.get, close))
        numbers = (*ranks, (len(before) + ties) / len(part), len(close), sum(close), onward)
        expected.append((row["id"], *map(_shown, numbers)))
    assert told == expected


@shapes
@pytest.mark.parametrize("name", TYPES)
def test_orders_and_distinct_rows(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], name: str
) -> None:
    table = make(rows)
    for descending in (False, True):
        found = _ask(
            table,
            lambda t, ordered=F.desc if descending else F.asc: t.orderBy(ordered(name)).select(
                "id"
            ),
        )
        expected = sorted(rows, key=lambda row: _key(row[name]), reverse=descending)
        assert found == [(row["id"],) for row in expected]
    firsts = {_key(row[name]): row["id"] for row in reversed(rows)}
    assert _ask(table, lambda t: t.dropDuplicates([name]).select("id")) == [
        (i,) for i in sorted(firsts.values())
    ]


@shapes
@pytest.mark.parametrize(
    ("kind", "sign"),
    [("inner", "="), ("left", "<=>"), ("full", "="), ("left_semi", "<=>"), ("left_anti", "=")],
)
def test_joins(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], kind: str, sign: str
) -> None:
    for name in TYPES:
        condition = f"a.{name} {sign} b.{name} AND a.id > b.id"
        columns = ["a.id"] if "_" in kind else ["a.id AS x", "b.id AS y", f"b.{name} AS z"]
        found = _ask(
            make(rows),
            lambda t, condition=condition, columns=columns: (
                t.alias("a").join(t.alias("b"), F.expr(condition), kind).selectExpr(*columns)
            ),
        )
        pairs = [
            (a, b)
            for a in rows
            for b in rows
            if _key(a[name]) == _key(b[name])
            and (sign == "<=>" or a[name] is not None)
            and a["id"] > b["id"]
        ]
        lefts, rights = {a["id"] for a, _ in pairs}, {b["id"] for _, b in pairs}
        if "_" in kind:
            is_semi = kind == "left_semi"
            assert found == [(row["id"],) for row in rows if (row["id"] in lefts) == is_semi]
            continue
        expected = [(a["id"], b["id"], _shown(b[name])) for a, b in pairs]
        if kind in ("left", "full"):
            expected += [(row["id"], None, None) for row in rows if row["id"] not in lefts]
        if kind == "full":
            rest = (row for row in rows if row["id"] not in rights)
            expected += [(None, row["id"], _shown(row[name])) for row in rest]
        assert found == expected


def _compare(choose: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda a, b: None if None in (a, b) else choose(_key(a), _key(b))


COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "{0} < {1}": _compare(lambda a, b: a < b),
    "{0} <= {1}": _compare(lambda a, b: a <= b),
    "{0} > {1}": _compare(lambda a, b: a > b),
    "{0} >= {1}": _compare(lambda a, b: a >= b),
    "{0} = {1}": _compare(lambda a, b: a == b),
    "{0} <> {1}": _compare(lambda a, b: a != b),
    "{0} <=> {1}": lambda a, b: _key(a) == _key(b),
    "{0} IS NULL AND {1} IS NOT NULL": lambda a, b: a is None and b is not None,
    "{0} IN ({1}, {0})": lambda a, b: None if a is None else True,
    "{1} IN ({0})": _compare(lambda a, b: a == b),
    "{0} < {1} OR {0} IS NULL": lambda a, b: (
        True if a is None else None if b is None else _key(a) < _key(b)
    ),
    "NOT ({0} = {1})": _compare(lambda a, b: a != b),
    "CASE WHEN {0} < {1} THEN {0} WHEN {0} = {1} THEN NULL ELSE {1} END": lambda a, b: (
        b if None in (a, b) or _key(a) > _key(b) else None if _key(a) == _key(b) else a
    ),
    "coalesce({0}, {1})": lambda a, b: b if a is None else a,
    "nullif({0}, {1})": lambda a, b: None if a is None or _key(a) == _key(b) else a,
    "greatest({0}, {1})": lambda a, b: _extreme([a, b], max),
    "least({0}, {1})": lambda a, b: _extreme([a, b], min),
    "struct({0} AS x, {1} AS y).y": lambda a, b: b,
}


@shapes
@pytest.mark.parametrize("sql", COMPARED)
def test_comparisons_and_choices(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], sql: str
) -> None:
    lagged = [f"lag({name}) OVER (ORDER BY id) AS other_{name}" for name in TYPES]
    calls = [sql.format(name, f"other_{name}") for name in TYPES]
    told = _ask(make(rows), lambda t: t.selectExpr("*", *lagged).selectExpr(*calls))
    others = [dict.fromkeys(TYPES), *rows]
    assert told == [
        tuple(_shown(COMPARED[sql](row[name], other[name])) for name in TYPES)
        for row, other in zip(rows, others, strict=False)
    ]


BITS = {"y": 8, "g": 32, "i": 64}
SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
    "div": lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1),
}


@shapes
@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize(("left", "right"), ["gy", "yy", "ig", "ii"])
def test_whole_numbers_that_fit(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], sign: str, left: str, right: str
) -> None:
    """A row by itself is refused if its result does not fit, or divides by zero."""
    most = 1 << (63 if sign == "div" else max(BITS[left], BITS[right]) - 1)
    for row in [rows, *([row] for row in rows)]:
        pairs = [(one[left], one[right]) for one in row]
        if sign in ("div", "%") and any(a is not None and b == 0 for a, b in pairs):
            expected = None
        else:
            found = [None if None in pair else SIGNS[sign](*pair) for pair in pairs]
            fits = all(v is None or -most <= v < most for v in found)
            expected = [(v,) for v in found] if fits else None
        try:
            told = _ask(make(row), lambda t: t.selectExpr(f"{left} {sign} {right}"))
        except UnsupportedLocally:
            told = None
        assert told == expected


@shapes
def test_numbers_in_other_types(rows: list[Row], make: Callable[[list[Row]], pa.Table]) -> None:
    found: dict[str, Callable[[Row], Any]] = {
        "m + m": lambda row: 2 * row["m"],
        "m * y": lambda row: row["m"] * row["y"],
        "m - g": lambda row: row["m"] - row["g"],
        "-m": lambda row: -row["m"],
        "abs(m)": lambda row: abs(row["m"]),
        "d + 1": lambda row: row["d"] + 1,
        "-f": lambda row: -row["f"],
        "CAST(i AS DOUBLE)": lambda row: float(row["i"]),
        "CAST(f AS DOUBLE)": lambda row: row["f"],
        "CAST(y AS DECIMAL(5, 2))": lambda row: Decimal(row["y"]),
        "CAST(m AS DECIMAL(20, 4))": lambda row: row["m"],
        "CAST(i AS STRING)": lambda row: str(row["i"]),
        "CAST(b AS STRING)": lambda row: str(row["b"]).lower(),
        "CAST(b AS INT)": lambda row: int(row["b"]),
        "CAST(g AS TINYINT)": lambda row: row["g"],
        "CAST(u AS TIMESTAMP)": lambda row: dt.datetime.combine(row["u"], dt.time(), dt.UTC),
        "CAST(p AS TIMESTAMP_NTZ)": lambda row: row["p"].replace(tzinfo=None),
        "CAST(s AS BINARY)": lambda row: row["s"].encode(),
    }
    told = _ask(make(rows), lambda t: t.selectExpr(*found))
    assert told == [
        tuple(_shown(_unless_null(of, sql, row)) for sql, of in found.items()) for row in rows
    ]


def _unless_null(of: Callable[[Row], Any], sql: str, row: Row) -> Any:
    used = {name for name in TYPES if re.search(rf"\b{name}\b", sql)}
    return None if any(row[name] is None for name in used) else of(row)


@pytest.mark.parametrize(
    "sql", ["CAST(i AS TINYINT)", "CAST(y AS DECIMAL(3, 1))", "CAST(m AS DECIMAL(8, 2))", "-y"]
)
def test_numbers_that_another_type_can_not_hold(sql: str) -> None:
    with pytest.raises(UnsupportedLocally):
        _ask(_whole(_rows(5, 30)), lambda t: t.selectExpr(sql))


@pytest.mark.parametrize("type_", ["BIGINT", "DECIMAL(18, 0)", "STRING"])
@pytest.mark.parametrize(("sql", "scale"), [("id + 6", 38), ("id * 12345678901", 30)])
def test_decimals_beyond_128_bits(sql: str, scale: int, type_: str) -> None:
    """Arrow's own casts give 0.194… and 95513691.8…: they don't notice each overflow."""
    asked = f"CAST(CAST({sql} AS {type_}) AS DECIMAL(38, {scale}))"
    with pytest.raises(UnsupportedLocally):
        _ask(_whole(_rows(5, 2)[1:]), lambda t: t.selectExpr(asked))


@shapes
def test_parts_of_dates_times_and_texts(
    rows: list[Row], make: Callable[[list[Row]], pa.Table]
) -> None:
    found: dict[str, Callable[[Row], Any]] = {
        "year(u)": lambda row: row["u"].year,
        "quarter(p)": lambda row: (row["p"].month + 2) // 3,
        "month(u)": lambda row: row["u"].month,
        "day(p)": lambda row: row["p"].day,
        "dayofweek(u)": lambda row: row["u"].isoweekday() % 7 + 1,
        "weekday(u)": lambda row: row["u"].weekday(),
        "dayofyear(u)": lambda row: row["u"].timetuple().tm_yday,
        "weekofyear(u)": lambda row: row["u"].isocalendar()[1],
        "hour(p)": lambda row: row["p"].hour,
        "CAST(p AS DATE)": lambda row: row["p"].date(),
        "date_trunc('day', p)": lambda row: row["p"].replace(microsecond=0),
        "unix_micros(p)": lambda row: (row["p"] - EPOCH) // dt.timedelta(microseconds=1),
        "unix_seconds(p)": lambda row: (row["p"] - EPOCH) // dt.timedelta(seconds=1),
        "date_add(u, y)": lambda row: row["u"] + dt.timedelta(row["y"]),
        "datediff(DATE'2024-03-01', u)": lambda row: (dt.date(2024, 3, 1) - row["u"]).days,
        "date_format(p, 'yyyy-MM-dd HH:mm:ss')": lambda row: f"{row['p']:%Y-%m-%d %H:%M:%S}",
        "date_format(p, 'yyyy-MM')": lambda row: f"{row['p']:%Y-%m}",
        "p + INTERVAL '90' MINUTE": lambda row: row["p"] + dt.timedelta(minutes=90),
        "p - INTERVAL '1 02' DAY TO HOUR": lambda row: row["p"] - dt.timedelta(hours=26),
        "u + INTERVAL '2' DAY": lambda row: row["u"] + dt.timedelta(2),
        "p + y * INTERVAL '1' SECOND": lambda row: row["p"] + dt.timedelta(seconds=row["y"]),
        "length(s)": lambda row: len(row["s"]),
        "length(x)": lambda row: len(row["x"]),
        "octet_length(s)": lambda row: len(row["s"].encode()),
        "concat(s, '-', s)": lambda row: f"{row['s']}-{row['s']}",
        "trim(concat(' ', s, '  '))": lambda row: row["s"],
    }
    rows = [row for row in rows if row["u"] != dt.date(1, 1, 1) or (row["y"] or 0) >= 0]
    told = _ask(make(rows), lambda t: t.selectExpr(*found))
    assert told == [
        tuple(_shown(_unless_null(of, sql, row)) for sql, of in found.items()) for row in rows
    ]


def _hash(value: Any, type_: pa.DataType, seed: int) -> int:
    """XXH64 of the bytes that Spark hashes for a flat value."""
    if value is None:
        return seed
    if isinstance(value, Decimal):
        value = int(value.scaleb(type_.scale))
    elif isinstance(value, dt.datetime):
        value = (value - EPOCH) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):
        value = (value - EPOCH.date()).days
    if isinstance(value, float):
        value = 0.0 if value == 0 else value
        return xxhash.xxh64_intdigest(pack("<f" if type_ == pa.float32() else "<d", value), seed)
    if isinstance(value, str | bytes):
        return xxhash.xxh64_intdigest(value.encode() if isinstance(value, str) else value, seed)
    if pa.types.is_decimal(type_) and type_.precision > 18:
        length = (value if value >= 0 else ~value).bit_length() // 8 + 1
        return xxhash.xxh64_intdigest(value.to_bytes(length, "big", signed=True), seed)
    is_long = type_.bit_width in (64, 128)
    return xxhash.xxh64_intdigest(pack("<q" if is_long else "<i", value), seed)


@shapes
def test_hashes(rows: list[Row], make: Callable[[list[Row]], pa.Table]) -> None:
    flat = {name: type_ for name, (type_, _) in TYPES.items() if not pa.types.is_nested(type_)}
    calls = [f"xxhash64(id, {name}, 'x', {other})" for name, other in pairwise(flat)]
    told = _ask(make(rows), lambda t: t.selectExpr(*calls))
    for row, hashes in zip(rows, told, strict=True):
        for (name, other), got in zip(pairwise(flat), hashes, strict=True):
            seed = _hash(row["id"], pa.int64(), 42)
            seed = _hash("x", pa.string(), _hash(row[name], flat[name], seed))
            wanted = _hash(row[other], flat[other], seed)
            assert got == wanted - (wanted >> 63 << 64), (name, other, row)


@shapes
def test_parts_and_tests_of_texts(rows: list[Row], make: Callable[[list[Row]], pa.Table]) -> None:
    found: dict[str, Callable[[Row], Any]] = {
        "upper(s)": lambda row: row["s"].upper(),
        "lower(s)": lambda row: row["s"].lower(),
        "upper(b)": lambda row: str(row["b"]).upper(),
        "startswith(s, 'a')": lambda row: row["s"].startswith("a"),
        "endswith(s, '')": lambda row: True,
        "contains(s, 'zz')": lambda row: "zz" in row["s"],
        "contains(s, s)": lambda row: True,
        "instr(s, 'ab')": lambda row: row["s"].find("ab") + 1,
        "s LIKE '%a%'": lambda row: "a" in row["s"],
        "s LIKE '_'": lambda row: len(row["s"]) == 1,
        "s ILIKE 'A%'": lambda row: row["s"].lower().startswith("a"),
        "substring(concat('é\U0001f600', s), 2, 2)": lambda row: f"\U0001f600{row['s']}"[:2],
        "substring(s, -2, 1)": lambda row: row["s"][-2:-1],
        "substring(s, y)": lambda row: row["s"][max(row["y"] - 1, 0) if row["y"] >= 0 else 0 :],
        "left(s, 1)": lambda row: row["s"][:1],
        "right(s, 1)": lambda row: row["s"][-1:],
        "right(s, 0)": lambda row: "",
        "reverse(s)": lambda row: row["s"][::-1],
        "size(r)": lambda row: len(row["r"]),
    }
    rows = [row | {"s": "É" if row["s"] == "\uffff" else row["s"]} for row in rows]
    joined = "concat_ws('-', s, CAST(g AS STRING), s)"
    told = _ask(make(rows), lambda t: t.selectExpr(*found, joined))
    texts = [
        "-".join(str(v) for v in (row["s"], row["g"], row["s"]) if v is not None) for row in rows
    ]
    assert told == [
        (*(_shown(_unless_null(of, sql, row)) for sql, of in found.items()), text)
        for row, text in zip(rows, texts, strict=True)
    ]


READ: dict[str, dict[str, Any]] = {
    "BIGINT": {"12": 12, "-7": -7, "007": 7, " +5 ": 5, "-999999999999999999": -(10**18) + 1},
    "TINYINT": {"127": 127, "-128": -128},
    "DOUBLE": {"1.5": 1.5, "-0": -0.0, "12": 12.0, "1e3": 1000.0, "NaN": NAN, ".5": 0.5},
    "DECIMAL(6, 2)": {"1.5": Decimal("1.50"), "-12": Decimal(-12), "1.005": Decimal("1.01")},
    "DECIMAL(3, 0)": {"12": Decimal(12), "-1": Decimal(-1), "1.5": Decimal(2)},
    "DATE": {"2024-02-29": dt.date(2024, 2, 29), "2024-2-3": dt.date(2024, 2, 3)},
    "TIMESTAMP": {
        "2024-02-29 01:02:03": dt.datetime(2024, 2, 29, 1, 2, 3, 0, dt.UTC),
        "2024-02-29T01:02:03.25Z": dt.datetime(2024, 2, 29, 1, 2, 3, 250_000, dt.UTC),
        "2024-02-29T01:02:03+01:00": dt.datetime(2024, 2, 29, 0, 2, 3, 0, dt.UTC),
        "2024-02-29": dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    },
    "TIMESTAMP_NTZ": {
        "2024-02-29 01:02:03.000001": dt.datetime.fromisoformat("2024-02-29T01:02:03.000001")
    },
}


@pytest.mark.parametrize("type_", READ)
def test_texts_in_other_types(type_: str) -> None:
    """Each spelling by itself and with the others; the whole column, sliced and in chunks."""
    known = list(READ[type_].items())
    for some in [known, *([one] for one in known)]:
        texts, values = [*(text for text, _ in some), None], [*(_shown(v) for _, v in some), None]
        chunks = pa.chunked_array([texts, [], texts])
        for column, of in ((chunks, values * 2), (pa.array(["x", *texts]).slice(1), values)):
            for sql in (f"CAST(s AS {type_})", f"TRY_CAST(s AS {type_})"):
                told = _ask(pa.table({"s": column}), lambda t, sql=sql: t.selectExpr(sql))
                assert told == [(v,) for v in of]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("128", "TINYINT"),
        ("0x1F", "BIGINT"),
        ("1_0", "DOUBLE"),
        ("99999.99", "DECIMAL(6, 2)"),
        ("2023-02-29", "DATE"),
        ("2024-02-29 24:00:00", "TIMESTAMP"),
        ("2024-02-29 01:02:03Z", "TIMESTAMP_NTZ"),
    ],
)
def test_texts_that_another_type_can_not_hold(text: str, type_: str) -> None:
    with pytest.raises(UnsupportedLocally):
        _ask(pa.table({"s": [text, text]}), lambda t: t.selectExpr(f"CAST(s AS {type_})"))


@pytest.mark.parametrize(("x", "y"), [("m", "y"), ("m", "m"), ("n", "y"), ("y", "m"), ("i", "m")])
def test_quotients_of_decimals(x: str, y: str) -> None:
    rows = [row for row in _rows(6, 60) if row[y]]
    told = _ask(_whole(rows), lambda t: t.selectExpr(f"CAST({x} / {y} AS STRING) AS q"))
    for row, (q,) in zip(rows, told, strict=True):
        if row[x] is None:
            assert q is None
            continue
        exact = Fraction(row[x]) / Fraction(row[y])
        unit = Fraction(1, 10 ** len(str(q).partition(".")[2]))
        near = math.floor(abs(exact) / unit + Fraction(1, 2)) * unit
        assert Fraction(str(q)) == (near if exact >= 0 else -near)


@pytest.mark.parametrize(
    "type_",
    [(p, s) for p in (1, 5, 10, 18, 37, 38) for s in (0, 1, 2, 5, 18, 38) if s <= p],
)
def test_decimals_are_rounded_half_up_and_to_the_whole_numbers_around(
    type_: tuple[int, int],
) -> None:
    """One more digit before the point holds what is rounded up, up to 38 of both."""
    precision, scale = type_
    chance, most = Random(precision * 40 + scale), 10**precision - 1
    whole = [chance.randint(-most, most) for _ in range(8)]
    halves = [v - v % 10 + 5 for v in whole if abs(v) < most - 10]
    exact = [Decimal((v < 0, tuple(map(int, str(abs(v)))), -scale)) for v in (*whole, *halves)]
    rows = pa.table({"v": pa.array([*exact, None], pa.decimal128(precision, scale))})
    for places in (0, 1, 2, 40):
        kept, rounded = min(places, scale), []
        for v in exact:
            with localcontext(prec=80):
                rounded.append(v.quantize(Decimal((0, (1,), -kept)), ROUND_HALF_UP))
        digits = min(precision - scale + 1 + kept, 38)
        if all(abs(r).scaleb(kept) < 10**digits for r in rounded):
            session = Session()
            with interpreting(session):
                table = session.createDataFrame(rows, from_arrow_schema(rows.schema))
                found = table.selectExpr(
                    f"round(v, {places}) AS r", "ceil(v) AS c", "floor(v) AS f"
                )
                types, told = found.schema, found.collect()
            assert types["r"].dataType == DecimalType(digits, kept)
            assert [r.r for r in told] == [*rounded, None]
            if precision - scale < 38:
                around = DecimalType(max(precision - scale + (scale > 0), 1), 0)
                assert (types["c"].dataType, types["f"].dataType) == (around, around)
                assert [r.c for r in told] == [*map(math.ceil, exact), None]
                assert [r.f for r in told] == [*map(math.floor, exact), None]


@shapes
@pytest.mark.parametrize("name", ["explode", "explode_outer", "posexplode", "posexplode_outer"])
def test_arrays_spread_into_rows(
    rows: list[Row], make: Callable[[list[Row]], pa.Table], name: str
) -> None:
    told = _ask(make(rows), lambda t: t.selectExpr("id", f"{name}(r)", "s"))
    expected = []
    for row in rows:
        items = list(enumerate(row["r"] or []))
        if not items and name.endswith("outer"):
            items = [(None, None)]
        for place, item in items:
            parts = (place, item) if name.startswith("pos") else (item,)
            expected.append((row["id"], *parts, row["s"]))
    assert told == expected


def test_functions_of_a_constant_for_no_rows() -> None:
    calls = ["id + 1", "CAST(CAST(5 AS BIGINT) AS STRING)", "CAST(some AS STRING)", "upper(text)"]
    rows = _whole([]).select(["id"])
    assert (
        _ask(rows, lambda t: t.selectExpr("id", "5 AS some", "'a' AS text").selectExpr(*calls))
        == []
    )
