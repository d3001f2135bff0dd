"""Flows as rows of queries over the pipeline's tables: what each reads, and how.

A stream takes the rows that a table gets. Of a table of the project that appends rows, that is the
table itself; another one is read by a view that refuses changed rows. A Delta table that others
write, files and topics are sources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol

import sqlglot
from pyspark.sql.types import StructType
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.delta.log.opened import exists
from sluice.interpreter import UnsupportedLocally
from sluice.language.names import NAME, unknown
from sluice.language.syntax import Tree, Verbatim, reason_of, render
from sluice.language.types import read_columns
from sluice.spark_pipelines.elements import Dataset, FullName, Query
from sluice.spark_pipelines.expressions import Expressions, call
from sluice.spark_pipelines.plans import Plans, Tables, text_of
from sluice.spark_pipelines.rows import Column, Rows
from sluice.spark_pipelines.tables import (
    WAREHOUSE,
    PipelineTables,
    Refused,
    declared_columns,
    declared_topic,
)
from sluice.spark_pipelines.texts import (
    free_name,
    names_in,
    odd_names,
    parsed,
    part_of_with,
    quoted,
    read_schema,
    table_name,
    with_views,
    without_streams,
)

FILES = ("csv", "json", "parquet")
FILES_ONCE = (
    "files are read as a stream, each once: spark.readStream in a streaming table; "
    "or as a Delta table"
)
SKIP = "skipchangecommits"
PACE = frozenset({"maxfilespertrigger", "maxbytespertrigger", "maxoffsetspertrigger"})
SKIPPED = (
    "skipChangeCommits of {}, a {}: its commits bring new rows together with changed ones, so "
    "there is nothing to skip; read the table"
)


class Datasets(Protocol):
    """The project's datasets, each declared when it is asked for."""

    def dataset(self, name: FullName) -> Dataset | None: ...

    def ensure(self, name: FullName) -> Dataset: ...

    def is_left_out(self, name: FullName) -> bool: ...

    def temporary(self, name: FullName) -> tuple[Query, str]: ...


