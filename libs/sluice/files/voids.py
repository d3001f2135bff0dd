"""Nested columns of Parquet with parts that have no value in a whole file, and so no type.

Arrow and pandas give such a part the type `null`: an empty list's elements, a field that is null in
every row. It becomes null of the declared type. Spark reads it only as an integer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType

from sluice.files.nested_types import ddl_of
from sluice.files.parquet_types import VOID
from sluice.gate.rules.sql import field_name, text


@dataclass(frozen=True)
class Voided:
    """A nested column as it is stored and as it is declared."""

    name: str
    stored: DataType
    declared: DataType

    @property
    def read_as(self) -> str:
        """The type that Spark can read."""
        return ddl_of(self.stored, lambda t: "INT" if _is_void(t) else t.simpleString())

    @property
    def value(self) -> str:
        """SQL for the value, with nulls of the declared type."""
        return _filled(f"`{self.name}`", self.stored, self.declared)


def voided(
    session: SparkSession, pairs: Sequence[tuple[str, str]], declared: str
) -> Mapping[str, Voided]:
    """Return the columns of `pairs` (names and types) that have such parts, by name."""
    if not (ddl := ", ".join(f"`{n}` {t}" for n, t in pairs if VOID in t)):
        return {}
    types = {f.name: f.dataType for f in session.createDataFrame([], declared).schema.fields}
    fields = session.createDataFrame([], ddl).schema.fields
    return {f.name: Voided(f.name, f.dataType, types[f.name]) for f in fields}


def _filled(sql: str, stored: DataType, declared: DataType, depth: int = 0) -> str:
    """Return SQL for the value; unchanged if its structure differs from the declared one."""
    v = f"v{depth}"
    match stored, declared:
        case NullType(), _:
            return f"CAST(NULL AS {ddl_of(declared)})"
        case ArrayType(), ArrayType():
            each = _filled(v, stored.elementType, declared.elementType, depth + 1)
            return f"transform({sql}, {v} -> {each})"
        case MapType(), MapType():
            each = _filled(v, stored.valueType, declared.valueType, depth + 1)
            return f"transform_values({sql}, (k{depth}, {v}) -> {each})"
        case StructType(), StructType() if stored.names == declared.names:
            parts = (
                f"{text(a.name)}, "
                f"{_filled(f'{sql}.{field_name(a.name)}', a.dataType, b.dataType, depth)}"
                for a, b in zip(stored.fields, declared.fields, strict=True)
            )
            return f"CASE WHEN {sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"
    return sql


def _is_void(type_: DataType) -> bool:
    return isinstance(type_, NullType)
