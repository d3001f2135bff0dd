"""Declarations of a spark-pipelines project: the sources and views that its datasets become.

Each dataset is declared after those that it reads, because a plan's query needs their columns. A
dataset that can't be kept is left out with its reason, and so is what reads it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import sqlglot
from pyspark.pipelines.cli import PipelineSpec
from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.declare.building import (
    DeclarationFile,
    build,
    query_view,
    read_tables,
    resolved_alone,
)
from sluice.declare.document import Document, Where
from sluice.declare.mistakes import Mistakes
from sluice.declare.table import Graph, Table
from sluice.delta.log.opened import exists, open_version
from sluice.errors import ConfigError
from sluice.interpreter.expressions.from_protocol import schema_of
from sluice.interpreter.refusals import UnsupportedLocally
from sluice.language.names import unknown
from sluice.language.syntax import Tree, Verbatim, reason_of
from sluice.spark_pipelines.delivered import declared_columns, write_constants
from sluice.spark_pipelines.elements import Dataset, Elements, FullName, Place, Query
from sluice.spark_pipelines.expressions import Expressions, NotTranslated, call
from sluice.spark_pipelines.plans import Column, Plans, Rows, Tables
from sluice.spark_pipelines.statements import setting_problem
from sluice.spark_pipelines.texts import (
    changing_part,
    parsed,
    sql,
    table_name,
    with_views,
    without_streams,
)

WAREHOUSE = "spark.sql.warehouse.dir"
FILES = ("csv", "json", "parquet")
FILES_ONCE = (
    "files are read as a stream, each once: spark.readStream in a streaming table; "
    "or as a Delta table"
)
SINK = "a sink writes to another system; Sluice keeps tables"
APPENDED = (
    "a streaming table appends rows, and {} would change rows that it has: "
    "make it a materialized view"
)
CHANGING = "{0} is a {1}, whose rows may change, so it can't be read as a stream: read the table"


class Refused(ValueError):
    """A dataset that can't be kept, and why. `place`: where, if not at its definition."""

    def __init__(self, problem: str, place: Place | None = None) -> None:
        super().__init__(problem)
        self.place = place


