"""Schemas as DDL."""

from collections.abc import Callable

import pytest

from sluice.language.types import canonical, field_of, read_columns

Refusal = Callable[..., str]


def test_a_schema_is_read_into_names_and_sparks_types() -> None:
    ddl = "a int, b decimal(12,2), c array<struct<x: int, y string>>, d: long, e map<string, int>"
    assert read_columns(ddl) == [
        ("a", "INT"),
        ("b", "DECIMAL(12, 2)"),
        ("c", "ARRAY<STRUCT<x: INT, y: STRING>>"),
        ("d", "BIGINT"),
        ("e", "MAP<STRING, INT>"),
    ]


@pytest.mark.parametrize(
    ("written", "spark"),
    [
        ("integer", "INT"),
        ("short", "SMALLINT"),
        ("byte", "TINYINT"),
        ("real", "FLOAT"),
        ("decimal", "DECIMAL(10, 0)"),
        ("numeric(3,1)", "DECIMAL(3, 1)"),
        ("bool", "BOOLEAN"),
        ("timestamp_ntz", "TIMESTAMP_NTZ"),
        ("varchar(10)", "VARCHAR(10)"),
        ("binary", "BINARY"),
    ],
)
def test_synonyms_are_written_as_spark_does(written: str, spark: str) -> None:
    assert canonical(written) == spark


WRITTEN = "a column is written as a name and a type"
TYPES = (
    "types are: TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, BOOLEAN, "
    "DATE, TIMESTAMP, TIMESTAMP_NTZ, ARRAY, MAP, STRUCT"
)


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("a INTT", f"unknown type 'INTT'; did you mean 'INT'? {TYPES}"),
        ("a DECMAL(12,2)", f"unknown type 'DECMAL(12,2)'; did you mean 'DECIMAL'? {TYPES}"),
        ("a ARRAY<STRUCT<b: INT, B: INT>>", "a STRUCT has the field 'b' twice; Spark ignores case"),
        ("a UUID", f"unknown type 'UUID'; {TYPES}"),
        (
            "a UUID, b",
            f"unknown type 'UUID'; {TYPES}; 'b': a column is written as a name and a type",
        ),
        ("a ARRAY<MONEY>", f"unknown type 'ARRAY<MONEY>'; did you mean 'ARRAY'? {TYPES}"),
        (
            "a UUID, b INTT, c MONEY, d",
            (
                f"unknown type 'UUID'; {TYPES}; unknown type 'INTT'; did you mean 'INT'?; "
                f"unknown type 'MONEY'; 'd': {WRITTEN}"
            ),
        ),
        ("a", f"'a': {WRITTEN}"),
        ("a INT, a STRING", "column 'a' is declared twice"),
        ("a INT, a INT, b UUID", f"unknown type 'UUID'; {TYPES}; column 'a' is declared twice"),
        (" ", "a schema is expected, e.g. 'id INT, name STRING'"),
    ],
)
def test_what_is_no_schema_is_refused(refusal: Refusal, ddl: str, message: str) -> None:
    said = refusal(read_columns, ddl)
    assert said == message


@pytest.mark.parametrize(
    "ddl", ["a INT NOT NULL", "a INT DEFAULT 3", "a INT); DROP TABLE x (b INT"]
)
def test_constraints_and_statements_are_no_types(refusal: Refusal, ddl: str) -> None:
    assert refusal(read_columns, ddl)


def test_a_structs_fields_have_types() -> None:
    type_ = "STRUCT<a: INT, b: STRUCT<c: MAP<STRING, INT>>>"
    assert field_of(type_, "A") == "INT"
    assert field_of(field_of(type_, "b"), "c") == "MAP<STRING, INT>"
    assert field_of("INT", "a") == ""
