"""Subjects whose rows were removed from a source; their later rows are withheld.

`<source>__forgotten` notes each by a salted hash of some columns' values, never by the values. So
anybody who knows a value can check it, and short numbers can be guessed. The note is made first:
from then on, no delivery restores the subject's rows.
"""

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from sluice.declare.delivered_row import KEPT, RAW, REASON
from sluice.delta.notes.note_tables import read_rows, replace_rows
from sluice.gate.counting.conflicts import CONFLICT
from sluice.gate.counting.tally import visible
from sluice.gate.rules.sql import as_json

REASON_GIVEN = "the row's subject was forgotten"
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
        return _hash(self.columns, self.salt).isin(list(self.hashes))


def hashes_of(session: SparkSession, subjects: pa.Table, salt: str) -> list[str]:
    """Return the hash of each subject."""
    rows = session.createDataFrame(subjects)
    found = rows.select(_hash(subjects.column_names, salt).alias("hash")).toArrow()
    return [str(value) for value in found["hash"].to_pylist()]


def _hash(columns: Sequence[str], salt: str) -> Column:
    whole = as_json(f"struct({', '.join(f'`{name}`' for name in columns)})")
    return F.sha2(F.concat(F.lit(salt), F.expr(whole)), 256)


def noted(uri: str) -> list[Forgotten]:
    """Return the notes at `uri`, the oldest first; none if nothing was forgotten."""
    rows = sorted(read_rows(uri), key=lambda row: row["begun_at"])
    return [_of(row) for row in rows]


def keep(uri: str, note: Forgotten) -> None:
    """Replace a note's earlier state."""
    rows = pa.Table.from_pylist([asdict(note)], schema=_SCHEMA)
    replace_rows(uri, rows, f"id = '{note.id}'")


def _of(row: dict[str, Any]) -> Forgotten:
    lists = {name: tuple(row[name]) for name in ("columns", "hashes")}
    return Forgotten(**{**row, **lists})


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


def withheld(rows: DataFrame, forgotten: Iterable[Forgotten]) -> DataFrame:
    """Give a reason to delivered rows of forgotten subjects, and remove their values."""
    for note in forgotten:
        if set(note.columns) <= set(rows.columns):
            rows = _without_values(rows, note.marks)
    return rows


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
            value = F.when(mark, REASON_GIVEN).otherwise(value)
        elif name == CONFLICT:
            value = F.when(mark, 0).otherwise(value)
        shown.append(value.alias(name))
    return marked.select(*shown)
