"""Declarations of a spark-pipelines project: the tables that its datasets become.

Each dataset is declared after those that it reads. A dataset that can't be kept is left out with
its reason, and so is what reads it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.pipelines.cli import PipelineSpec
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.interpreter import UnsupportedLocally
from sluice.language.syntax import reason_of, render
from sluice.spark_pipelines.elements import (
    Dataset,
    Elements,
    FullName,
    Place,
    Query,
    setting_problem,
)
from sluice.spark_pipelines.expressions import NotTranslated
from sluice.spark_pipelines.flows import FlowReader, by_name
from sluice.spark_pipelines.tables import PipelineTables, Refused
from sluice.spark_pipelines.texts import changing_part, parsed

SINK = "a sink writes to another system; Sluice keeps tables"
APPENDED = (
    "a streaming table appends rows, and {} would change rows that it has: "
    "make it a materialized view"
)


@dataclass
class Declarations:
    """The pipeline's tables, and the datasets that are left out, with a table that is missing."""

    spec: PipelineSpec
    spec_path: Path
    elements: Elements
    refused: list[tuple[Place, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = PipelineTables(self.spec, self.spec_path, self.elements)
        self._left_out = set[FullName]()
        self._open: list[FullName] = []
        self._done = set[FullName]()
        self._temporary: dict[FullName, tuple[Query, str]] = {}

    def declare_all(self) -> None:
        """Declare every dataset; note what is mistaken or left out."""
        for setting, value in self.spec.configuration.items():
            if problem := setting_problem(setting, value):
                self.elements.mistakes.append((Place(self.spec_path.name, 1), problem))
        self._tell_names_apart()
        for flow in self.elements.flows:
            if self.dataset(flow.target) is None:
                problem = f"the flow {flow.name!r} has an unknown target {flow.target[-1]!r}"
                self.elements.mistakes.append((flow.place, problem))
        for name in self.elements.datasets:
            self.ensure(name)

    def _tell_names_apart(self) -> None:
        """Note each dataset whose table would have the name of another's."""
        first: dict[str, Dataset] = {}
        stored = (d for d in self.elements.datasets.values() if d.name[1])
        for dataset in stored:
            name = self.tables.name(dataset.name)
            if (other := first.setdefault(name, dataset)) is not dataset:
                known = f"{'.'.join(other.name[1:])!r} in {other.place.file}:{other.place.line}"
                problem = f"its table is named {name!r}, and so is that of {known}: rename one"
                self.elements.mistakes.append((dataset.place, problem))

    def dataset(self, name: FullName) -> Dataset | None:
        """Return the dataset that a full name means: a temporary view by its last part."""
        return self.elements.datasets.get(name) or self.elements.datasets.get(("", "", name[-1]))

    def ensure(self, name: FullName) -> Dataset:
        """Declare a dataset, unless it is; note a cycle, and why it is left out."""
        dataset = self.dataset(name)
        assert dataset is not None
        name = dataset.name
        if name in self._open:
            ring = [*self._open[self._open.index(name) :], name]
            shown = " -> ".join(self.tables.name(one) for one in reversed(ring))
            first = self.elements.datasets[ring[0]]
            self.elements.mistakes.append((first.place, f"a cycle: {shown}"))
            self._left_out |= {*ring}
        if name not in self._done and name not in self._left_out:
            self._open.append(name)
            try:
                self._declare(dataset)
            except (Refused, NotTranslated, UnsupportedLocally, SqlglotError) as error:
                self._left_out.add(name)
                place = getattr(error, "place", None) or dataset.place
                why = reason_of(error) if isinstance(error, SqlglotError) else error
                missing = getattr(error, "missing", "")
                self.refused.append((place, f"{self.tables.name(name)}: {why}", missing))
            self._open.pop()
            self._done.add(name)
        return dataset

    def is_left_out(self, name: FullName) -> bool:
        """True if a dataset can't be kept."""
        return name in self._left_out

    def temporary(self, name: FullName) -> tuple[Query, str]:
        """Return a temporary view's flow and query."""
        return self._temporary[name]

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
            self._temporary[dataset.name] = (flows[0], self._reader(flows[0]).query())
        elif dataset.kind == "materialized view":
            self._declare_view(dataset, flows)
        else:
            self._declare_streaming(dataset, flows)

    def _reader(self, flow: Query) -> FlowReader:
        return FlowReader(self.tables, self, flow)

    def _declare_view(self, dataset: Dataset, flows: Sequence[Query]) -> None:
        if len(flows) > 1:
            raise Refused("a materialized view has one flow", flows[1].place)
        flow = flows[0]
        reader = self._reader(flow)
        text = reader.query()
        if reader.streams:
            raise Refused("a materialized view reads tables, not streams", flow.place)
        if not any(t.name for t in parsed(text).find_all(exp.Table)):
            text = self.tables.join_to_one_row(text, dataset.place)
        self.tables.add_view(dataset, flow, text)

    def _declare_streaming(self, dataset: Dataset, flows: Sequence[Query]) -> None:
        readers = [self._reader(flow) for flow in flows]
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
        if self.tables.name(dataset.name) in self.tables.sections["sources"]:
            return
        query: exp.Query = first.stored()
        for one in others:
            ordered = by_name(first, one, dataset)
            query = exp.Union(this=query, expression=ordered.query, distinct=False)
        key = [] if others else readers[0].key
        self.tables.add_view(dataset, flows[0], render(query), key)
