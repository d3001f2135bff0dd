"""Views as DuckDB computes them, from their declaration and the rows of their sources alone.

One query for each kind that its callers use, in Spark's words, which sqlglot puts into DuckDB's.
Left out: lookups that keep the dimensions of their batch, hopping windows, sketches, and orders
that a hidden key decides; the kinds' own contracts compare these with Python.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
import yaml
from tests.support.lake import Lake, frozen

from sluice.delta.places.delta_rs import is_table, open_table

Spec = Mapping[str, Any]
EPOCH = "TIMESTAMP '1970-01-01'"


def wrong(lake: Lake, *views: str) -> dict[str, tuple[Counter[Any], Counter[Any]]]:
    """The views that DuckDB computes otherwise: rows that only the view has, and those it lacks."""
    text = (lake.folder / "config" / "pipelines" / "shop.yaml").read_text()
    specs: dict[str, Spec] = yaml.safe_load(re.sub(r"\b(on|no):", r'"\1":', text))["views"]
    answers = _Answers(lake, specs)
    tables = [t for t in lake.project.graph.tables.values() if t.is_view and t.name in specs]
    graph, asked = lake.project.graph, [t for t in tables if not views or t.name in views]
    below = {a.id for t in asked for a in (t, *graph.ancestors(t.id))}
    found = {}
    for table in tables:
        if table.id in below:
            answers.define(table.name)
        if table not in asked:
            continue
        kept = _counted([row[c] for c in table.columns] for row in lake.rows(table.name))
        given = _counted(answers.rows(table.name, tuple(table.columns)))
        if kept != given:
            found[table.name] = (kept - given, given - kept)
    return found


def _counted(rows: Iterable[Iterable[Any]]) -> Counter[Any]:
    return Counter(frozen([_plain(value) for value in row]) for row in rows)


def _plain(value: Any) -> Any:
    """Times are compared in UTC, without a zone."""
    is_zoned = isinstance(value, datetime) and value.tzinfo is not None
    return value.astimezone(UTC).replace(tzinfo=None) if is_zoned else value


class _Answers:
    """A database with the rows of the sources and dimensions, and a view for each view."""

    def __init__(self, lake: Lake, specs: Mapping[str, Spec]):
        self.lake, self.specs, self.base = lake, specs, duckdb.connect()
        for table in lake.project.graph.tables.values():
            is_there = is_table(lake.uri(table.name))
            if is_there and table.name not in specs and not table.is_view:
                self._load(table.name)

    def _load(self, name: str) -> None:
        schema = pa.schema(open_table(self.lake.uri(name)).schema().to_arrow())
        rows = [{c: _plain(v) for c, v in row.items()} for row in self.lake.stored(name)]
        plain = [pa.field(f.name, _without_zone(f.type)) for f in schema]
        self.base.register(name, pa.Table.from_pylist(rows, pa.schema(plain)))

    def define(self, name: str) -> None:
        spec = self.specs[name]
        query = getattr(self, f"_{spec['kind']}")(spec)
        (sql,) = sqlglot.transpile(query, read="spark", write="duckdb", identify=True)
        self.base.execute(f'CREATE VIEW "{name}" AS {sql}')

    def rows(self, name: str, columns: tuple[str, ...]) -> list[Any]:
        if self.specs[name]["kind"] == "sql":
            assert {*columns} == {*map(str.lower, self._columns(name))}, name
        shown = ", ".join(f'"{c}"' for c in columns)
        return self.base.execute(f'SELECT {shown} FROM "{name}"').fetchall()

    def _columns(self, table: str) -> list[str]:
        return [row[0] for row in self.base.execute(f'DESCRIBE "{table}"').fetchall()]

    def _visible(self, table: str, alias: str = "") -> str:
        columns = self.lake.table(table).columns
        return ", ".join(f"{alias or table}.{c}" for c in columns)

    def _ties(self, table: str) -> list[str]:
        """The columns of its key, the last of any order."""
        return [c for c in self.lake.table(table).key if c in self._columns(table)]

    def _sql(self, spec: Spec) -> str:
        return str(spec["sql"])

    def _select(self, spec: Spec) -> str:
        assert "explode" not in spec
        distinct = "DISTINCT " if spec.get("distinct") else ""
        return f"SELECT {distinct}{_shown(spec)} FROM {spec['from']}{_where(spec)}"

    def _join(self, spec: Spec) -> str:
        named = []
        for side in ("left", "right"):
            of = spec[side] if isinstance(spec[side], dict) else {"table": spec[side]}
            named.append((of["table"], of.get("as", of["table"])))
        (left, a), (right, b) = named
        on = spec["on"] if isinstance(spec["on"], list) else [spec["on"]]
        met = [c if "=" in c else f"{a}.{c} = {b}.{c}" for c in on]
        how, shown = spec.get("type", "inner"), _shown(spec)
        return (
            f"SELECT {shown} FROM {left} AS {a} {how} JOIN {right} AS {b} "
            f"ON {' AND '.join(met)}{_where(spec)}"
        )

    def _lookup(self, spec: Spec) -> str:
        assert spec.get("refresh"), "of other lookups, each batch decides"
        facts, joins = spec["from"], []
        for each in spec["join"]:
            how = each.get("type", "inner")
            joins.append(f"{how} JOIN {each['dimension']} ON {self._of_facts(facts, each['on'])}")
        select = {n: self._of_facts(facts, e) for n, e in spec["select"].items()}
        return f"SELECT {_shown({'select': select})} FROM {facts} {' '.join(joins)}{_where(spec)}"

    def _of_facts(self, facts: str, expression: str) -> str:
        """A bare column is the fact's."""
        tree = sqlglot.parse_one(expression, read="spark")
        for column in tree.find_all(sqlglot.exp.Column):
            if not column.table:
                column.set("table", sqlglot.exp.to_identifier(facts))
        return tree.sql(dialect="spark")

    def _topk(self, spec: Spec) -> str:
        by, rows = list(spec.get("partition_by", [])), spec["from"]
        function, order = spec.get("function", "row_number"), [*spec["order_by"]]
        if function == "row_number":
            order += self._ties(rows)
        parts = f"PARTITION BY {', '.join(by)} " if by else ""
        rank, offset = spec.get("rank", "rank") or "unranked", spec.get("offset", 0)
        ranked = (
            f"SELECT {self._visible(rows)}, "
            f"{function}() OVER ({parts}ORDER BY {', '.join(order)}) AS {rank} FROM {rows}"
        )
        last = f"cast({rank} AS bigint) - {offset} <= {spec['limit']}"
        names = [*by, *spec.get("select", {}), rank]
        shown = _shown({"select": {**{n: n for n in names}, **spec.get("select", {})}})
        shown = shown if "select" in spec else "*"
        having = f" AND ({spec['having']})" if "having" in spec else ""
        return (
            f"SELECT {shown} FROM ({ranked}{_where(spec)}) "
            f"WHERE {rank} > {offset} AND {last}{having}"
        )

    def _window_store(self, spec: Spec) -> str:
        """The last row of each key and time, or all of them, that have not expired."""
        rows, time, key = spec["from"], spec["time"], ", ".join(spec["key"])
        order = [*spec.get("sequence", []), *self._ties(rows)]
        last = f"row_number() OVER (PARTITION BY {key}, {time} ORDER BY {', '.join(order)})"
        of = f"count(*) OVER (PARTITION BY {key}, {time})"
        is_last = "true" if spec.get("duplicates") else f"{last} = {of}"
        found = (
            f"SELECT *, {time} AS window_start, {is_last} AS stands, max({time}) OVER () AS latest "
            f"FROM {rows}{_where(spec)}"
        )
        lives = (
            f" AND {time} + {_length(spec['retention'])} > latest" if "retention" in spec else ""
        )
        return f"SELECT * FROM ({found}) WHERE {time} IS NOT NULL AND stands{lives}"

    def _cogroup(self, spec: Spec) -> str:
        """The streams' groups, each once, and beside it what every stream has of it."""
        key, window = list(spec["key"]), spec.get("window")
        by = [*(["window_start", "window_end"] if window else []), *key]
        streams = {n: self._stream(spec, n) for n in spec["streams"]}
        grouped = [f"SELECT DISTINCT {', '.join(by)} FROM ({rows})" for rows in streams.values()]
        joins, shown = [], [f"g.{c}" for c in by]
        for name, rows in streams.items():
            aggregates = spec["streams"][name]["aggregates"]
            ties = self._ties(spec["streams"][name]["from"])
            of = {n: _aggregate(e, ties) for n, e in aggregates.items()}
            listed = ", ".join(f"{e} AS {n}" for n, e in of.items())
            met = " AND ".join(f"g.{c} <=> of_{name}.{c}" for c in by)
            columns = ", ".join(by)
            joins.append(
                f"LEFT JOIN (SELECT {columns}, {listed} FROM ({rows}) GROUP BY {columns}) "
                f"AS of_{name} ON {met}"
            )
            shown += [_or_empty(f"of_{name}.{n}", e, n) for n, e in aggregates.items()]
        query = f"SELECT {', '.join(shown)} FROM ({' UNION '.join(grouped)}) AS g {' '.join(joins)}"
        if "having" in spec:
            query = f"SELECT * FROM ({query}) WHERE {spec['having']}"
        if "retention" in spec:
            latest = " UNION ALL ".join(
                f"SELECT max({window['time']}) AS t FROM {s['from']}"
                for s in spec["streams"].values()
            )
            living = f"window_end + {_length(spec['retention'])} > (SELECT max(t) FROM ({latest}))"
            query = f"SELECT * FROM ({query}) WHERE {living}"
        if "select" in spec:
            query = f"SELECT {', '.join(by)}, {_shown(spec)} FROM ({query})"
        return query

    def _stream(self, spec: Spec, name: str) -> str:
        """Its rows, with the columns of the key and with their window."""
        stream, window = spec["streams"][name], spec.get("window")
        own = stream.get("key", spec["key"])
        columns = ", ".join(f"{e} AS {c}" for c, e in zip(spec["key"], own, strict=True) if c != e)
        rows = f"SELECT *{', ' if columns else ''}{columns} FROM {stream['from']}{_where(stream)}"
        if not window:
            return rows
        time, key = window["time"], ", ".join(spec["key"])
        if window["type"] == "tumbling":
            size = _length(window["size"])
            start = f"time_bucket({size}, timestamp({time}), {EPOCH})"
            return (
                f"SELECT *, {start} AS window_start, {start} + {size} AS window_end "
                f"FROM ({rows}) WHERE {time} IS NOT NULL"
            )
        assert (window["type"], len(spec["streams"])) == ("session", 1)
        gap, of = _length(window["gap"]), f"PARTITION BY {key} ORDER BY {time}"
        begins = f"coalesce({time} > lag({time}) OVER ({of}) + {gap}, true) AS begins"
        began = f"SELECT *, {begins} FROM ({rows}) WHERE {time} IS NOT NULL"
        numbered = f"SELECT *, count_if(begins) OVER ({of}) AS nth FROM ({began})"
        session = f"OVER (PARTITION BY {key}, nth)"
        return (
            f"SELECT *, min({time}) {session} AS window_start, "
            f"max({time}) {session} + {gap} AS window_end FROM ({numbered})"
        )


