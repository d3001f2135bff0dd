"""Elements of a spark-pipelines project: datasets, the flows that fill them, and their SQL.

A statement's head is read word by word, because sqlglot knows few of these statements. Its query
stays the text that the file has, so that messages name the file's lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from sluice.language.syntax import Verbatim, parse_as, reason_of

DatasetKind = Literal["materialized view", "streaming table", "temporary view", "sink"]
FullName = tuple[str, str, str]  # catalog, database, name; only the name of a temporary view
CATALOG, DATABASE = "spark_catalog", "default"


@dataclass(frozen=True)
class Place:
    """A line of a file; `file` is relative to the project's folder."""

    file: str
    line: int


@dataclass(frozen=True)
class Defaults:
    """Catalog and database of names that leave them out."""

    catalog: str = CATALOG
    database: str = DATABASE

    def of(self, name: str) -> FullName:
        """Return the full name that a text means."""
        return self.complete([part.name for part in exp.to_table(name, dialect="spark").parts])

    def complete(self, parts: Sequence[str]) -> FullName:
        """Return the full name of one, two or three parts."""
        *before, name = (part.lower() for part in parts)
        database = before.pop() if before else self.database
        return (before.pop() if before else self.catalog, database, name)

    def name(self, text: str, kind: DatasetKind) -> FullName:
        """Return the full name of a dataset; temporary views and sinks have no database."""
        is_stored = kind in ("materialized view", "streaming table")
        return self.of(text) if is_stored else ("", "", self.of(text)[2])


@dataclass(frozen=True)
class Dataset:
    """A dataset as defined. `schema`: its declared columns, as DDL."""

    name: FullName
    kind: DatasetKind
    place: Place
    comment: str = ""
    schema: str = ""


@dataclass(frozen=True)
class Changes:
    """Rules by which a flow of changes is applied: lists of the protocol's expressions."""

    keys: tuple[Any, ...]
    sequence: tuple[Any, ...]
    deletes: tuple[Any, ...] = ()
    columns: tuple[Any, ...] = ()
    except_columns: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Query:
    """A flow: a plan, the text of a query, or changes (`cdc`) of the table `source`.

    `lines`: the file's lines of a text. `refusal`: why its DataFrame can't be described at all.
    """

    place: Place
    defaults: Defaults
    name: str = ""
    target: FullName = ("", "", "")
    relation: Any = None
    text: str = ""
    lines: tuple[str, ...] = ()
    source: str = ""
    cdc: Changes | None = None
    refusal: str = ""


@dataclass
class Elements:
    """All that a project's files define, with the mistakes found in them."""

    datasets: dict[FullName, Dataset] = field(default_factory=dict)
    flows: list[Query] = field(default_factory=list)
    mistakes: list[tuple[Place, str]] = field(default_factory=list)

    def defaults(self, spec: Any) -> Defaults:
        """Return the defaults that a spec gives."""
        return Defaults((spec.catalog or CATALOG).lower(), (spec.database or DATABASE).lower())

    def add(self, dataset: Dataset) -> None:
        """Add a dataset; a second one of its name is a mistake."""
        if first := self.datasets.get(dataset.name):
            known = f"{first.place.file}:{first.place.line}"
            problem = f"{dataset.name[-1]!r} is defined in {known} already"
            self.mistakes.append((dataset.place, problem))
        else:
            self.datasets[dataset.name] = dataset


CREATES = (
    "a definition file has CREATE MATERIALIZED VIEW, STREAMING TABLE, TEMPORARY VIEW and FLOW, "
    "SET and USE"
)
KINDS: dict[tuple[str, ...], DatasetKind] = {
    ("MATERIALIZED", "VIEW"): "materialized view",
    ("STREAMING", "TABLE"): "streaming table",
    ("TEMPORARY", "VIEW"): "temporary view",
    ("TEMP", "VIEW"): "temporary view",
}
CLAUSES = {  # a clause's tokens -> whether a list in parentheses follows, else one word
    ("PARTITIONED BY",): True,
    ("CLUSTER BY",): True,
    ("TBLPROPERTIES",): True,
    ("OPTIONS",): True,
    ("USING",): False,
    ("LOCATION",): False,
    ("DEFAULT", "COLLATION"): False,
}
AS_SPARK_RUNS_HERE = {  # settings that change results, and the value that Sluice computes by
    "spark.sql.ansi.enabled": "true",
    "spark.sql.casesensitive": "false",
    "spark.sql.session.timezone": "utc",
}
UTC = ("utc", "etc/utc", "gmt", "z", "+00:00")


