"""A session of PySpark's own client whose plans are computed in this process.

Users may pass their own channel builder to the client. Ours passes each request to `Service`
unchanged: no socket, no thread, no server.
"""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Self, TypeVar
from weakref import WeakValueDictionary

import grpc
import pyarrow as pa
import pyarrow.dataset as ds
from pyspark.sql import utils
from pyspark.sql.connect import proto
from pyspark.sql.connect.client import ChannelBuilder, SparkConnectClient
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.plan import ChunkedCachedLocalRelation
from pyspark.sql.connect.session import SparkSession
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.metrics import ExecutionInfo
from pyspark.sql.types import StructType
from pyspark.version import __version__

from sluice.interpreter import UnsupportedLocally
from sluice.interpreter.expressions.from_protocol import type_of
from sluice.interpreter.relations import Budget, Relation, of_arrow, of_dataset
from sluice.interpreter.relations.plans import Plans
from sluice.interpreter.values import arrow_type
from sluice.interpreter.values.column_batch import column_of
from sluice.limits import Limits

CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.session.localRelationCacheThreshold": str(2**62),
    "spark.sql.session.localRelationSizeLimit": str(2**62),
    "spark.sql.session.localRelationChunkSizeRows": str(2**31),
    "spark.sql.session.localRelationChunkSizeBytes": str(2**31),
    "spark.sql.session.localRelationBatchOfChunksSizeBytes": str(2**31),
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
    "spark.sql.execution.pandas.convertToArrowArraySafely": "false",
    "spark.sql.execution.pandas.inferPandasDictAsMap": "false",
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled": "false",
    "spark.sql.pyspark.legacy.inferArrayTypeFromFirstElement.enabled": "false",
    "spark.sql.pyspark.legacy.inferMapTypeFromFirstPair.enabled": "false",
    "spark.connect.session.planCompression.threshold": "-1",
    "spark.connect.session.planCompression.defaultAlgorithm": "NONE",
}


