"""Definitions of a spark-pipelines project, read by PySpark as its own runner reads them.

PySpark imports the Python files and hands every dataset and flow to a registry. Ours keeps them:
a flow's DataFrame is a plan of Spark Connect's protocol, which is not sent anywhere. What a file
would send to a server while it is read is a mistake at its line. This imports the users' code, so
it runs in a process of its own (`__main__`).
"""

import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

from pyspark.errors import PySparkException
from pyspark.pipelines.cli import LibrariesGlob, PipelineSpec, register_definitions
from pyspark.pipelines.flow import Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable
from pyspark.sql.connect import proto
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.types import StructType

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.local_session import Service, Session
from sluice.language.syntax import Verbatim
from sluice.spark_pipelines.elements import (
    Changes,
    Dataset,
    DatasetKind,
    Elements,
    Place,
    Query,
    StatementMistake,
    read_statements,
    setting_problem,
)

FILES = (".py", ".sql")
QUERIES = ("SELECT", "WITH", "VALUES", "FROM", "TABLE", "(")
ACTION = (
    "a definition only describes rows, and this line asks for them or for their columns: "
    "leave it out, or name the columns"
)


PYTHON = "runs Python code over rows, which may be anything"
WRITES = "writes to another system; Sluice keeps tables"
TYPES = "of groups asks for the columns' types: write agg(F.{0}('column')) instead of {0}('column')"
REFUSED = {  # methods, by how their names begin, that ask a server though they only describe rows
    **dict.fromkeys(("applyIn", "transformWith", "mapIn"), PYTHON),
    **dict.fromkeys(("DataStreamWriter", "start", "toTable"), WRITES),
}
OF_GROUPS = ("max", "min", "sum", "avg")


class MistakenDefinition(UnsupportedLocally):
    """A definition that is no description of a dataset."""


class _Definitions(Service):
    """A session that computes nothing: it answers `spark.sql` with the query itself."""

    def schema(self, plan: proto.Plan) -> NoReturn:  # noqa: ARG002
        raise MistakenDefinition(ACTION)

    def table(self, plan: proto.Plan) -> NoReturn:  # noqa: ARG002
        raise MistakenDefinition(ACTION)

    def ExecutePlan(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Return the relation of a query as the result of its command; refuse other commands."""
        command = request.plan.command
        if command.WhichOneof("command_type") != "sql_command":
            raise MistakenDefinition(ACTION)
        asked = command.sql_command.input
        is_over_views = asked.WhichOneof("rel_type") == "with_relations"
        query = (asked.with_relations.root if is_over_views else asked).sql.query
        words = Verbatim().tokenize(query)[:1]
        if not words or words[0].text.upper() not in QUERIES:
            raise MistakenDefinition(ACTION)
        answer = proto.ExecutePlanResponse(session_id=request.session_id)
        answer.sql_command_result.relation.CopyFrom(asked)
        done = proto.ExecutePlanResponse(session_id=request.session_id)
        done.result_complete.SetInParent()
        return iter((answer, done))


@dataclass
class _Registry(GraphElementRegistry):
    """Keeper of what the files define. `root`: the project's folder."""

    root: Path
    spec: PipelineSpec
    session: Session
    elements: Elements = field(default_factory=Elements)

    def register_output(self, output: Output) -> None:
        kind: DatasetKind = "temporary view"
        if isinstance(output, Sink):
            kind = "sink"
        elif isinstance(output, MaterializedView | StreamingTable):
            is_view = isinstance(output, MaterializedView)
            kind = "materialized view" if is_view else "streaming table"
        place = self._place(output.source_code_location)
        name = self.elements.defaults(self.spec).name(output.name, kind)
        given = getattr(output, "schema", None) or ""
        if isinstance(given, StructType):
            given = ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in given)
        self.elements.add(Dataset(name, kind, place, output.comment or "", given))

    def register_flow(self, flow: Flow) -> None:
        place, defaults = self._place(flow.source_code_location), self.elements.defaults(self.spec)
        problems = (setting_problem(key, str(value)) for key, value in flow.spark_conf.items())
        try:
            refusal = next(filter(None, problems), "")
            query = Query(place, defaults, relation=self._relation(flow), refusal=refusal)
        except (MistakenDefinition, PySparkException) as error:
            called = _called_by_user(error, self.root) or str(error).rpartition(" ")[2]
            refusal = next((w for n, w in REFUSED.items() if called.startswith(n)), "")
            if called in OF_GROUPS and isinstance(error, MistakenDefinition):
                refusal = TYPES.format(called)
            if not refusal:
                raise
            where = _place_of(error, self.root, place.file)
            query = Query(where, defaults, refusal=f"{called} {refusal}")
        self.elements.flows.append(replace(query, name=flow.name, target=defaults.of(flow.target)))

    def _relation(self, flow: Flow) -> proto.Relation:
        found: object = flow.func()
        if not isinstance(found, DataFrame):
            what = type(found).__name__
            raise MistakenDefinition(f"{flow.name} returns no DataFrame, but {what}")
        relation: proto.Relation = found._plan.plan(self.session.client)  # noqa: SLF001 - as PySpark's
        return relation

    def register_auto_cdc_flow(self, flow: Any) -> None:  # of PySpark 4.2 and later
        def plans(columns: Any) -> tuple[proto.Expression, ...]:
            return tuple(column.to_plan(self.session.client) for column in columns or ())

        deletes = [flow.apply_as_deletes] if flow.apply_as_deletes is not None else []
        of = (flow.keys, [flow.sequence_by], deletes, flow.column_list, flow.except_column_list)
        place, defaults = self._place(flow.source_code_location), self.elements.defaults(self.spec)
        query = Query(place, defaults, flow.name or flow.target, defaults.of(flow.target))
        changes = Changes(*map(plans, of))
        self.elements.flows.append(replace(query, source=flow.source, cdc=changes))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        read_statements(sql_text, str(file_path), self.elements, self.spec)

    def _place(self, location: Any) -> Place:
        file = Path(location.filename)
        known = file.relative_to(self.root) if file.is_relative_to(self.root) else file
        return Place(known.as_posix(), location.line_number or 1)


