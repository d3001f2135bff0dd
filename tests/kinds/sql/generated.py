"""Random queries over the shop. Where order decides, it is total, so that there is one answer."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

TABLES = {
    "orders": {"id": "int", "k": "int", "g": "text", "v": "int", "m": "number"},
    "people": {"pid": "int", "k": "int", "w": "text", "n": "int"},
    "events": {"eid": "int", "id": "int", "kind": "text", "x": "number"},
}
KEYS = {"orders": "id", "people": "pid", "events": "eid"}
TEXTS = ("'a'", "'b'", "'x'", "''")


SETS = ("INTERSECT", "EXCEPT")
HOW = ("LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI ")
BOUNDS = ("r <= 2", "r = 1", "r BETWEEN 2 AND 3", "r < 3 AND c0 IS NOT NULL", "r > 1")
RANKINGS = ("row_number", "rank", "dense_rank")
BETWEEN = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"


@dataclass(frozen=True)
class Rows:
    """Something in FROM: its text, and its columns as they are written, with their types."""

    sql: str
    columns: dict[str, str]
    key: tuple[str, ...]  # columns that no two rows share, if known

    def of(self, type_: str) -> list[str]:
        return [name for name, found in self.columns.items() if found == type_]


@dataclass
class Writer:
    """Writes random queries; the same for the same seed."""

    chance: random.Random
    names: int = field(default=0)

    def name(self, prefix: str = "t") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def query(self, depth: int = 2) -> str:
        return self.select(depth)[0]

    def select(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        """A query, the types of its columns by name, and a key of its rows if one is known."""
        forms: list[Callable[[int], tuple[str, dict[str, str], tuple[str, ...]]]] = [
            *[self.plain] * 3,
            *[self.grouped] * 3,
            self.distinct,
            self.total,
            self.together,
            self.ranked,
            self.limited,
            self.windowed,
            self.in_with,
        ]
        return self.chance.choice(forms)(depth)

    def table(self, depth: int) -> Rows:
        if depth > 0 and self.chance.random() < 0.25:
            sql, columns, key = self.select(depth - 1)
            alias = self.name("q")
            named = {f"{alias}.{name}": type_ for name, type_ in columns.items()}
            return Rows(f"({sql}) {alias}", named, tuple(f"{alias}.{c}" for c in key))
        table, alias = self.chance.choice([*TABLES]), self.name()
        columns = {f"{alias}.{name}": type_ for name, type_ in TABLES[table].items()}
        return Rows(f"{table} {alias}", columns, (f"{alias}.{KEYS[table]}",))

    def rows(self, depth: int) -> Rows:
        """One table, or some joined."""
        found = self.table(depth)
        for _ in range(self.chance.choice([0, 0, 0, 1, 1, 2])):
            other = self.constants() if self.chance.random() < 0.1 else self.table(depth)
            pair = self.pair(found, other)
            if pair is None:
                continue
            how = self.chance.choice(
                ["", "", "", "LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI "]
            )
            both = Rows("", {**found.columns, **other.columns}, ())
            more = f" AND {self.condition(both, 1)}" if self.chance.random() < 0.3 else ""
            key = (*found.key, *other.key) if found.key and other.key else ()
            if "SEMI" in how or "ANTI" in how:
                both, key = found, found.key
            if how.strip() in ("RIGHT", "FULL", "LEFT"):
                key = (*found.key, *other.key) if found.key and other.key else ()
            found = Rows(f"{found.sql} {how}JOIN {other.sql} ON {pair}{more}", both.columns, key)
        if depth > 0 and self.chance.random() < 0.1:
            return self.beside_one(found, depth)
        return self.exploded(found) if self.chance.random() < 0.12 else found

    def constants(self) -> Rows:
        """VALUES under an alias."""
        alias = self.name("v")
        rows = self.chance.choice(
            ["(1, 'a'), (2, 'b'), (2, NULL)", "(3, 'x')", "(1, 'b'), (NULL, 'a')"]
        )
        columns = {f"{alias}.i": "int", f"{alias}.t": "text"}
        return Rows(f"(VALUES {rows}) {alias}(i, t)", columns, ())

    def beside_one(self, rows: Rows, depth: int) -> Rows:
        """Rows beside the one row of an aggregate."""
        sql, types, _ = self.total(depth - 1)
        alias = self.name("o")
        columns = {**rows.columns, **{f"{alias}.{name}": t for name, t in types.items()}}
        return Rows(f"{rows.sql} CROSS JOIN ({sql}) {alias}", columns, rows.key)

    def exploded(self, rows: Rows) -> Rows:
        """Rows with the elements of an array."""
        alias = self.name("e")
        one, other = self.value(rows, "int", 1), self.value(rows, "int", 0)
        array = self.chance.choice([f"array({one}, {other})", f"filter(array({one}), x -> x > 0)"])
        call, names = self.chance.choice([("explode", "el"), ("posexplode", "nth, el")])
        outer = self.chance.choice(["", "OUTER "])
        columns = {**rows.columns, f"{alias}.el": "int"}
        view = f"LATERAL VIEW {outer}{call}({array}) {alias} AS {names}"
        return Rows(f"{rows.sql} {view}", columns, ())

    def pair(self, left: Rows, right: Rows) -> str | None:
        """An equality between two tables."""
        type_ = self.chance.choice(["int", "int", "int", "text"])
        if not left.of(type_) or not right.of(type_):
            return None
        a, b = self.chance.choice(left.of(type_)), self.chance.choice(right.of(type_))
        return self.chance.choice([f"{a} = {b}", f"{b} = {a}"])

    def value(self, rows: Rows, type_: str, depth: int = 2) -> str:
        """An expression of a type."""
        known, pick = rows.of(type_), self.chance.random()
        if known and (depth == 0 or pick < 0.55):
            return self.chance.choice(known)
        if depth == 0 or pick < 0.65:
            return {"int": str(self.chance.randint(-1, 3)), "text": self.chance.choice(TEXTS)}.get(
                type_, "1.5"
            )
        inner = self.value(rows, type_, depth - 1)
        if type_ == "text":
            other = self.value(rows, "text", depth - 1)
            return self.chance.choice(
                [f"upper({inner})", f"coalesce({inner}, {other})", f"concat({inner}, {other})"]
            )
        if type_ == "number":
            return self.chance.choice([f"abs({inner})", f"{inner} * 2", f"coalesce({inner}, 0.5)"])
        other = self.value(rows, "int", depth - 1)
        text = self.value(rows, "text", depth - 1)
        return self.chance.choice(
            [
                f"{inner} + {other}",
                f"({inner} - {other}) * 2",
                f"coalesce({inner}, {other})",
                f"length({text})",
                f"CASE WHEN {self.condition(rows, depth - 1)} THEN {inner} ELSE {other} END",
                f"nullif({inner}, 0)",
            ]
        )

    def condition(self, rows: Rows, depth: int = 2) -> str:
        """Something true, false or null."""
        a, b = self.value(rows, "int", 1), self.value(rows, "int", 0)
        text = self.value(rows, "text", 0)
        simple = [
            f"{a} {self.chance.choice(['<', '<=', '>', '>=', '=', '<>', '<=>'])} {b}",
            f"{text} {self.chance.choice(['=', '<>', '<'])} {self.chance.choice(TEXTS)}",
            f"{a} IS {self.chance.choice(['', 'NOT '])}NULL",
            f"{a} {self.chance.choice(['', 'NOT '])}IN (1, 2, {b})",
            f"{a} BETWEEN 0 AND 2",
            f"{text} LIKE '%a%'",
        ]
        if depth > 0 and self.chance.random() < 0.4:
            one, other = self.condition(rows, depth - 1), self.condition(rows, depth - 1)
            return self.chance.choice(
                [f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"]
            )
        return self.chance.choice(simple)

    def where(self, rows: Rows, depth: int) -> str:
        conditions = [self.condition(rows) for _ in range(self.chance.choice([0, 0, 1, 1, 2]))]
        if depth > 0 and self.chance.random() < 0.25:
            found, more = self.existence(rows), self.condition(rows, 1)
            choices = [found, found, f"({found} OR {more})", f"NOT ({found} AND {more})"]
            conditions.append(self.chance.choice(choices))
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def existence(self, rows: Rows) -> str:
        """A condition with a subquery, whose table may have the name of an outer one."""
        outer = sorted({name.partition(".")[0] for name in rows.columns if "." in name})
        is_hiding = bool(outer) and self.chance.random() < 0.2
        alias = self.chance.choice(outer) if is_hiding else self.name("s")
        table = self.chance.choice([*TABLES])
        inner = Rows("", {f"{alias}.{n}": t for n, t in TABLES[table].items()}, ())
        mine, own = self.value(rows, "int", 0), self.chance.choice(inner.of("int"))
        extra = f" AND {self.condition(inner, 1)}" if self.chance.random() < 0.6 else ""
        whole = extra.replace(" AND ", " WHERE ", 1)
        if not rows.of("int") or mine not in rows.columns:
            return f"EXISTS (SELECT 1 FROM {table} {alias}{whole})"
        negated = self.chance.choice(["", "", "NOT "])
        aggregate = self.chance.choice(["max", "min", "count", "sum"])
        number = self.chance.choice(inner.of("int"))
        of_mine = f"FROM {table} {alias} WHERE {own} = {mine}{extra}"
        other = self.chance.choice(rows.of("int"))
        than = f"{number} {self.chance.choice(['<', '<>', '>='])} {other}"
        alone = [
            f"{mine} {negated}IN (SELECT {own} FROM {table} {alias}{whole})",
            f"{mine} > (SELECT avg({number}) FROM {table} {alias}{whole})",
            f"({mine}, {other}) IN (SELECT {own}, {number} FROM {table} {alias}{whole})",
        ]
        if is_hiding:
            return self.chance.choice(alone)
        return self.chance.choice(
            [
                *alone,
                f"{negated}EXISTS (SELECT * {of_mine})",
                f"{mine} <= (SELECT {aggregate}({number}) {of_mine})",
                f"{other} NOT IN (SELECT {number} {of_mine})",
                f"{mine} <= (SELECT {aggregate}({number}) {of_mine} AND {than})",
            ]
        )

    def shown(self, rows: Rows, least: int = 1) -> tuple[list[str], dict[str, str]]:
        """Columns of a SELECT: their texts, and their types by name."""
        texts, types = [], {}
        for number in range(self.chance.randint(least, 3)):
            type_ = self.chance.choice(["int", "int", "text", "number"])
            texts.append(f"{self.value(rows, type_)} AS c{number}")
            types[f"c{number}"] = type_
        return texts, types

    def plain(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        texts, types = self.shown(rows)
        return f"SELECT {', '.join(texts)} FROM {rows.sql}{self.where(rows, depth)}", types, ()

    def distinct(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        texts, types = self.shown(rows)
        sql = f"SELECT DISTINCT {', '.join(texts)} FROM {rows.sql}{self.where(rows, depth)}"
        return sql, types, tuple(types)

    def aggregates(self, rows: Rows) -> tuple[list[str], dict[str, str]]:
        texts, types = [], {}
        for number in range(self.chance.randint(1, 3)):
            value, text = self.value(rows, "int", 1), self.value(rows, "text", 0)
            call, type_ = self.chance.choice(
                [
                    ("count(*)", "int"),
                    (f"count({value})", "int"),
                    (f"sum({value})", "int"),
                    (f"min({value})", "int"),
                    (f"max({text})", "text"),
                    (f"avg({value})", "double"),
                    (f"count(DISTINCT {text})", "int"),
                    (f"sum({value}) + count(*)", "int"),
                ]
            )
            if self.chance.random() < 0.15 and "+" not in call:
                call += f" FILTER (WHERE {self.condition(rows, 0)})"
            texts.append(f"{call} AS a{number}")
            types[f"a{number}"] = type_
        return texts, types

    def grouped(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        keys, types = [], {}
        for _ in range(self.chance.randint(1, 2)):
            type_ = self.chance.choice(["int", "text"])
            keys.append(self.value(rows, type_, 1))
            types[self.name("k")] = type_
        texts, more = self.aggregates(rows)
        named = [f"{key} AS {name}" for key, name in zip(keys, types, strict=True)]
        by = self.chance.choice([", ".join(str(i + 1) for i in range(len(keys))), ", ".join(types)])
        having = self.chance.choice(["", "", " HAVING count(*) > 1", " HAVING max(1) = 1"])
        sql = f"SELECT {', '.join([*named, *texts])} FROM {rows.sql}{self.where(rows, depth)}"
        sql = f"{sql} GROUP BY {by}{having}"
        return sql, {**types, **more}, tuple(types)

    def total(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        texts, types = self.aggregates(rows)
        return f"SELECT {', '.join(texts)} FROM {rows.sql}{self.where(rows, depth)}", types, ()

    def together(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        how = self.chance.choice(["UNION ALL", "UNION", *SETS, *(f"{one} ALL" for one in SETS)])
        types = {"c0": "int", "c1": "text"}
        sides = []
        for _ in range(2):
            rows = self.rows(depth - 1)
            number, text = self.value(rows, "int", 1), self.value(rows, "text", 1)
            sides.append(
                f"SELECT {number} AS c0, {text} AS c1 FROM {rows.sql}{self.where(rows, 0)}"
            )
        return f" {how} ".join(sides), types, () if how.endswith("ALL") else ("c0", "c1")

    def ordered(self, rows: Rows) -> str | None:
        """A total order, if a key is known."""
        if not rows.key:
            return None
        first = f"coalesce({self.value(rows, self.chance.choice(['int', 'text']), 1)}, NULL)"
        way = self.chance.choice(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])
        return ", ".join([f"{first}{way}", *rows.key])

    def ranked(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        order = self.ordered(rows)
        if order is None:
            return self.plain(depth)
        texts, types = self.shown(rows)
        by = self.value(rows, "int", 1)
        bound, ranking = self.chance.choice(BOUNDS), self.chance.choice(RANKINGS)
        call = f"{ranking}() OVER (PARTITION BY {by} ORDER BY {order})"
        inner = f"SELECT {', '.join(texts)}, {call} AS r FROM {rows.sql}"
        inner += self.where(rows, depth)
        outer = self.chance.choice(["*", ", ".join(types)])
        known = {**types, "r": "int"} if outer == "*" else types
        return f"SELECT {outer} FROM ({inner}) {self.name('r')} WHERE {bound}", known, ()

    def limited(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        order = self.ordered(rows)
        if order is None:
            return self.plain(depth)
        texts, types = self.shown(rows)
        limit = self.chance.choice(["LIMIT 3", "LIMIT 2 OFFSET 1"])
        sql = f"SELECT {', '.join(texts)} FROM {rows.sql}{self.where(rows, depth)}"
        return f"{sql} ORDER BY {order} {limit}", types, ()

    def windowed(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        rows = self.rows(depth)
        order = self.ordered(rows)
        if order is None:
            return self.plain(depth)
        texts, types = self.shown(rows)
        value, by = self.value(rows, "int", 0), self.value(rows, "text", 1)
        one = f"(PARTITION BY {by} ORDER BY {order}"
        call = self.chance.choice(
            [
                f"lag({value}) OVER {one})",
                f"sum({value}) OVER (PARTITION BY {by})",
                f"sum({value}) OVER {one} {BETWEEN})",
                f"max({value}) OVER (ORDER BY {order})",
                f"row_number() OVER (ORDER BY {order}) - lead({value}, 2) OVER {one})",
            ]
        )
        sql = f"SELECT {', '.join(texts)}, {call} AS w FROM {rows.sql}{self.where(rows, depth)}"
        return sql, {**types, "w": "int"}, ()

    def in_with(self, depth: int) -> tuple[str, dict[str, str], tuple[str, ...]]:
        if depth == 0:
            return self.plain(depth)
        name = self.name("w")
        sql, columns, _ = self.select(depth - 1)
        other = self.table(0)
        alias, twice = self.name("x"), self.chance.random() < 0.4
        rows = Rows(f"{name} {alias}", {f"{alias}.{c}": t for c, t in columns.items()}, ())
        second = (
            Rows(f"{name} y", {f"y.{c}": t for c, t in columns.items()}, ()) if twice else other
        )
        pair = self.pair(rows, second)
        both = Rows("", {**rows.columns, **second.columns}, ()) if pair else rows
        texts, types = self.shown(both)
        joined = f" JOIN {second.sql} ON {pair}" if pair else ""
        outer = f"SELECT {', '.join(texts)} FROM {rows.sql}{joined}{self.where(both, 0)}"
        return f"WITH {name} AS ({sql}) {outer}", types, ()
