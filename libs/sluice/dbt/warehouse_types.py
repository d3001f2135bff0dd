"""Types of a warehouse as those of Spark.

Times without a zone become TIMESTAMP, because Sluice reads them as UTC. A decimal without places
has the warehouse's meaning.
"""

from sqlglot import exp
from sqlglot.errors import SqlglotError

from sluice.language.typed.types import GAP, canonical

_TYPE = exp.DataType.Type
TEXTS = (_TYPE.VARCHAR, _TYPE.CHAR, _TYPE.NVARCHAR, _TYPE.NCHAR, _TYPE.BPCHAR, _TYPE.NAME)
OTHERS = {
    _TYPE.TIMESTAMP: "TIMESTAMPTZ",
    _TYPE.TIMESTAMPNTZ: "TIMESTAMPTZ",
    _TYPE.DATETIME: "TIMESTAMPTZ",
    _TYPE.UTINYINT: "SMALLINT",
    _TYPE.USMALLINT: "INT",
    _TYPE.UINT: "BIGINT",
    _TYPE.UBIGINT: "DECIMAL(20, 0)",
    _TYPE.INT128: "DECIMAL(38, 0)",
    _TYPE.JSON: "TEXT",
    _TYPE.JSONB: "TEXT",
    _TYPE.UUID: "TEXT",
}
PLACES = {"bigquery": "38, 9", "duckdb": "18, 3", "snowflake": "38, 0", "redshift": "18, 0"}


def declared(text: str, dialect: str) -> str:
    """Return a column's type as Spark's; `?` if it isn't known, or Spark has no equivalent."""
    try:
        tree = exp.DataType.build(text, dialect=dialect) if text else None
        return canonical(_whole(tree, dialect).sql("spark")) if tree else GAP
    except (SqlglotError, ValueError):
        return GAP


def spark_type(tree: exp.DataType, dialect: str) -> exp.DataType:
    """Return one type, without its inner ones. Raises ValueError for a decimal without places."""
    if tree.this in OTHERS:
        return exp.DataType.build(OTHERS[tree.this])
    if tree.this in TEXTS:
        return exp.DataType.build("text")
    if tree.this != _TYPE.DECIMAL or tree.expressions:
        return tree
    if dialect not in PLACES:
        raise ValueError(f"a DECIMAL without places has as many as needed in {dialect}: give them")
    return exp.DataType.build(f"DECIMAL({PLACES[dialect]})")


def sized(tree: exp.DataType) -> exp.Expr | None:
    """Return the length to which the type truncates; None if it doesn't."""
    is_text = tree.this in TEXTS and bool(tree.expressions)
    return tree.expressions[0].this if is_text else None


def _whole(tree: exp.DataType, dialect: str) -> exp.DataType:
    whole = tree.transform(
        lambda part: spark_type(part, dialect) if isinstance(part, exp.DataType) else part
    )
    assert isinstance(whole, exp.DataType)
    return whole