def read_definitions(
    spec_path: Path, spec: PipelineSpec, note: Callable[[str], object]
) -> Elements:
    """Return what the files of a spec define, and their mistakes.

    `note`: gets each file before it is read, because its code may end the process.
    """
    session = Session(service=_Definitions)
    SparkSession._set_default_and_active_session(session)  # noqa: SLF001 - for SparkSession.active
    root = spec_path.parent.resolve()
    registry = _Registry(root, spec, session)
    seen = set[Path]()
    for library in spec.libraries:
        for file in sorted(_files(root, library.include)):
            if not file.resolve().is_relative_to(root):
                where = Place(spec_path.name, 1)
                problem = f"{library.include!r} leaves the project's folder: {file}"
                registry.elements.mistakes.append((where, problem))
            elif file not in seen:
                seen.add(file)
                note(file.relative_to(root).as_posix())
                _read_file(spec_path, spec, file.relative_to(root), registry)
    return registry.elements


def _files(root: Path, pattern: str) -> Iterator[Path]:
    if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
        yield Path(os.path.normpath(root / pattern))
        return
    yield from (p for p in root.glob(pattern) if p.is_file() and "__pycache__" not in p.parts)


def _read_file(spec_path: Path, spec: PipelineSpec, file: Path, registry: _Registry) -> None:
    """Read one file; its first mistake ends it, and is noted."""
    shown = file.as_posix()
    if file.suffix not in FILES:
        problem = "a definition is a .py or a .sql file: narrow the glob of `libraries`"
        registry.elements.mistakes.append((Place(shown, 1), problem))
        return
    alone = replace(spec, libraries=(LibrariesGlob(shown),))
    with _noting(registry, shown):
        session: Any = registry.session  # a client's, which PySpark's types don't know here
        register_definitions(spec_path, registry, alone, session, "sluice")


@contextmanager
def _noting(registry: _Registry, shown: str) -> Iterator[None]:
    try:
        yield
    except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - the users' code may raise anything
        registry.elements.mistakes.append((_place_of(error, registry.root, shown), _words(error)))


def _place_of(error: BaseException, root: Path, shown: str) -> Place:
    """Return the innermost line of the project's files that an error passed."""
    if isinstance(error, StatementMistake):
        return error.place
    if isinstance(error, SyntaxError) and error.filename:
        file = Path(error.filename)
        if file.is_relative_to(root):
            return Place(file.relative_to(root).as_posix(), error.lineno or 1)
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        file = Path(frame.filename)
        if file.is_relative_to(root) and "site-packages" not in file.parts:
            return Place(file.relative_to(root).as_posix(), frame.lineno or 1)
    return Place(shown, 1)


def _called_by_user(error: BaseException, root: Path) -> str:
    """Return the method that the innermost line of the project's files has called."""
    frames = traceback.extract_tb(error.__traceback__)
    for frame, inner in reversed([*pairwise(frames)]):
        if Path(frame.filename).is_relative_to(root):
            return inner.name
    return ""


def _words(error: BaseException) -> str:
    if isinstance(error, MistakenDefinition | StatementMistake):
        return str(error)
    if isinstance(error, UnsupportedLocally):
        return ACTION
    if isinstance(error, SyntaxError):
        return f"can't read this as Python: {error.msg}"
    if isinstance(error, PySparkException):
        return " ".join(str(error).split())
    return f"{type(error).__name__}: {' '.join(str(error).split())}"