@dataclass
class FlowReader(Tables):
    """Reader of one flow. `streams`, `batches`: what it reads as a stream, and as a table.

    `owner`: the dataset that it is read for, if that is not the flow's own target. `key`: of a
    flow of changes whose rows show it.
    """

    tables: PipelineTables
    datasets: Datasets
    flow: Query
    owner: FullName | None = None
    streams: set[str] = field(default_factory=set)
    batches: set[str] = field(default_factory=set)
    key: list[str] = field(default_factory=list)
    _rows: Rows | None = None
    _is_bare: bool = False  # it is no more than one read

    def __post_init__(self) -> None:
        if self.flow.refusal:
            raise Refused(self.flow.refusal, self.flow.place)

    @property
    def _owner(self) -> FullName:
        return self.owner or self.flow.target

    def query(self) -> str:
        """Return the flow's query over the pipeline's tables."""
        relation = self.flow.relation
        if self.flow.text:
            return self.over_tables(self.flow.text, {})
        if relation is not None and relation.WhichOneof("rel_type") == "sql":
            return self.over_tables(text_of(relation.sql), {})
        return render(self.rows().stored())

    def rows(self) -> Rows:
        """Return the flow's rows."""
        if self._rows is None:
            plans = Plans(self)
            if self.flow.cdc:
                self._rows = self._latest(plans)
            elif self.flow.text:
                self._rows = self.text(plans, self.flow.text, {})
            else:
                self._is_bare = self.flow.relation.WhichOneof("rel_type") == "read"
                self._rows = plans.rows(self.flow.relation)
        return self._rows

    def _latest(self, plans: Plans) -> Rows:
        """Return the newest row of each key, unless it deletes."""
        changes = self.flow.cdc
        assert changes
        name = [p.name for p in exp.to_table(self.flow.source, dialect="spark").parts]
        rows = self._table(plans, name, {})
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
        kept = {
            c.tree.name: c
            for c in shown.columns
            if (not chosen or c.tree.name in chosen) and c.tree.name not in left_out
        }
        keys = of.trees(changes.keys)
        if all(isinstance(tree, exp.Column) and tree.name in kept for tree in keys):
            self.key = [tree.name for tree in keys]
        return replace(shown, columns=tuple(kept.values()))

    def named(self, plans: Plans, name: Sequence[str], read: Any) -> Rows:
        options = {key.lower(): value for key, value in read.named_table.options.items()}
        return self._table(plans, name, options if read.is_streaming else None)

    def _table(self, plans: Plans, name: Sequence[str], stream: Mapping[str, str] | None) -> Rows:
        aliases = [".".join(name[i:]).lower() for i in range(len(name))]
        table, query = self._find(name, stream)
        if query:
            flow, text = query
            if flow.relation is not None:
                reader = FlowReader(self.tables, self.datasets, flow, self._owner)
                rows = replace(plans, tables=reader).rows(flow.relation)
            else:
                rows = self.text_rows(plans, text)
            known = frozenset(aliases)
            columns = tuple(replace(c, aliases=known) for c in rows.columns)
            return replace(rows, columns=columns, hidden=(), keys=())
        return plans.from_table(table, self.tables.columns(table), aliases)

    def _find(
        self, name: Sequence[str], stream: Mapping[str, str] | None
    ) -> tuple[str, tuple[Query, str] | None]:
        """Return the table that a name means, or the temporary view's flow and query.

        `stream`: the options of a read as a stream; None if it is read as a table.
        """
        tables, shown = self.tables, ".".join(name)
        if len(name) == 2 and name[0].lower() == "delta":
            return self._follow(tables.local(name[1]), Path(name[1]).name, shown, stream), None
        full = self.flow.defaults.complete(name)
        dataset = self.datasets.dataset(full) if len(name) == 1 else None
        dataset = dataset or tables.elements.datasets.get(full)
        if dataset is None:
            place = tables.in_catalog(full)
            if not exists(place):
                tables.is_unsettled = True
                known = [tables.name(one) for one in tables.elements.datasets]
                raise Refused(
                    f"{unknown('table', shown, known)}; and there is no Delta table at {place} "
                    f"({WAREHOUSE})",
                    self.flow.place,
                    table_name([full[2]]),
                )
            return self._follow(place, tables.name(full), shown, stream), None
        self.datasets.ensure(dataset.name)
        if self.datasets.is_left_out(dataset.name):
            raise Refused(f"it reads {shown}, which is left out", self.flow.place)
        if dataset.kind == "temporary view":
            flow, text = self.datasets.temporary(dataset.name)
            inner = FlowReader(tables, self.datasets, flow, self._owner)
            inner.rows()
            self.streams |= inner.streams
            self.batches |= inner.batches if stream is None or inner.streams else set()
            return "", (flow, text)
        (self.batches if stream is None else self.streams).add(shown)
        table = tables.name(dataset.name)
        flows = (flow for flow in tables.elements.flows if flow.target == dataset.name)
        is_of_changes = any(flow.cdc for flow in flows)
        if stream is None or (dataset.kind == "streaming table" and not is_of_changes):
            return table, None
        if self._skips(stream):
            kind = "table kept by a flow of changes" if is_of_changes else dataset.kind
            raise Refused(SKIPPED.format(shown, kind), self.flow.place)
        return self._note_stream(tables.append_only(table, self.flow.place)), None

    def _skips(self, stream: Mapping[str, str]) -> bool:
        """True if a stream leaves out commits that change rows. Raises Refused."""
        for name in stream.keys() - {SKIP} - PACE:
            raise Refused(f"the option {name!r} of a stream is not supported", self.flow.place)
        return stream.get(SKIP, "").lower() == "true"

    def _follow(self, place: str, name: str, shown: str, stream: Mapping[str, str] | None) -> str:
        """Declare a Delta table that others write; return its name."""
        fields = self.tables.delta_table(place, shown)
        if stream is None:
            self.batches.add(shown)
            return self.tables.read_once(fields, name, self.flow.place)
        fields["delta"]["changes"] = "skip" if self._skips(stream) else "refuse"
        return self._note_stream(self._read_stream(fields, shown, name))

    def _note_stream(self, table: str) -> str:
        """Note the table that reads a stream; a full refresh of its owner begins it again."""
        self.tables.streams.setdefault(table, set()).add(self.tables.name(self._owner))
        return table

    def _read_stream(self, fields: dict[str, Any], shown: str, suffix: str) -> str:
        """Declare a source; a streaming table that is no more than it is the source itself."""
        self.streams.add(shown)
        target, own = self.datasets.dataset(self.flow.target), self.tables.name(self.flow.target)
        flows = [one for one in self.tables.elements.flows if one.target == self.flow.target]
        is_all = self._is_bare and len(flows) == 1
        is_all = is_all and target is not None and target.kind == "streaming table"
        if is_all and target:
            self.tables.check_schema(target, dict(read_columns(fields["schema"])))
        comment, name = target.comment if target else "", f"{own}_{suffix}"
        place = self.flow.place
        return self.tables.read_once(
            fields, name, place, own=own if is_all else "", comment=comment
        )

    def at_place(self, plans: Plans, read: Any) -> Rows:
        source = read.data_source
        format_ = (source.format or "parquet").lower()
        options = {k: v for k, v in source.options.items() if k.lower() not in PACE}
        if format_ == "kafka" and read.is_streaming:
            return self._topic(plans, options)
        if format_ not in (*FILES, "delta"):
            raise Refused(f"the format {format_!r} is not supported", self.flow.place)
        places = [*source.paths] or [v for k, v in options.items() if k.lower() == "path"]
        options = {k: v for k, v in options.items() if k.lower() != "path"}
        if len(places) != 1:
            raise Refused(f"format {format_!r} from {len(places)} paths: give one", self.flow.place)
        place = self.tables.local(places[0])
        if format_ == "delta":
            stream = {key.lower(): value for key, value in options.items()}
            name = self._follow(
                place, Path(place).name, places[0], stream if read.is_streaming else None
            )
            return plans.from_table(name, self.tables.columns(name), ())
        if not read.is_streaming:
            raise Refused(f"a read of {format_} files: {FILES_ONCE}", self.flow.place)
        if not source.schema:
            raise Refused(
                f"a stream of {format_} files has no schema: .schema(...)", self.flow.place
            )
        fields = {
            "path": place,
            "format": format_,
            "delivery": "stream",
            **declared_columns(self._schema(source.schema)),
            **({"options": options} if options else {}),
        }
        name = self._read_stream(fields, places[0], "files")
        return plans.from_table(name, self.tables.columns(name), ())

    def _schema(self, text: str) -> StructType:
        try:
            return read_schema(text)
        except (SqlglotError, ValueError, UnsupportedLocally) as error:
            problem = f"can't read the schema {shorten(text, 80)!r}: {reason_of(error)}"
            raise Refused(problem, self.flow.place) from None

    def _topic(self, plans: Plans, options: Mapping[str, str]) -> Rows:
        """Return the messages of a topic, with the columns that Spark gives them."""
        self._is_bare = False  # the topic's name is a column, which no message has
        try:
            fields = declared_topic(options)
        except ValueError as error:
            raise Refused(str(error), self.flow.place) from None
        topic = fields["kafka"]["topic"]
        name = self._read_stream(fields, topic, "messages")
        rows = plans.from_table(name, self.tables.columns(name), ())
        of_topic = Column("topic", exp.Literal.string(topic))
        return replace(rows, columns=(*rows.columns[:2], of_topic, *rows.columns[2:]))

    def text(self, plans: Plans, query: str, views: dict[str, Rows]) -> Rows:
        return self.text_rows(plans, self.over_tables(query, views))

    def text_rows(self, plans: Plans, text: str) -> Rows:
        """Return the rows of a query over the pipeline's tables."""
        columns = self.tables.columns_of(text)
        made = (Column(name, exp.column(name)) for name in columns)
        return plans.from_query(parsed(text), made, [*columns])

    def types(self, query: str) -> list[str]:
        return [*self.tables.columns_of(query).values()]

    def _tree_of(self, text: str) -> exp.Query:
        try:
            tree = sqlglot.parse_one(text, dialect=Verbatim)
        except (SqlglotError, RecursionError) as error:
            raise Refused(f"can't read the query: {reason_of(error)}", self.flow.place) from None
        if not isinstance(tree, exp.Query):
            raise Refused("a query is expected: SELECT, or WITH", self.flow.place)
        if several := tree.find(exp.Aliases):
            problem = f"{several.sql(dialect=Verbatim)}: write it as a LATERAL VIEW"
            raise Refused(problem, self.flow.place)
        return tree

    def over_tables(self, text: str, views: dict[str, Rows]) -> str:
        """Return a query with its tables named as in the pipeline, and views in its WITH."""
        bare, streams = without_streams(text)
        tree = self._tree_of(bare)
        clauses = {name for name, value in tree.args.items() if value} - {"expressions", "from_"}
        is_all = isinstance(tree, exp.Select) and tree.is_star and not clauses
        self._is_bare = bool(self.flow.text) and is_all
        uses: list[tuple[exp.Table, exp.CTE | None, str, str]] = []
        for table in tree.find_all(exp.Table):
            if isinstance(table.this, exp.Identifier):
                part = part_of_with(table)
                begin = table.parts[0].meta["start"]
                found, query = ("", "") if part else self._use(table, views, streams.get(begin))
                uses.append((table, part, found, query))
        queries = dict.fromkeys(query for *_, query in uses if query)
        taken = {"view"}.union((found for _, _, found, _ in uses), *map(names_in, queries))
        parts = {id(part): part for part in tree.find_all(exp.CTE)}
        renamed = {key: free_name(part.alias, taken) for key, part in parts.items()}
        made = {query: free_name("view", taken) for query in queries}
        edits: list[tuple[int, int, str]] = []
        for key, part in parts.items():
            if renamed[key] != part.alias.lower():
                meta = part.args["alias"].this.meta
                edits.append((meta["start"], meta["end"] + 1, quoted(renamed[key])))
        for table, part, found, query in uses:
            name, new = table.name.lower(), made.get(query, found)
            new = renamed[id(part)] if part else new
            if part and new == name:
                continue
            is_named = table.alias or new == name or not NAME.fullmatch(name)
            begin, end = table.parts[0].meta["start"], table.parts[-1].meta["end"]
            shown = quoted(new) if is_named else f"{quoted(new)} AS {quoted(name)}"
            edits.append((begin, end + 1, shown))
        spans = [*edits]
        edits += [o for o in odd_names(bare) if not any(a <= o[0] < b for a, b, _ in spans)]
        for begin, end, new in sorted(edits, reverse=True):
            bare = bare[:begin] + new + bare[end:]
        return with_views(bare, {name: query for query, name in made.items()})

    def _use(
        self, table: exp.Table, views: dict[str, Rows], stream: Mapping[str, str] | None
    ) -> tuple[str, str]:
        """Return the table that a query reads, or the text of the view."""
        parts = [part.name for part in table.parts]
        if len(parts) == 1 and parts[0].lower() in views:
            return "", render(views[parts[0].lower()].query)
        found, view = self._find(parts, stream)
        return found, render(parsed(view[1])) if view else ""


def by_name(first: Rows, other: Rows, dataset: Dataset) -> Rows:
    """Return rows with the first flow's columns, in its order."""
    own = dict(zip(other.names, other.columns, strict=True))
    if own.keys() != {*first.names}:
        raise Refused(f"the flows into {dataset.name[-1]} have different columns")
    return replace(other, columns=tuple(own[name] for name in first.names))