class Service:
    """One session's answers. `tables`: rows that plans refer to by name."""

    def __init__(self, most_bytes: int) -> None:
        self.tables: WeakValueDictionary[str, Relation] = WeakValueDictionary()
        self.plans = Plans(self.tables, Budget(most_bytes))
        self._conf = dict(CONF)

    def schema(self, plan: proto.Plan) -> StructType:
        """Return the columns of a plan. Raises UnsupportedLocally for an unsupported type."""
        schema = self.plans.relation(plan.root).schema
        for field in schema.fields:
            arrow_type(field.dataType)
        return schema

    def table(self, plan: proto.Plan) -> tuple[pa.Table, StructType]:
        """Return the rows of a plan, with its columns."""
        relation = self.plans.relation(plan.root)
        return collect(relation), relation.schema

    def ExecutePlan(self, _: Any) -> Any:  # noqa: N802 - the protocol's name
        """Refuse a command. The client asks for rows directly."""
        raise UnsupportedLocally("a whole query in SQL")

    def AnalyzePlan(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Return the requested analysis of a plan, without computing its rows."""
        answer = proto.AnalyzePlanResponse(
            session_id=request.session_id, server_side_session_id="here"
        )
        match request.WhichOneof("analyze"):
            case "ddl_parse":
                found = type_of(request.ddl_parse.ddl_string)
                answer.ddl_parse.parsed.CopyFrom(pyspark_types_to_proto_types(found))
            case "persist":  # a batch commits nothing before it has computed what it keeps
                self.plans.relation(request.persist.relation).whole()
                answer.persist.SetInParent()
            case "unpersist":
                answer.unpersist.SetInParent()
            case "is_local":
                answer.is_local.is_local = True
            case "spark_version":
                answer.spark_version.version = __version__
            case other:
                raise UnsupportedLocally(f"the request {other}")
        return answer

    def Config(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Return settings, or keep them."""
        answer = proto.ConfigResponse(session_id=request.session_id, server_side_session_id="here")
        operation = request.operation
        kind = operation.WhichOneof("op_type")
        match kind:
            case "set":
                self._conf.update({p.key: p.value for p in operation.set.pairs})
            case "get" | "get_option":
                self._add(answer, {k: self._conf.get(k) for k in getattr(operation, kind).keys})
            case "get_with_default":
                pairs = operation.get_with_default.pairs
                self._add(answer, {p.key: self._conf.get(p.key, p.value) for p in pairs})
            case "unset":
                for key in operation.unset.keys:
                    self._conf.pop(key, None)
        return answer

    def _add(self, answer: Any, found: dict[str, str | None]) -> None:
        for key, value in found.items():
            pair = answer.pairs.add()
            pair.key = key
            if value is not None:
                pair.value = value

    def ReleaseExecute(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        return proto.ReleaseExecuteResponse(session_id=request.session_id)

    def ReleaseSession(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        self.tables.clear()
        return proto.ReleaseSessionResponse(session_id=request.session_id)


def collect(relation: Relation) -> pa.Table:
    """Return a relation's rows as Arrow; rows that were passed in are returned unchanged."""
    fields = [pa.field(c.name, arrow_type(c.type)) for c in relation.columns]
    if relation.stored is not None:
        return relation.stored.cast(pa.schema(fields))
    batch = relation.whole()
    if not fields:
        return pa.Table.from_struct_array(pa.array([{}] * batch.count, pa.struct([])))
    columns = [column_of(batch.column(i), c.type) for i, c in enumerate(relation.columns)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


T = TypeVar("T")


def answer_or_refuse(answer: Callable[[Any], T], request: Any) -> T:
    """Return the answer to a request; an unexpected fault leaves the request to Spark."""
    try:
        return answer(request)
    except UnsupportedLocally:
        raise
    except Exception as fault:
        raise UnsupportedLocally(f"{type(fault).__name__}: {fault}") from fault


class _Channel(grpc.Channel):  # type: ignore[misc]
    """A channel to a service in this process."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def _call(self, method: str, *_: Any, **__: Any) -> Callable[..., Any]:
        answer = getattr(self._service, method.rpartition("/")[2], None)

        def call(request: Any, **_: Any) -> Any:
            if answer is None:
                raise UnsupportedLocally(method)
            return answer_or_refuse(answer, request)

        return call

    unary_unary = unary_stream = stream_unary = stream_stream = _call

    def subscribe(self, callback: Any, try_to_connect: bool = False) -> None: ...
    def unsubscribe(self, callback: Any) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> "_Channel":
        return self

    def __exit__(self, *_: object) -> None: ...


class _Builder(ChannelBuilder):
    def __init__(self, service: Service) -> None:
        super().__init__()
        self._service = service

    def toChannel(self) -> grpc.Channel:  # noqa: N802 - PySpark's name
        return _Channel(self._service)

    @property
    def host(self) -> str:
        return "here"


class _Client(SparkConnectClient):
    """PySpark's client; plans and rows go to and from the service unchanged."""

    def __init__(self, service: Service) -> None:
        super().__init__(_Builder(service), user_id="sluice", use_reattachable_execute=False)
        self._service = service

    def schema(self, plan: proto.Plan) -> StructType:
        return answer_or_refuse(self._service.schema, plan)

    def to_table(
        self, plan: proto.Plan, _observations: object
    ) -> tuple[pa.Table, StructType, ExecutionInfo]:
        return *answer_or_refuse(self._service.table, plan), ExecutionInfo(None, None)

    def _set_relation_in_plan(self, plan: proto.Plan, relation: proto.Relation) -> None:
        plan.root.CopyFrom(relation)


class _Handed(ChunkedCachedLocalRelation):
    """Rows in this process, which a plan refers to by name for as long as the plan lives."""

    def __init__(self, name: str, relation: Relation) -> None:
        super().__init__([name], None)
        self.relation = relation


class Session(SparkSession):
    """Spark's session for rows that fit in this process."""

    def __init__(
        self, most_bytes: int = Limits.held_bytes, service: type[Service] = Service
    ) -> None:
        """Start nothing. PySpark's own starts a client of a server."""
        self.service = service(most_bytes)
        self._client = _Client(self.service)
        self._session_id = self._client._session_id  # noqa: SLF001 - as in the method replaced
        self.release_session_on_close = True

    def upto(self, most_bytes: int) -> Self:
        """Hold at most so many bytes of rows from here on."""
        self.service.plans.budget.most = most_bytes
        return self

    def createDataFrame(  # noqa: N802 - PySpark's name
        self, data: Any, schema: Any = None, *more: Any, **named: Any
    ) -> DataFrame:
        """Register a table by name; its rows are not copied into plans."""
        if not isinstance(data, pa.Table) or not isinstance(schema, StructType):
            return super().createDataFrame(data, schema, *more, **named)  # type: ignore[return-value]
        name, budget = uuid.uuid4().hex, self.service.plans.budget
        rows = of_arrow(data.rename_columns(schema.names), schema, budget)
        self.service.tables[name] = rows
        return DataFrame(_Handed(name, rows), self)


def hand_over(session: Session, stored: ds.Dataset, schema: StructType) -> DataFrame:
    """Return stored rows by name; a plan reads only the rows that it needs."""
    name, rows = uuid.uuid4().hex, of_dataset(stored, schema, session.service.plans.budget)
    session.service.tables[name] = rows
    return DataFrame(_Handed(name, rows), session)


class _Switch:
    """PySpark's own switch to a client's columns, on in threads that interpret.

    PySpark asks a function that answers for the whole process. It is replaced while any thread
    interprets.
    """

    def __init__(self) -> None:
        self._is_on = ContextVar("_is_on", default=False)
        self._counting = Lock()
        self._count = 0
        self._replaced: Callable[[], bool] = utils.is_remote

    def _is_remote(self) -> bool:
        return self._is_on.get() or self._replaced()

    @contextmanager
    def on(self) -> Iterator[None]:
        """Have PySpark make columns for a client, in this thread."""
        with self._counting:
            if not self._count:
                self._replaced, utils.is_remote = utils.is_remote, self._is_remote
            self._count += 1
        before = self._is_on.set(True)
        try:
            yield
        finally:
            self._is_on.reset(before)
            with self._counting:
                self._count -= 1
                if not self._count:
                    utils.is_remote = self._replaced


_SWITCH = _Switch()


@contextmanager
def interpreting(session: Session) -> Iterator[Session]:
    """Have PySpark make columns for the interpreter, in this thread, while the context is open.

    Computed rows are dropped at the end, except those that DataFrames still refer to.
    """
    with _SWITCH.on():
        try:
            yield session
        finally:
            session.service.plans.forget()
