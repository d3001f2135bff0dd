"""Tables that a project's datasets become, as they are declared: sources, dimensions and views.

A table is resolved when it is added, because a plan's query needs the columns of what it reads.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import environ
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.pipelines.cli import PipelineSpec
from pyspark.sql.types import StructField, StructType
from sqlglot.errors import SqlglotError

from sluice.cache import cache_folder
from sluice.declare.building import (
    DeclarationFile,
    appended_view,
    build,
    query_view,
    read_tables,
    resolved_alone,
)
from sluice.declare.document import Document, Where
from sluice.declare.mistakes import Mistakes
from sluice.declare.table import Graph, Table
from sluice.delta.log.opened import open_version
from sluice.errors import ConfigError
from sluice.language.syntax import reason_of
from sluice.language.types import canonical
from sluice.spark_pipelines.elements import Dataset, Elements, FullName, Place, Query
from sluice.spark_pipelines.expressions import NotTranslated
from sluice.spark_pipelines.texts import column_name, declared_types, free_name, table_name

WAREHOUSE = "spark.sql.warehouse.dir"


class Refused(ValueError):
    """A dataset that can't be kept, and why. `place`: where, if not at its definition.

    `missing`: the table that it reads and nobody knows.
    """

    def __init__(self, problem: str, place: Place | None = None, missing: str = "") -> None:
        super().__init__(problem)
        self.place, self.missing = place, missing


@dataclass
class PipelineTables:
    """The tables by section, with their places and the lines of their queries.

    `streams`: the tables that read one as a stream, by the source or view that does so for them.
    `is_unsettled`: a table that others write is not there, or not yet.
    """

    spec: PipelineSpec
    spec_path: Path
    elements: Elements
    sections: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {"sources": {}, "dimensions": {}, "views": {}}
    )
    places: dict[Where, Place] = field(default_factory=dict)
    blocks: dict[Where, dict[int, str]] = field(default_factory=dict)
    streams: dict[str, set[str]] = field(default_factory=dict)
    is_unsettled: bool = False

    def __post_init__(self) -> None:
        self.root = self.spec_path.parent.resolve()
        self.pipeline = table_name([self.spec.name])
        self.defaults = self.elements.defaults(self.spec)
        self.tables: dict[str, Table] = {}
        self._read: dict[str, str] = {}  # declarations of what is read from outside -> names

    def name(self, dataset: FullName) -> str:
        """Return a dataset's name in the pipeline."""
        is_default = dataset[:2] == (self.defaults.catalog, self.defaults.database)
        return table_name([dataset[2]] if is_default or not dataset[1] else dataset[1:])

    def free_name(self, name: str) -> str:
        """Return a name that no other table has."""
        taken = {self.name(known) for known in self.elements.datasets}
        taken |= {n for tables in self.sections.values() for n in tables}
        return free_name(name, taken)

    def columns(self, name: str) -> Mapping[str, str]:
        """Return the columns of a declared table, with their types."""
        return self.tables[f"{self.pipeline}.{name}"].columns

    def columns_of(self, text: str) -> Mapping[str, str]:
        """Return the columns of a query over the declared tables, with types. Raises Refused."""
        fields = {**query_view(text), "incremental": "preferred"}
        return self._resolve("query", fields, None).columns

    def read_once(
        self, fields: dict[str, Any], name: str, place: Place, *, own: str = "", comment: str = ""
    ) -> str:
        """Declare a source of what is outside the project, once; return its name.

        `own`: the name that it has if nobody reads the same already, with its comment.
        """
        key = json.dumps(fields, sort_keys=True)
        if key not in self._read:
            about = {"description": comment} if own and comment else {}
            made = own or self.free_name(name)
            self._add("sources", made, {**about, **fields}, place)
            self._read[key] = made
        return self._read[key]

    def delta_table(self, place: str, what: str) -> dict[str, Any]:
        """Return the declaration of a Delta table that others write."""
        try:
            found = open_version(place)
        except Exception as error:  # noqa: BLE001 - stores and formats fail in many ways
            self.is_unsettled = True
            raise Refused(f"{what}: {' '.join(str(error).split())}") from None
        schema = StructType.fromJson(json.loads(found.schema().to_json()))
        return {"delta": {"path": place}, **declared_columns(schema)}

    def join_to_one_row(self, text: str, place: Place) -> str:
        """Return a query of constants as one over a table, which a view needs."""
        one = self._read.setdefault("one row", self.free_name("one_row"))
        if one not in self.sections["dimensions"]:
            self._add("dimensions", one, one_row(), place)
        return f"SELECT q.* FROM {one} CROSS JOIN ({text}) AS q"

    def append_only(self, name: str, place: Place) -> str:
        """Declare the view of a table's rows that refuses changed ones, once; return its name."""
        fields = appended_view(name)
        view = self._read.setdefault(f"appended {name}", self.free_name(f"{name}_stream"))
        if view not in self.sections["views"]:
            self._resolve(view, fields, place)
            self.sections["views"][view] = fields
            self.places[("views", view)] = place
        return view

    def add_view(self, dataset: Dataset, flow: Query, text: str, key: Sequence[str] = ()) -> None:
        """Declare the view of a query. Raises Refused if it can't be kept."""
        name = self.name(dataset.name)
        about = {"description": dataset.comment} if dataset.comment else {}
        fields = {**about, **query_view(text), "incremental": "preferred"}
        if key:
            with suppress(Refused):  # no key of a struct, or of a query that is computed whole
                found = self._resolve("query", {**fields, "key": [*key]}, None)
                fields |= {"key": [*key]} if all(found.columns[name] for name in key) else {}
        self.check_schema(dataset, self._resolve(name, fields, flow.place).columns)
        self.sections["views"][name] = fields
        self.places[("views", name)] = dataset.place
        (query_field,) = query_view("").keys() - {"kind"}
        where = ("views", name, query_field)
        self.places[where] = flow.place
        if flow.lines:
            self.blocks[where] = dict(enumerate(flow.lines, flow.place.line))

    def check_schema(self, dataset: Dataset, columns: Mapping[str, str]) -> None:
        """Raise Refused if a dataset's rows have other columns than it declares, as in Spark."""
        if not dataset.schema:
            return
        try:
            wanted = declared_types(dataset.schema)
        except (SqlglotError, ValueError) as error:
            raise Refused(f"can't read its schema: {reason_of(error)}", dataset.place) from None
        for name in {**wanted, **columns}:
            says, has = wanted.get(name, "missing"), columns.get(name, "missing")
            if has and says != (has if has == "missing" else canonical(has)):
                problem = f"its schema and its rows differ: {name} is {says} there, {has} here"
                raise Refused(problem, dataset.place)

    def local(self, path: str) -> str:
        """Return a path as an absolute one, without `file:`; an address of a store as it is."""
        if path.startswith("file:"):
            return unquote(urlsplit(path).path)
        return path if "://" in path else str((self.root / path).resolve())

    def in_catalog(self, name: FullName) -> str:
        """Return the folder of a catalog's table in the warehouse."""
        warehouse = self.local(self.spec.configuration.get(WAREHOUSE, "spark-warehouse"))
        database = "" if name[1] == "default" else f"/{name[1]}.db"
        return f"{warehouse}{database}/{name[2]}"

    def _add(self, section: str, name: str, fields: dict[str, Any], place: Place) -> None:
        """Add a delivered table. Raises Refused if its declaration has mistakes."""
        mistakes, data = Mistakes(), {"pipeline": self.pipeline, section: {name: fields}}
        found = read_tables(DeclarationFile(Document(place.file, data)), mistakes)
        tables = build({d.id: d for d in found.declared}, mistakes).tables
        if mistakes.found:
            raise Refused("; ".join(text for _, _, text in mistakes.found), place)
        self.tables |= tables
        self.sections[section][name] = fields
        self.places[(section, name)] = place

    def _resolve(self, name: str, fields: dict[str, Any], place: Place | None) -> Table:
        """Return a view's table; keep it if it has a place. Raises Refused."""
        table_id = f"{self.pipeline}.{name}"
        try:
            found = resolved_alone(Graph(self.tables), fields, table_id)
        except ConfigError as error:
            problems = [problem.partition(".sql: ")[2] or problem for problem in error.mistakes]
            raise Refused("; ".join(problems), place) from None
        if place:
            self.tables[table_id] = found
        return found


