"""Spark Connect's service, answered in this process."""

from typing import Any
from weakref import WeakValueDictionary

import pyarrow as pa
from pyspark.sql.connect import proto
from pyspark.sql.connect.types import pyspark_types_to_proto_types
from pyspark.sql.types import StructType

from sluice.interpreter.expressions.from_protocol import type_of
from sluice.interpreter.refusals import NotHere
from sluice.interpreter.relations.plans import Plans
from sluice.interpreter.relations.relation import Relation
from sluice.interpreter.values.arrow_columns import column_of
from sluice.interpreter.values.arrow_conversion import arrow_type

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

    def __init__(self, most_rows: int) -> None:
        self.tables: WeakValueDictionary[str, Relation] = WeakValueDictionary()
        self.plans = Plans(self.tables, most_rows)
        self._conf = dict(CONF)

    def schema(self, plan: proto.Plan) -> StructType:
        """Return the columns of a plan. Raises NotHere for an unsupported type."""
        schema = self.plans.relation(plan.root).schema
        for field in schema.fields:
            arrow_type(field.dataType)
        return schema

    def table(self, plan: proto.Plan) -> tuple[pa.Table, StructType]:
        """Return the rows of a plan, with its columns."""
        relation = self.plans.relation(plan.root)
        return collected(relation), relation.schema

    def ExecutePlan(self, _: Any) -> Any:  # noqa: N802 - the protocol's name
        """Refuse a command. The client asks for rows directly."""
        raise NotHere("a command")

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
                answer.spark_version.version = "4.2.0"
            case other:
                raise NotHere(f"the request {other}")
        return answer

    def Config(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Return settings, or keep them."""
        answer = proto.ConfigResponse(session_id=request.session_id, server_side_session_id="here")
        operation = request.operation
        match operation.WhichOneof("op_type"):
            case "set":
                self._conf.update({p.key: p.value for p in operation.set.pairs})
            case "get":
                self._add(answer, {k: self._conf.get(k) for k in operation.get.keys})
            case "get_option":
                self._add(answer, {k: self._conf.get(k) for k in operation.get_option.keys})
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


def collected(relation: Relation) -> pa.Table:
    """Return a relation's rows as Arrow; rows that were passed in are returned unchanged."""
    fields = [pa.field(c.name, arrow_type(c.type)) for c in relation.columns]
    if relation.stored is not None:
        return relation.stored.cast(pa.schema(fields))
    batch = relation.whole()
    if not fields:
        return pa.Table.from_struct_array(pa.array([{}] * batch.count, pa.struct([])))
    columns = [column_of(batch.column(i), c.type) for i, c in enumerate(relation.columns)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))