def _without_zone(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(kind) else kind


def _shown(spec: Spec) -> str:
    select = spec.get("select")
    return ", ".join(f"{e} AS {n}" for n, e in select.items()) if select else "*"


def _where(spec: Spec) -> str:
    return f" WHERE {spec['where']}" if "where" in spec else ""


def _length(text: str) -> str:
    return f"INTERVAL '{text}'"


def _aggregate(expression: str, ties: list[str]) -> str:
    """Ends and lists are of values in an order that the key decides; lists have no nulls."""
    name, _, inside = expression.partition("(")
    if name in ("collect_list", "collect_set", "first", "last"):
        value, _, order = inside.rpartition(")")[0].partition(" ORDER BY ")
        if name == "collect_set":
            return f"list_sort(list_distinct(array_agg({value})))"
        by = ", ".join([*([order] if order else []), *ties])
        if name == "collect_list":
            return f"array_agg({value} ORDER BY {by}) FILTER (WHERE {value} IS NOT NULL)"
        listed = f"array_agg({value} ORDER BY {by})"
        return f"list_extract({listed}, {1 if name == 'first' else -1})"
    return expression


def _or_empty(value: str, expression: str, name: str) -> str:
    """Nothing counts as zero, and is a list without values."""
    empty = {"count": "0", "collect_list": "array()", "collect_set": "array()"}
    nothing = empty.get(expression.partition("(")[0])
    return f"coalesce({value}, {nothing}) AS {name}" if nothing else f"{value} AS {name}"
