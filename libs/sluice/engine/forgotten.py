"""Subjects that were forgotten: their rows were removed from a source, and later ones are withheld.

`<source>__forgotten` notes each by a salted hash of some columns' values, never by the values. So
anybody who knows a value can check it, and short numbers can be guessed. The note is made first:
from then on, no delivery restores the subject's rows.
"""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from sluice.declare.declared import KEPT, RAW, REASON
from sluice.delta.note_tables import read_rows, replace_rows
from sluice.gate.counts import CONFLICT
from sluice.gate.gate import visible
from sluice.gate.sql import as_json

WITHHELD = "the row's subject was forgotten"
_TIME = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("salt", pa.string()),
        ("hashes", pa.list_(pa.string())),
        ("begun_at", _TIME),
        ("ended_at", _TIME),
        ("receipt", pa.string()),
    ]
)


@dataclass(frozen=True)
class Forgotten:
    """One note: subjects that were forgotten together. `ended_at`: None while that goes on.

    `receipt`: what has been done so far, as JSON.
    """

    id: str
    columns: tuple[str, ...]
    salt: str
    hashes: tuple[str, ...]
    begun_at: datetime
    ended_at: datetime | None = None
    receipt: str = "[]"

    @classmethod
    def of(cls, session: SparkSession, subjects: pa.Table) -> "Forgotten":
        """Return a new note of subjects, given by the columns that name them."""
        salt, columns = uuid.uuid4().hex, tuple(subjects.column_names)
        hashes = tuple(sorted(set(hashes_of(session, subjects, salt))))
        return cls(uuid.uuid4().hex[:12], columns, salt, hashes, datetime.now(UTC))

    def is_of(self, session: SparkSession, subjects: pa.Table) -> bool:
        """True if it notes exactly these subjects."""
        if tuple(subjects.column_names) != self.columns:
            return False
        return set(hashes_of(session, subjects, self.salt)) == set(self.hashes)

    def has(self, session: Any, subjects: pa.Table) -> bool:
        """True if it notes each of these subjects, given by its own columns."""
        return set(hashes_of(session, subjects, self.salt)) <= set(self.hashes)

    @property
    def marks(self) -> Column:
        """Return the condition for rows of its subjects."""
        named = {name: "`.`".join(name.split(".")) for name in self.columns}
        return _hash(named, self.salt).isin(list(self.hashes))


def hashes_of(session: SparkSession, subjects: pa.Table, salt: str) -> list[str]:
    """Return the hash of each subject."""
    rows = session.createDataFrame(subjects)
    whole = _hash({name: name for name in subjects.column_names}, salt)
    found = rows.select(whole.alias("hash")).toArrow()
    return [str(value) for value in found["hash"].to_pylist()]


def _hash(columns: Mapping[str, str], salt: str) -> Column:
    """Return the hash of values by their names; `columns`: where each is, without outer quotes."""
    parts = (f"'{name}', `{place}`" for name, place in columns.items())
    whole = as_json(f"named_struct({', '.join(parts)})")
    return F.sha2(F.concat(F.lit(salt), F.expr(whole)), 256)


def read_forgotten(uri: str) -> list[Forgotten]:
    """Return the notes at `uri`, the oldest first; none if nothing was forgotten."""
    lists = ("columns", "hashes")
    rows = sorted(read_rows(uri), key=lambda row: row["begun_at"])
    return [Forgotten(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows]


def keep_forgotten(uri: str, note: Forgotten) -> None:
    """Replace a note's earlier state."""
    rows = pa.Table.from_pylist([asdict(note)], schema=_SCHEMA)
    replace_rows(uri, rows, f"id = '{note.id}'")


def with_line(note: Forgotten, line: dict[str, Any]) -> Forgotten:
    """Return the note with another line in its receipt.

    An earlier attempt may have done the same at that place: its count is added. Its line stays if
    there was nothing more to do.
    """
    lines = json.loads(note.receipt)
    earlier = next((one for one in lines if _place(one) == _place(line)), None)
    if earlier and earlier["count"]:
        count = earlier["count"] + (line["count"] or 0)
        line = {**(line if line["count"] else earlier), "count": count}
    others = [one for one in lines if one is not earlier]
    return replace(note, receipt=json.dumps([*others, line]))


def _place(line: dict[str, Any]) -> tuple[Any, Any]:
    return line["place"], line["what"]


def withhold(rows: DataFrame, forgotten: Iterable[Forgotten]) -> DataFrame:
    """Give a reason to delivered rows of forgotten subjects, and remove their values."""
    for note in forgotten:
        if all(_has_path(rows.schema, name) for name in note.columns):
            rows = _without_values(rows, note.marks)
    return rows


def _has_path(schema: StructType, path: str) -> bool:
    type_: DataType = schema
    for name in path.split("."):
        if not isinstance(type_, StructType) or name not in type_.names:
            return False
        type_ = type_[name].dataType
    return True


def _without_values(rows: DataFrame, is_forgotten: Column) -> DataFrame:
    marked = rows.withColumn("_sluice_forgotten", F.coalesce(is_forgotten, F.lit(False)))
    emptied = {*visible(rows), RAW, KEPT} & set(rows.columns)
    types, mark = dict(rows.dtypes), F.col("_sluice_forgotten")
    shown = []
    for name in rows.columns:
        value = F.col(f"`{name}`")
        if name in emptied:
            value = F.when(~mark, value).otherwise(F.lit(None).cast(types[name]))
        elif name == REASON:
            value = F.when(mark, WITHHELD).otherwise(value)
        elif name == CONFLICT:
            value = F.when(mark, 0).otherwise(value)
        shown.append(value.alias(name))
    return marked.select(*shown)