class StatementMistake(ValueError):
    """A statement that is none of a pipeline's."""

    def __init__(self, place: Place, problem: str) -> None:
        super().__init__(problem)
        self.place = place


def setting_problem(name: str, value: str) -> str:
    """Return why a setting can't be followed; '' if it changes no result."""
    wanted = AS_SPARK_RUNS_HERE.get(name.lower())
    if wanted is None or value.lower() in (UTC if wanted == UTC[0] else (wanted,)):
        return ""
    return f"{name} = {value}: Sluice computes by {wanted.upper()}; leave the setting out"


def read_statements(text: str, file: str, elements: Elements, spec: Any) -> None:
    """Add what a SQL file defines. Raises StatementMistake."""
    try:
        tokens = Verbatim().tokenize(text)
    except SqlglotError as error:
        raise StatementMistake(
            Place(file, 1), f"can't read this as SQL: {reason_of(error)}"
        ) from None
    defaults, found = elements.defaults(spec), list[Any]()
    for token in [*tokens, None]:
        if token is not None and token.token_type != TokenType.SEMICOLON:
            found.append(token)
        elif found:
            statement = _Statement(text, file, found, defaults, elements)
            statement.read()
            defaults, found = statement.defaults, []


@dataclass
class _Statement:
    """One statement, read from its first word on."""

    text: str
    file: str
    tokens: Sequence[Any]
    defaults: Defaults
    elements: Elements
    at: int = 0

    def read(self) -> None:
        if self.take("SET"):
            self._set()
        elif self.take("USE"):
            self._use()
        elif self.take("CREATE"):
            self.take("OR", "REFRESH") or self.take("OR", "REPLACE")
            kind = next((KINDS[words] for words in KINDS if self.take(*words)), None)
            if kind is not None:
                self._dataset(kind)
            elif self.take("FLOW"):
                self._flow()
            else:
                self.fail(CREATES)
        else:
            self.fail(CREATES)

    @property
    def place(self) -> Place:
        token = self.tokens[min(self.at, len(self.tokens) - 1)]
        return Place(self.file, token.line)

    def fail(self, problem: str) -> NoReturn:
        raise StatementMistake(self.place, problem)

    def take(self, *words: str) -> bool:
        """Pass over these words if they come next."""
        ahead = self.tokens[self.at : self.at + len(words)]
        is_text = any(token.token_type == TokenType.STRING for token in ahead)
        if is_text or [token.text.upper() for token in ahead] != [*words]:
            return False
        self.at += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            found = self.tokens[self.at].text if self.at < len(self.tokens) else "the end"
            self.fail(f"{' '.join(words)} is expected, not {found!r}")

    def word(self) -> str:
        if self.at >= len(self.tokens):
            self.fail("the statement ends too early")
        self.at += 1
        return str(self.tokens[self.at - 1].text)

    def parts(self) -> list[str]:
        """Pass over a name; return its parts."""
        found = [self.word()]
        while self.take("."):
            found.append(self.word())
        return found

    def group(self) -> list[Any]:
        """Pass over a list in parentheses; return its tokens."""
        self.expect("(")
        begin, depth = self.at, 1
        while depth:
            word = self.word()
            depth += (word == "(") - (word == ")")
        return list(self.tokens[begin : self.at - 1])

    def rest(self, until: tuple[str, ...] = ()) -> Query:
        """Pass over the rest, or up to a word; return its text and lines."""
        begin = self.at
        while self.at < len(self.tokens) and self.tokens[self.at].text.upper() not in until:
            self.at += 1
        if begin == self.at:
            self.fail("a query is expected after AS")
        first, last = self.tokens[begin], self.tokens[self.at - 1]
        text = self.text[first.start : last.end + 1]
        line = self.text.count("\n", 0, first.start) + 1
        place = Place(self.file, line)
        return Query(place, self.defaults, text=text, lines=tuple(text.splitlines()))

    def _set(self) -> None:
        is_zone = self.take("TIME", "ZONE")
        query = self.rest()
        name, equals, value = query.text.partition("=")
        if is_zone:
            name, equals, value = "spark.sql.session.timeZone", "=", query.text
        if equals and (problem := setting_problem(name.strip(), value.strip().strip("'\""))):
            raise StatementMistake(query.place, problem)

    def _use(self) -> None:
        is_catalog = self.take("CATALOG")
        _ = [self.take(word) for word in ("DATABASE", "SCHEMA", "NAMESPACE")]
        *before, name = (part.lower() for part in self.parts())
        if is_catalog:
            self.defaults = replace(self.defaults, catalog=name)
        else:
            catalog = before[-1] if before else self.defaults.catalog
            self.defaults = Defaults(catalog, name)

    def _dataset(self, kind: DatasetKind) -> None:
        place = Place(self.file, self.tokens[0].line)
        self.take("IF", "NOT", "EXISTS")
        name = self.defaults.name(".".join(f"`{part}`" for part in self.parts()), kind)
        schema = ""
        if self.at < len(self.tokens) and self.tokens[self.at].text == "(":
            columns = self.group()
            schema = self.text[columns[0].start : columns[-1].end + 1]
        comment = self._clauses()
        self.elements.add(Dataset(name, kind, place, comment, schema))
        if self.take("AS"):
            query = replace(self.rest(), name=name[-1], target=name)
            self.elements.flows.append(query)
        elif self.at < len(self.tokens) or kind != "streaming table":
            self.expect("AS")

    def _clauses(self) -> str:
        comment = ""
        while True:
            if self.take("COMMENT"):
                comment = self.word()
            elif words := next((w for w in CLAUSES if self.take(*w)), None):
                self.group() if CLAUSES[words] else self.word()
            else:
                return comment

    def _flow(self) -> None:
        place, name = self.place, self.parts()[-1]
        self._clauses()
        self.expect("AS")
        if self.take("AUTO", "CDC", "INTO"):
            self._auto_cdc(place, name)
            return
        self.expect("INSERT", "INTO")
        self.take("TABLE")
        target = self.defaults.complete(self.parts())
        self.take("BY", "NAME")
        self.elements.flows.append(replace(self.rest(), name=name, target=target))

    def _auto_cdc(self, place: Place, name: str) -> None:
        target: FullName = self.defaults.complete(self.parts())
        self.expect("FROM")
        in_parentheses = self.take("STREAM", "(") or (self.take("STREAM") and False)
        source = ".".join(self.parts())
        if in_parentheses:
            self.expect(")")
        self.expect("KEYS")
        keys = [exp.column(t.text) for t in self.group() if t.text != ","]
        deletes: tuple[Any, ...] = ()
        if self.take("APPLY", "AS", "DELETE", "WHEN"):
            deletes = (parse_as(self.rest(("SEQUENCE",)).text, None),)
        self.expect("SEQUENCE", "BY")
        sequence = parse_as(self.rest(("COLUMNS", "STORED")).text, None)
        columns, others = self._columns() if self.take("COLUMNS") else ((), ())
        if self.take("STORED", "AS", "SCD", "TYPE") and self.word() != "1":
            self.fail("only SCD TYPE 1 is supported")
        changes = Changes(tuple(keys), (sequence,), deletes, columns, others)
        self.elements.flows.append(
            Query(place, self.defaults, name, target, source=source, cdc=changes)
        )

    def _columns(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        if self.take("*", "EXCEPT"):
            return (), tuple(exp.column(t.text) for t in self.group() if t.text != ",")
        words = self.rest(("STORED",)).text.strip("()").split(",")
        return tuple(parse_as(word, None) for word in words), ()