def declared_columns(schema: StructType) -> dict[str, Any]:
    """Return the fields that declare a schema: its columns, and names that can't be theirs.

    Raises NotTranslated if two columns would have one name, or one has a type that none may have.
    """
    names = {column_name(f.name): f.name for f in schema}
    if lost := {f.name for f in schema} - {*names.values()}:
        raise NotTranslated(f"the name of column {min(lost)!r} is that of another one, in a table")
    types = map(_declared_type, schema)
    renamed = {new: old for new, old in names.items() if new != old}
    ddl = ", ".join(f"{name} {type_}" for name, type_ in zip(names, types, strict=True))
    return {"schema": ddl, **({"names": renamed} if renamed else {})}


def _declared_type(field: StructField) -> str:
    try:
        return canonical(field.dataType.simpleString())
    except ValueError as error:
        raise NotTranslated(f"column {field.name!r}: {error}") from None


MESSAGE = "key BINARY, value BINARY, partition INT, offset BIGINT, timestamp TIMESTAMP"
OF_TOPICS = {"subscribe", "kafka.bootstrap.servers", "startingoffsets", "kafka.isolation.level"}
OF_ERRORS = {"failondataloss", "minpartitions"}  # change no result, or what Sluice always refuses


def declared_topic(options: Mapping[str, str]) -> dict[str, Any]:
    """Return the source of a topic's messages, by the options of Spark's reader.

    Raises ValueError for what a source can't have.
    """
    given = {key.lower(): value for key, value in options.items()}
    if unknown := sorted(given.keys() - OF_TOPICS - OF_ERRORS):
        raise ValueError(
            f"the option {unknown[0]!r} of a topic is not supported: declare the topic as a source "
            "in YAML, with a connection that has the client's settings"
        )
    topic, servers = given.get("subscribe", ""), given.get("kafka.bootstrap.servers", "")
    if not topic or "," in topic or not servers:
        raise ValueError("a stream of Kafka has one topic as `subscribe`, and its servers")
    start = given.get("startingoffsets", "latest")
    if start not in ("earliest", "latest"):
        raise ValueError(f"startingOffsets {start!r} is not supported: earliest or latest")
    isolation = given.get("kafka.isolation.level", "read_uncommitted")
    kafka = {"topic": topic, "servers": servers, "start": start, "isolation": isolation}
    return {"kafka": kafka, "value": {"format": "bytes"}, "schema": MESSAGE}


def one_row() -> dict[str, Any]:
    """Return the dimension of one row, to which constant rows are joined: a file in the cache."""
    file = cache_folder(environ) / "constants" / "one_row.parquet"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"one": [1]}), file)
    return {"path": str(file), "format": "parquet", "schema": "one BIGINT", "key": ["one"]}