@dataclass
class Declarations:
    """The pipeline's tables by section, their places, and what went wrong."""

    spec: PipelineSpec
    spec_path: Path
    elements: Elements
    sections: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {"sources": {}, "dimensions": {}, "views": {}}
    )
    places: dict[Where, Place] = field(default_factory=dict)
    blocks: dict[Where, dict[int, str]] = field(default_factory=dict)
    refused: list[tuple[Place, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = self.spec_path.parent.resolve()
        self.pipeline = table_name([self.spec.name])
        self.defaults = self.elements.defaults(self.spec)
        self.tables: dict[str, Table] = {}
        self._left_out = set[FullName]()
        self._open: list[FullName] = []
        self._done = set[FullName]()
        self._temporary: dict[FullName, tuple[Query, str]] = {}
        self.foreign: dict[str, str] = {}  # places of Delta tables -> names
        self.files: dict[str, str] = {}  # declarations of streams of files -> names
        self.is_unsettled = False  # a table that others write is not there, or not yet

    def declare_all(self) -> None:
        """Declare every dataset; note what is mistaken or left out."""
        for setting, value in self.spec.configuration.items():
            if problem := setting_problem(setting, value):
                self.elements.mistakes.append((Place(self.spec_path.name, 1), problem))
        for flow in self.elements.flows:
            if self.dataset(flow.target) is None:
                problem = f"the flow {flow.name!r} has an unknown target {flow.target[-1]!r}"
                self.elements.mistakes.append((flow.place, problem))
        for name in self.elements.datasets:
            self.ensure(name)

    def dataset(self, name: FullName) -> Dataset | None:
        """Return the dataset that a full name means: a temporary view by its last part."""
        return self.elements.datasets.get(name) or self.elements.datasets.get(("", "", name[-1]))

    def table(self, name: FullName) -> str:
        """Return a dataset's name in the pipeline."""
        is_default = name[:2] == (self.defaults.catalog, self.defaults.database)
        return table_name([name[2]] if is_default or not name[1] else name[1:])

    def free_name(self, name: str) -> str:
        """Return a name that no other table has."""
        taken = {self.table(known) for known in self.elements.datasets}
        taken |= {n for tables in self.sections.values() for n in tables}
        numbers = (f"{name}_{n}" for n in range(2, 10_000))
        return name if name not in taken else next(n for n in numbers if n not in taken)

    def ensure(self, name: FullName) -> Dataset:
        """Declare a dataset, unless it is. Raises Refused if it was left out."""
        dataset = self.dataset(name)
        assert dataset is not None
        name = dataset.name
        if name in self._open:
            ring = [*self._open[self._open.index(name) :], name]
            shown = " -> ".join(self.table(one) for one in reversed(ring))
            first = self.elements.datasets[ring[0]]
            self.elements.mistakes.append((first.place, f"a cycle: {shown}"))
            self._left_out |= {*ring}
        if name not in self._done and name not in self._left_out:
            self._open.append(name)
            try:
                self._declare(dataset)
            except (Refused, NotTranslated, UnsupportedLocally) as error:
                self._left_out.add(name)
                place = getattr(error, "place", None) or dataset.place
                self.refused.append((place, f"{self.table(name)}: {error}"))
            self._open.pop()
            self._done.add(name)
        return dataset

    def is_left_out(self, name: FullName) -> bool:
        return name in self._left_out

    def _declare(self, dataset: Dataset) -> None:
        flows = [
            flow
            for flow in self.elements.flows
            if flow.target == dataset.name
            or (dataset.name[:2] == ("", "") and flow.target[-1] == dataset.name[-1])
        ]
        if dataset.kind == "sink":
            raise Refused(SINK)
        if not flows:
            raise Refused("no flow fills it")
        if dataset.kind == "temporary view":
            flow = flows[0]
            self._temporary[dataset.name] = (flow, _Reader(self, flow).query())
        elif dataset.kind == "materialized view":
            self._declare_view(dataset, flows)
        else:
            self._declare_streaming(dataset, flows)

    def temporary(self, name: FullName) -> tuple[Query, str]:
        """Return a temporary view's flow and query."""
        return self._temporary[name]

    def _declare_view(self, dataset: Dataset, flows: Sequence[Query]) -> None:
        if len(flows) > 1:
            raise Refused("a materialized view has one flow", flows[1].place)
        flow = flows[0]
        reader = _Reader(self, flow)
        text = reader.query()
        if reader.streams:
            raise Refused("a materialized view reads tables, not streams", flow.place)
        if not any(t.name for t in parsed(text).find_all(exp.Table)):
            text = self._constants(dataset, flow)
        self.add_view(dataset, flow, text)

    def _declare_streaming(self, dataset: Dataset, flows: Sequence[Query]) -> None:
        readers = [_Reader(self, flow) for flow in flows]
        found = [reader.rows() for reader in readers]
        for reader in readers:
            if not reader.streams:
                problem = "a streaming table reads a stream: spark.readStream, or STREAM(table)"
                raise Refused(problem, reader.flow.place)
            if reader.batches:
                what = ", ".join(sorted(reader.batches))
                problem = f"a streaming table that also reads {what} as a table"
                raise Refused(problem, reader.flow.place)
            if not reader.flow.cdc and (what := changing_part(reader.rows().query)):
                raise Refused(APPENDED.format(what), reader.flow.place)
        first, *others = found
        if self.table(dataset.name) in self.sections["sources"]:
            return
        query: exp.Query = first.query
        for one in others:
            ordered = by_name(first, one, dataset)
            query = exp.Union(this=query, expression=ordered.query, distinct=False)
        self.add_view(dataset, flows[0], sql(query))

    def read_files(self, flow: Query, fields: dict[str, Any]) -> Table:
        """Return the source of a stream of files, declared once.

        A streaming table that is no more than these files is the source itself.
        """
        key = json.dumps(fields)
        if key not in self.files:
            target = self.dataset(flow.target)
            own = self.table(flow.target)
            flows = [one for one in self.elements.flows if one.target == flow.target]
            kind = flow.relation.WhichOneof("rel_type")
            is_all = target is not None and target.kind == "streaming table" and len(flows) == 1
            name = own if is_all and kind == "read" else self.free_name(f"{own}_files")
            self.add_source(name, fields, target)
            self.files[key] = name
        return self.tables[f"{self.pipeline}.{self.files[key]}"]

    def add_source(self, name: str, fields: dict[str, Any], dataset: Dataset | None) -> None:
        """Declare a source."""
        place = dataset.place if dataset else Place(self.spec_path.name, 1)
        about = {"description": dataset.comment} if dataset and dataset.comment else {}
        self._add("sources", name, {**about, **fields}, place)

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

    def add_view(self, dataset: Dataset, flow: Query, text: str) -> None:
        """Declare the view of a query. Raises Refused if it can't be kept."""
        name = self.table(dataset.name)
        about = {"description": dataset.comment} if dataset.comment else {}
        fields = {**about, **query_view(text), "incremental": "preferred"}
        self._resolve(name, fields, flow)
        self.sections["views"][name] = fields
        self.places[("views", name)] = dataset.place
        (query_field,) = query_view("").keys() - {"kind"}
        where = ("views", name, query_field)
        self.places[where] = flow.place
        if flow.lines:
            self.blocks[where] = dict(enumerate(flow.lines, flow.place.line))

    def _resolve(self, name: str, fields: dict[str, Any], flow: Query) -> None:
        table_id = f"{self.pipeline}.{name}"
        try:
            self.tables[table_id] = resolved_alone(Graph(self.tables), fields, table_id)
        except ConfigError as error:
            problems = [problem.partition(".sql: ")[2] or problem for problem in error.mistakes]
            raise Refused("; ".join(problems), flow.place) from None

    def columns_of(self, text: str) -> list[str]:
        """Return the columns of a query over the pipeline's tables."""
        table_id = f"{self.pipeline}.query"
        fields = {**query_view(text), "incremental": "preferred"}
        try:
            return [*resolved_alone(Graph(self.tables), fields, table_id).columns]
        except ConfigError as error:
            problems = [problem.partition(".sql: ")[2] or problem for problem in error.mistakes]
            raise Refused("; ".join(problems)) from None

    def _constants(self, dataset: Dataset, flow: Query) -> str:
        """Declare constant rows as a dimension of a file in the cache; return the view's query."""
        if flow.relation is None:
            raise Refused("a query that reads no table: write its rows in Python", flow.place)
        fields, names = write_constants(
            flow.relation, str(self.spec_path), self.table(dataset.name)
        )
        source = self.free_name(f"{self.table(dataset.name)}_rows")
        self._add("dimensions", source, fields, dataset.place)
        return f"SELECT {', '.join(names)} FROM {source}"

    def follow(self, place: str, name: str, what: str) -> str:
        """Declare a Delta table that others write, once; return its name in the pipeline."""
        if place in self.foreign:
            return self.foreign[place]
        try:
            found = open_version(place)
        except Exception as error:  # noqa: BLE001 - stores and formats fail in many ways
            self.is_unsettled = True
            raise Refused(f"{what}: {' '.join(str(error).split())}") from None
        schema = StructType.fromJson(json.loads(found.schema().to_json()))
        fields = {"delta": {"path": place}, **declared_columns(schema)}
        own = self.free_name(table_name([name]))
        self.add_source(own, fields, None)
        self.foreign[place] = own
        return own

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


@dataclass
class _Reader(Tables):
    """Reader of one flow. `streams`, `batches`: what it reads as a stream, and as a table."""

    declarations: Declarations
    flow: Query
    streams: set[str] = field(default_factory=set)
    batches: set[str] = field(default_factory=set)
    _rows: Rows | None = None

    def query(self) -> str:
        """Return the flow's query over the pipeline's tables."""
        relation = self.flow.relation
        if self.flow.text:
            return self.over_tables(self.flow.text, {})
        if relation is not None and relation.WhichOneof("rel_type") == "sql":
            return self.over_tables(relation.sql.query, {})
        return sql(self.rows().query)

    def rows(self) -> Rows:
        """Return the flow's rows."""
        if self._rows is None:
            plans = Plans(self)
            if self.flow.cdc:
                self._rows = self._latest(plans)
            elif self.flow.text:
                self._rows = self.text(plans, self.flow.text, {})
            else:
                self._rows = plans.rows(self.flow.relation)
        return self._rows

    def _latest(self, plans: Plans) -> Rows:
        """Return the newest row of each key, unless it deletes."""
        changes = self.flow.cdc
        assert changes
        name = [p.name for p in exp.to_table(self.flow.source, dialect="spark").parts]
        rows = self._table(plans, name, is_streaming=True)
        expressions = Expressions(rows.find)
        order = [
            exp.Ordered(this=tree, desc=True, nulls_first=False)
            for tree in expressions.trees(changes.sequence)
        ]
        number = exp.Window(
            this=call("row_number"),
            partition_by=expressions.trees(changes.keys),
            order=exp.Order(expressions=order),
        )
        gone = [Column("sluice gone", tree) for tree in expressions.trees(changes.deletes)]
        nested = plans.nest(
            replace(rows, columns=(*rows.columns, *gone, Column("sluice nth", number)))
        )
        width, last = len(rows.columns), nested.columns[-1].tree
        where: list[Tree] = [exp.EQ(this=last, expression=exp.Literal.number(1))]
        for column in nested.columns[width:-1]:
            stays = call("coalesce", column.tree, exp.false())
            where.append(exp.Not(this=stays))
        shown = replace(nested, columns=nested.columns[:width], where=tuple(where))
        of = Expressions(shown.find)
        chosen = {tree.name for tree in of.trees(changes.columns)}
        left_out = {tree.name for tree in of.trees(changes.except_columns)}
        kept = (
            c
            for c in shown.columns
            if (not chosen or c.tree.name in chosen) and c.tree.name not in left_out
        )
        return replace(shown, columns=tuple(kept))

    def named(self, plans: Plans, name: Sequence[str], read: Any) -> Rows:
        options = {key.lower() for key in read.named_table.options}
        if "skipchangecommits" in options:
            raise Refused("skipChangeCommits is not supported", self.flow.place)
        return self._table(plans, name, is_streaming=read.is_streaming)

    def _table(self, plans: Plans, name: Sequence[str], *, is_streaming: bool) -> Rows:
        aliases = [".".join(name[i:]).lower() for i in range(len(name))]
        table, query = self._found(name, is_streaming=is_streaming)
        if query:
            flow, text = query
            if flow.relation is not None:
                reader = _Reader(self.declarations, flow)
                rows = replace(plans, tables=reader).rows(flow.relation)
            else:
                rows = self.text_rows(plans, text)
            known = frozenset(aliases)
            return replace(rows, columns=tuple(replace(c, aliases=known) for c in rows.columns))
        columns = self.declarations.tables[f"{self.declarations.pipeline}.{table}"].columns
        return plans.from_table(table, columns, aliases)

    def _found(
        self, name: Sequence[str], *, is_streaming: bool
    ) -> tuple[str, tuple[Query, str] | None]:
        """Return the table that a name means, or the temporary view's flow and query."""
        declarations, shown = self.declarations, ".".join(name)
        if len(name) == 2 and name[0].lower() == "delta":
            return self._followed(
                declarations.local(name[1]), Path(name[1]).name, shown, is_streaming
            )
        full = self.flow.defaults.complete(name)
        dataset = declarations.dataset(full) if len(name) == 1 else None
        dataset = dataset or declarations.elements.datasets.get(full)
        if dataset is None:
            place = declarations.in_catalog(full)
            if not exists(place):
                declarations.is_unsettled = True
                known = [declarations.table(one) for one in declarations.elements.datasets]
                raise Refused(
                    f"{unknown('table', shown, known)}; and there is no Delta table at {place} "
                    f"({WAREHOUSE})",
                    self.flow.place,
                )
            return self._followed(place, declarations.table(full), shown, is_streaming)
        declarations.ensure(dataset.name)
        if declarations.is_left_out(dataset.name):
            raise Refused(f"it reads {shown}, which is left out", self.flow.place)
        if dataset.kind == "temporary view":
            flow, text = declarations.temporary(dataset.name)
            inner = _Reader(declarations, flow)
            inner.rows()
            self.streams |= inner.streams
            self.batches |= inner.batches if not is_streaming or inner.streams else set()
            return "", (flow, text)
        flows = (flow for flow in declarations.elements.flows if flow.target == dataset.name)
        is_of_changes = any(flow.cdc for flow in flows)
        if is_streaming and (is_of_changes or dataset.kind != "streaming table"):
            what = "table kept by a flow of changes" if is_of_changes else dataset.kind
            raise Refused(CHANGING.format(shown, what), self.flow.place)
        (self.streams if is_streaming else self.batches).add(shown)
        return declarations.table(dataset.name), None

    def _followed(self, place: str, name: str, shown: str, is_streaming: bool) -> tuple[str, None]:
        if is_streaming:
            what = "table that others write"
            raise Refused(CHANGING.format(shown, what), self.flow.place)
        self.batches.add(shown)
        return self.declarations.follow(place, name, shown), None

    def at_place(self, plans: Plans, read: Any) -> Rows:
        source, declarations = read.data_source, self.declarations
        format_ = (source.format or "parquet").lower()
        places = [*source.paths] or [v for k, v in source.options.items() if k.lower() == "path"]
        if len(places) != 1:
            raise Refused(f"format {format_!r} from {len(places)} paths: give one", self.flow.place)
        place = declarations.local(places[0])
        if format_ == "delta":
            name, _ = self._followed(place, Path(place).name, places[0], read.is_streaming)
            columns = declarations.tables[f"{declarations.pipeline}.{name}"].columns
            return plans.from_table(name, columns, ())
        if format_ not in FILES:
            raise Refused(f"the format {format_!r} is not supported", self.flow.place)
        if not read.is_streaming:
            raise Refused(f"a read of {format_} files: {FILES_ONCE}", self.flow.place)
        if not source.schema:
            raise Refused(
                f"a stream of {format_} files has no schema: .schema(...)", self.flow.place
            )
        self.streams.add(places[0])
        options = {k: v for k, v in source.options.items() if k.lower() != "path"}
        fields = {
            "path": place,
            "format": format_,
            "delivery": "stream",
            **declared_columns(schema_of(source.schema)),
            **({"options": options} if options else {}),
        }
        table = declarations.read_files(self.flow, fields)
        return plans.from_table(table.name, table.columns, ())

    def text(self, plans: Plans, query: str, views: dict[str, Rows]) -> Rows:
        return self.text_rows(plans, self.over_tables(query, views))

    def text_rows(self, plans: Plans, text: str) -> Rows:
        """Return the rows of a query over the pipeline's tables."""
        columns = self.declarations.columns_of(text)
        made = (Column(name, exp.column(name)) for name in columns)
        return plans.from_query(parsed(text), made, columns)

    def over_tables(self, text: str, views: dict[str, Rows]) -> str:
        """Return a query with its tables named as in the pipeline, and views in its WITH."""
        bare, streams = without_streams(text)
        try:
            tree = sqlglot.parse_one(bare, dialect=Verbatim)
        except (SqlglotError, RecursionError) as error:
            raise Refused(f"can't read the query: {reason_of(error)}", self.flow.place) from None
        own = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
        edits: list[tuple[int, int, str]] = []
        with_: dict[str, str] = {}
        for table in tree.find_all(exp.Table):
            if not isinstance(table.this, exp.Identifier):
                continue
            parts = [part.name for part in table.parts]
            name, query = parts[-1].lower(), ""
            if len(parts) == 1 and name in own:
                continue
            begin, end = table.parts[0].meta["start"], table.parts[-1].meta["end"]
            if len(parts) == 1 and name in views:
                query = sql(views[name].query)
            else:
                found, view = self._found(parts, is_streaming=begin in streams)
                query = sql(parsed(view[1])) if view else ""
            if query:
                found = next((n for n in with_ if with_[n] == query), f"view_{len(with_) + 1}")
                with_[found] = query
            alias = "" if table.alias or found == name else f" AS {name}"
            edits.append((begin, end + 1, f"{found}{alias}"))
        for begin, end, new in sorted(edits, reverse=True):
            bare = bare[:begin] + new + bare[end:]
        return with_views(bare, with_)


def by_name(first: Rows, other: Rows, dataset: Dataset) -> Rows:
    """Return rows with the first flow's columns, in its order."""
    own = dict(zip(other.names, other.columns, strict=True))
    if own.keys() != {*first.names}:
        raise Refused(f"the flows into {dataset.name[-1]} have different columns")
    return replace(other, columns=tuple(own[name] for name in first.names))
