"""Columns that files name otherwise than tables can are read by those names, in every format."""

import io
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import StructType
from tests.files.files import Files, source

from sluice.delta.reading.landing import list_files
from sluice.engine.retries import naming_faults
from sluice.errors import QualityStop
from sluice.files.reading import look, read_files
from sluice.interpreter.local_session import Session, interpreting
from sluice.limits import Limits
from sluice.sources.delivery import choose_columns

NAMES = {
    "id": "ID",
    "miles_per_gallon": "Miles per Gallon",
    "sepal_length": "Sepal.Length",
    "said": "said `so` 'or' \"not\" \\ ü",
    "tags": "tags, (all)",
}
SCHEMA = "id INT, miles_per_gallon INT, sepal_length DECIMAL(4,1), said STRING, plain STRING"
NESTED = f"{SCHEMA}, tags ARRAY<INT>"
FORMATS = ["csv", "json", "parquet"]


def content(format_: str, rows: list[dict[str, Any]]) -> bytes:
    """Rows as a file of the format, with the names that the file has."""
    named = [{NAMES.get(column, column): v for column, v in row.items()} for row in rows]
    if format_ == "json":
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in named).encode()
    if format_ == "parquet":
        buffer = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(named), buffer)
        return buffer.getvalue()
    quoted = [['"{}"'.format(str(v).replace('"', '""')) for v in row.values()] for row in named]
    header = ['"{}"'.format(name.replace('"', '""')) for name in named[0]]
    return "\n".join(map(",".join, [header, *quoted])).encode() + b"\n"


def row(nth: int, **other: Any) -> dict[str, Any]:
    values = {"id": nth, "miles_per_gallon": 18, "sepal_length": 5.1, "said": "é"}
    return {**values, "plain": "x", "Extra": 1, **other}


@pytest.mark.parametrize("format_", FORMATS)
def test_columns_are_read_by_the_names_that_files_give_them(files: Files, format_: str) -> None:
    files.put(**{f"a_{format_}": content(format_, [row(1), row(2, said=None)])})
    found = files.read(format_, SCHEMA, names=names_of(SCHEMA))
    rows = sorted(map(values, found.rows.toArrow().to_pylist()), key=repr)
    said = "None" if format_ == "csv" else None
    assert rows == [(1, 18, Decimal("5.1"), "é", "x"), (2, 18, Decimal("5.1"), said, "x")]
    assert found.warnings == ("shop.events: columns that `schema` lacks are ignored: Extra",)


@pytest.mark.parametrize("format_", FORMATS)
def test_without_spark_the_same_rows_reasons_and_texts_are_read(files: Files, format_: str) -> None:
    schema = NESTED if format_ == "json" else SCHEMA
    more = {"tags": [1, 2]} if format_ == "json" else {}
    bad = {"sepal_length": 123456.7} if format_ == "parquet" else {"sepal_length": "far"}
    many = [row(1, **more), row(2, **{**more, **bad})]
    files.put(**{f"a_{format_}": content(format_, many)})
    if format_ == "json":
        shape = [row(3, tags="no list"), row(4, tags=[1]), row(5, miles_per_gallon=1.50)]
        files.put(b_json=content("json", shape) + b'{"ID": 1, "ID": 2}\n')
    spec = source(format_, schema, names=names_of(schema))
    by_spark = read_files(files.spark, spec, list_files(str(files.folder)), Limits())
    with interpreting(Session()) as session, naming_faults("shop.events"):
        landed = list_files(str(files.folder))
        here = read_files(session, spec, landed, Limits())  # type: ignore[arg-type]
        rows = here.rows.toArrow().to_pylist()
    assert shown(rows) == shown(by_spark.rows.toArrow().to_pylist())
    assert here.warnings == by_spark.warnings
    reasons = {r["_sluice_reason"]: json.loads(r["_sluice_raw"] or "null") for r in rows}
    found = "123456.7" if format_ == "parquet" else "far"
    raw = reasons[f"column sepal_length: {found} is not a valid DECIMAL(4, 1)"]
    assert ("Sepal.Length" if format_ == "json" else "sepal_length") in raw
    assert format_ != "json" or "column tags: no list is not a valid ARRAY<INT>" in reasons


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_a_file_that_lacks_the_column_is_refused_by_its_name(files: Files, format_: str) -> None:
    files.put(**{f"a_{format_}": content(format_, [{"id": 1, "plain": "x"}])})
    schema = "id INT, miles_per_gallon INT"
    lacks = r"lacks the declared column\(s\) Miles per Gallon; it has ID, plain"
    with pytest.raises(QualityStop, match=lacks):
        files.read(format_, schema, names=names_of(schema))


@pytest.mark.parametrize("format_", FORMATS)
def test_columns_may_change_names_with_each_other(files: Files, format_: str) -> None:
    file = content(format_, [{"a": 1, "b": 2, "c": 3}])
    files.put(**{f"a_{format_}": file})
    assert files.good(format_, "a INT, b INT", names={"a": "b", "b": "a"}) == [(2, 1)]
    found = files.read(format_, "a INT, b INT", names={"a": "c"})
    assert [values(row) for row in found.rows.toArrow().to_pylist()] == [(3, 2)]
    assert found.warnings == ("shop.events: columns that `schema` lacks are ignored: a",)


@pytest.mark.usefixtures("real_spark")
@pytest.mark.parametrize("format_", FORMATS)
def test_renamed_columns_are_not_taken_as_new(files: Files, format_: str) -> None:
    files.put(**{f"a_{format_}": content(format_, [{"a": 1, "b": 2, "c": 3}])})
    spec = source(format_, "x INT", names={"x": "b"}, evolve=True)
    seen = look(spec, list_files(str(files.folder)))
    assert [c.name for c in choose_columns(files.spark, spec, seen.heads, StructType()).new] == [
        "a",
        "c",
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_columns_are_null_once_another_takes_their_field(files: Files, format_: str) -> None:
    files.put(**{f"a_{format_}": content(format_, [{"b": 2}])})
    assert files.good(format_, "x INT, b STRING", names={"x": "b"}) == [(2, None)]


def names_of(schema: str) -> dict[str, str]:
    return {column: theirs for column, theirs in NAMES.items() if f"{column} " in schema}


def values(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(v for c, v in row.items() if not c.startswith("_sluice_"))


def shown(rows: list[dict[str, Any]]) -> list[str]:
    """Rows without their order; of bad ones, what is kept of them."""
    kept = ("_sluice_reason", "_sluice_raw", "_sluice_file")
    return sorted(
        repr([row[c] for c in row if c in kept or not (row[kept[0]] or c.startswith("_sluice_"))])
        for row in rows
    )
